"""The installer that a model plays: it works in the sandbox with tools until its targets do what they should."""

import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from autoinstall.agents.contract import NO_JOURNAL, Assignment, Journal, Judge
from autoinstall.agents.llm.contract import Budget, Desk, LoopResult, LoopStop
from autoinstall.agents.llm.loop import run_loop
from autoinstall.agents.llm.prompting import brief_command, render
from autoinstall.agents.llm.recording import MeteredModel, start, trajectory_of
from autoinstall.agents.llm.shared import (
    Line,
    budget_of,
    facts,
    opening,
    tail,
    toolchains,
    with_web,
)
from autoinstall.agents.llm.tools import GiveUp, Submit, installing_tools
from autoinstall.agents.llm.tools.base import seconds_left
from autoinstall.integrity.tracked import compare, manifest
from autoinstall.marking import as_data
from autoinstall.models.contract import Message, Model
from autoinstall.sandbox.contract import Sandbox
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Goal, GoalResult, NonEmpty, Role, SetupReport, StopReason, Value
from autoinstall.verification import run_goal

MAX_CHECKS = 6
"""Times that the work may be handed in; after the last of them it is taken as it is, and verification decides."""

MAX_LESSONS = 8
_LAST_CALLS = 4
_SHOWN_PATHS = 10

STOPS = {
    LoopStop.SUBMITTED: StopReason.DONE,
    LoopStop.GAVE_UP: StopReason.GAVE_UP,
    LoopStop.STEPS: StopReason.BUDGET,
    LoopStop.SECONDS: StopReason.BUDGET,
    LoopStop.TOKENS: StopReason.BUDGET,
    LoopStop.COST: StopReason.BUDGET,
    LoopStop.CONTEXT: StopReason.BUDGET,
    LoopStop.TRUNCATED: StopReason.BUDGET,
    LoopStop.REPETITION: StopReason.LOOP,
    LoopStop.NO_CALLS: StopReason.LOOP,
    LoopStop.SANDBOX_BROKEN: StopReason.GAVE_UP,
}

_Lessons = Annotated[
    tuple[Line, ...],
    Field(
        max_length=MAX_LESSONS,
        description="what another attempt, which starts from nothing, should know: facts found out, what worked, what "
        "did not and why; one sentence each",
    ),
]


class Work(Value):
    """Handing in."""

    summary: Annotated[NonEmpty, Field(max_length=2000, description="what was set up, and how, in a few sentences")]
    lessons: _Lessons = ()


class Obstacle(StrEnum):
    """What an attempt failed for; becomes the `code` of its row, so that one kind can be told from another there."""

    NETWORK = "network"
    TOOLCHAIN = "toolchain"
    DEPENDENCY = "dependency"
    HARDWARE = "hardware"
    ACCOUNT = "account"
    MISSING_FILE = "missing_file"
    BROKEN_PROJECT = "broken_project"
    IMPOSSIBLE_TARGET = "impossible_target"
    OTHER = "other"


class Surrender(Value):
    """Giving up."""

    reason: Annotated[NonEmpty, Field(max_length=2000, description="what stands in the way, and how you know")]
    obstacle: Annotated[
        Obstacle,
        Field(
            description="network: a host that cannot be reached from here; toolchain: a compiler or interpreter that "
            "is not to be had; dependency: one that cannot be installed or resolved; account: a login or a paid "
            "service; missing_file: data that nobody has; broken_project: its own sources are at fault; "
            "impossible_target: it cannot fit in any environment"
        ),
    ] = Obstacle.OTHER
    lessons: _Lessons = ()
    permanent: Annotated[
        bool,
        Field(
            description="no attempt can ever succeed here: it needs hardware, an account or a file that nobody has, or "
            "a host that the network here does not let through (not one that is down for a moment)"
        ),
    ] = False


class LlmInstaller:
    """Sets up as a model sees fit.

    Args:
        judge: what the targets are held against when the work is handed in, as verification will; no model.
    """

    name = "llm"

    def __init__(self, settings: Settings, model: Model, judge: Judge) -> None:
        self._settings = settings
        self._model = model
        self._judge = judge

    def install(
        self, assignment: Assignment, tree: Tree, sandbox: Sandbox, *, journal: Journal = NO_JOURNAL
    ) -> SetupReport:
        """As the contract says. What does not fit when the work is handed in comes back to the model, bounded."""
        settings = self._settings
        budget = budget_of(settings, assignment.limits.attempt_seconds or settings.limits.attempt_seconds)
        command_seconds = assignment.limits.command_seconds or settings.limits.command_seconds
        desk = Desk(
            sandbox=sandbox,
            tree=tree,
            observation_characters=settings.agents.observation_characters,
            command_seconds=command_seconds,
            deadline=budget.deadline,
            targets=assignment.targets,
        )
        checker = _Checker(assignment.targets, self._judge, settings.allow_modified)
        ending = (Submit(Work, _SUBMIT, checker.check), GiveUp(Surrender, _GIVE_UP))
        tools = (*with_web(installing_tools(), settings), *ending)
        specs = tuple(tool.spec for tool in tools)
        messages = opening(self._system(budget, command_seconds), _task(assignment, tree, sandbox))
        start(journal, Role.INSTALLER, self._model, specs)
        result = run_loop(MeteredModel(self._model, journal), messages, tools, desk, budget, journal)
        return SetupReport(
            stop=STOPS[result.stop],
            summary=_summary(result, desk),
            recipe=sandbox.recipe,
            mocks=tuple(desk.mocks),
            lessons=_lessons(result, desk, checker),
            code=desk.submitted.obstacle.value if isinstance(desk.submitted, Surrender) else "",
            exhausted=isinstance(desk.submitted, Surrender) and desk.submitted.permanent,
            self_checked=result.stop is LoopStop.SUBMITTED and not checker.complaint,
            modified=checker.modified,
            trajectory=trajectory_of(Role.INSTALLER, self._model.name, result.messages, specs, result.stop),
            usage=result.usage,
        )

    def _system(self, budget: Budget, command_seconds: float) -> str:
        return render(
            "installer_system",
            checks=MAX_CHECKS - 1,
            steps=budget.steps,
            minutes=max(1, round((budget.deadline - time.monotonic()) / 60)),
            command_seconds=round(command_seconds),
            package_stubs=self._settings.allow_package_stubs,
            word="target",
        )


