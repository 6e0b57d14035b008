"""Whether the Dockerfile of an accepted environment makes an image that passes too."""

from collections.abc import Sequence

from autoinstall.agents.contract import Judge
from autoinstall.errors import SandboxBroken, ServiceNotReady
from autoinstall.outputs.complaint import complaint
from autoinstall.rebuild.dockerfile import Word, instructions, variables_of
from autoinstall.redaction import redact
from autoinstall.sandbox.contract import Sandbox, SandboxProvider, SandboxSpec, Snapshot
from autoinstall.values import Goal, Limits, Service, Value, Verdict
from autoinstall.verification import check_live, fresh_spec

PURPOSE = "rebuild"


class Rebuilt(Value):
    """`ok` is None where a judge could not tell; `reason` says what failed."""

    ok: bool | None
    reason: str = ""


def rebuild(
    provider: SandboxProvider,
    dockerfile: str,
    *,
    initial: Snapshot,
    services: Sequence[Service],
    goals: Sequence[Goal],
    judge: Judge,
    limits: Limits,
    seconds: float,
    owner: str,
) -> Rebuilt:
    """Carry out the instructions of `dockerfile` on the initial state, and run `goals` in a container of the image.

    It is done in a sandbox, not by the engine's builder, which knows neither limits nor the egress rules. The initial
    state is what the instructions before the first of the attempt make: the base with the checkout.

    Args:
        services: of the environment; the image's start script starts them.
        seconds: limit of one instruction.

    Raises:
        Infrastructure: a sandbox failed; that is no answer.
    """
    image: Snapshot | None = None
    try:
        with provider.open(SandboxSpec(image=initial.digest, limits=limits, purpose=PURPOSE, owner=owner)) as sandbox:
            failed = _follow(sandbox, dockerfile, seconds)
            if failed:
                return Rebuilt(ok=False, reason=failed)
            for service in services:
                sandbox.start_service(service)
            recipe = sandbox.recipe
            image = sandbox.snapshot()
        fresh = fresh_spec(image.digest, PURPOSE, recipe=recipe, limits=limits, owner=owner)
        with provider.open(fresh) as sandbox:
            return _judged(sandbox, goals, judge)
    except (ServiceNotReady, SandboxBroken) as error:
        return Rebuilt(ok=False, reason=redact(error.message))
    finally:
        if image is not None:
            provider.remove_image(image.digest)


def _follow(sandbox: Sandbox, dockerfile: str, seconds: float) -> str:
    """Carry out the instructions; what failed, empty where nothing did."""
    user: str | None = None
    for instruction in instructions(dockerfile):
        match instruction.word:
            case Word.ENV:
                for name, value in variables_of(instruction.text).items():
                    sandbox.set_env(name, value)
            case Word.USER:
                user = instruction.text
            case Word.RUN:
                result = sandbox.run(instruction.text, timeout=seconds, user=user)
                if result.exit_code != 0:
                    said = complaint(result.output)
                    ending = result.ending or f"Exit code {result.exit_code}."
                    return redact(f"`{instruction.text[:300]}`: {ending} {said}".strip())
            case _:
                pass  # the initial state has what the others make
    return ""


def _judged(sandbox: Sandbox, goals: Sequence[Goal], judge: Judge) -> Rebuilt:
    failed = next((result for result in check_live(sandbox, goals, judge) if not result.matches), None)
    if failed is None:
        return Rebuilt(ok=True)
    ok = None if failed.judgement.verdict is Verdict.UNKNOWN else False
    return Rebuilt(ok=ok, reason=redact(f"{failed.goal.command}: {failed.judgement.reason}"))
