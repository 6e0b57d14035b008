"""Images made on the engine: built by its own builder, imported from a root file system, flattened to one layer."""

import io
import logging
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import docker
import requests
from docker.errors import DockerException, ImageNotFound

from autoinstall.errors import DiskFull, ImageUnavailable
from autoinstall.redaction import redact
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.engine import connect
from autoinstall.settings import Settings

KIND_LABEL = "autoinstall.kind"
"""On every image and container made here: `base`, `debian`, or `build` for what is only needed meanwhile."""

_BUILD_LABEL = "autoinstall.build"

SILENCE_SECONDS = 1800
"""How long one step of a build, or an import, may say nothing before it counts as failed."""

_LOG_TAIL = 40

_logger = logging.getLogger(__name__)


def describe(client: docker.DockerClient, reference: str) -> Snapshot | None:
    """The image of that name, digest or id; None where the engine does not have it."""
    try:
        image = client.images.get(reference)
    except ImageNotFound:
        return None
    return Snapshot(reference=reference, digest=str(image.id), size_bytes=int(image.attrs.get("Size", 0)))


def build_image(
    client: docker.DockerClient, context: IO[bytes], tag: str, arguments: Mapping[str, str], *, kind: str = "build"
) -> None:
    """Run the engine's own builder on a tar of the build's files, its output going to the log.

    The Dockerfile labels its first stage `autoinstall.build=${BUILD}`, so that what a build leaves of its steps is
    told apart from other builds' and removed.

    Raises:
        ImageUnavailable: a step failed; the message ends with the end of the log.
        DiskFull: there was no room for it.
    """
    stream = client.api.build(
        fileobj=context,
        custom_context=True,
        tag=tag,
        buildargs={**arguments, "BUILD": tag},
        labels={KIND_LABEL: kind},
        rm=True,
        forcerm=True,
        decode=True,
    )
    try:
        follow_build(stream, tag)
    finally:
        _remove_steps(client, tag)


def _remove_steps(client: docker.DockerClient, tag: str) -> None:
    try:
        client.images.prune(filters={"dangling": True, "label": f"{_BUILD_LABEL}={tag}"})
    except (DockerException, requests.RequestException) as error:
        _logger.warning("Steps of the build of %s stay behind: %s", tag, error)


def follow_build(stream: Iterator[dict[str, object]], tag: str) -> None:
    """Log the engine's account of a build, and raise what its failure means (see `build_image`)."""
    tail: list[str] = []
    for step in stream:
        for line in str(step.get("stream", "")).splitlines():
            if line.strip():
                tail = [*tail[1 - _LOG_TAIL :], line]
                _logger.log(logging.INFO if line.startswith("Step ") else logging.DEBUG, "%s", redact(line[:300]))
        if "error" in step:
            raise _build_error(tag, str(step["error"]), "\n".join(tail))


def _build_error(tag: str, error: str, log: str) -> ImageUnavailable | DiskFull:
    if "no space left" in (error + log).lower():
        return DiskFull(f"No room to build {tag}.", hint="Free some space on the engine's disk.")
    return ImageUnavailable(
        f"{tag} could not be built: {redact(error)[:300]}\n{redact(log)[-3000:]}",
        hint="Check that the engine's containers reach the package indexes: AUTOINSTALL_PASS_THROUGH__CA_BUNDLE, "
        "the proxies and the index URLs are handed to the build.",
    )


def pack(files: Mapping[str, bytes]) -> IO[bytes]:
    """A build's context of `files`, by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            add_file(archive, name, content)
    buffer.seek(0)
    return buffer


def add_file(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a plain file to a context."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o644
    archive.addfile(entry, io.BytesIO(content))


def flatten(
    client: docker.DockerClient, settings: Settings, source: str, target: str, labels: Mapping[str, str]
) -> None:
    """Make `target` an image of one layer with the files, variables, directory and command of `source`."""
    config = client.images.get(source).attrs["Config"]
    changes = [f'ENV {variable.partition("=")[0]}="{variable.partition("=")[2]}"' for variable in config["Env"] or ()]
    changes += [f"WORKDIR {config['WorkingDir'] or '/'}", 'CMD ["bash"]']
    changes += [f'LABEL {name}="{value}"' for name, value in labels.items()]
    container = client.api.create_container(source, ["true"], labels={KIND_LABEL: "build"}, use_config_proxy=False)
    try:
        import_stream(settings, client.api.export(container["Id"], chunk_size=2**20), target, changes)
    finally:
        client.api.remove_container(container["Id"], force=True, v=True)


def remove(client: docker.DockerClient, reference: str) -> None:
    """Remove a build's intermediate image with the layers that only it needed."""
    try:
        client.images.remove(reference, force=True)
    except ImageNotFound:
        return
    except (DockerException, requests.RequestException) as error:
        _logger.warning("%s stays behind: %s", reference, error)


def split_reference(reference: str) -> tuple[str, str | None]:
    """`reference` as the pull call wants it: repository, and tag or digest (`latest` where neither is named)."""
    if "@" in reference:
        name, _, digest = reference.partition("@")
        return name, digest
    head, slash, last = reference.rpartition("/")
    name, colon, tag = last.partition(":")
    return head + slash + name, tag if colon else "latest"


def import_tarball(settings: Settings, tarball: Path, reference: str, changes: Sequence[str]) -> None:
    """Make an image of one layer from a root file system."""
    with tarball.open("rb") as stream:
        import_stream(settings, iter(lambda: stream.read(2**20), b""), reference, changes)


def import_stream(settings: Settings, chunks: Iterable[bytes], reference: str, changes: Sequence[str]) -> None:
    """As `import_tarball`, of a tar stream."""
    repository, tag = split_reference(reference)
    client = connect(settings, timeout=SILENCE_SECONDS)
    try:
        client.api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=list(changes))
    except (DockerException, requests.RequestException) as error:
        if "no space left" in str(error).lower():
            raise DiskFull(f"No room to import {reference}.", hint="Free some space on the engine's disk.") from error
        raise ImageUnavailable(f"{reference} could not be imported: {redact(str(error))[-500:]}") from error
    finally:
        client.close()
