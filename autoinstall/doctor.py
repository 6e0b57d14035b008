"""Looks at this machine as a run will: engine, disk, base image, registry, network from inside a sandbox, git,
directories. Prefect is looked at by `flows.examination`."""

import shutil
import subprocess
from collections.abc import Callable, Generator, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import docker
import requests
from docker.errors import APIError, DockerException

from autoinstall.agents.rules.registries import Survey, survey
from autoinstall.datasets.store import store_of
from autoinstall.errors import AutoinstallError
from autoinstall.models.probe import probe
from autoinstall.models.registry import model_for, names_in_use, resolve
from autoinstall.preflight import try_directory
from autoinstall.redaction import redact, without_userinfo
from autoinstall.sandbox.contract import SandboxProvider, SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.sandbox.engine import connect, free_space
from autoinstall.sandbox.images import present_base
from autoinstall.sandbox.registry import DENIED, credentials
from autoinstall.settings import Settings
from autoinstall.values import Value

NETWORK_SECONDS = 60
"""How long one question to an index may take from inside a sandbox."""

PROBES = (
    ("apt", "apt-get update -q -o Acquire::Retries=0 2>&1 | tail -n 5; exit ${PIPESTATUS[0]}", "APT_MIRROR"),
    ("pip", "pip download --no-deps --no-cache-dir --retries 0 -d /tmp/doctor pip", "PIP_INDEX_URL"),
    ("npm", "npm ping --fetch-retries=0", "NPM_REGISTRY"),
)
"""What is asked from inside: the tool, its own way to reach its index, and the setting that leads it elsewhere."""


