"""The goal-setter that needs no model: evidence and ecosystems give candidates, the ten best are proposed."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import PurePosixPath

from autoinstall.agents.contract import NO_JOURNAL, Journal, Repository
from autoinstall.agents.hardware import check_hardware
from autoinstall.agents.rules.choice import choose, normal_form
from autoinstall.agents.rules.contract import Candidate, Context, Ecosystem, EvidenceCommand, Source
from autoinstall.agents.rules.ecosystems import all_ecosystems
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.evidence.classify import is_refused, unwrap
from autoinstall.agents.rules.fillers import fillers
from autoinstall.agents.rules.scope import out_of_scope
from autoinstall.agents.rules.servers import server_goals
from autoinstall.agents.rules.trajectory import Recorder
from autoinstall.errors import BadProposal, NothingToSetUp, RegistryUnreachable
from autoinstall.languages import language_of, language_of_file
from autoinstall.proposals import check_goal
from autoinstall.sandbox.contract import Sandbox
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Category, Goal, GoalResult, Proposal, Role, Usage

_SOURCE_WEIGHT = {
    Source.CI: 36,
    Source.AGENTS: 34,
    Source.MAKEFILE: 28,
    Source.README: 26,
    Source.CONTAINER: 20,
    Source.PROCESS: 10,
}
"""Of a command that no ecosystem vouches for: it may need what only its authors have."""

MIN_COVER = 45
"""Weight from which a goal of an ecosystem makes unvouched commands of its category superfluous."""

_LOCAL_SETUP = re.compile(
    r"(?:install|ci|sync|bootstrap|configure|autogen\.sh|i)(?:\s+-[\w-]+(?:[ =]\S+\.txt)?|\s+\.\S*)*$"
)
"""Set-up of the project itself, as against commands that install it, or something else, for its users."""

_OTHER_ENVIRONMENT = re.compile(r"^(?:python3? -m )?(?:poetry|pipenv|pdm|hatch|rye|conda|mamba)\b")
"""Tools that would make an environment of their own, beside the one that was set up."""

_TARGET = r"^(?:make|just|task|invoke|inv|rake)\s+"
_WHOLESALE = re.compile(rf"{_TARGET}(?:all|ci|verify|everything|world|pre-?commit|pre-?push)\b")
_NO_GOAL = re.compile(
    rf"{_TARGET}(?:help|serve\w*|watch\w*|dev|run|start|up|down|shell|deploy\w*|publish\w*|release\w*|upload\w*|update\w*"
    r"|upgrade\w*|format|fmt|fix)\b"
)
"""Targets that go on running, change the sources or reach out."""

_WHOLESALE_WEIGHT = 5
"""Of a command that does all that a project's CI does, where nobody vouches for it: one part that cannot work here
fails the whole, and the parts are goals of their own."""

_EVIDENCE_CATEGORIES = (Category.TEST, Category.LINT, Category.BUILD, Category.SETUP)


class RulesGoalSetter:
    """Proposes from evidence, without a model.

    Args:
        ecosystems: None for all that the rules know.
    """

    name = "rules"

    def __init__(self, settings: Settings, ecosystems: Sequence[Ecosystem] | None = None) -> None:
        self._count = settings.verification.goals
        self._ecosystems = all_ecosystems() if ecosystems is None else tuple(ecosystems)

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
        """As the contract says; goals of `rejected`, and those whose command `complaint` quotes, are not repeated."""
        del journal
        started = time.monotonic()
        check_hardware(tree)
        if reason := out_of_scope(tree):
            raise NothingToSetUp(reason)
        context = Context(repository=repository, tree=tree, findings=collect(tree))
        detected = [ecosystem for ecosystem in self._ecosystems if ecosystem.detect(tree)]
        barred = {normal_form(result.goal.command) for result in rejected}
        vouched = list(self._of_ecosystems(context, sandbox, detected))
        covered = {item.goal.category for item in vouched if item.weight >= MIN_COVER}
        weak = tuple(fillers(tree))
        candidates = [
            candidate
            for candidate in (*vouched, *server_goals(context), *_of_evidence(context, covered), *weak)
            if normal_form(candidate.goal.command) not in barred
            and not (complaint and candidate.goal.command in complaint)
            and not check_goal(candidate.goal)
        ]
        chosen = choose(candidates, self._count)
        if len(chosen) < self._count and rejected:
            # A trivial goal is better than no proposal: it is marked as such and never becomes a target.
            chosen = [*chosen, *_again(rejected, self._count - len(chosen))]
        if len(chosen) < self._count:
            raise BadProposal(
                f"Only {len(chosen)} of {self._count} goals could be found in the repository.",
                hint="Give the goals yourself with --goals.",
            )
        if not _says_anything(chosen, weak, language_of(tree)):
            raise BadProposal(
                "No command was found that shows this project at work: its documents and CI name none that could be "
                f"used, and the rules do not know how {language_of(tree) or 'this kind of repository'} is built.",
                hint="Give the goals yourself with --goals, or have a model set them (--agent llm).",
            )
        recorder = _record(repository, context, detected, chosen)
        usage = Usage(seconds=time.monotonic() - started, steps=recorder.steps)
        goals = tuple(candidate.goal for candidate in chosen)
        return Proposal(goals=goals, trajectory=recorder.trajectory(), usage=usage)

    def _of_ecosystems(self, context: Context, sandbox: Sandbox, detected: Sequence[Ecosystem]) -> Iterator[Candidate]:
        shares = source_shares(context.tree, detected)
        for ecosystem in detected:
            share = shares[ecosystem.name]
            try:
                candidates = list(ecosystem.candidates(context, sandbox))
            except RegistryUnreachable:
                if share == max(shares.values()):
                    raise
                continue  # what the project mostly is may do without it
            for candidate in candidates:
                yield candidate.model_copy(update={"weight": round(candidate.weight * (0.4 + 0.6 * share))})


def _says_anything(chosen: Sequence[Candidate], weak: Sequence[Candidate], own: str | None) -> bool:
    """Whether any goal is about more than git's objects and the syntax of files beside the project's own code, which
    is in the language `own`."""
    fill = {normal_form(candidate.goal.command) for candidate in weak}
    for goal in (candidate.goal for candidate in chosen):
        language = language_of_file(goal.evidence.path) if goal.evidence else None
        if normal_form(goal.command) in fill:
            says = goal.category is not Category.OTHER and language is not None and language == own
        else:  # linters that CI or a configuration names are the project's
            says = goal.category is not Category.LINT or language in (None, own)
        if says:
            return True
    return False


def source_shares(tree: Tree, ecosystems: Iterable[Ecosystem]) -> dict[str, float]:
    """Name → number of the ecosystem's source files, relative to that of the ecosystem that has most."""
    ecosystems = tuple(ecosystems)
    suffixes = [PurePosixPath(path).suffix for path in tree.files]
    counts = {item.name: sum(suffix in item.suffixes for suffix in suffixes) for item in ecosystems}
    most = max(counts.values(), default=0)
    # An ecosystem without source files of its own (make) rides along with the one that has most.
    return {item.name: (counts[item.name] / most if most and item.suffixes else 1.0) for item in ecosystems}


