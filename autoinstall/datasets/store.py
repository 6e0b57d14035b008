"""The two kinds of place that datasets are in, behind one contract: a file is there whole or not at all.

On this machine a file is written aside, below a directory that no reader looks into, flushed to disk and renamed into
place. In a bucket there is no rename, and none is needed: an object appears when the request that carries all of it is
complete, and a name that is written again has its old content until then.
"""

import contextlib
import os
import time
import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from autoinstall.datasets.failures import no_bucket, storage_error, storage_errors
from autoinstall.datasets.location import Location
from autoinstall.errors import DiskFull, UnusableDirectory
from autoinstall.settings import StorageSettings, get_settings
from autoinstall.values import Value

STAGING = ".staging"
STALE_SECONDS = 3600.0


class StoredFile(Value):
    """A file as a listing has it. `path` is relative to the location."""

    path: str
    size: int
    modified: datetime

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


class Store(Protocol):
    """Files below a location; every path is relative to it, with `/` between its parts.

    Every method may raise StorageFailed, DiskFull, or, for a bucket that is not there or refuses the credentials,
    UnusableDirectory.
    """

    @property
    def location(self) -> Location: ...

    @property
    def filesystem(self) -> Any:
        """The place for pyarrow: a file system whose root is the location. Its errors are pyarrow's own."""
        ...

    def prepare(self, folders: Sequence[str], /) -> None:
        """Make the folders where that means something, and see that the place can be used."""
        ...

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """The files that lie in a folder, by name; none where there is no such folder."""
        ...

    def exists(self, *paths: str) -> bool:
        """Whether all of them are there."""
        ...

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None where there is none."""
        ...

    def put(self, path: str, content: pa.Buffer) -> None:
        """Put a file into its place, over one of the same name."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens where there is none."""
        ...


DataPlace = Store | Path | str
"""What the functions of this package take: a store, or an address that the process's settings say how to reach."""


def store_of(data: DataPlace, storage: StorageSettings | None = None) -> Store:
    """The store at an address; nothing is asked of it yet.

    Args:
        storage: how a bucket is reached; None means the process's settings.

    Raises:
        BadInput: it is no address of datasets.
    """
    if not isinstance(data, str | Path):
        return data
    location = Location(data)
    if location.path is not None:
        return LocalStore(location, location.path)
    return BucketStore(location, _s3(storage or get_settings().storage))


def ensure_bucket(data: Location, storage: StorageSettings) -> bool:
    """Make the bucket that `data` is in where it is absent; whether it was made now. A directory needs none.

    Raises:
        StorageFailed, UnusableDirectory: it is absent and cannot be made.
    """
    if data.path is not None:
        return False
    name = data.bucket_path.partition("/")[0]
    with storage_errors(data, "written"):
        if _s3(storage).get_file_info(name).type != pafs.FileType.NotFound:
            return False
        _s3(storage, makes_buckets=True).create_dir(name)
    return True


class _Files:
    """What both kinds have in common."""

    def __init__(self, location: Location, root: str, filesystem: pafs.FileSystem) -> None:
        self.location = location
        self.filesystem = pafs.SubTreeFileSystem(root, filesystem)

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        with storage_errors(self.location, "read"):
            found = self.filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return tuple(
            StoredFile(path=info.path, size=info.size, modified=info.mtime)
            for info in sorted(found, key=lambda info: str(info.path))
            if info.type == pafs.FileType.File
        )

    def exists(self, *paths: str) -> bool:
        with storage_errors(self.location, "read"):
            found = self.filesystem.get_file_info(list(paths))
        return all(info.type == pafs.FileType.File for info in found)

    def read(self, path: str) -> bytes | None:
        with storage_errors(self.location, "read"):
            try:
                with self.filesystem.open_input_file(path) as stream:
                    return bytes(stream.readall())
            except FileNotFoundError:
                return None

    def delete(self, path: str) -> None:
        with storage_errors(self.location, "written"), contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(path)