class Status(StrEnum):
    """`WARN` is a run that may do worse than it could; `FAIL` is one that cannot work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Value):
    """One finding; `hint` says what to do about it where something is wrong."""

    name: str
    status: Status
    detail: str
    hint: str = ""

    @classmethod
    def failed(cls, name: str, error: AutoinstallError) -> "Check":
        """The finding that an error of the product is."""
        return cls(name=name, status=Status.FAIL, detail=error.message, hint=error.hint)


def examine(
    settings: Settings,
    *,
    connect: Callable[[Settings], docker.DockerClient] = connect,
    provider: SandboxProvider | None = None,
) -> Generator[Check]:
    """Everything that can be found out without changing anything, as it is found; takes seconds, and minutes where a
    network is slow. Never raises for what it finds. What is open meanwhile is closed with the generator."""
    yield git()
    yield from mirrors(settings)
    yield datasets(settings)
    yield writable("cache directory", settings.cache)
    try:
        client = connect(settings)
    except AutoinstallError as error:
        yield Check.failed("engine", error)
        return
    try:
        yield from engine(client, settings)
        base = present_base(client, settings)
        if settings.registry.repository:
            yield registry(client, settings)
    except AutoinstallError as error:
        yield Check.failed("engine", error)
        return
    except (DockerException, requests.RequestException) as error:
        yield Check(name="engine", status=Status.FAIL, detail=f"The engine failed: {redact(str(error))[:300]}")
        return
    finally:
        client.close()
    yield base_image(settings, base)
    if base is not None:
        yield from network(settings, provider or DockerProvider(settings), base)


def examine_models(settings: Settings, *, asked: bool = False) -> Generator[Check]:
    """Whether the endpoints serve that play a role; costs some thousand tokens each. Never raises for what it finds.

    Args:
        asked: examine the default model even where rules play every role.
    """
    names = names_in_use(settings) or (("",) if asked else ())
    for name in names:
        yield from _examine_model(settings, name)


def _examine_model(settings: Settings, name: str) -> Iterator[Check]:
    try:
        _, variable = resolve(settings, name)
        model = model_for(settings, name)
    except AutoinstallError as error:
        yield Check.failed(f"model {name}".strip(), error)
        return
    for found in probe(model, variable=variable):
        status = Status(found.level)
        yield Check(name=f"model {model.name}: {found.name}", status=status, detail=found.detail, hint=found.hint)


def datasets(settings: Settings) -> Check:
    """Whether rows can be written to where the datasets are."""
    place = settings.data
    if place.path is not None:
        return writable("data directory", place.path)
    try:
        store_of(place, settings.storage).prepare(())
    except AutoinstallError as error:
        return Check.failed("datasets", error)
    return Check(name="datasets", status=Status.OK, detail=f"{place} can be written")


def git() -> Check:
    """Whether git is there, and new enough for the protocol and the options that clones use."""
    path = shutil.which("git")
    if path is None:
        return Check(name="git", status=Status.FAIL, detail="git is not installed.", hint="Install git 2.30 or later.")
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
    return Check(name="git", status=Status.OK, detail=asked.stdout.strip())


def mirrors(settings: Settings) -> Iterator[Check]:
    """Whether the directories that mirrors lead to are there; others are asked when something is cloned."""
    for prefix, target in settings.git_mirrors.items():
        name = f"mirror of {without_userinfo(prefix)}"
        parts = urlsplit(target)
        if parts.scheme not in ("file", ""):
            yield Check(name=name, status=Status.OK, detail=f"{without_userinfo(target)} (asked when cloning)")
            continue
        path = Path(url2pathname(parts.path))
        if path.is_dir():
            yield Check(name=name, status=Status.OK, detail=str(path))
        else:
            hint = "Correct AUTOINSTALL_GIT_MIRRORS, or create the directory."
            yield Check(name=name, status=Status.FAIL, detail=f"{path} is no directory.", hint=hint)


def writable(name: str, path: Path) -> Check:
    """Whether files can be made in `path`, which is made if it is absent."""
    try:
        try_directory(path)
    except OSError as error:
        hint = f"Choose another with AUTOINSTALL_{name.partition(' ')[0].upper()}."
        return Check(
            name=name, status=Status.FAIL, detail=f"{path} cannot be written: {error.strerror or error}.", hint=hint
        )
    return Check(name=name, status=Status.OK, detail=str(path))


def engine(client: docker.DockerClient, settings: Settings) -> Iterator[Check]:
    """Version, storage, control groups, memory and disk."""
    version, info = client.version(), client.info()
    name = (version.get("Platform") or {}).get("Name") or "Docker-compatible engine"
    platform = f"{version.get('Os', '?')}/{version.get('Arch', '?')}"
    yield Check(name="engine", status=Status.OK, detail=f"{name} {version['Version']}, {platform}")
    yield storage(str(info.get("Driver", "?")))
    yield control_groups(info)
    yield memory(int(info.get("MemTotal", 0)) // 2**20, settings)
    for place, free in free_space(client, settings).items():
        low = free < settings.engine.min_free_mb
        yield Check(
            name=f"disk {place}",
            status=Status.FAIL if low else Status.WARN if free < 5 * settings.engine.min_free_mb else Status.OK,
            detail=f"{free} MiB free, a sandbox needs {settings.engine.min_free_mb} to start",
            hint="Free some space; `autoinstall prune` removes what no live run owns." if low else "",
        )


def storage(driver: str) -> Check:
    """vfs copies the whole image for each container."""
    if driver == "vfs":
        hint = "Use a file system that overlay2 or fuse-overlayfs works on."
        return Check(name="storage", status=Status.WARN, detail="vfs: slow, and takes much disk", hint=hint)
    return Check(name="storage", status=Status.OK, detail=driver)


def control_groups(info: dict[str, Any]) -> Check:
    """Whether the engine can hold a sandbox to its limits."""
    missing = [limit for limit in ("MemoryLimit", "CpuCfsQuota", "PidsLimit") if info.get(limit) is False]
    detail = f"version {info.get('CgroupVersion', '?')}, {info.get('CgroupDriver', '?')}"
    if missing:
        hint = "Rootless engines need the controllers delegated to the user (systemd's Delegate=)."
        return Check(
            name="control groups", status=Status.WARN, detail=f"{detail}; without {', '.join(missing)}", hint=hint
        )
    return Check(name="control groups", status=Status.OK, detail=detail)


def memory(total_mb: int, settings: Settings) -> Check:
    """Whether one sandbox at its limit fits."""
    wanted = settings.limits.memory_mb
    detail = f"{total_mb} MiB, a sandbox may use {wanted}"
    if total_mb >= wanted:
        return Check(name="memory", status=Status.OK, detail=detail)
    return Check(
        name="memory", status=Status.WARN, detail=detail, hint="Lower AUTOINSTALL_LIMITS__MEMORY_MB, or add memory."
    )


def registry(client: docker.DockerClient, settings: Settings) -> Check:
    """Whether the engine reaches the registry of the images, and that knows the credentials. Whether it takes images
    shows when one is pushed."""
    repository = settings.registry.repository
    name = repository.partition("/")[0]
    try:
        api: Any = client.api
        api.inspect_distribution(f"{repository}:doctor", auth_config=credentials(settings, repository))
    except APIError as error:
        said = redact(str(error.explanation or error))
        lowered = said.lower()
        if "manifest unknown" in lowered or "name unknown" in lowered:
            return Check(name="registry", status=Status.OK, detail=f"{name} answers, and knows who asks")
        hint = "Is its address right, and does the engine reach it?"
        if error.status_code in (401, 403) or any(sign in lowered for sign in DENIED):
            hint = "Set AUTOINSTALL_REGISTRY__USERNAME and …__PASSWORD, or `docker login` as the user that runs this."
        elif "http response to https" in lowered:
            hint = "A registry without TLS must be named in the engine's `insecure-registries`."
        elif error.status_code in (404, 501) and "page not found" in lowered:
            detail = f"This engine cannot be asked about {name}; the first push shows whether it takes images."
            return Check(name="registry", status=Status.WARN, detail=detail)
        return Check(name="registry", status=Status.FAIL, detail=f"{name} does not serve: {said[:300]}", hint=hint)
    return Check(name="registry", status=Status.OK, detail=f"{name} answers, and knows who asks")


def base_image(settings: Settings, base: Snapshot | None) -> Check:
    """Whether the base image is there already."""
    if base is None:
        return Check(
            name="base image",
            status=Status.WARN,
            detail=f"{settings.base_image} is not on the engine yet.",
            hint="`make base` builds it now; otherwise the first run does, which takes some minutes.",
        )
    detail = f"{base.reference}, {base.size_bytes / 2**30:.1f} GiB"
    return Check(name="base image", status=Status.OK, detail=detail)


def network(settings: Settings, provider: SandboxProvider, base: Snapshot) -> Iterator[Check]:
    """Whether the package tools reach their indexes from inside a sandbox, with what the settings pass through."""
    try:
        with provider.open(SandboxSpec(image=base.digest, purpose="doctor")) as sandbox:
            for tool, command, setting in PROBES:
                result = sandbox.run(command, timeout=NETWORK_SECONDS)
                name = f"network: {tool}"
                if result.exit_code == 0:
                    detail = f"reached from a sandbox in {result.duration:.1f} s"
                    yield Check(name=name, status=Status.OK, detail=detail)
                else:
                    yield unreachable(name, redact(result.output), setting, settings)
            yield registries(survey(sandbox))
    except AutoinstallError as error:
        yield Check.failed("network", error)


def registries(found: Survey) -> Check:
    """Of the languages' registries, those that do not answer: a run goes on without them, where Debian serves."""
    slow = f"; slow, and only when asked alone: {', '.join(found.slow)}" if found.slow else ""
    if not found.silent:
        detail = f"those of all languages answer{slow}"
        return Check(name="network: registries", status=Status.OK, detail=detail)
    return Check(
        name="network: registries",
        status=Status.WARN,
        detail=f"no answer from {', '.join(found.silent)}{slow}",
        hint="Repositories that need packages of theirs that Debian does not have are given up at once.",
    )


