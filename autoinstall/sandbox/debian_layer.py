"""The bottom of every base: a Debian suite, pulled where a registry answers, else made from Debian's packages."""

import logging
import os
import platform
import shutil
import subprocess
import tempfile
from http import HTTPStatus
from pathlib import Path

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound

from autoinstall.errors import DiskFull, ImageUnavailable, RegistryRateLimited
from autoinstall.redaction import redact
from autoinstall.sandbox.builder import import_tarball, split_reference
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.engine import connect
from autoinstall.sandbox.registry import credentials
from autoinstall.settings import Settings

PULL_SILENCE_SECONDS = 20
"""How long a registry may say nothing before it counts as not answering."""

BOOTSTRAP_SECONDS = 1200

LOCAL_REPOSITORY = "autoinstall/debian"
"""Where Debian layers made on this engine are kept, tagged by suite."""

_logger = logging.getLogger(__name__)


def ensure_debian(client: docker.DockerClient, settings: Settings, base: Base) -> str:
    """The id of the image of the entry's suite, got in the cheapest way that works.

    Raises:
        RegistryRateLimited: the registry refused for now, and the layer could not be made here either.
        ImageUnavailable: it can be neither pulled nor made.
        DiskFull: there is no room for it.
    """
    found = find_debian(client, settings, base)
    if found is not None:
        return found
    limited: RegistryRateLimited | None = None
    references = _references(settings, base)
    for reference in references:
        try:
            return pull(settings, reference)
        except RegistryRateLimited as error:
            limited = error
            _logger.warning("%s", error.message)
        except ImageUnavailable as error:
            _logger.info("%s", error.message)
    try:
        return _bootstrap(client, settings, base)
    except ImageUnavailable as error:
        if limited is not None:
            raise limited from error
        raise


def find_debian(client: docker.DockerClient, settings: Settings, base: Base) -> str | None:
    """The id of the suite's image where the engine has it already."""
    for reference in (*_references(settings, base), f"{LOCAL_REPOSITORY}:{base.suite}"):
        try:
            return str(client.images.get(reference).id)
        except ImageNotFound:
            continue
    return None


def _references(settings: Settings, base: Base) -> list[str]:
    mirrored = [f"{settings.engine.registry.rstrip('/')}/{base.image}"] if settings.engine.registry else []
    return [*mirrored, base.image]


def pull(settings: Settings, reference: str) -> str:
    """Pull `reference` in one try and return its image id. Gives up when the registry is silent for some seconds.

    Raises:
        RegistryRateLimited, ImageUnavailable, DiskFull: by what the registry or the engine said.
    """
    _logger.info("Pulling %s", reference)
    client = connect(settings, timeout=PULL_SILENCE_SECONDS)
    try:
        repository, tag = split_reference(reference)
        login = credentials(settings, reference)
        for step in client.api.pull(repository, tag=tag, stream=True, decode=True, auth_config=login):
            if "error" in step:
                raise pull_error(reference, str(step["error"]))
        return str(client.images.get(reference).id)
    except APIError as error:
        # The explanation alone, without the engine's own address; but only the whole tells of a limit.
        limited = error.status_code == HTTPStatus.TOO_MANY_REQUESTS
        raise pull_error(reference, str(error if limited else error.explanation or error)) from error
    except (DockerException, requests.RequestException) as error:
        raise pull_error(reference, str(error)) from error
    finally:
        client.close()


def pull_error(reference: str, text: str) -> ImageUnavailable | RegistryRateLimited | DiskFull:
    """What a failed pull means. Registries signal their limit as 429, or through the engine as a 500."""
    lowered = text.lower()
    detail = redact(text.strip())[-500:]
    if "toomanyrequests" in lowered or "429" in lowered or "too many requests" in lowered or "rate limit" in lowered:
        return RegistryRateLimited(
            f"The registry of {reference} asked us to slow down: {detail}",
            hint="Wait, log the engine in to the registry, or set AUTOINSTALL_ENGINE__REGISTRY to a mirror.",
        )
    if "no space left" in lowered:
        return DiskFull(f"No room for {reference}: {detail}", hint="Free some space on the engine's disk.")
    return ImageUnavailable(
        f"{reference} could not be pulled: {detail}",
        hint="Check the name, and whether the engine reaches the registry.",
    )