class LocalStore(_Files):
    """A directory."""

    def __init__(self, location: Location, root: Path) -> None:
        super().__init__(location, str(root), pafs.LocalFileSystem())
        self._root = root

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        if self._root.exists() and not self._root.is_dir():
            raise UnusableDirectory(
                f"{self._root} is no directory.", hint="Give the directory that the datasets are in."
            )
        return super().files(folder)

    def prepare(self, folders: Sequence[str]) -> None:
        try:
            for folder in (*folders, STAGING):
                (self._root / folder).mkdir(parents=True, exist_ok=True)
            self._remove_stale()
            probe = self._root / STAGING / f"{uuid.uuid4().hex}.tmp"
            probe.touch()
            probe.unlink()
        except OSError as error:
            found = storage_error(self.location, error, "written")
            if isinstance(found, DiskFull):
                raise found from error
            raise UnusableDirectory(
                f"The data directory {self.location} cannot be written: {error.strerror or error}.",
                hint="Choose another one with --data or AUTOINSTALL_DATA, or change its permissions.",
            ) from error

    def put(self, path: str, content: pa.Buffer) -> None:
        target = self._root / path
        aside = self._root / STAGING / f"{path.replace('/', '-')}-{uuid.uuid4().hex}.tmp"
        with storage_errors(self.location, "written"):
            try:
                with aside.open("wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                aside.replace(target)
                _sync_directory(target.parent)
            finally:
                aside.unlink(missing_ok=True)

    def _remove_stale(self) -> None:
        """Remove what writers that were killed left; a living one is done long before `STALE_SECONDS`."""
        oldest = time.time() - STALE_SECONDS
        for path in (self._root / STAGING).glob("*.tmp"):
            # Another process may clean up at the same time.
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


class BucketStore(_Files):
    """A prefix of a bucket."""

    def __init__(self, location: Location, filesystem: pafs.S3FileSystem) -> None:
        super().__init__(location, location.bucket_path, filesystem)
        self._s3 = filesystem

    def prepare(self, _folders: Sequence[str]) -> None:
        # A prefix that holds nothing is listed like a bucket that is not there, so that is asked for by itself.
        with storage_errors(self.location, "written"):
            bucket = self._s3.get_file_info(self.location.bucket_path.partition("/")[0])
        if bucket.type == pafs.FileType.NotFound:
            raise no_bucket(self.location)
        probe = f"{STAGING}/{uuid.uuid4().hex}.tmp"
        self.put(probe, pa.py_buffer(b""))
        self.delete(probe)

    def put(self, path: str, content: pa.Buffer) -> None:
        with storage_errors(self.location, "written"):
            # In one piece: a stream that an exception ends half-way would be completed with what it has.
            stream = self.filesystem.open_output_stream(path, metadata={"Content-Type": "application/octet-stream"})
            stream.write(content)
            stream.close()


@lru_cache(maxsize=8)
def _s3(storage: StorageSettings, makes_buckets: bool = False) -> pafs.S3FileSystem:
    """The client; one for each way of reaching a storage, since it holds the connections."""
    endpoint = storage.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    scheme, mark, host = endpoint.rstrip("/").partition("://")
    region = storage.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    secret = storage.secret_key.get_secret_value()
    return pafs.S3FileSystem(
        access_key=storage.access_key or None,
        secret_key=secret or None,
        session_token=storage.session_token.get_secret_value() or None,
        endpoint_override=(host if mark else endpoint.rstrip("/")) or None,
        scheme=scheme if mark else "https",
        # Storages of one's own seldom care, and asking Amazon for the region of their buckets would be of no use.
        region=region or ("us-east-1" if endpoint else None),
        force_virtual_addressing=storage.virtual_hosts,
        connect_timeout=storage.connect_seconds,
        request_timeout=storage.request_seconds,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=storage.retries + 1),
        allow_delayed_open=True,
        allow_bucket_creation=makes_buckets,
    )


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
