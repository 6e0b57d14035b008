"""Images of accepted environments in a registry, where every host finds them by digest."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from autoinstall.errors import EngineFailed, RegistryRateLimited
from autoinstall.redaction import redact
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.engine import connect
from autoinstall.settings import Settings

if TYPE_CHECKING:
    from docker.api.client import APIClient


DENIED = ("denied", "unauthorized", "no basic auth", "authentication required")
"""How registries say that they do not know who asks, or what for."""


def push(settings: Settings, snapshot: Snapshot, tag: str) -> Snapshot:
    """Push an image to the settings' repository as `tag`; the snapshot that comes back is named by its digest there.

    Pushing again what is there already moves no layer. The tag keeps the registry's garbage collection away; on the
    engine nothing is left of it.

    Raises:
        RegistryRateLimited, EngineFailed, EngineUnavailable: the registry or the engine said no, or nothing.
        DiskFull: the registry has no room.
        ImageUnavailable: the image is not on the engine.
    """
    repository = settings.registry.repository
    client = connect(settings, timeout=settings.registry.seconds)
    try:
        api = client.api
        with engine_errors(f"push {repository}:{tag}"):
            api.tag(snapshot.digest, repository, tag, force=True)
            try:
                steps = api.push(
                    repository, tag, stream=True, decode=True, auth_config=credentials(settings, repository)
                )
                digest = _pushed(repository, steps) or _known_digest(api, snapshot.digest, repository)
            finally:
                api.remove_image(f"{repository}:{tag}", noprune=True)
    finally:
        client.close()
    return snapshot.model_copy(update={"reference": f"{repository}@{digest}"})


def credentials(settings: Settings, reference: str) -> dict[str, str] | None:
    """What the settings have for the registry that `reference` is in; None leaves it to the engine client's own
    configuration."""
    given = settings.registry
    if not given.username or reference.partition("/")[0] != given.repository.partition("/")[0]:
        return None
    return {"username": given.username, "password": given.password.get_secret_value()}


def _pushed(repository: str, steps: Iterable[Mapping[str, Any]]) -> str | None:
    """Follow a push to its end; the digest that the registry gave, where the engine passes it on.

    Raises:
        RegistryRateLimited, EngineFailed
    """
    digest = None
    for step in steps:
        if "error" in step:
            raise _push_error(repository, str(step["error"]))
        digest = (step.get("aux") or {}).get("Digest") or digest
    return digest


def _push_error(repository: str, said: str) -> RegistryRateLimited | EngineFailed:
    lowered, detail = said.lower(), redact(said.strip())[-500:]
    if any(sign in lowered for sign in ("toomanyrequests", "too many requests", "429", "rate limit")):
        return RegistryRateLimited(f"The registry of {repository} asked us to slow down: {detail}")
    if any(sign in lowered for sign in DENIED):
        hint = "Set AUTOINSTALL_REGISTRY__USERNAME and …__PASSWORD, or `docker login` as the user that runs this."
    elif "http response to https" in lowered:
        hint = "A registry without TLS must be named in the engine's `insecure-registries`."
    else:
        hint = "Does the engine reach the registry, and has that room?"
    return EngineFailed(f"{repository} did not take the image: {detail}", hint=hint)


def _known_digest(api: "APIClient", image: str, repository: str) -> str:
    """The digest by which the engine knows the image in `repository`, for engines that do not report it."""
    known: list[str] = cast(Any, api).inspect_image(image).get("RepoDigests") or []
    for reference in known:
        name, _, digest = reference.partition("@")
        if name == repository:
            return digest
    raise EngineFailed(f"The engine pushed {image} to {repository}, and does not say under which digest.")