_SUBMIT = """
Hand in the work once every target does what it should. The targets are run again as they are written; what does not \
fit comes back to you."""

_GIVE_UP = """
End this attempt without a result, where it cannot succeed any more, or only by tampering. Say what the next attempt \
should know: it starts from the initial state and is told only your lessons."""


def _task(assignment: Assignment, tree: Tree, sandbox: Sandbox) -> str:
    return render(
        "installer_task",
        **facts(assignment.repository, tree),
        toolchains=toolchains(sandbox),
        targets=assignment.targets,
        attempt=assignment.attempt,
        lessons="\n".join(f"- {' '.join(lesson.split())}" for lesson in assignment.lessons),
        env=sorted(sandbox.recipe.env),
    )


class _Checker:
    """The check in the container that was just set up: cheap, and no verdict.

    Attributes:
        complaint: of the last check; empty where everything fitted.
        failing: the targets that did not match then.
        modified: tracked files that differ as policy allows.
    """

    def __init__(self, targets: Sequence[Goal], judge: Judge, allow_modified: Sequence[str]) -> None:
        self._targets = targets
        self._judge = judge
        self._allow_modified = allow_modified
        self._checks = 0
        self.complaint = ""
        self.failing: tuple[GoalResult, ...] = ()
        self.modified: tuple[str, ...] = ()

    def check(self, work: Work, desk: Desk) -> str:
        """What does not fit, for the model; empty once everything does, or once it was handed in too often."""
        del work
        self._checks += 1
        results = tuple(
            run_goal(desk.sandbox, goal, self._judge, limit=seconds_left(desk, goal.timeout or desk.command_seconds))
            for goal in self._targets
        )
        self.failing = tuple(result for result in results if not result.matches)
        self.complaint = "\n\n".join(map(_complaint, self.failing)) or self._about_sources(desk)
        left = MAX_CHECKS - self._checks
        if not self.complaint or left <= 0:
            return ""
        return f"{self.complaint}\n\nMend the cause and hand in again ({left} more times), or give up."

    def _about_sources(self, desk: Desk) -> str:
        """Only the tracked files: what else counts as tampering is for verification to find."""
        compared = compare(desk.sandbox, desk.tree.root, manifest(desk.tree.root), self._allow_modified)
        self.modified = compared.modified
        if not compared.violations:
            return ""
        shown = [f"{violation.path} {violation.detail}" for violation in compared.violations[:_SHOWN_PATHS]]
        more = (
            [f"and {len(compared.violations) - _SHOWN_PATHS} more"] if len(compared.violations) > _SHOWN_PATHS else []
        )
        listing = "\n".join([*shown, *more])
        return (
            "The targets fit, but files of the commit do not have the commit's content any more, which verification "
            f"calls tampering. Put them back (`git checkout -- PATH`) and find another way:\n{listing}"
        )


def _complaint(result: GoalResult) -> str:
    """What is wrong with one target, with the end of its output."""
    output = tail(result.result) or "(nothing)"
    return (
        f"{brief_command(result.goal.command)} does not do what it should: {result.judgement.reason}\n"
        f"It exited with {result.result.exit_code} after {result.result.duration:.1f} s, and printed at the end:\n"
        f"{as_data(output, source='output of the target')}"
    )


def _summary(result: LoopResult, desk: Desk) -> str:
    if isinstance(desk.submitted, Work):
        return desk.submitted.summary
    return desk.submitted.reason if isinstance(desk.submitted, Surrender) else result.detail


def _lessons(result: LoopResult, desk: Desk, checker: _Checker) -> tuple[str, ...]:
    """The model's own, and where it could not say them, what its last steps tell."""
    failing = [
        f"{brief_command(item.goal.command)} failed in the end: {item.judgement.reason}"[:400]
        for item in checker.failing
    ]
    if isinstance(desk.submitted, Surrender):
        return tuple(dict.fromkeys((desk.submitted.reason[:400], *desk.submitted.lessons, *failing)))
    if isinstance(desk.submitted, Work):
        return tuple(dict.fromkeys((*desk.submitted.lessons, *failing)))
    last = list(_commands(result.messages))[-_LAST_CALLS:]
    return (f"An attempt was cut off: {result.detail}", *failing, *last)


def _commands(messages: Sequence[Message]) -> Iterator[str]:
    """Each command that was run, with how it ended and the last thing it printed."""
    answers = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    for message in messages:
        for call in message.tool_calls:
            if call.name != "bash" or not call.arguments or call.id not in answers:
                continue
            lines = [line.strip() for line in answers[call.id].split("\n") if line.strip()]
            command = " ".join(str(call.arguments.get("command", "")).split())[:160]
            ended = lines[0][:60] if lines else ""
            printed = [line for line in lines[1:] if not (line.startswith("[") and line.endswith("]"))]  # no hints
            yield f"`{command}` {ended} {printed[-1][:160] if printed else ''}".strip()