def _bootstrap(client: docker.DockerClient, settings: Settings, base: Base) -> str:
    """Make the suite's layer with mmdebstrap and import it."""
    _logger.info("Making a Debian %s layer from Debian's packages", base.suite)
    _require_mmdebstrap(base)
    settings.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="debian-", dir=settings.cache) as folder:
        tarball = Path(folder) / f"{base.suite}.tar"
        logs: list[str] = []
        for mirror in _mirrors(settings):
            done = _run(["mmdebstrap", *_options(), base.suite, str(tarball), *mirror], settings)
            if done.returncode == 0:
                break
            logs.append(done.stderr)
            _logger.info("mmdebstrap failed with mirror %s", redact(" ".join(mirror)) or "by default")
        else:
            raise _bootstrap_error(base, logs[-1])
        reference = f"{LOCAL_REPOSITORY}:{base.suite}"
        import_tarball(settings, tarball, reference, ['CMD ["bash"]', f"LABEL autoinstall.kind=debian-{base.suite}"])
    return str(client.images.get(reference).id)


def _options() -> list[str]:
    # Suites past their end of life have Release files past their date.
    return ["--variant=minbase", '--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=Acquire::Retries "3"']


def _mirrors(settings: Settings) -> list[list[str]]:
    """Arguments that name a mirror, in the order to try: the settings' alone, else the host's, else the built-in one.

    The built-in one comes with the suite's updates and security archives.
    """
    if settings.pass_through.apt_mirror:
        return [[settings.pass_through.apt_mirror]]
    return [[], *([[uri]] if (uri := _host_mirror()) else [])]


def _host_mirror() -> str:
    """The Debian archive that this machine itself installs from; empty where it is no Debian."""
    if shutil.which("apt-get") is None:
        return ""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL) $(COMPONENT)", "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return next((row[0] for row in rows if row[1:] == ["Debian", "main"]), "")


def _require_mmdebstrap(base: Base) -> None:
    if shutil.which("mmdebstrap"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _logger.info("Installing mmdebstrap")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-qy", "--no-install-recommends", "mmdebstrap", "debian-archive-keyring"]
        for command in (["apt-get", "update", "-q"], install):
            subprocess.run(command, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
    if not shutil.which("mmdebstrap"):
        raise ImageUnavailable(
            f"No image registry serves {base.image}, and mmdebstrap, which would make it from Debian's packages, "
            f"is not on this {platform.system()} machine.",
            hint="Install mmdebstrap, or set AUTOINSTALL_ENGINE__REGISTRY to a registry that has the image.",
        )


def _run(command: list[str], settings: Settings) -> subprocess.CompletedProcess[str]:
    given = settings.pass_through
    proxies = {"http_proxy": given.http_proxy, "https_proxy": given.https_proxy, "no_proxy": given.no_proxy}
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **{key: value for key, value in proxies.items() if value}}
    try:
        return subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=BOOTSTRAP_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise ImageUnavailable(
            f"{command[0]} did not finish in {BOOTSTRAP_SECONDS} s.", hint="Check the network, and the apt mirror."
        ) from error


def _bootstrap_error(base: Base, log: str) -> ImageUnavailable | DiskFull:
    if "no space left" in log.lower():
        return DiskFull(f"No room to make a Debian {base.suite} layer.", hint="Free some space below the cache.")
    return ImageUnavailable(
        f"mmdebstrap could not make a Debian {base.suite} layer:\n{redact(log)[-2000:]}",
        hint="Check the network; AUTOINSTALL_PASS_THROUGH__APT_MIRROR names another mirror.",
    )
