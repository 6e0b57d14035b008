"""Running goals where a verdict can be trusted: the cheap check, fresh containers, held-out and offline.

Goals of one list run in order in one container; what an earlier one leaves behind is there for a later one, as it is
for somebody who uses the environment. Two runs never share a container.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from autoinstall.agents.contract import Judge
from autoinstall.controls import find_forgery, suspects
from autoinstall.errors import Cancelled, Infrastructure, ServiceNotReady
from autoinstall.integrity import IntegrityReport, check_integrity
from autoinstall.logs import telling
from autoinstall.outputs.cleaning import clean
from autoinstall.redaction import redact
from autoinstall.sandbox.contract import Sandbox, SandboxProvider, SandboxSpec
from autoinstall.settings import Settings
from autoinstall.values import (
    Category,
    Checkout,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Outcome,
    Recipe,
    SetupReport,
    Value,
    Verdict,
)

TAIL_CHARACTERS = 4000
"""How much of a failing command's output is kept in a verification."""

HELD_OUT, OFFLINE = "held-out", "offline"

_PLAIN = Recipe()
_DEFAULTS = Limits()


class Offline(Value):
    """Whether the targets match without a network; `ok` is None where a judge could not tell."""

    ok: bool | None
    results: tuple[GoalResult, ...] = ()
    reason: str = ""


class Verification(Value):
    """The verdict on an attempt.

    Attributes:
        outcome: VERIFIED only where every target matched in every run.
        code: stable name of what was wrong beside the outcome: `service_not_ready`, the kind of tampering; else empty.
        failing_command, output_tail: of the first target that did not match; empty where all did.
        runs: results of the fresh containers, run by run.
        modified: tracked files that differ from the commit as policy allows.
        offline: what the targets gave without a network; None where that was not tried.
    """

    outcome: Outcome
    reason: str
    code: str = ""
    failing_command: str = ""
    output_tail: str = ""
    runs: tuple[tuple[GoalResult, ...], ...] = ()
    modified: tuple[str, ...] = ()
    offline: Offline | None = None

    @property
    def results(self) -> tuple[GoalResult, ...]:
        """Of the run that decided: the first in which a target did not match, else the last."""
        failing = (run for run in self.runs if not all(result.matches for result in run))
        return next(failing, self.runs[-1] if self.runs else ())

    @property
    def verified(self) -> bool:
        return self.outcome is Outcome.VERIFIED


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
    image: str,
    recipe: Recipe,
    targets: Sequence[Goal],
    judge: Judge,
    *,
    settings: Settings,
    limits: Limits = _DEFAULTS,
    owner: str = "",
    checkout: Checkout | None = None,
    report: SetupReport | None = None,
    changed: Collection[str] | None = None,
    cut_off: bool = False,
    then: SandboxSpec | None = None,
) -> Verification:
    """Run the targets in fresh containers of the image, with nothing of the set-up mounted.

    There are `settings.verification.runs` of them, and one in which no target runs is checked for tampering; with
    sidecars that is the first, before its targets. Where all match, test commands are held against a control run, in
    which tests can only fail (`controls`). A start script or sidecar that does not come up is the attempt's own
    failure. After a run that ended by time or memory there is no further one: it would cost the same again.

    Args:
        image: by image id, so that a tag that moves cannot change what is judged.
        checkout: the pristine tree; None skips the tamper check, for an environment that passed it before.
        report: the installer's, whose declared mocks the tamper check knows.
        changed: what the image holds beyond the initial state (`SetupAttempt.changed`); goes with `checkout`.
        cut_off: have the last of several runs without a network. Where all matches there, it is as good as the run that
            it stands for; where not, that one is made too, and decides.
        then: what will be opened next if all goes well; prepared during the last run.

    Whoever calls this releases `owner`: of what was prepared, an early end leaves some that nobody opens.

    Raises:
        Infrastructure: anything else that failed below us; not a verdict.
    """
    if checkout is not None and changed is None:
        raise ValueError("without the changed paths there is no tamper check")
    fresh = partial(fresh_spec, image, recipe=recipe, limits=limits, owner=owner)
    names = [f"verify-{number}" for number in range(1, settings.verification.runs + 1)]
    control = fresh("control")
    controlled = checkout is not None and settings.verification.control
    runs = _Runs(
        provider=provider,
        targets=targets,
        judge=judge,
        specs=tuple(map(fresh, names)),
        without=fresh(OFFLINE) if cut_off and len(names) > 1 else None,
        after=lambda first: control if controlled and suspects(first) else then,
    )

    def examine(sandbox: Sandbox) -> IntegrityReport:
        if checkout is None:
            return IntegrityReport()
        return check_integrity(
            sandbox,
            checkout.path,
            targets,
            changed or (),
            mocks=report.mocks if report is not None else (),
            allow_modified=settings.allow_modified,
            allow_package_stubs=settings.allow_package_stubs,
        )

    def examine_apart() -> IntegrityReport:
        with provider.open(fresh("integrity")) as sandbox:
            return examine(sandbox)

    # It takes seconds, and can be done while the targets run elsewhere. Sidecars may be too large to have twice.
    apart = checkout is not None and not recipe.sidecars
    try:
        if apart:
            with ThreadPoolExecutor(1) as beside:
                examination = beside.submit(examine_apart)
                runs.make()
                integrity = examination.result()
        else:
            integrity = runs.make(examine)
        if integrity.tampered:
            return _tampered(integrity)
        verification = _verdict(runs.made).model_copy(update={"modified": integrity.modified, "offline": runs.offline})
        if checkout is None or not controlled or not verification.verified:
            return verification
        if then is not None:
            provider.prepare(then)
        forgery = find_forgery(provider, control, checkout.path, runs.made[0])
    except ServiceNotReady as error:
        return _not_ready(error, runs.made)
    return _tampered(integrity.model_copy(update={"tampered": (forgery,)})) if forgery else verification


