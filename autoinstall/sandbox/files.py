"""Files of a running container: written and read from inside, and looked at from outside by the engine."""

import contextlib
import io
import json
import os
import tarfile
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

import docker.errors

from autoinstall.errors import SandboxLost
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.contract import WORKSPACE, PathStat, TreeEntry
from autoinstall.sandbox.stream import STDOUT, ExecStream, UnknownUser

if TYPE_CHECKING:
    from docker.api.client import APIClient

_SECONDS = 300.0

# $1 path, $2 size, $3 mode. It says `ready` once the file is open, so that nothing is sent into a process that failed.
_WRITE = """
mkdir -p -- "${1%/*}/" && exec 3>"$1" && echo ready && head -c "$2" >&3 && if [ "$3" = x ]; then chmod +x -- "$1"; fi
"""

# $1 path, $2 limit. 66: no regular file. 67: too large.
_READ = """
[ -f "$1" ] || exit 66
[ "$(stat -L -c %s -- "$1")" -le "$2" ] || exit 67
exec cat -- "$1"
"""
_ABSENT, _TOO_LARGE = 66, 67

_STAT_HEADER = "X-Docker-Container-Path-Stat"
_CIRCLES = ("too many links", "too many levels of symbolic links")
"""How Docker and Podman put that links lead round in circles."""
# The engine gives modes as Go's os.FileMode.
_DIRECTORY, _SYMLINK, _OTHER = 1 << 31, 1 << 27, (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19)


def absolute(path: str) -> str:
    """`path` as it is meant inside a sandbox: relative to /workspace."""
    return str(WORKSPACE / path)


def write_file(api: "APIClient", container: str, path: str, content: bytes, *, executable: bool, user: str) -> None:
    """See `Sandbox.write_file`."""
    path = absolute(path)
    argv = ["bash", "-c", _WRITE, "autoinstall", path, str(len(content)), "x" if executable else "-"]
    deadline = time.monotonic() + _SECONDS
    said = bytearray()
    ready = False
    left = memoryview(content)
    try:
        opened = ExecStream(api, container, argv, user=user, env={}, stdin=True)
    except UnknownUser as error:
        raise OSError(f"{path} cannot be written: {error.message}") from error
    with opened as stream:
        while True:
            if time.monotonic() > deadline:
                raise SandboxLost(f"The sandbox does not take the content of {path}.")
            if ready and left and stream.can_send(1.0):
                left = left[stream.send_some(left[: 256 * 1024]) :]
                continue
            try:
                frames = stream.receive(0.001 if ready and left else 5.0)
            except TimeoutError:
                continue
            if frames is None:
                break
            for channel, data in frames:
                ready = ready or channel == STDOUT
                if channel != STDOUT:
                    said += data
        code = stream.exit_code()
    if code is None:
        raise SandboxLost(f"The engine does not know whether {path} was written.")
    if code != 0:
        raise OSError(f"{path} cannot be written: {said.decode('utf-8', 'replace').strip()[-300:] or f'exit {code}'}")


def read_file(api: "APIClient", container: str, path: str, *, max_bytes: int) -> bytes:
    """See `Sandbox.read_file`."""
    path = absolute(path)
    argv = ["bash", "-c", _READ, "autoinstall", path, str(max_bytes)]
    out, said = bytearray(), bytearray()
    deadline = time.monotonic() + _SECONDS
    with ExecStream(api, container, argv, user="root", env={}, stdin=False) as stream:
        try:
            while (frames := stream.receive(deadline - time.monotonic())) is not None:
                for channel, data in frames:
                    (out if channel == STDOUT else said).extend(data)
                if len(out) > max_bytes:  # it grew after it was measured
                    raise OSError(f"{path} is larger than {max_bytes} bytes")
        except TimeoutError as error:
            raise SandboxLost(f"The sandbox does not give the content of {path}.") from error
        code = stream.exit_code()
    if code is None:
        raise SandboxLost(f"The engine does not know whether {path} was read.")
    if code == _ABSENT:
        raise FileNotFoundError(f"{path} is no regular file of the sandbox")
    if code == _TOO_LARGE:
        raise OSError(f"{path} is larger than {max_bytes} bytes")
    if code != 0:
        raise OSError(f"{path} cannot be read: {said.decode('utf-8', 'replace').strip()[-300:] or f'exit {code}'}")
    return bytes(out)


def changed_paths(api: "APIClient", container: str) -> frozenset[str]:
    """See `Sandbox.changed_paths`.

    An overlay keeps what a container wrote in a directory of the engine's host. Where that is this host and we may read
    it, it answers a hundred times faster than the engine, which compares the container with its image file by file.
    Both give the same, but that a directory which was replaced stands for what it had.
    """
    with engine_errors("compare the sandbox with its image", sandbox=True):
        layer = _own_layer(api, container)
        if layer is not None:
            with contextlib.suppress(OSError):
                return frozenset(_below(layer))
        changes = cast("list[dict[str, Any]] | None", api.diff(container))
    return frozenset(str(change["Path"]) for change in changes or ())


