"""Running goals where a verdict can be trusted: the baseline, the cheap check, fresh containers, held-out and offline.

Goals of one list run in order in one container; what an earlier one leaves behind is there for a later one, as it is for
somebody who uses the environment. Two runs never share a container.
"""

from collections.abc import Callable, Iterable, Sequence

from autoinstall.agents.contract import Judge
from autoinstall.errors import ServiceNotReady
from autoinstall.outputs.cleaning import clean
from autoinstall.redaction import redact
from autoinstall.sandbox.contract import STATE_DIR, Sandbox, SandboxProvider, SandboxSpec
from autoinstall.settings import VerificationSettings
from autoinstall.values import (
    Category,
    CommandResult,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Outcome,
    Recipe,
    Value,
    Verdict,
)

BASELINE_SECONDS = 300.0
"""At most this long may one goal take on the untouched sandbox; what has not matched by then is not trivial."""

TAIL_CHARACTERS = 4000
"""How much of a failing command's output is kept in a verification."""

# What a goal may leave behind without spoiling the untouched state for the next one.
_PASSING_TRACES = (
    "/tmp",
    "/var/tmp",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/var/log",
    "/var/cache",
    "/root/.cache",
    "/root/.npm",
    "/root/.bash_history",
    "/root/.wget-hsts",
    str(STATE_DIR),
)


class Subject(Value):
    """What is verified: an image, and how its containers are started.

    Attributes:
        image: by image id, so that a tag that moves cannot change what was judged.
        owner: the run that the sandboxes belong to.
    """

    image: str
    recipe: Recipe = Recipe()
    limits: Limits = Limits()
    owner: str = ""

    def spec(self, purpose: str, *, network: bool = True) -> SandboxSpec:
        return SandboxSpec(
            image=self.image, recipe=self.recipe, limits=self.limits, network=network, purpose=purpose, owner=self.owner
        )


class Verification(Value):
    """The verdict on an attempt.

    Attributes:
        outcome: verified, mismatch, flaky, unknown, timeout or out_of_memory.
        code: a finer name where there is one: `service_not_ready`.
        failing_command, output_tail: of the first target that did not match; empty where all did.
        runs: results by fresh container, in the order of the targets.
    """

    outcome: Outcome
    reason: str
    code: str = ""
    failing_command: str = ""
    output_tail: str = ""
    runs: tuple[tuple[GoalResult, ...], ...] = ()

    @property
    def verified(self) -> bool:
        return self.outcome is Outcome.VERIFIED


class Offline(Value):
    """Whether the targets match without a network; `ok` is None where a judge could not tell."""

    ok: bool | None
    results: tuple[GoalResult, ...] = ()
    reason: str = ""


def baseline(
    provider: SandboxProvider, subject: Subject, goals: Sequence[Goal], judge: Judge
) -> tuple[GoalResult, ...]:
    """Every goal on the untouched initial state, in their order.

    A sandbox serves the next goal only while nothing that matters has changed in it. Set-up goals are not run: they
    change the environment by definition, so whether they work now says nothing; they come back as `UNKNOWN`.

    Raises:
        Infrastructure: the sandbox failed; no goal is judged by that.
    """
    results: dict[int, GoalResult] = {}
    waiting = []
    for index, goal in enumerate(goals):
        if goal.category is Category.SETUP:
            results[index] = _not_run(goal)
        else:
            waiting.append(index)
    while waiting:
        with provider.open(subject.spec("baseline")) as sandbox:
            untouched = _lasting(sandbox.changed_paths())
            while waiting:
                index = waiting.pop(0)
                result = run_goal(sandbox, goals[index], judge, limit=_baseline_limit(goals[index], subject.limits))
                results[index] = result
                if result.result.timed_out or _lasting(sandbox.changed_paths()) != untouched:
                    break
    return tuple(results[index] for index in range(len(goals)))


def check_live(sandbox: Sandbox, targets: Sequence[Goal], judge: Judge) -> tuple[GoalResult, ...]:
    """The targets in the container that was just set up, until the first that does not match: cheap, and no verdict."""
    results: list[GoalResult] = []
    for goal in targets:
        results.append(run_goal(sandbox, goal, judge))
        if not results[-1].matches:
            break
    return tuple(results)


def verify(
    provider: SandboxProvider,
    subject: Subject,
    targets: Sequence[Goal],
    judge: Judge,
    settings: VerificationSettings,
    *,
    inspect: Callable[[Sandbox], None] | None = None,
) -> Verification:
    """Run the targets in `settings.runs` fresh containers of the image, with nothing of the set-up mounted.

    A start script or sidecar that does not come up is the attempt's own failure. After a run that ended by time or
    memory there is no further one: it would cost the same again.

    Args:
        inspect: called with the first fresh container before any target runs in it; the integrity check goes here.

    Raises:
        Infrastructure: anything else that failed below us; not a verdict.
    """
    runs: list[tuple[GoalResult, ...]] = []
    for number in range(1, settings.runs + 1):
        try:
            with provider.open(subject.spec(f"verify-{number}")) as sandbox:
                if inspect is not None and number == 1:
                    inspect(sandbox)
                runs.append(tuple(run_goal(sandbox, goal, judge) for goal in targets))
        except ServiceNotReady as error:
            return _not_ready(error, runs)
        if any(result.result.timed_out or result.result.out_of_memory for result in runs[-1]):
            break
    return _verdict(runs)


