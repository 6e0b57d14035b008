"""Committing a container to an image whose configuration is the declared one."""

import json
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import docker.errors

from autoinstall.errors import EngineFailed, EngineUnavailable, ImageUnavailable
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.contract import WORKSPACE, Snapshot
from autoinstall.sandbox.labels import SNAPSHOT

if TYPE_CHECKING:
    from docker.api.client import APIClient

_ADOPT_SECONDS = 1800.0
_SPECIAL = frozenset('\n\r"\\$')
"""What an instruction cannot carry to every engine: line breaks, and what Podman 4 would keep the backslash of."""


def commit(
    api: "APIClient",
    container: str,
    *,
    repository: str,
    tag: str,
    labels: Mapping[str, str],
    entrypoint: tuple[str, ...] = (),
    command: tuple[str, ...] = ("bash",),
    env: Mapping[str, str] | None = None,
    adopt_seconds: float = _ADOPT_SECONDS,
) -> Snapshot:
    """Commit `container` as `repository:tag`, working in /workspace as root.

    A commit of a large container may outlast the client's patience: the engine goes on with it, so the image is looked
    for by a label that no other has, for `adopt_seconds`.

    Raises:
        EngineFailed, DiskFull: the engine says so. EngineUnavailable: no answer, and no image either.
    """
    snapshot = secrets.token_hex(8)
    changes = [
        f"ENTRYPOINT {json.dumps(list(entrypoint))}",
        f"CMD {json.dumps(list(command))}",
        f"WORKDIR {WORKSPACE}",
        "USER root",
        *(f"LABEL {quoted(name)}={quoted(value)}" for name, value in {**labels, SNAPSHOT: snapshot}.items()),
        *(f"ENV {name}={quoted(value)}" for name, value in (env or {}).items() if not _SPECIAL & set(value)),
    ]
    # Docker takes any value from here. Podman does not look at it, so that there only the env file has these.
    conf = {"Env": [f"{name}={value}" for name, value in (env or {}).items() if _SPECIAL & set(value)]}
    try:
        with engine_errors("commit the sandbox to an image", sandbox=True):
            made = api.commit(container, repository=repository, tag=tag, pause=True, changes=changes, conf=conf)
            image = str(made["Id"])
    except EngineUnavailable:
        found = _find(api, snapshot, adopt_seconds)
        if found is None:
            raise
        image = found
    return describe(api, image, f"{repository}:{tag}")


def describe(api: "APIClient", image: str, reference: str) -> Snapshot:
    """The snapshot of an image.

    Raises:
        ImageUnavailable: the engine has no such image.
    """
    with engine_errors(f"inspect image {reference}"):
        try:
            found: dict[str, Any] = cast(Any, api).inspect_image(image)
        except docker.errors.NotFound as error:
            raise ImageUnavailable(f"The engine has no image {reference}.") from error
    return Snapshot(reference=reference, digest=str(found["Id"]), size_bytes=int(found.get("Size") or 0))


def _find(api: "APIClient", snapshot: str, seconds: float) -> str | None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with engine_errors("look for a committed image"):
                found = api.images(filters={"label": f"{SNAPSHOT}={snapshot}"}, quiet=True)
        except (EngineUnavailable, EngineFailed):
            found = []
        if found:
            return str(found[0])
        if time.monotonic() > deadline:
            return None
        time.sleep(1)


def quoted(text: str) -> str:
    """`text` as a quoted word of a Dockerfile instruction, taken literally."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
