"""Stage 5: verdicts from fresh containers, and what an accepted environment is worth."""

from typing import Any

from prefect import task

from autoinstall.attempts import SetupAttempt
from autoinstall.ledger import Ledger, Quality
from autoinstall.verification import Verification, held_out, offline, verify
from tasks.policy import STAGE, count_retry
from tasks.runtime import current_runtime


@task(name="verification", task_run_name="verify attempt {number}", **STAGE)
def verify_attempt(ledger: Ledger, number: int, attempt: SetupAttempt) -> Verification:
    """Hold the targets' output in fresh containers against their descriptions, after the tamper check."""
    count_retry(ledger)
    if attempt.snapshot is None:
        raise ValueError("an attempt without an image cannot be verified")
    runtime = current_runtime()
    return verify(
        runtime.provider,
        attempt.snapshot.digest,
        attempt.report.recipe,
        ledger.targets,
        ledger.judge(runtime.judge),
        settings=ledger.settings,
        limits=ledger.spec.limits,
        owner=ledger.run_id,
        checkout=ledger.known_checkout,
        report=attempt.report,
        changed=attempt.changed,
    )


@task(name="quality", task_run_name="quality", **STAGE)
def measure_quality(ledger: Ledger, attempt: SetupAttempt) -> Quality:
    """Run the held-out goals once, and the targets without a network, as far as the settings say."""
    count_retry(ledger)
    if attempt.snapshot is None:
        raise ValueError("an attempt without an image has no quality")
    runtime, settings = current_runtime(), ledger.settings.verification
    shared: dict[str, Any] = {
        "image": attempt.snapshot.digest,
        "recipe": attempt.report.recipe,
        "judge": ledger.judge(runtime.judge),
        "limits": ledger.spec.limits,
        "owner": ledger.run_id,
    }
    return Quality(
        held_out=held_out(runtime.provider, goals=ledger.held_out, **shared) if settings.held_out else (),
        offline_ok=offline(runtime.provider, goals=ledger.targets, **shared).ok if settings.offline else None,
    )
