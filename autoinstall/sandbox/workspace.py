"""The initial state of every attempt: a base image with the checkout at /workspace."""

import fcntl
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from autoinstall.errors import ImageUnavailable, UnusableDirectory
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.commit import commit, describe
from autoinstall.sandbox.contract import WORKSPACE, Snapshot, WorkspaceSource
from autoinstall.sandbox.labels import PURPOSE, WORKSPACE_REPOSITORY, Kind
from autoinstall.sandbox.labels import labels as own_labels
from autoinstall.sandbox.network import remove_container

if TYPE_CHECKING:
    from docker.api.client import APIClient

_FORM = "1"
"""Raised when images of this kind are built differently, so that earlier ones are not taken for it."""

_BLOCK = 1024 * 1024


def build(api: "APIClient", base: str, source: WorkspaceSource, *, labels: Mapping[str, str], locks: Path) -> Snapshot:
    """See `SandboxProvider.build_workspace_image`. `locks` is a directory of lock files, shared by processes."""
    digest = describe(api, base, base).digest
    key = hashlib.sha256(f"{_FORM}\n{digest}\n{source.commit}".encode()).hexdigest()[:24]
    reference = f"{WORKSPACE_REPOSITORY}:{key}"
    with _locked(locks, key):
        try:
            return describe(api, reference, reference)
        except ImageUnavailable:
            return _build(api, digest, source, key, labels)


def _build(api: "APIClient", base: str, source: WorkspaceSource, key: str, labels: Mapping[str, str]) -> Snapshot:
    own = own_labels(Kind.BUILD, "workspace", "")
    with engine_errors("make the container for a checkout"):
        container = str(api.create_container(base, command=["true"], labels=own, use_config_proxy=False)["Id"])
    try:
        with engine_errors("copy the checkout to the engine"):
            api.put_archive(container, "/", archive(Path(source.path)))
        kind = {**own_labels(Kind.WORKSPACE, "workspace", ""), PURPOSE: "workspace", **labels}
        return commit(api, container, repository=WORKSPACE_REPOSITORY, tag=key, labels=kind)
    finally:
        remove_container(api, container)


@contextmanager
def _locked(directory: Path, key: str) -> Iterator[None]:
    """Only one thread of one process at a time builds the image of a key."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / f"{key}.lock").open("w")
    except OSError as error:
        raise UnusableDirectory(f"The cache directory {directory} cannot be written: {error}") from error
    # A lock file is locked per open file, so it keeps threads of one process apart as well.
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def archive(root: Path) -> Iterator[bytes]:
    """The tree as a tar stream below `workspace/`: owned by root, with the modes that git gives, whatever the host's
    umask was; times kept, links as they are; sockets and devices are left out. Memory: one block."""
    for path, status in _walk(root):
        name = path.relative_to(root).as_posix()
        info = tarfile.TarInfo(f"{WORKSPACE.name}/{name}" if name != "." else WORKSPACE.name)
        info.mtime = status.st_mtime
        info.uname = info.gname = "root"
        if stat.S_ISLNK(status.st_mode):
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
            yield _header(info)
        elif stat.S_ISDIR(status.st_mode):
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            yield _header(info)
        elif stat.S_ISREG(status.st_mode):
            info.mode = 0o755 if status.st_mode & 0o111 else 0o644
            with open(path, "rb", opener=_no_follow) as content:
                info.size = os.fstat(content.fileno()).st_size
                yield _header(info)
                yield from _content(content, info.size)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _content(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes, filled up to a full block."""
    left = size
    while left:
        block = file.read(min(_BLOCK, left)) or b"\0" * min(_BLOCK, left)  # cut short meanwhile
        left -= len(block)
        yield block
    yield b"\0" * (-size % tarfile.BLOCKSIZE)


def _no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    yield root, root.lstat()
    for directory, names, files in os.walk(root, followlinks=False):
        names.sort()
        for name in sorted([*names, *files]):
            path = Path(directory) / name
            yield path, path.lstat()
