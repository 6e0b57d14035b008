"""Base images: what every sandbox starts from, pulled by reference or built by the catalogue.

A base is named by the content of what it is built from, so it is built once, and again when any of that changes.
"""

import fcntl
import hashlib
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import requests
from docker.errors import DockerException

from autoinstall.errors import EngineFailed, EngineUnavailable, ImageUnavailable, UnusableDirectory
from autoinstall.redaction import redact
from autoinstall.sandbox import debian_layer, interpreters
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.builder import KIND_LABEL, SILENCE_SECONDS, build_image, describe, flatten, pack, remove
from autoinstall.sandbox.catalogue import Base, catalogue, recipe
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.engine import INSTALL_HINT, check_disk, connect
from autoinstall.settings import PassThrough, Settings

REPOSITORY = "autoinstall/base-{name}"

BUILD_FREE_MB = 6144
"""What a build needs on disk while it runs: the layers of its steps and the flattened result."""

_logger = logging.getLogger(__name__)


def ensure_base(client: docker.DockerClient, settings: Settings, name: str | None = None) -> Snapshot:
    """Resolve a name of the catalogue (None: the settings' base image) or an image reference to an image on the
    engine, pulling or building it where it is absent. Takes milliseconds where it is there.

    Where the settings name a directory of interpreters, a base of the catalogue that can take them in has them at
    /opt/python/X.Y, and on the path as `pythonX.Y`.

    Raises:
        ImageUnavailable: it can be neither pulled nor built; the message ends with the end of the build's log.
        RegistryRateLimited: the registry refused for now, and nothing else serves.
        EngineUnavailable, EngineFailed: the engine does not answer, or not as it should.
        DiskFull: too little room to build it.
        UnusableDirectory: the cache directory cannot be written.
    """
    wanted = name or settings.base_image
    base = catalogue().find(wanted)
    try:
        return _ensure_reference(client, settings, wanted) if base is None else _ensure_entry(client, settings, base)
    except requests.RequestException as error:
        raise EngineUnavailable(f"The container engine stopped answering: {error}", hint=INSTALL_HINT) from error
    except DockerException as error:
        raise EngineFailed(
            f"The container engine failed on base image {wanted}: {redact(str(error))[-500:]}"
        ) from error


def present_base(client: docker.DockerClient, settings: Settings, name: str | None = None) -> Snapshot | None:
    """As `ensure_base`, without making anything: None where it would have to be pulled or built."""
    wanted = name or settings.base_image
    base = catalogue().find(wanted)
    if base is None:
        return describe(client, wanted)
    debian = debian_layer.find_debian(client, settings, base)
    plain = debian and describe(client, _reference(base, debian))
    if not plain or not _takes_interpreters(settings, base):
        return plain or None
    return describe(client, interpreters.reference(base, plain, settings))


def outdated_bases(client: docker.DockerClient, settings: Settings) -> tuple[str, ...]:
    """Base images that the catalogue would build differently today, and that are older than the settings keep them.

    Raises:
        EngineUnavailable, EngineFailed: the engine does not answer, or not as it should.
    """
    oldest = time.time() - settings.retention.base_days * 86400
    with engine_errors("list base images"):
        current = {
            found.reference for base in catalogue().bases if (found := present_base(client, settings, base.name))
        }
        current |= {
            _reference(base, debian)
            for base in catalogue().bases
            if (debian := debian_layer.find_debian(client, settings, base))
        }
        listed: Any = client.api.images(filters={"label": f"{KIND_LABEL}=base"})
    tags = [tag for image in listed if int(image["Created"]) < oldest for tag in image.get("RepoTags") or ()]
    ours = [tag.removeprefix("localhost/") for tag in tags]
    return tuple(tag for tag in ours if tag.startswith(REPOSITORY.format(name="")) and tag not in current)


def _ensure_reference(client: docker.DockerClient, settings: Settings, reference: str) -> Snapshot:
    found = describe(client, reference)
    if found is not None:
        return found
    if not re.fullmatch(r"[\w][\w.:@/-]*", reference):
        raise ImageUnavailable(
            f"{reference!r} is neither in the catalogue nor an image reference.", hint=f"The catalogue has {_names()}."
        )
    with _once(settings, hashlib.sha256(reference.encode()).hexdigest()[:16]):
        digest = debian_layer.pull(settings, reference)
    return describe(client, reference) or Snapshot(reference=reference, digest=digest, size_bytes=0)