@dataclass
class _Runs:
    """The runs of the targets, one container each, as they are made.

    Attributes:
        specs: of the containers, in order.
        without: of the one without a network that may stand for the last of several; None for none.
        after: of the results of the first run, what is opened after the last.
        offline: what came of the run without a network, where there was one.
    """

    provider: SandboxProvider
    targets: Sequence[Goal]
    judge: Judge
    specs: tuple[SandboxSpec, ...]
    without: SandboxSpec | None
    after: Callable[[tuple[GoalResult, ...]], SandboxSpec | None]
    made: list[tuple[GoalResult, ...]] = field(default_factory=list)
    offline: Offline | None = None

    def make(self, examine: Callable[[Sandbox], IntegrityReport] | None = None) -> IntegrityReport:
        """Make them until one ends by time or memory, or `examine`, which sees the first container, finds tampering."""
        integrity = IntegrityReport()
        for number, spec in enumerate(self.specs, start=1):
            with self.provider.open(spec) as sandbox:
                if examine is not None and number == 1:
                    integrity = examine(sandbox)
                    if integrity.tampered:
                        break
                self._prepare(number)
                self.made.append(tuple(run_goal(sandbox, goal, self.judge) for goal in self.targets))
            if any(result.result.timed_out or result.result.out_of_memory for result in self.made[-1]):
                break
            if self.without is not None and number == len(self.specs) - 1 and self._matches_without(self.without):
                break
        return integrity

    def _prepare(self, number: int) -> None:
        if number == len(self.specs):
            following = self.after(self.made[0] if self.made else ())
        else:
            following = self.without if number == len(self.specs) - 1 and self.without else self.specs[number]
        if following is not None:
            self.provider.prepare(following)

    def _matches_without(self, spec: SandboxSpec) -> bool:
        if not all(result.matches for run in self.made for result in run):
            return False
        self.offline = _run_offline(self.provider, spec, self.targets, self.judge, self.after(self.made[0]))
        if self.offline.ok:
            self.made.append(self.offline.results)
        return bool(self.offline.ok)


def fresh_spec(image: str, purpose: str, *, recipe: Recipe, limits: Limits = _DEFAULTS, owner: str = "") -> SandboxSpec:
    """A fresh container of a committed image: `verify-N`, `control`, `HELD_OUT` or `OFFLINE`, which has no network."""
    network = purpose != OFFLINE
    return SandboxSpec(image=image, recipe=recipe, limits=limits, network=network, purpose=purpose, owner=owner)


