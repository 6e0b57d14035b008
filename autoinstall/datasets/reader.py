"""Reads the datasets back: as pandas frames for analysis, as records for the product."""

import json
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pydantic import ValidationError

from autoinstall.datasets.evolution import conform, former_names, present, stored_schema
from autoinstall.datasets.failures import storage_errors
from autoinstall.datasets.lease import replacements
from autoinstall.datasets.records import RETRIED_OUTCOMES, EnvironmentRecord, Record, RepositoryRecord
from autoinstall.datasets.schemas import Dataset, from_row
from autoinstall.datasets.store import DataPlace, Store, store_of
from autoinstall.errors import BadInput, StorageFailed
from autoinstall.values import Outcome


def load(data: DataPlace, dataset: Dataset | str) -> pd.DataFrame:
    """All rows of a dataset, with the columns of the present schema and whatever a later version added.

    An absent or empty dataset gives an empty frame with the same columns and types.

    Raises:
        ValueError: there is no such dataset.
        UnusableDirectory: `data` is a file.
        StorageFailed: a file cannot be read.
    """
    frame: pd.DataFrame = load_table(data, Dataset(dataset)).to_pandas()
    return frame


def load_table(data: DataPlace, dataset: Dataset, columns: list[str] | None = None) -> pa.Table:
    """As `load`, as a pyarrow table, optionally of some columns only.

    Raises:
        StorageFailed: a file cannot be read.
    """
    store = store_of(data)
    paths = _current_files(store, dataset)
    for _ in range(_TRIES):
        try:
            return _read(store, dataset, paths, columns)
        except (FileNotFoundError, StorageFailed) as error:
            # A file may be replaced by a compacted one between the listing and the reading of it, or while it is read.
            listed, paths = paths, _current_files(store, dataset)
            if isinstance(error, StorageFailed) and listed == paths:
                raise
    raise StorageFailed(f"The files of {store.location / dataset} change too fast to be read.", hint="Try again.")


_TRIES = 10


def _read(store: Store, dataset: Dataset, paths: list[str], columns: list[str] | None) -> pa.Table:
    with storage_errors(store.location / dataset, "read"):
        stored = _schemas(store, paths)
        schema = present(dataset, stored)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        alike: dict[pa.Schema, list[str]] = {}
        for path, found in zip(paths, stored, strict=True):
            alike.setdefault(found, []).append(path)
        tables = [schema.empty_table().replace_schema_metadata(None)]
        for found, group in alike.items():
            rows = ds.dataset(group, schema=found, format="parquet", filesystem=store.filesystem)
            wanted = former_names(dataset, schema.names, found) if columns is not None else None
            tables.append(conform(rows.to_table(columns=wanted), dataset, schema).replace_schema_metadata(None))
        return pa.concat_tables(tables)


def _current_files(store: Store, dataset: Dataset) -> list[str]:
    """The files whose rows are to be read, each row being in one of them. What is replaced is asked for before and
    after the listing, so that whatever was replaced at its moment is known."""
    before = replacements(store)
    listed = [file.path for file in store.files(dataset) if file.name.endswith(".parquet")]
    done = [found for found in before | replacements(store) if found.output in listed]
    replaced = {path for found in done for path in found.inputs}
    return [path for path in listed if path not in replaced]


def _schemas(store: Store, paths: list[str]) -> list[pa.Schema]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda path: stored_schema(store, path), paths))


def environments(data: DataPlace) -> tuple[EnvironmentRecord, ...]:
    """All accepted environments, oldest first.

    Raises:
        StorageFailed: the dataset cannot be read, or a row of it is malformed.
    """
    rows = load_table(data, Dataset.ENVIRONMENTS).to_pylist()
    return tuple(sorted((environment_from(row) for row in rows), key=lambda record: record.finished_at))


def repositories(data: DataPlace) -> tuple[RepositoryRecord, ...]:
    """The last run of each (repository, commit, configuration), oldest first.

    Raises:
        StorageFailed: the dataset cannot be read, or a row of it is malformed.
    """
    last: dict[tuple[str, str | None, str], RepositoryRecord] = {}
    rows = load_table(data, Dataset.REPOSITORIES).to_pylist()
    records = [_record(Dataset.REPOSITORIES, row, RepositoryRecord) for row in rows]
    for record in sorted(records, key=lambda record: record.finished_at):
        key = record.repository, record.commit, record.configuration
        last.pop(key, None)
        last[key] = record
    return tuple(last.values())


def find_environment(data: DataPlace, id_or_prefix: str) -> EnvironmentRecord:
    """The environment of that id, or the only one whose id starts like that.

    Raises:
        BadInput: there is none, or more than one.
        StorageFailed: the dataset cannot be read.
    """
    store = store_of(data)
    known = load_table(store, Dataset.ENVIRONMENTS, ["environment_id"]).column(0).to_pylist()
    found = sorted({name for name in known if name == id_or_prefix}) or sorted(
        {name for name in known if id_or_prefix and name.startswith(id_or_prefix)}
    )
    if not found:
        raise BadInput(
            f"There is no environment {id_or_prefix!r} below {store.location}.",
            hint="`autoinstall environments` lists them; --data names another directory.",
        )
    if len(found) > 1:
        raise BadInput(
            f"{id_or_prefix!r} could be any of {len(found)} environments: {', '.join(found[:5])}.",
            hint="Give more of the id.",
        )
    return next(record for record in reversed(environments(store)) if record.environment_id == found[0])


def environment_from(row: Mapping[Any, Any] | pd.Series) -> EnvironmentRecord:
    """An `environments` row, from whatever read it (pyarrow, a pandas Series, a dict), as a record.

    Raises:
        StorageFailed: it is not a row of that dataset.
    """
    return _record(Dataset.ENVIRONMENTS, row, EnvironmentRecord)


def done_keys(data: DataPlace, night_id: str | None = None) -> frozenset[tuple[str, str, str]]:
    """(repository, commit, configuration) of the runs that need not be done again.

    Repositories are spelt as `records.repository_key` spells them. Infrastructure failures and cancelled runs are
    not done, nor is a verified one whose environment's row was never written.

    Args:
        night_id: only those of that night.

    Raises:
        StorageFailed: a dataset cannot be read.
    """
    store = store_of(data)
    accepted = set(load_table(store, Dataset.ENVIRONMENTS, ["environment_id"]).column(0).to_pylist())
    columns = ["repository", "commit", "configuration", "outcome", "environment_id", "night_id"]
    return frozenset(
        (row["repository"], row["commit"], row["configuration"] or "")
        for row in load_table(store, Dataset.REPOSITORIES, columns).to_pylist()
        if row["commit"]
        and night_id in (None, row["night_id"])
        and row["outcome"] not in RETRIED_OUTCOMES
        and (row["outcome"] != Outcome.VERIFIED or row["environment_id"] in accepted)
    )


_R = TypeVar("_R", bound=Record)


def _record(dataset: Dataset, row: Mapping[Any, Any] | pd.Series, kind: type[_R]) -> _R:
    plain = {str(name): _plain(value) for name, value in dict(row).items()}
    try:
        record = from_row(dataset, plain)
    except (ValidationError, TypeError, KeyError, json.JSONDecodeError) as error:
        raise StorageFailed(f"This is not a row of the {dataset} dataset: {error}.") from error
    if not isinstance(record, kind):
        raise TypeError(f"{dataset} has no {kind.__name__}")
    return record


def _plain(value: Any) -> Any:
    """What pandas makes of a cell, as plain Python: arrays as lists, its several kinds of missing as None."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value
