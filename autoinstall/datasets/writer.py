"""Writes the rows of one repository's run: one file a dataset, named by the run.

A file is written aside, below a directory that no reader looks into, flushed to disk and renamed into place. So a
reader sees the whole file or none, two writers never touch the same name unless they write the same run, and writing
a run again replaces its rows. The environment's row comes last: where it is there, all else of the run is too.
"""

import contextlib
import errno
import hashlib
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from autoinstall.datasets.cleaning import Cleaner
from autoinstall.datasets.records import Record, RunRecords
from autoinstall.datasets.schemas import SCHEMAS, Dataset, to_row, to_table
from autoinstall.errors import DiskFull, StorageFailed, UnusableDirectory
from autoinstall.settings import Settings
from autoinstall.values import Value

STAGING = ".staging"
STALE_SECONDS = 3600.0
ROW_GROUP_BYTES = 128 * 2**20
EMPTY_NAME = "0000-empty.parquet"
"""A typed file without rows in each dataset, so that a directory opens before its first row. Sorted first, it also
gives readers that take the first file's schema the newest one."""


MIN_KEY = 8
"""Characters of a model endpoint's key. Shorter ones are the made-up words that servers of one's own take ("EMPTY",
"ollama"); masking those would spoil whatever else is called so."""

_SECRET_HEADER = re.compile(r"(?i)auth|key|token|secret|cookie|password")


class WrittenFiles(Value):
    """Where the rows of a run went; None where there were none of that kind."""

    repositories: Path
    goals: Path | None = None
    attempts: Path | None = None
    trajectories: Path | None = None
    environments: Path | None = None


def ensure_writable(data: Path) -> None:
    """Create the five directories, each readable from the start, and remove what killed writers left behind.

    To be called before any work is done for rows that could then not be kept.

    Raises:
        UnusableDirectory: `data` cannot be made or written.
        DiskFull: there is no room left.
    """
    try:
        for dataset in Dataset:
            (data / dataset).mkdir(parents=True, exist_ok=True)
        (data / STAGING).mkdir(exist_ok=True)
        _remove_stale(data / STAGING)
        for dataset in Dataset:
            _ensure_empty_file(data, dataset)
        probe = data / STAGING / f"{uuid.uuid4().hex}.tmp"
        probe.touch()
        probe.unlink()
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(data) from error
        raise UnusableDirectory(
            f"The data directory {data} cannot be written: {error.strerror or error}.",
            hint="Choose another one with --data or AUTOINSTALL_DATA, or change its permissions.",
        ) from error


def write_run(data: Path, records: RunRecords, *, secrets: Sequence[str] = ()) -> WrittenFiles:
    """Write all rows of a run, replacing what an earlier write of the same run left.

    Args:
        data: the directory that the datasets are below.
        secrets: literals that must not be written anywhere; `secrets_of` finds those of the settings.

    Raises:
        UnusableDirectory: `data` cannot be made or written.
        DiskFull: there is no room; files already in place stay, and the same call may be made again.
        StorageFailed: any other failure to write.
    """
    ensure_writable(data)
    run = records.repository.run_id
    by_dataset: dict[Dataset, Sequence[Record]] = {
        Dataset.GOALS: records.goals,
        Dataset.TRAJECTORIES: records.trajectories,
        Dataset.ATTEMPTS: records.attempts,
        Dataset.REPOSITORIES: (records.repository,),
        Dataset.ENVIRONMENTS: (records.environment,) if records.environment else (),
    }
    cleaner = Cleaner(secrets)
    written: dict[str, Path] = {}
    with _storage_errors(data):
        for dataset, rows in by_dataset.items():
            path = data / dataset / file_name(run)
            if not rows:
                path.unlink(missing_ok=True)
                continue
            _write(data, dataset, path, [cleaner.row(dataset, to_row(row)) for row in rows])
            written[dataset.value] = path
    return WrittenFiles(**written)


def file_name(run_id: str) -> str:
    """Name of a run's file in every dataset: the run's id where that is a plain name, else a digest of it."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", run_id)
    return f"run-{run_id if plain else hashlib.sha256(run_id.encode()).hexdigest()[:40]}.parquet"


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """The literals among the settings that no row may carry: git credentials, keys of model endpoints, passwords of
    proxies."""
    found: set[str] = set()
    for model in (settings.model, *settings.models.values()):
        headers = [value for name, value in model.headers.items() if _SECRET_HEADER.search(name)]
        keys = [secret.get_secret_value().rpartition(" ")[2] for secret in (model.api_key, *headers)]
        found.update(key for key in keys if len(key) >= MIN_KEY)
    for credential in settings.git_credentials.values():
        value = credential.get_secret_value()
        found.update((value, value.rpartition(":")[2]))
    for proxy in (settings.pass_through.http_proxy, settings.pass_through.https_proxy):
        if match := re.match(r"[^/]*//([^/@]*)@", proxy):
            found.update((match[1], match[1].partition(":")[2]))
    return tuple(sorted(filter(None, found), key=len, reverse=True))


def _write(data: Path, dataset: Dataset, path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    aside = data / STAGING / f"{dataset}-{path.stem}-{uuid.uuid4().hex}.tmp"
    try:
        with aside.open("wb") as stream:
            with pq.ParquetWriter(stream, SCHEMAS[dataset], compression="zstd") as writer:
                for group in _row_groups(to_table(dataset, rows)):
                    writer.write_table(group)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
        _sync_directory(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def _row_groups(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of at most about `ROW_GROUP_BYTES`, one row at least, so that a reader's memory stays bounded."""
    rows = max(1, int(table.num_rows * ROW_GROUP_BYTES / max(table.nbytes, ROW_GROUP_BYTES)))
    yield table.slice(0, rows)
    for start in range(rows, table.num_rows, rows):
        yield table.slice(start, rows)


def _ensure_empty_file(data: Path, dataset: Dataset) -> None:
    path = data / dataset / EMPTY_NAME
    try:
        current = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        current = None
    if current is None or not current.equals(SCHEMAS[dataset]):
        _write(data, dataset, path, [])


def _remove_stale(staging: Path) -> None:
    """Remove what writers that were killed left; a living one is done long before `STALE_SECONDS`."""
    oldest = time.time() - STALE_SECONDS
    for path in staging.iterdir():
        # Another process may clean up at the same time.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def _storage_errors(data: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(data) from error
        raise StorageFailed(
            f"The rows of the run could not be written below {data}: {error.strerror or error}.",
            hint="Run it again once the directory can be written; rows are never doubled.",
        ) from error
    except pa.ArrowException as error:
        raise StorageFailed(f"The rows of the run could not be written below {data}: {error}.") from error


def _disk_full(data: Path) -> DiskFull:
    return DiskFull(
        f"No disk space is left for the datasets below {data}.",
        hint="Free some, for instance with `autoinstall prune`, and run it again.",
    )