def _names() -> str:
    return ", ".join(base.name for base in catalogue().bases)


def _ensure_entry(client: docker.DockerClient, settings: Settings, base: Base) -> Snapshot:
    found = present_base(client, settings, base.name)
    if found is not None:
        return found
    with _once(settings, base.name):
        check_disk(client, settings, needed_mb=BUILD_FREE_MB)
        debian = debian_layer.ensure_debian(client, settings, base)
        reference = _reference(base, debian)
        plain = describe(client, reference)
        if plain is None:
            _build(settings, base, debian, reference)
            plain = describe(client, reference)
        if plain is None:
            raise ImageUnavailable(f"{reference} was built, and is gone.", hint="Is something removing images?")
        if _takes_interpreters(settings, base):
            return interpreters.ensure(client, settings, base, plain)
        return plain


def _takes_interpreters(settings: Settings, base: Base) -> bool:
    return settings.interpreters is not None and base.interpreters


def _reference(base: Base, debian: str) -> str:
    """The name of the base by its content: recipe, versions and the Debian layer's identity."""
    digest = hashlib.sha256(debian.encode())
    for name, content in sorted(recipe(base).items()):
        digest.update(f"\0{name}\0".encode() + content)
    digest.update(catalogue().versions.model_dump_json().encode())
    return f"{REPOSITORY.format(name=base.name)}:{digest.hexdigest()[:12]}"


def _build(settings: Settings, base: Base, debian: str, reference: str) -> None:
    """Build the Dockerfile on the Debian layer and flatten the result into `reference`.

    Flattened because the steps' history would show the build's arguments (an index URL may carry a password), and
    their layers the CA bundle that was removed again.
    """
    _logger.info("Building %s (some minutes, once)", reference)
    versions = {f"{tool.upper()}_VERSION": version for tool, version in catalogue().versions.model_dump().items()}
    files = {**recipe(base), "ca.pem": _ca(settings.pass_through)}
    client = connect(settings, timeout=SILENCE_SECONDS)
    scratch = f"autoinstall/build-{base.name}:{reference.rpartition(':')[2]}"
    try:
        build_image(
            client, pack(files), scratch, {"DEBIAN": debian, **versions, **_network_arguments(settings.pass_through)}
        )
        _logger.info("Flattening %s", reference)
        flatten(client, settings, scratch, reference, {KIND_LABEL: "base", "autoinstall.base": base.name})
    finally:
        remove(client, scratch)
        client.close()


def _ca(given: PassThrough) -> bytes:
    if given.ca_bundle is None:
        return b""
    try:
        return given.ca_bundle.read_bytes()
    except OSError as error:
        raise ImageUnavailable(
            f"The CA bundle {given.ca_bundle} cannot be read: {error.strerror}.",
            hint="AUTOINSTALL_PASS_THROUGH__CA_BUNDLE must name a PEM file.",
        ) from error


def _network_arguments(given: PassThrough) -> dict[str, str]:
    arguments = {
        "APT_MIRROR": given.apt_mirror,
        "PIP_INDEX_URL": given.pip_index_url,
        "NPM_REGISTRY": given.npm_registry,
        # The builder knows these by themselves, in both spellings.
        "HTTP_PROXY": given.http_proxy,
        "http_proxy": given.http_proxy,
        "HTTPS_PROXY": given.https_proxy,
        "https_proxy": given.https_proxy,
        "NO_PROXY": given.no_proxy,
        "no_proxy": given.no_proxy,
    }
    return {name: value for name, value in arguments.items() if value}


@contextmanager
def _once(settings: Settings, key: str) -> Iterator[None]:
    """Hold the machine's lock for `key`, so that of several processes one builds and the others find the result."""
    folder = settings.cache / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"image-{key}.lock").open("w")
    except OSError as error:
        raise UnusableDirectory(
            f"{folder} cannot be written: {error.strerror}.", hint="AUTOINSTALL_CACHE names another directory."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
