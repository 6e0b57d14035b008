"""Writes the rows of one repository's run: one file a dataset, named by the run.

A reader sees a whole file or none (`autoinstall.datasets.store`), two writers never touch the same name unless they
write the same run, and writing a run again replaces its rows. The environment's row comes last: where it is there, all
else of the run is too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from autoinstall.datasets.cleaning import Cleaner
from autoinstall.datasets.compaction import MIN_AGE, compact, forget, holds
from autoinstall.datasets.evolution import VERSION_KEY, file_schema
from autoinstall.datasets.lease import finish_interrupted, leased
from autoinstall.datasets.location import Location
from autoinstall.datasets.naming import EMPTY_NAME, file_name
from autoinstall.datasets.records import SCHEMA_VERSION, Record, RunRecords
from autoinstall.datasets.schemas import Dataset, to_row, to_table
from autoinstall.datasets.store import DataPlace, Store, store_of
from autoinstall.settings import Settings
from autoinstall.values import Value

ROW_GROUP_BYTES = 128 * 2**20
MIN_KEY = 8
"""Characters of a model endpoint's key. Shorter ones are the made-up words that servers of one's own take ("EMPTY",
"ollama"); masking those would spoil whatever else is called so."""

_SECRET_HEADER = re.compile(r"(?i)auth|key|token|secret|cookie|password")


class WrittenFiles(Value):
    """Where the rows of a run went; None where there were none of that kind."""

    repositories: Location
    goals: Location | None = None
    attempts: Location | None = None
    trajectories: Location | None = None
    environments: Location | None = None


def ensure_writable(data: DataPlace) -> None:
    """Create the five datasets, each readable from the start, and remove what killed writers left behind.

    To be called before any work is done for rows that could then not be kept.

    Raises:
        UnusableDirectory: `data` cannot be made or written, or is a bucket that is absent or refuses the credentials.
        DiskFull: there is no room left.
        StorageFailed: the storage does not answer.
    """
    store = store_of(data)
    store.prepare(tuple(Dataset))
    finish_interrupted(store)
    if sum(_ensure_empty_file(store, dataset) for dataset in Dataset):
        # The first use of a later version. Readers that know one schema for all files need it done now.
        compact(store, min_age=timedelta(0))


def write_run(data: DataPlace, records: RunRecords, *, secrets: Sequence[str] = ()) -> WrittenFiles:
    """Write all rows of a run, replacing what an earlier write of the same run left.

    Args:
        data: what the datasets are below.
        secrets: literals that must not be written anywhere; `secrets_of` finds those of the settings.

    Raises:
        UnusableDirectory: `data` cannot be made or written.
        DiskFull: there is no room; files already in place stay, and the same call may be made again.
        StorageFailed: any other failure to write.
    """
    row = records.repository
    late = datetime.now(UTC) - row.finished_at >= MIN_AGE / 2
    return write_files(data, row.run_id, run_files(records, secrets=secrets), late=late)


def run_files(records: RunRecords, *, secrets: Sequence[str] = ()) -> Mapping[Dataset, pa.Buffer | None]:
    """The rows of a run as the content of its files, in the order in which they are to be written; None where there are
    no rows of that kind."""
    by_dataset: dict[Dataset, Sequence[Record]] = {
        Dataset.GOALS: records.goals,
        Dataset.TRAJECTORIES: records.trajectories,
        Dataset.ATTEMPTS: records.attempts,
        Dataset.REPOSITORIES: (records.repository,),
        Dataset.ENVIRONMENTS: (records.environment,) if records.environment else (),
    }
    cleaner = Cleaner(secrets)
    return {
        dataset: parquet(to_table(dataset, [cleaner.row(dataset, to_row(row)) for row in rows])) if rows else None
        for dataset, rows in by_dataset.items()
    }


def write_files(data: DataPlace, run_id: str, files: Mapping[Dataset, pa.Buffer | None], *, late: bool) -> WrittenFiles:
    """Put the files of `run_files` into their places.

    Args:
        late: the run is over so long that its rows, if they were written before, may be in a compacted file.

    Raises:
        As `write_run`.
    """
    store = store_of(data)
    if not store.exists(*(f"{dataset}/{EMPTY_NAME}" for dataset in Dataset)):
        ensure_writable(store)
    if not (late and has_run(store, run_id)):
        return _put_files(store, run_id, files)
    with leased(store) as lease:
        written = _put_files(store, run_id, files)
        forget(store, lease, run_id)
    return written


def _put_files(store: Store, run_id: str, files: Mapping[Dataset, pa.Buffer | None]) -> WrittenFiles:
    name = file_name(run_id)
    written: dict[str, Location] = {}
    for dataset, content in files.items():
        if content is None:
            store.delete(f"{dataset}/{name}")
        else:
            store.put(f"{dataset}/{name}", content)
            written[dataset.value] = store.location / dataset / name
    return WrittenFiles(**written)


def has_run(data: DataPlace, run_id: str) -> bool:
    """Whether the rows of a run are there.

    Raises:
        StorageFailed: that cannot be told.
    """
    store = store_of(data)
    return store.exists(f"{Dataset.REPOSITORIES}/{file_name(run_id)}") or holds(store, run_id)


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """The literals among the settings that no row may carry: git credentials, keys of model endpoints and of the
    storage, passwords of proxies."""
    found: set[str] = set()
    for model in (settings.model, *settings.models.values()):
        headers = [value for name, value in model.headers.items() if _SECRET_HEADER.search(name)]
        keys = [secret.get_secret_value().rpartition(" ")[2] for secret in (model.api_key, *headers)]
        found.update(key for key in keys if len(key) >= MIN_KEY)
    for credential in settings.git_credentials.values():
        value = credential.get_secret_value()
        found.update((value, value.rpartition(":")[2]))
    storage = settings.storage
    found.update(secret.get_secret_value() for secret in (storage.secret_key, storage.session_token))
    found.add(settings.registry.password.get_secret_value())
    for proxy in (settings.pass_through.http_proxy, settings.pass_through.https_proxy):
        if match := re.match(r"[^/]*//([^/@]*)@", proxy):
            found.update((match[1], match[1].partition(":")[2]))
    return tuple(sorted(filter(None, found), key=len, reverse=True))


def parquet(table: pa.Table) -> pa.Buffer:
    """The content of a Parquet file with the rows of a table."""
    sink = pa.BufferOutputStream()
    table = table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION)})
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        for group in _row_groups(table):
            writer.write_table(group)
    return sink.getvalue()


def _row_groups(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of at most about `ROW_GROUP_BYTES`, one row at least, so that a reader's memory stays bounded. Without
    rows there is none: Hugging Face datasets cannot read such a one."""
    rows = max(1, int(table.num_rows * ROW_GROUP_BYTES / max(table.nbytes, ROW_GROUP_BYTES)))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _ensure_empty_file(store: Store, dataset: Dataset) -> bool:
    """Whether there was one of another version."""
    path = f"{dataset}/{EMPTY_NAME}"
    content = store.read(path)
    try:
        current = None if content is None else pq.read_schema(pa.BufferReader(content))
    except pa.ArrowException:
        current = None
    wanted = file_schema(dataset)
    # Not by `check_metadata`: asked by several threads at once, it finds equal schemas to differ now and then.
    if current is None or not current.equals(wanted) or current.metadata != wanted.metadata:
        store.put(path, parquet(file_schema(dataset).empty_table()))
        return content is not None
    return False