def held_out(
    provider: SandboxProvider,
    *,
    image: str,
    recipe: Recipe,
    goals: Sequence[Goal],
    judge: Judge,
    limits: Limits = _DEFAULTS,
    owner: str = "",
    then: SandboxSpec | None = None,
) -> tuple[GoalResult, ...]:
    """The goals that the set-up agent never saw, once, in one fresh container. Set-up goals run last: they change it.

    Args:
        then: what will be opened next; prepared meanwhile.

    Raises:
        Infrastructure: the sandbox failed.
    """
    if not goals:
        return ()
    order = sorted(range(len(goals)), key=lambda index: goals[index].category is Category.SETUP)
    results: dict[int, GoalResult] = {}
    with provider.open(fresh_spec(image, HELD_OUT, recipe=recipe, limits=limits, owner=owner)) as sandbox:
        if then is not None:
            provider.prepare(then)
        for index in order:
            results[index] = run_goal(sandbox, goals[index], judge)
    return tuple(results[index] for index in range(len(goals)))


def offline(
    provider: SandboxProvider,
    *,
    image: str,
    recipe: Recipe,
    goals: Sequence[Goal],
    judge: Judge,
    limits: Limits = _DEFAULTS,
    owner: str = "",
) -> Offline:
    """The targets in a fresh container that has no route out.

    Raises:
        Infrastructure: the sandbox failed; a service that does not come up is an answer instead.
    """
    spec = fresh_spec(image, OFFLINE, recipe=recipe, limits=limits, owner=owner)
    return _run_offline(provider, spec, goals, judge)


def _run_offline(
    provider: SandboxProvider, spec: SandboxSpec, goals: Sequence[Goal], judge: Judge, then: SandboxSpec | None = None
) -> Offline:
    try:
        with provider.open(spec) as sandbox:
            if then is not None:
                provider.prepare(then)
            results = tuple(run_goal(sandbox, goal, judge) for goal in goals)
    except ServiceNotReady as error:
        return Offline(ok=False, reason=redact(error.message))
    verdicts = {result.judgement.verdict for result in results}
    failing = next((result for result in results if not result.matches), None)
    reason = f"{failing.goal.command}: {failing.judgement.reason}" if failing is not None else ""
    ok = None if Verdict.UNKNOWN in verdicts else True
    return Offline(ok=False if Verdict.MISMATCH in verdicts else ok, results=results, reason=redact(reason))


def run_goal(sandbox: Sandbox, goal: Goal, judge: Judge, *, limit: float | None = None) -> GoalResult:
    """Run one goal and judge it. A judge that crashes is undecided: neither success nor failure.

    Args:
        limit: seconds; None means the goal's own, or the sandbox's.

    Raises:
        Infrastructure, Cancelled: of the sandbox, or of the endpoint of the judge's model; no verdict is made of it.
    """
    with telling():
        result = sandbox.run(goal.command, timeout=limit if limit is not None else goal.timeout)
    try:
        judgement = judge.judge(goal, result)
    except (Infrastructure, Cancelled):
        raise
    except Exception as error:  # noqa: BLE001 - whatever breaks in a judge must not become a verdict
        reason = f"The judge {judge.name} failed: {type(error).__name__}: {redact(str(error))}"
        judgement = Judgement(verdict=Verdict.UNKNOWN, reason=reason)
    return GoalResult(goal=goal, result=result, judgement=judgement)


def failure_outcome(failing: GoalResult) -> Outcome:
    """How an attempt ended for which this goal did not match."""
    if failing.judgement.verdict is Verdict.UNKNOWN:
        return Outcome.UNKNOWN
    if failing.result.timed_out:
        return Outcome.TIMEOUT
    return Outcome.OUT_OF_MEMORY if failing.result.out_of_memory else Outcome.MISMATCH


def _tampered(integrity: IntegrityReport) -> Verification:
    shown = "; ".join(f"{violation.path}: {violation.detail}" for violation in integrity.tampered[:5])
    more = f"; and {len(integrity.tampered) - 5} more" if len(integrity.tampered) > 5 else ""
    return Verification(
        outcome=Outcome.TAMPERED,
        code=str(integrity.tampered[0].kind),
        reason=redact(f"{shown}{more}"),
        modified=integrity.modified,
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
            return _failed(failure_outcome(failing), failing, runs)
    if not by_target:
        return Verification(outcome=Outcome.UNKNOWN, reason="There was no target to verify.", runs=tuple(runs))
    reason = f"All targets ({len(by_target)}) match in {len(runs)} fresh containers."
    return Verification(outcome=Outcome.VERIFIED, reason=reason, runs=tuple(runs))


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