def held_out(
    provider: SandboxProvider, subject: Subject, goals: Sequence[Goal], judge: Judge
) -> tuple[GoalResult, ...]:
    """The goals that the set-up agent never saw, once, in one fresh container. Set-up goals run last: they change it.

    Raises:
        Infrastructure: the sandbox failed.
    """
    if not goals:
        return ()
    order = sorted(range(len(goals)), key=lambda index: goals[index].category is Category.SETUP)
    results: dict[int, GoalResult] = {}
    with provider.open(subject.spec("held-out")) as sandbox:
        for index in order:
            results[index] = run_goal(sandbox, goals[index], judge)
    return tuple(results[index] for index in range(len(goals)))


def offline(provider: SandboxProvider, subject: Subject, targets: Sequence[Goal], judge: Judge) -> Offline:
    """The targets in a fresh container that has no route out.

    Raises:
        Infrastructure: the sandbox failed; a service that does not come up is an answer instead.
    """
    try:
        with provider.open(subject.spec("offline", network=False)) as sandbox:
            results = tuple(run_goal(sandbox, goal, judge) for goal in targets)
    except ServiceNotReady as error:
        return Offline(ok=False, reason=redact(error.message))
    verdicts = {result.judgement.verdict for result in results}
    failing = next((result for result in results if not result.matches), None)
    ok = False if Verdict.MISMATCH in verdicts else None if Verdict.UNKNOWN in verdicts else True
    reason = f"{failing.goal.command}: {failing.judgement.reason}" if failing is not None else ""
    return Offline(ok=ok, results=results, reason=redact(reason))


def run_goal(sandbox: Sandbox, goal: Goal, judge: Judge, *, limit: float | None = None) -> GoalResult:
    """Run one goal and judge it. A judge that crashes is undecided: neither success nor failure.

    Args:
        limit: seconds; None means the goal's own, or the sandbox's.
    """
    result = sandbox.run(goal.command, timeout=limit if limit is not None else goal.timeout)
    try:
        judgement = judge.judge(goal, result)
    except Exception as error:  # noqa: BLE001 - whatever breaks in a judge must not become a verdict
        reason = f"The judge {judge.name} failed: {type(error).__name__}: {redact(str(error))}"
        judgement = Judgement(verdict=Verdict.UNKNOWN, reason=reason)
    return GoalResult(goal=goal, result=result, judgement=judgement)


def _not_run(goal: Goal) -> GoalResult:
    return GoalResult(
        goal=goal,
        result=CommandResult(command=goal.command, exit_code=0, output=""),
        judgement=Judgement(verdict=Verdict.UNKNOWN, reason="not run: set-up goals are not part of the baseline"),
    )


def _baseline_limit(goal: Goal, limits: Limits) -> float:
    return min(limit for limit in (goal.timeout, limits.command_seconds, BASELINE_SECONDS) if limit is not None)


def _lasting(changed: Iterable[str]) -> frozenset[str]:
    """The changed paths that matter: not those that every command may leave, nor the directories around them."""
    paths = set(changed)
    around = {path[:end] for path in paths for end in range(1, len(path)) if path[end] == "/"}
    return frozenset(
        path
        for path in paths - around
        if not path.startswith(tuple(f"{trace}/" for trace in _PASSING_TRACES)) and path not in _PASSING_TRACES
    )


def _not_ready(error: ServiceNotReady, runs: Sequence[tuple[GoalResult, ...]]) -> Verification:
    outcome = Outcome.FLAKY if runs else Outcome.MISMATCH
    reason = redact(f"The start script does not bring the environment up: {error.message}")
    return Verification(outcome=outcome, reason=reason[:TAIL_CHARACTERS], code=error.code, runs=tuple(runs))


def _verdict(runs: Sequence[tuple[GoalResult, ...]]) -> Verification:
    by_target = list(zip(*runs, strict=True))
    for results in by_target:
        verdicts = {result.judgement.verdict for result in results}
        if {Verdict.MATCHES, Verdict.MISMATCH} <= verdicts:
            bad = next(result for result in results if result.judgement.verdict is Verdict.MISMATCH)
            return _failed(Outcome.FLAKY, bad, runs, "differs from run to run: ")
    for verdict in (Verdict.MISMATCH, Verdict.UNKNOWN):
        failing = next((result for run in runs for result in run if result.judgement.verdict is verdict), None)
        if failing is not None:
            return _failed(_outcome(failing), failing, runs)
    if not by_target:
        return Verification(outcome=Outcome.UNKNOWN, reason="There was no target to verify.", runs=tuple(runs))
    reason = f"All {len(by_target)} targets match in {len(runs)} fresh containers."
    return Verification(outcome=Outcome.VERIFIED, reason=reason, runs=tuple(runs))


def _outcome(failing: GoalResult) -> Outcome:
    if failing.judgement.verdict is Verdict.UNKNOWN:
        return Outcome.UNKNOWN
    if failing.result.timed_out:
        return Outcome.TIMEOUT
    return Outcome.OUT_OF_MEMORY if failing.result.out_of_memory else Outcome.MISMATCH


def _failed(
    outcome: Outcome, failing: GoalResult, runs: Sequence[tuple[GoalResult, ...]], how: str = ""
) -> Verification:
    return Verification(
        outcome=outcome,
        reason=redact(f"{failing.goal.command}: {how}{failing.judgement.reason}"),
        failing_command=failing.goal.command,
        output_tail=redact(clean(failing.result.output)[-TAIL_CHARACTERS:]),
        runs=tuple(runs),
    )
