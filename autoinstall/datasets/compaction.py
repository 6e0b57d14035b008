"""Puts the files of many runs together, so that a year of nights stays a few files.

A compacted file takes the place of those that it was made of (`autoinstall.datasets.lease`): it appears first, then
they go. `load` and everything else here takes each row once at every moment. A reader that lists the directory itself
may see rows twice while the old files go, and may meet a name that is gone when it gets to it, which it then says.

A run whose rows are written again long after the first time (it was killed and recovered, its storage was down) may be
in a compacted file by then: `forget` takes it out of there.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from autoinstall.datasets.evolution import is_present, present, read_present, stored_schema
from autoinstall.datasets.failures import storage_errors
from autoinstall.datasets.lease import Lease, leased
from autoinstall.datasets.naming import COMPACTED, RUN, file_name
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import DataPlace, Store, StoredFile, store_of
from autoinstall.values import Value

MIN_AGE = timedelta(minutes=10)
"""Younger files stay as they are: a writer that failed half-way writes them again."""

TARGET_BYTES = 256 * 2**20
"""Of a compacted file at most, as long as no single input is larger; one of half that size is not touched again."""

GROUP_BYTES = 64 * 2**20
"""In memory, of one row group."""


class Compaction(Value):
    """What was done: files of all datasets before and after."""

    before: int = 0
    after: int = 0


def compact(data: DataPlace, *, min_age: timedelta = MIN_AGE) -> Compaction:
    """Put small files together, and bring those of older schemas to the present one.

    Takes some seconds for a thousand of them, and memory for one row group.

    Raises:
        StorageFailed: a file cannot be read or written, or somebody else is at it; every row is still there, once.
        DiskFull: there is no room for the new file.
    """
    store = store_of(data)
    before = file_count(store)
    for dataset in Dataset:
        with leased(store) as lease:
            files = [file for file in _row_files(store, dataset) if lease.since - file.modified >= min_age]
            for batch in _batches(files, _outdated(store, dataset, files)):
                _merge(store, dataset, lease, batch)
    return Compaction(before=before, after=file_count(store))


def file_count(data: DataPlace) -> int:
    """Files with rows in all datasets.

    Raises:
        StorageFailed: they cannot be listed.
    """
    store = store_of(data)
    return sum(len(_row_files(store, dataset)) for dataset in Dataset)


def compact_above(data: DataPlace, files: int) -> Compaction | None:
    """`compact` where there are more than so many files with rows, else None.

    Raises:
        As `compact`.
    """
    store = store_of(data)
    return compact(store) if file_count(store) > files else None


def forget(store: Store, lease: Lease, run_id: str) -> None:
    """Take the rows of a run out of compacted files."""
    for dataset in Dataset:
        for file in _row_files(store, dataset):
            if file.name.startswith(COMPACTED) and _mentions(store, file, run_id):
                _merge(store, dataset, lease, [file], without=frozenset({file_name(run_id)}))


def holds(store: Store, run_id: str) -> bool:
    """Whether a compacted file has the run's own row."""
    files = _row_files(store, Dataset.REPOSITORIES)
    return any(file.name.startswith(COMPACTED) and _mentions(store, file, run_id) for file in files)


def _row_files(store: Store, dataset: Dataset) -> list[StoredFile]:
    return [file for file in store.files(dataset) if file.name.startswith((RUN, COMPACTED))]


def _mentions(store: Store, file: StoredFile, run_id: str) -> bool:
    with storage_errors(store.location, "read"):
        ids = pq.read_table(file.path, columns=["run_id"], filesystem=store.filesystem).column(0)
    return bool(pc.any(pc.equal(ids, run_id)).as_py())


def _outdated(store: Store, dataset: Dataset, files: Sequence[StoredFile]) -> frozenset[StoredFile]:
    """The files that an older version of the schema wrote."""
    with ThreadPoolExecutor(8) as pool:
        schemas = pool.map(lambda file: stored_schema(store, file.path), files)
        return frozenset(file for file, schema in zip(files, schemas, strict=True) if not is_present(dataset, schema))


def _batches(files: Iterable[StoredFile], outdated: frozenset[StoredFile]) -> Iterator[list[StoredFile]]:
    """Files that become one, oldest first, as many as fit into `TARGET_BYTES`; one alone only if it is outdated."""
    batch: list[StoredFile] = []
    size = 0
    for file in sorted(files, key=lambda file: (file.modified, file.path)):
        if file.name.startswith(COMPACTED) and file.size >= TARGET_BYTES // 2 and file not in outdated:
            continue
        if batch and size + file.size > TARGET_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if len(batch) > 1 or outdated.intersection(batch):
        yield batch


def _merge(
    store: Store, dataset: Dataset, lease: Lease, files: Sequence[StoredFile], without: frozenset[str] = frozenset()
) -> None:
    """Replace files by one with their rows. A run that has a file of its own is taken from there alone."""
    own = without | {file.name for file in files if file.name.startswith(RUN)}
    schema = present(dataset, [stored_schema(store, file.path) for file in files])
    digest = hashlib.sha256("\n".join(f"{file.path} {file.size}" for file in files).encode()).hexdigest()[:12]
    newest = max(file.modified for file in files)
    output = f"{dataset}/{COMPACTED}{newest:%Y%m%dT%H%M%S}-{digest}.parquet"

    def tables() -> Iterator[pa.Table]:
        for file in files:
            for table in read_present(store, dataset, file.path, schema):
                yield _others(table, own) if file.name.startswith(COMPACTED) else table

    with storage_errors(store.location, "written"), _written(tables(), schema) as content:
        lease.replace([file.path for file in files], output, content)


def _others(table: pa.Table, names: frozenset[str]) -> pa.Table:
    """The rows of those runs that have no file of these names."""
    ids = table.column("run_id")
    named = [run_id for run_id in pc.unique(ids).to_pylist() if file_name(run_id) in names]
    return table.filter(pc.invert(pc.is_in(ids, pa.array(named, pa.string())))) if named else table


@contextmanager
def _written(tables: Iterator[pa.Table], schema: pa.Schema) -> Iterator[pa.Buffer]:
    """A Parquet file with all rows, as memory that is backed by a temporary file."""
    with tempfile.TemporaryDirectory(prefix="autoinstall-") as scratch:
        path = str(Path(scratch) / "rows.parquet")
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            waiting: list[pa.Table] = []
            size = 0
            for table in tables:
                if not table.num_rows:
                    continue
                waiting.append(table)
                size += table.nbytes
                if size >= GROUP_BYTES:
                    writer.write_table(pa.concat_tables(waiting).combine_chunks())
                    waiting, size = [], 0
            if waiting:
                writer.write_table(pa.concat_tables(waiting).combine_chunks())
        with pa.memory_map(path) as mapped:
            yield mapped.read_buffer()
