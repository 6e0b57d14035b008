"""Stage 5: verdicts from fresh containers, and what an accepted environment is worth."""

from collections.abc import Iterator
from typing import Any

from prefect import task

from autoinstall.attempts import SetupAttempt
from autoinstall.ledger import Ledger, Quality
from autoinstall.rebuild.dockerfile import dockerfile
from autoinstall.rebuild.rebuild import Rebuilt, rebuild
from autoinstall.rebuild.steps import Set
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.values import Category
from autoinstall.verification import HELD_OUT, OFFLINE, Verification, fresh_spec, held_out, offline, verify
from tasks.policy import STAGE, count_retry
from tasks.runtime import current_runtime


@task(name="verification", task_run_name="verify attempt {number}", **STAGE)
def verify_attempt(ledger: Ledger, number: int, attempt: SetupAttempt) -> Verification:
    """Hold the targets' output in fresh containers against their descriptions, after the tamper check."""
    count_retry(ledger)
    if attempt.snapshot is None:
        raise ValueError("an attempt without an image cannot be verified")
    runtime, image = current_runtime(), attempt.snapshot.digest
    following = next(iter(_quality_purposes(ledger)), None)
    verification = verify(
        runtime.provider,
        image,
        attempt.report.recipe,
        ledger.targets,
        ledger.judge(runtime.judge),
        settings=ledger.settings,
        limits=ledger.spec.limits,
        owner=ledger.run_id,
        checkout=ledger.known_checkout,
        report=attempt.report,
        changed=attempt.changed,
        cut_off=ledger.settings.verification.offline,
        then=_fresh(ledger, attempt, following),
    )
    if not verification.verified:
        runtime.provider.release(ledger.run_id)
    return verification


@task(name="quality", task_run_name="quality", **STAGE)
def measure_quality(ledger: Ledger, attempt: SetupAttempt) -> Quality:
    """Run the held-out goals once, and the targets without a network, as far as the settings say and the verification
    has not done it."""
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
    known = ledger.verifications[attempt.number].offline
    asked = settings.offline and known is None
    then = _fresh(ledger, attempt, OFFLINE if asked else None)
    held = held_out(runtime.provider, goals=ledger.held_out, then=then, **shared) if settings.held_out else ()
    if asked:
        known = offline(runtime.provider, goals=ledger.targets, **shared)
    return Quality(held_out=held, offline_ok=known.ok if known is not None else None)


def dockerfile_of(ledger: Ledger, attempt: SetupAttempt) -> str | None:
    """The Dockerfile of an accepted attempt; None with sidecars, which no build has beside it."""
    recipe, checkout = attempt.report.recipe, ledger.known_checkout
    if recipe.sidecars or ledger.base is None:
        return None
    checks = [goal.command for goal in ledger.targets if goal.category in (Category.TEST, Category.LINT)]
    given = (Set(name=name, value=value) for name, value in ledger.spec.env.items())
    steps = (*given, *attempt.steps)
    return dockerfile(checkout.repository, checkout.commit, ledger.base.reference, steps, recipe, checks=checks)


@task(name="rebuild", task_run_name="rebuild", **STAGE)
def rebuild_image(ledger: Ledger, attempt: SetupAttempt, text: str) -> Rebuilt:
    """See whether the Dockerfile of an accepted attempt makes an image that passes too."""
    count_retry(ledger)
    runtime, spec = current_runtime(), ledger.spec
    return rebuild(
        runtime.provider,
        text,
        initial=ledger.known_initial,
        services=attempt.report.recipe.services,
        goals=ledger.targets,
        judge=ledger.judge(runtime.judge),
        limits=spec.limits,
        seconds=spec.limits.attempt_seconds or ledger.settings.limits.attempt_seconds,
        owner=ledger.run_id,
    )


def _quality_purposes(ledger: Ledger) -> Iterator[str]:
    """What `measure_quality` will open, in order."""
    settings = ledger.settings.verification
    if settings.held_out and ledger.held_out:
        yield HELD_OUT
    if settings.offline and settings.runs == 1:
        yield OFFLINE


def _fresh(ledger: Ledger, attempt: SetupAttempt, purpose: str | None) -> SandboxSpec | None:
    if purpose is None or attempt.snapshot is None:
        return None
    image, recipe = attempt.snapshot.digest, attempt.report.recipe
    return fresh_spec(image, purpose, recipe=recipe, limits=ledger.spec.limits, owner=ledger.run_id)