def _of_evidence(context: Context, covered: Set[Category]) -> Iterator[Candidate]:
    """Commands that the repository names and no ecosystem vouches for; the last resort in `covered` categories."""
    for command in context.findings.by_category(*_EVIDENCE_CATEGORIES):
        text, directory = command.command, command.working_directory
        if (
            is_refused(text)
            or (directory and not context.tree.has_directory(directory))
            or _NO_GOAL.search(text)
            or re.search(r"[$*|]|\bapt(?:-get)?\b|--version\b|\b(?:clean|depend|uninstall)\b", text)
        ):
            continue
        is_local = _LOCAL_SETUP.search(text) and not _OTHER_ENVIRONMENT.search(text)
        if command.category is Category.SETUP and not is_local:
            continue
        weight = _WHOLESALE_WEIGHT if _WHOLESALE.search(text) else _SOURCE_WEIGHT[command.source]
        yield Candidate(goal=_goal(command), weight=0 if command.category in covered else weight)


def _goal(command: EvidenceCommand) -> Goal:
    text = unwrap(command.command)
    if command.working_directory:
        text = f"cd {command.working_directory} && {text}"
    words = {
        Category.TEST: ("runs the tests that the project names here; at least 90% of the tests pass", (0, 1), 0.9),
        Category.LINT: ("checks the code and reports what it finds; findings are the code's own", (0, 1), 1.0),
        Category.BUILD: ("builds without an error", (0,), 1.0),
        Category.SETUP: ("installs what the project needs without an error", (0,), 1.0),
    }
    description, exit_codes, rate = words[command.category]
    return Goal(
        command=text,
        description=description,
        category=command.category,
        exit_codes=exit_codes,
        min_pass_rate=rate,
        evidence=command.evidence,
    )


def _again(rejected: Sequence[GoalResult], count: int) -> list[Candidate]:
    return [Candidate(goal=result.goal, weight=0) for result in rejected[:count]]


def _record(
    repository: Repository, context: Context, detected: Sequence[Ecosystem], chosen: Sequence[Candidate]
) -> Recorder:
    recorder = Recorder(
        Role.GOAL_SETTER,
        f"Propose goals for {repository.url} at {repository.commit}: commands that run once its environment is set up.",
    )
    findings = context.findings
    recorder.say(
        f"{len(context.tree.files)} files. Ecosystems: {', '.join(item.name for item in detected) or 'none'}. "
        f"{len(findings.commands)} commands, {len(findings.requirements)} system packages and "
        f"{len(findings.services)} services are named in CI, containers, Makefiles and documents."
    )
    result = json.dumps([candidate.goal.model_dump(mode="json") for candidate in chosen], ensure_ascii=False)
    recorder.call("submit", {"result": result}, "accepted")
    return recorder
