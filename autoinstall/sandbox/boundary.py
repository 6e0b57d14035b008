"""The one place where the engine client's exceptions become ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import docker.errors
import requests.exceptions
import urllib3.exceptions

from autoinstall.errors import (
    DiskFull,
    EngineFailed,
    EngineUnavailable,
    ImageUnavailable,
    Infrastructure,
    RegistryRateLimited,
    SandboxLost,
)
from autoinstall.redaction import redact

_TRANSPORT = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError)

_NOT_SERVING = ("is not running", "is paused", "container state improper", "no such container")
"""How Docker and Podman (the last two, with status 500) put that a container serves nothing any more."""


@contextmanager
def engine_errors(doing: str, *, sandbox: bool = False) -> Iterator[None]:
    """Raise our errors for the engine's.

    Args:
        doing: what is attempted, as in "could not …".
        sandbox: the call is about a sandbox that ran a moment ago, so that its absence means that it was lost.

    Raises:
        EngineUnavailable: no answer. EngineFailed: an answer that is an error. DiskFull, ImageUnavailable,
        RegistryRateLimited, SandboxLost: errors that are told apart.
    """
    try:
        yield
    except docker.errors.APIError as error:
        raise _of_answer(error, doing, sandbox) from error
    except docker.errors.DockerException as error:
        raise EngineUnavailable(
            f"Could not {doing}: {redact(str(error))}",
            hint="Is the container engine running? Try `autoinstall doctor`.",
        ) from error
    except _TRANSPORT as error:
        raise EngineUnavailable(
            f"Could not {doing}: the container engine does not answer ({type(error).__name__}: {redact(str(error))}).",
            hint="Is it running, and is its socket accessible? Try `autoinstall doctor`.",
        ) from error


def _of_answer(error: docker.errors.APIError, doing: str, sandbox: bool) -> Infrastructure:
    said = redact(str(error.explanation or error))
    lowered = said.lower()
    message = f"Could not {doing}: {said}"
    if "no space left on device" in lowered or "disk quota exceeded" in lowered:
        return DiskFull(message, hint="Free disk space, for instance with `autoinstall prune`.")
    if error.status_code == 429 or "toomanyrequests" in lowered or "rate limit" in lowered:
        return RegistryRateLimited(message, hint="Wait, log in to the registry, or set a registry of your own.")
    if isinstance(error, docker.errors.ImageNotFound):
        return ImageUnavailable(message)
    if sandbox and (error.status_code == 404 or any(words in lowered for words in _NOT_SERVING)):
        return SandboxLost(f"The sandbox is gone: {said}", hint="Something removed or killed its container.")
    if "non-overlapping ipv4 address pool" in lowered or "subnets" in lowered:
        return EngineFailed(
            f"{message}. The engine has no address range left for another network.",
            hint="Run fewer sandboxes at once, run `autoinstall prune`, or widen the engine's `default-address-pools`.",
        )
    return EngineFailed(message)