def unreachable(name: str, output: str, setting: str, settings: Settings) -> Check:
    """What a failed probe's output points to: a certificate, a name, or else the way there."""
    lowered = output.lower()
    words = [line.strip() for line in output.splitlines() if line.strip()]
    if "certificate" in lowered or "self-signed" in lowered or "self signed" in lowered:
        cause = "its certificate is not trusted"
        hint = "AUTOINSTALL_PASS_THROUGH__CA_BUNDLE hands the host's CA bundle to sandboxes."
        if settings.pass_through.ca_bundle is not None:
            hint = f"{settings.pass_through.ca_bundle} lacks the certificate of the proxy in between."
    elif any(sign in lowered for sign in ("resolv", "resolution", "enotfound", "eai_again", "name or service")):
        cause = "its name is not resolved"
        hint = f"Check the engine's DNS, or AUTOINSTALL_PASS_THROUGH__{setting} and the proxies."
    else:
        cause = "no answer"
        hint = f"AUTOINSTALL_PASS_THROUGH__{setting} names another index, HTTP_PROXY and HTTPS_PROXY there a proxy."
    said = f": {words[-1][:200]}" if words else ""
    return Check(name=name, status=Status.FAIL, detail=f"not reached from a sandbox, {cause}{said}", hint=hint)
