"""One set-up attempt: from the initial state to an image that verification can start, or to why there is none."""

from time import monotonic

from autoinstall.agents.contract import NO_JOURNAL, Assignment, Installer, Journal, Judge
from autoinstall.errors import SandboxBroken
from autoinstall.integrity import noteworthy
from autoinstall.rebuild.steps import Step, StepRecorder
from autoinstall.sandbox.contract import SandboxProvider, SandboxSpec, Snapshot
from autoinstall.tree import Tree
from autoinstall.values import (
    GoalResult,
    Outcome,
    Recipe,
    RepositorySpec,
    Role,
    SetupReport,
    StopReason,
    Trajectory,
    Value,
)
from autoinstall.verification import check_live, failure_outcome, fresh_spec

_STOPPED = {
    StopReason.GAVE_UP: Outcome.GAVE_UP,
    StopReason.LOOP: Outcome.AGENT_LOOP,
    StopReason.BUDGET: Outcome.BUDGET,
}

_FORGET_BYTE_CODE = "/usr/bin/find /workspace -xdev -name '*.py[co]' -path '*/__pycache__/*' -delete"
"""Byte code that lies beside a source is run in its place while time and size fit, whatever is in it."""


class SetupAttempt(Value):
    """What came of one attempt.

    Attributes:
        live: the targets as they ran in the attempt's own sandbox; empty where nothing was left to check.
        snapshot: the image to verify; None where the attempt failed before.
        steps: what was done to the sandbox.
        changed: noteworthy paths that the image holds beyond the initial state, for the tamper check.
        outcome: why there is no snapshot; None where there is one.
        seconds: wall time, the commit of the image included.
    """

    number: int
    report: SetupReport
    live: tuple[GoalResult, ...] = ()
    snapshot: Snapshot | None = None
    steps: tuple[Step, ...] = ()
    changed: frozenset[str] = frozenset()
    outcome: Outcome | None = None
    reason: str = ""
    seconds: float = 0.0


def attempt_spec(spec: RepositorySpec, initial: Snapshot, number: int, owner: str) -> SandboxSpec:
    """The sandbox of an attempt."""
    return SandboxSpec(
        image=initial.digest,
        recipe=Recipe(env=spec.env),
        limits=spec.limits,
        purpose=f"attempt-{number}",
        owner=owner,
    )


def set_up(
    provider: SandboxProvider,
    installer: Installer,
    judge: Judge,
    *,
    spec: RepositorySpec,
    initial: Snapshot,
    assignment: Assignment,
    tree: Tree,
    owner: str,
    journal: Journal = NO_JOURNAL,
) -> SetupAttempt:
    """Make one attempt in a sandbox of its own, started from `initial`.

    An agent that gave up or went round in circles has failed. One that ran out of its budget may still have got there,
    so the cheap check decides. An image is committed only where that check is passed, or where the agent ended on one
    of its own (`SetupReport.self_checked`); either way the verdict comes from fresh containers, later. One that left a
    sandbox in which no shell starts has failed too.

    Raises:
        Infrastructure: nothing of this attempt counts.
    """
    begun = monotonic()
    report: SetupReport | None = None
    try:
        with provider.open(attempt_spec(spec, initial, assignment.attempt, owner)) as sandbox:
            recorder = StepRecorder(sandbox)
            report = installer.install(assignment, tree, recorder, journal=journal)
            if report.stop in (StopReason.GAVE_UP, StopReason.LOOP):
                return SetupAttempt(
                    number=assignment.attempt,
                    report=report,
                    outcome=_STOPPED[report.stop],
                    reason=report.summary,
                    seconds=monotonic() - begun,
                )
            live: tuple[GoalResult, ...] = ()
            if not (report.stop is StopReason.DONE and report.self_checked):
                live = check_live(recorder, assignment.targets, judge)
                failed = next((result for result in live if not result.matches), None)
                if failed is not None:
                    out_of_budget = report.stop is StopReason.BUDGET
                    return SetupAttempt(
                        number=assignment.attempt,
                        report=report,
                        live=live,
                        outcome=Outcome.BUDGET if out_of_budget else failure_outcome(failed),
                        reason=report.summary
                        if out_of_budget
                        else f"`{failed.goal.command}`: {failed.judgement.reason}",
                        seconds=monotonic() - begun,
                    )
            recipe = sandbox.recipe
            sandbox.run(_FORGET_BYTE_CODE)
            snapshot = sandbox.snapshot()
            first = fresh_spec(snapshot.digest, "verify-1", recipe=recipe, limits=spec.limits, owner=owner)
            provider.prepare(first)
            # Only now, as nothing runs in it any more: these are the very paths that the image holds.
            changed = noteworthy(sandbox.changed_paths(), tree.files)
    except SandboxBroken as error:
        return SetupAttempt(
            number=assignment.attempt,
            report=report or _broken(installer, error),
            outcome=Outcome.GAVE_UP,
            reason=error.message,
            seconds=monotonic() - begun,
        )
    return SetupAttempt(
        number=assignment.attempt,
        report=report.model_copy(update={"recipe": recipe}),
        live=live,
        snapshot=snapshot,
        steps=tuple(recorder.steps),
        changed=changed,
        seconds=monotonic() - begun,
    )


def _broken(installer: Installer, error: SandboxBroken) -> SetupReport:
    """The report of an agent that could not make one, in the sandbox that it left."""
    trajectory = Trajectory(role=Role.INSTALLER, agent=installer.name)
    return SetupReport(stop=StopReason.GAVE_UP, summary=error.message, code=error.code, trajectory=trajectory)