def _own_layer(api: "APIClient", container: str) -> Path | None:
    driver = cast(Any, api).inspect_container(container).get("GraphDriver") or {}
    upper = (driver.get("Data") or {}).get("UpperDir") if str(driver.get("Name", "")).startswith("overlay") else None
    return Path(upper) if upper and os.access(upper, os.R_OK | os.X_OK) else None


def _below(layer: Path) -> Iterator[str]:
    """Raises OSError where a part of it cannot be read."""

    def fail(error: OSError) -> None:
        raise error

    for directory, names, files in os.walk(layer, onerror=fail):
        inside = directory.removeprefix(str(layer))
        yield from (f"{inside}/{name}" for name in (*names, *files))


def read_tree(
    api: "APIClient", container: str, paths: Sequence[str], *, max_bytes: int | None = None
) -> Iterator[TreeEntry]:
    """See `Sandbox.read_tree`."""
    absent = False
    for path in paths:
        try:
            yield from _entries(api, container, PurePosixPath(path), max_bytes)
        except docker.errors.NotFound:
            absent = True
    if absent:
        _assert_there(api, container)


def stat(api: "APIClient", container: str, paths: Sequence[str]) -> tuple[PathStat | None, ...]:
    """See `Sandbox.stat`."""
    found = tuple(_stat(api, container, path) for path in paths)
    if None in found:
        _assert_there(api, container)
    return found


def _stat(api: "APIClient", container: str, path: str) -> PathStat | None:
    client = cast(Any, api)
    with engine_errors(f"look at {path} in the sandbox", sandbox=True):
        response = client.head(
            client._url("/containers/{0}/archive", container), params={"path": path}, timeout=client.timeout
        )
        header = response.headers.get(_STAT_HEADER)
        if response.status_code == 404 and header is None:
            return None
        if response.status_code == 500 and next(read_tree(api, container, [path], max_bytes=1), None) is None:
            return None  # only an archive's answer says what is wrong: links that lead round in circles
        if header is None:
            client._raise_for_status(response)
        found = json.loads(b64decode(header))  # Podman has it beside a 404 too, of a link that leads nowhere
    mode = int(found["mode"])
    kind = "directory" if mode & _DIRECTORY else "symlink" if mode & _SYMLINK else "other" if mode & _OTHER else "file"
    return PathStat(
        kind=kind,
        executable=bool(mode & 0o111),
        size=int(found["size"]),
        target=str(found.get("linkTarget") or "") if kind == "symlink" else "",
    )


def _assert_there(api: "APIClient", container: str) -> None:
    """The engine answers alike where a path is absent and where the container is."""
    with engine_errors("look into the sandbox", sandbox=True):
        api.inspect_container(container)


def _entries(api: "APIClient", container: str, path: PurePosixPath, max_bytes: int | None) -> Iterator[TreeEntry]:
    """Raises docker.errors.NotFound where the path is absent."""
    with engine_errors(f"read {path} from the sandbox", sandbox=True):
        try:
            chunks, seen = api.get_archive(container, str(path))
        except docker.errors.APIError as error:
            if error.response is not None and _STAT_HEADER in error.response.headers:
                yield from _linked(api, container, path)  # Podman says so of a link that leads nowhere
                return
            if not isinstance(error, docker.errors.NotFound) and not any(
                words in str(error.explanation) for words in _CIRCLES
            ):
                raise
            absent = docker.errors.NotFound(str(error))  # links that lead round in circles lead to nothing
        else:
            parent = path.parent
            with _Reader(chunks) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    if int(seen["mode"]) & _SYMLINK and not member.issym():
                        # Podman follows the link that it is asked for; its directory's archive has it as it is.
                        yield from _linked(api, container, path)
                        return
                    if member.islnk():
                        # It has no content in a stream that cannot be rewound: its file is fetched by itself.
                        whole = next(read_tree(api, container, [str(parent / member.name)], max_bytes=max_bytes), None)
                        content = whole.content if whole else b""
                    else:
                        file = archive.extractfile(member) if member.isreg() else None
                        content = file.read(-1 if max_bytes is None else max_bytes) if file else b""
                    yield _entry(member, parent, content)
                    if not member.isdir() and "/" not in member.name.strip("/"):
                        return  # nothing follows, and what is left of a large file is not asked for
            return
    raise absent


def _linked(api: "APIClient", container: str, path: PurePosixPath) -> Iterator[TreeEntry]:
    """The link at `path`, out of its directory's archive."""
    chunks, _ = api.get_archive(container, f"{path.parent}/.")
    with _Reader(chunks) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if PurePosixPath(member.name) == PurePosixPath(path.name):
                yield _entry(member, path.parent, b"")
                return


def _entry(member: tarfile.TarInfo, parent: PurePosixPath, content: bytes) -> TreeEntry:
    path, executable = str(parent / member.name.lstrip("/")), bool(member.mode & 0o111)
    if member.isreg() or member.islnk():
        return TreeEntry(path=path, kind="file", executable=executable, content=content)
    if member.issym():
        return TreeEntry(path=path, kind="symlink", content=member.linkname.encode("utf-8", "surrogateescape"))
    return TreeEntry(path=path, kind="directory" if member.isdir() else "other", executable=executable)


class _Reader(io.RawIOBase):
    """A readable file over the chunks of a response."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed and hasattr(self._chunks, "close"):
            self._chunks.close()
        super().close()
