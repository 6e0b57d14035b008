"""Files of every version of the schema, read as the present one.

A column that a file lacks is null, one that was renamed since has its new name, and one that the present schema does
not know stays as it is, behind the others. A file says in its metadata which version wrote it; one of a later version
is refused, since what it means is not known here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from autoinstall.datasets.failures import storage_errors
from autoinstall.datasets.records import SCHEMA_VERSION
from autoinstall.datasets.schemas import SCHEMAS, Dataset
from autoinstall.datasets.store import Store
from autoinstall.errors import StorageFailed

VERSION_KEY = b"autoinstall.schema_version"

RENAMED: Mapping[Dataset, Mapping[str, str]] = {dataset: {} for dataset in Dataset}
"""Former name → present name of a column. A rename raises the schema's version."""


def file_schema(dataset: Dataset) -> pa.Schema:
    """The present schema, as files carry it."""
    return SCHEMAS[dataset].with_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})


def stored_schema(store: Store, path: str) -> pa.Schema:
    """The schema of a file.

    Raises:
        FileNotFoundError: it is gone.
        StorageFailed: a later version of the product wrote it, or it cannot be read.
    """
    with storage_errors(store.location / path, "read"):
        schema = pq.read_schema(path, filesystem=store.filesystem)
    version = int((schema.metadata or {}).get(VERSION_KEY, b"1"))
    if version > SCHEMA_VERSION:
        raise StorageFailed(
            f"{store.location}/{path} has version {version} of the schema, and this program knows {SCHEMA_VERSION}.",
            hint="Use the version of autoinstall that wrote it, or a later one.",
        )
    return schema.remove_metadata()


def is_present(dataset: Dataset, stored: pa.Schema) -> bool:
    """Whether a file with this schema needs no `conform` beside others: it may only know more."""
    known = SCHEMAS[dataset]
    alike = list(stored)[: len(known)]
    return [(field.name, field.type) for field in alike] == [(field.name, field.type) for field in known]


def present(dataset: Dataset, schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The present schema, and behind it the columns that only these know.

    Raises:
        pyarrow.ArrowException: two of them mean different things by one name.
    """
    known, renamed = file_schema(dataset), RENAMED[dataset]
    others = [
        pa.schema([f for f in schema if f.name not in known.names and f.name not in renamed]) for schema in schemas
    ]
    return pa.schema([*known, *pa.unify_schemas([pa.schema([]), *others])], metadata=known.metadata)


def conform(table: pa.Table, dataset: Dataset, schema: pa.Schema) -> pa.Table:
    """A table of any version with the columns of `schema`, in its order and types.

    Raises:
        pyarrow.ArrowException: a column holds what its present type cannot.
    """
    names = [RENAMED[dataset].get(name, name) for name in table.column_names]
    found = dict(zip(names, table.columns, strict=True))
    columns: list[Any] = [
        found[field.name].cast(field.type) if field.name in found else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def read_present(store: Store, dataset: Dataset, path: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a file, a row group at a time."""
    with store.filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as file:
        for group in range(file.num_row_groups):
            yield conform(file.read_row_group(group), dataset, schema)


def former_names(dataset: Dataset, columns: Iterable[str], stored: pa.Schema) -> list[str]:
    """The names by which a file has these columns; those that it lacks are left out."""
    former = {new: old for old, new in RENAMED[dataset].items() if old in stored.names}
    return [former.get(name, name) for name in columns if former.get(name, name) in stored.names]
