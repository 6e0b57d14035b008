"""Finds the container engine, and tells whether it has room.

Any engine that speaks the Docker API serves: Docker, rootless Docker, Podman's service socket.
"""

import math
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import docker
import requests
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.errors import DockerException
from docker.utils import kwargs_from_env

from autoinstall.errors import DiskFull, EngineUnavailable
from autoinstall.redaction import without_userinfo
from autoinstall.settings import Settings

PROBE_SECONDS = 10
"""How long an engine may take to say its version."""

INSTALL_HINT = (
    "Start Docker or Podman (`systemctl start docker`, `systemctl --user start podman.socket`), or run `make engine`, "
    "which installs and starts one on Debian and Ubuntu; AUTOINSTALL_ENGINE__HOST names a socket elsewhere."
)


@dataclass(frozen=True)
class _Endpoint:
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def socket(self) -> Path | None:
        """The socket file of a local engine."""
        parts = urlsplit(self.url)
        return Path(parts.path) if parts.scheme in ("unix", "http+unix") else None


def connect(settings: Settings, *, timeout: float | None = None) -> docker.DockerClient:
    """A client for the engine that the settings, DOCKER_HOST or the usual sockets lead to; it has answered once.

    The client ignores the process's proxies and CA variables: they are meant for the internet, and would break a local
    socket or the engine's own TLS.

    Args:
        timeout: seconds of one API call; None means the settings' engine timeout.

    Raises:
        EngineUnavailable: none answers; the message says what each one said.
    """
    endpoints = _endpoints(settings, os.environ)
    failures: list[str] = []
    for endpoint in endpoints:
        try:
            return _open(endpoint, math.ceil(timeout or settings.engine.timeout))
        except (DockerException, requests.RequestException, OSError, ValueError) as error:
            failures.append(f"{without_userinfo(endpoint.url)}: {_reason(error)}")
    if not endpoints:
        raise EngineUnavailable("No container engine was found: none of the usual sockets exists.", hint=INSTALL_HINT)
    denied = any("permission denied" in failure.lower() for failure in failures)
    raise EngineUnavailable(
        f"No container engine answers ({'; '.join(failures)}).",
        hint="Add yourself to the group that owns the socket (`sudo usermod -aG docker $USER`, then log in again)."
        if denied
        else INSTALL_HINT,
    )


def _endpoints(settings: Settings, environ: Mapping[str, str]) -> list[_Endpoint]:
    """Where to look, in order. What was named explicitly is the only candidate: another engine has other images."""
    if settings.engine.host:
        return [_Endpoint(settings.engine.host)]
    if environ.get("DOCKER_HOST"):
        options = kwargs_from_env(environment=dict(environ))
        return [_Endpoint(options.pop("base_url"), options)]
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    sockets = (
        Path("/var/run/docker.sock"),
        runtime / "docker.sock",
        Path.home() / ".docker/run/docker.sock",
        Path("/run/podman/podman.sock"),
        runtime / "podman/podman.sock",
    )
    return [_Endpoint(f"unix://{path}") for path in sockets if _exists(path)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a directory that this user may not enter
        return False


def _open(endpoint: _Endpoint, timeout: int) -> docker.DockerClient:
    _knock(endpoint)
    # The version is asked for by hand, because the client's own question would be put while it still trusts the
    # process's proxy and CA variables.
    probe = docker.APIClient(
        base_url=endpoint.url, version=DEFAULT_DOCKER_API_VERSION, timeout=PROBE_SECONDS, **endpoint.options
    )
    try:
        probe.trust_env = False
        version = str(probe.version(api_version=False)["ApiVersion"])
    finally:
        probe.close()
    client = docker.DockerClient(base_url=endpoint.url, version=version, timeout=timeout, **endpoint.options)
    client.api.trust_env = False
    return client


def _knock(endpoint: _Endpoint) -> None:
    """Fail early and cleanly where nobody listens: the client would leave its socket open."""
    if endpoint.socket is not None:
        with socket.socket(socket.AF_UNIX) as knock:
            knock.settimeout(PROBE_SECONDS)
            knock.connect(str(endpoint.socket))


def _reason(error: Exception) -> str:
    text = str(error)
    for known in ("Permission denied", "Connection refused", "No such file or directory", "timed out"):
        if known.lower() in text.lower():
            return known
    return text[:300]


def check_disk(client: docker.DockerClient, settings: Settings, *, needed_mb: int | None = None) -> None:
    """Make sure that the engine's data root (where it is on this machine), the cache and the data directory have room.

    Args:
        needed_mb: free mebibytes to ask for; None means the settings' `engine.min_free_mb`.

    Raises:
        DiskFull: one of them has less.
        EngineUnavailable: the engine does not answer.
    """
    needed = settings.engine.min_free_mb if needed_mb is None else needed_mb
    for place, free in free_space(client, settings).items():
        if free < needed:
            raise DiskFull(
                f"{place} has {free} MiB free, and {needed} MiB are needed.",
                hint="Free some space (`autoinstall prune` removes what no live run owns), "
                "or lower AUTOINSTALL_ENGINE__MIN_FREE_MB.",
            )


def free_space(client: docker.DockerClient, settings: Settings) -> dict[Path, int]:
    """Free mebibytes of every directory on this machine that a run fills."""
    places = [_nearest(path) for path in (settings.cache, settings.data.path) if path is not None]
    root = data_root(client)
    if root is not None:
        places.insert(0, root)
    return {place: shutil.disk_usage(place).free // 2**20 for place in places}


def data_root(client: docker.DockerClient) -> Path | None:
    """The engine's data directory; None where it is on another machine or in a virtual one."""
    try:
        root = str(client.info().get("DockerRootDir", ""))
    except (DockerException, requests.RequestException) as error:
        raise EngineUnavailable(
            f"The container engine stopped answering: {_reason(error)}.", hint=INSTALL_HINT
        ) from error
    # The client rewrites a socket's address to this one; any other means TCP, and so perhaps another machine.
    local = client.api.base_url.startswith("http+docker")
    return Path(root) if local and root and _exists(Path(root)) else None


def _nearest(path: Path) -> Path:
    """`path` or its closest ancestor that exists."""
    return next((candidate for candidate in (path, *path.parents) if _exists(candidate)), Path("/"))
