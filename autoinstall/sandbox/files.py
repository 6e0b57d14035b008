"""Files of a running container: written and read from inside, and looked at from outside by the engine."""

import io
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

import docker.errors

from autoinstall.errors import SandboxLost
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.contract import WORKSPACE, TreeEntry
from autoinstall.sandbox.stream import STDOUT, ExecStream

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
    with ExecStream(api, container, argv, user=user, env={}, stdin=True) as stream:
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
    """See `Sandbox.changed_paths`."""
    with engine_errors("compare the sandbox with its image", sandbox=True):
        changes = cast("list[dict[str, Any]] | None", api.diff(container))
    return frozenset(str(change["Path"]) for change in changes or ())


def read_tree(api: "APIClient", container: str, paths: Sequence[str]) -> Iterator[TreeEntry]:
    """See `Sandbox.read_tree`."""
    for path in paths:
        yield from _entries(api, container, PurePosixPath(path))


def _entries(api: "APIClient", container: str, path: PurePosixPath) -> Iterator[TreeEntry]:
    with engine_errors(f"read {path} from the sandbox", sandbox=True):
        try:
            chunks, _ = api.get_archive(container, str(path))
        except docker.errors.NotFound:
            api.inspect_container(container)  # it is the path that is absent, or else this says so
            return
        parent = path.parent
        with _Reader(chunks) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                yield _entry(api, container, archive, member, parent)


def _entry(
    api: "APIClient", container: str, archive: tarfile.TarFile, member: tarfile.TarInfo, parent: PurePosixPath
) -> TreeEntry:
    path = str(parent / member.name.lstrip("/"))
    executable = bool(member.mode & 0o111)
    if member.islnk():
        # A hard link carries no content in a stream that cannot be rewound: its file is fetched by itself.
        whole = next(_entries(api, container, PurePosixPath(path)), None)
        content = whole.content if whole else b""
        return TreeEntry(path=path, kind="file", executable=executable, content=content)
    if member.isreg():
        file = archive.extractfile(member)
        return TreeEntry(path=path, kind="file", executable=executable, content=file.read() if file else b"")
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
