"""The goal-setter that a model plays: it studies the checkout with tools, tries things, and submits ten goals."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from autoinstall.agents.contract import NO_JOURNAL, Journal, Judge, Repository
from autoinstall.agents.hardware import check_hardware
from autoinstall.agents.llm.contract import Desk, LoopResult, LoopStop
from autoinstall.agents.llm.drafts import GoalDraft, TryGoal
from autoinstall.agents.llm.loop import run_loop
from autoinstall.agents.llm.prompting import brief_command, reading_of_descriptions, render
from autoinstall.agents.llm.recording import MeteredModel, start, trajectory_of
from autoinstall.agents.llm.shared import (
    budget_of,
    facts,
    opening,
    tail,
    toolchains,
    with_web,
)
from autoinstall.agents.llm.tools import GiveUp, Submit, exploring_tools
from autoinstall.errors import BadProposal, BudgetExhausted, NeedsGpu, NothingToSetUp, UnsupportedArch
from autoinstall.models.contract import Model
from autoinstall.proposals import check_proposal, normalised
from autoinstall.sandbox.contract import Sandbox
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence, Goal, GoalResult, NonEmpty, Proposal, Role, Value

MAX_SUBMISSIONS = 5
"""Times that the goals may be handed in before the proposal counts as bad."""

MIN_CATEGORIES = 3
MAX_SETUP = 2
_LACKING: dict[str, type[NothingToSetUp]] = {"gpu": NeedsGpu, "architecture": UnsupportedArch}
_AT_FAULT = frozenset({LoopStop.REPETITION, LoopStop.NO_CALLS, LoopStop.SANDBOX_BROKEN})


class Goals(Value):
    goals: Annotated[
        tuple[GoalDraft, ...], Field(description="the goals; on handing in again, only those that are new")
    ]
    keep: Annotated[
        tuple[int, ...],
        Field(description="on handing in again: numbers of the goals of the time before that stay as they were"),
    ] = ()


class NoGoals(Value):
    """Giving up."""

    reason: Annotated[NonEmpty, Field(max_length=1000, description="why there are no goals to propose")]
    no_code: Annotated[
        bool, Field(description="nothing in the repository could be set up or run on Linux, whatever is installed")
    ]
    hardware: Annotated[
        Literal["none", "gpu", "architecture"],
        Field(description="what nearly all of it needs and no sandbox here has: a GPU, or a processor of another kind"),
    ] = "none"


class LlmGoalSetter:
    """Proposes what a model submits, once `check_proposal` and the checkout have nothing against it.

    Args:
        judge: what drafts are tried against; no model.
    """

    name = "llm"

    def __init__(self, settings: Settings, model: Model, judge: Judge) -> None:
        self._settings = settings
        self._model = model
        self._judge = judge

    def propose(
        self,
        repository: Repository,
        tree: Tree,
        sandbox: Sandbox,
        *,
        rejected: Sequence[GoalResult] = (),
        complaint: str = "",
        journal: Journal = NO_JOURNAL,
    ) -> Proposal:
        """As the contract says. Complaints come back to the model within the conversation, bounded."""
        settings = self._settings
        check_hardware(tree)
        count = settings.verification.goals
        checker = _Checker(tree, count, rejected)
        ending = (Submit(Goals, _SUBMIT.format(count=count), checker.check), GiveUp(NoGoals, _GIVE_UP))
        tools = (*with_web(exploring_tools(), settings), TryGoal(self._judge), *ending)
        specs = tuple(tool.spec for tool in tools)
        budget = budget_of(settings, settings.agents.goal_setting_seconds)
        desk = Desk(
            sandbox=sandbox,
            tree=tree,
            observation_characters=settings.agents.observation_characters,
            command_seconds=settings.limits.command_seconds,
            deadline=budget.deadline,
        )
        task = render(
            "goal_setter_task",
            **facts(repository, tree),
            toolchains=toolchains(sandbox),
            count=count,
            rejected=_show(rejected),
            complaint=complaint,
        )
        start(journal, Role.GOAL_SETTER, self._model, specs)
        model = MeteredModel(self._model, journal)
        result = run_loop(model, opening(self._system(), task), tools, desk, budget, journal)
        _raise_without_goals(result, desk, checker)
        return Proposal(
            goals=checker.goals,
            trajectory=trajectory_of(Role.GOAL_SETTER, self._model.name, result.messages, specs, result.stop),
            usage=result.usage,
        )

    def _system(self) -> str:
        settings = self._settings
        return render(
            "goal_setter_system",
            count=settings.verification.goals,
            targets=settings.verification.targets,
            minutes=round(settings.agents.goal_setting_seconds / 60),
            steps=settings.agents.steps,
            command_seconds=round(settings.limits.command_seconds),
            min_categories=MIN_CATEGORIES,
            max_setup=MAX_SETUP,
            reading=reading_of_descriptions(),
            word="goal",
        )


_SUBMIT = """
Hand in all {count} goals at once. They are checked, and what is wrong with them comes back to you; then only \
those that replace others need to be sent again."""

_GIVE_UP = """
End the work without goals: only where nothing in the repository could be set up or run, whatever is installed."""


class _Checker:
    """Checks what is submitted, and keeps the last of it.

    Attributes:
        goals: as last submitted. complaint: what is wrong with them.
    """

    def __init__(self, tree: Tree, count: int, rejected: Sequence[GoalResult]) -> None:
        self._tree = tree
        self._count = count
        self._barred = {normalised(result.goal.command) for result in rejected}
        self._submissions = 0
        self.goals: tuple[Goal, ...] = ()
        self.complaint = ""

    def check(self, submitted: Goals, desk: Desk) -> str:
        """What is wrong, for the model; empty once it can be used, or once it was handed in too often."""
        del desk
        self._submissions += 1
        unknown = [str(number) for number in submitted.keep if not 0 < number <= len(self.goals)]
        kept = tuple(goal for number, goal in enumerate(self.goals, start=1) if number in submitted.keep)
        self.goals = (*kept, *map(self._goal, submitted.goals))
        complaints = [check_proposal(self.goals, self._count), *self._complaints()]
        if unknown:
            complaints.append(f"There was no goal {', '.join(unknown)} to keep.")
        self.complaint = "\n".join(filter(None, complaints))
        if not self.complaint or self._submissions >= MAX_SUBMISSIONS:
            return ""
        return f"{self.complaint}\n{self._numbered()}"

    def _numbered(self) -> str:
        """The goals by the numbers that they can be kept by."""
        listing = "\n".join(
            f"{number}. {brief_command(goal.command)}" for number, goal in enumerate(self.goals, start=1)
        )
        return (
            f"So far there are:\n{listing}\nName the numbers of the good ones in `keep`, and send only the others anew."
        )

    def _goal(self, draft: GoalDraft) -> Goal:
        path = draft.evidence_path.removeprefix("/workspace/").removeprefix("./")
        lines = dict(self._tree.lines(path)) if draft.evidence_line else {}
        text = lines.get(draft.evidence_line, "").strip()[:200]
        evidence = Evidence(path=path, line=draft.evidence_line, text=text)
        return draft.goal().model_copy(update={"evidence": evidence})

    def _complaints(self) -> list[str]:
        found = []
        for number, goal in enumerate(self.goals, start=1):
            if normalised(goal.command) in self._barred:
                found.append(f"Goal {number} ({goal.command}) fits before anything is set up, so it proves nothing.")
            if goal.evidence is not None and (problem := self._evidence_problem(goal.evidence)):
                found.append(f"Goal {number} ({goal.command}): {problem}")
        kinds = Counter(goal.category for goal in self.goals)
        wanted = min(MIN_CATEGORIES, self._count)
        if len(kinds) < wanted:
            found.append(f"The goals are of {len(kinds)} categories; use at least {wanted}: {', '.join(Category)}.")
        if kinds[Category.SETUP] > MAX_SETUP:
            found.append(f"There are {kinds[Category.SETUP]} setup goals; at most {MAX_SETUP} are of use.")
        return found

    def _evidence_problem(self, evidence: Evidence) -> str:
        if not self._tree.has(evidence.path):
            return f"its evidence, {evidence.path}, is no file of the checkout."
        lines = sum(1 for _ in self._tree.lines(evidence.path))
        if evidence.line > lines:
            return f"its evidence is line {evidence.line} of {evidence.path}, which has {lines}."
        return ""


def _raise_without_goals(result: LoopResult, desk: Desk, checker: _Checker) -> None:
    """
    Raises:
        BadProposal, NothingToSetUp, BudgetExhausted: the talk gave no goals that can be used.
    """
    left = desk.submitted
    if result.stop is LoopStop.SUBMITTED:
        if checker.complaint:
            raise BadProposal(f"The model's goals could not be used after {MAX_SUBMISSIONS} tries: {checker.complaint}")
        return
    if result.stop is LoopStop.GAVE_UP:
        reason = left.reason if isinstance(left, NoGoals) else result.detail
        if isinstance(left, NoGoals) and left.hardware != "none":
            raise _LACKING[left.hardware](f"The model found that the hardware is not there: {reason}")
        if isinstance(left, NoGoals) and left.no_code:
            raise NothingToSetUp(f"The model found nothing that could be set up: {reason}")
        raise BadProposal(f"The model gave up: {reason}", hint="Give the goals yourself with --goals.")
    if result.stop in _AT_FAULT:
        raise BadProposal(f"The model proposed nothing: {result.detail}")
    raise BudgetExhausted(f"The goal-setter's budget was over before it had goals: {result.detail}")


def _show(rejected: Sequence[GoalResult]) -> str:
    parts = (
        f"{result.goal.command}\n  described as: {result.goal.description}\n  exit code {result.result.exit_code}, "
        f"and at the end it printed: {tail(result.result, 200) or '(nothing)'}"
        for result in rejected
    )
    return "\n".join(parts)
