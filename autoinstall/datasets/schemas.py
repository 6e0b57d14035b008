"""The explicit Parquet schema of each dataset, and how a record becomes a row and a row a record.

Choices that keep the files readable everywhere with defaults: one string type (`string`, never `large_string` or a
dictionary), microsecond UTC timestamps, structs and lists of structs for what is nested, mappings as lists of
(name, value), and JSON text only for what has no fixed form (chat messages, `extra`). A column's type is never left
to its first batch, so one that is all null is still typed.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from autoinstall.datasets.records import (
    AttemptRecord,
    EnvironmentRecord,
    GoalRecord,
    Record,
    RepositoryRecord,
    TrajectoryRecord,
)


class Dataset(StrEnum):
    """The five datasets; a value is the directory's name."""

    ENVIRONMENTS = "environments"
    GOALS = "goals"
    ATTEMPTS = "attempts"
    TRAJECTORIES = "trajectories"
    REPOSITORIES = "repositories"


JSON_COLUMNS = frozenset({"extra", "messages", "tools"})
"""Top-level columns whose text is JSON."""

_TEXT = pa.string()
_TEXTS = pa.list_(pa.string())
_INT = pa.int64()
_REAL = pa.float64()
_FLAG = pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")

PAIRS = pa.list_(pa.struct([("name", _TEXT), ("value", _TEXT)]))
"""A mapping of strings. Not `map`: pandas, Polars and Hugging Face datasets each read that differently."""

_EVIDENCE = pa.struct([("path", _TEXT), ("line", _INT), ("text", _TEXT)])
_TESTS = pa.struct(
    [
        ("runner", _TEXT),
        ("passed", _INT),
        ("failed", _INT),
        ("errors", _INT),
        ("skipped", _INT),
        ("failed_names", _TEXTS),
    ]
)
_GOAL: list[tuple[str, pa.DataType]] = [
    ("command", _TEXT),
    ("description", _TEXT),
    ("category", _TEXT),
    ("exit_codes", pa.list_(_INT)),
    ("min_pass_rate", _REAL),
    ("timeout", _REAL),
    ("evidence", _EVIDENCE),
]
_OBSERVATION = pa.struct(
    [
        ("exit_code", _INT),
        ("verdict", _TEXT),
        ("reason", _TEXT),
        ("seconds", _REAL),
        ("output", _TEXT),
        ("timed_out", _FLAG),
        ("tests", _TESTS),
    ]
)
_TARGETS = pa.list_(
    pa.struct(
        [
            *_GOAL,
            ("exit_code", _INT),
            ("verdict", _TEXT),
            ("reason", _TEXT),
            ("seconds", _REAL),
            ("output", _TEXT),
            ("tests", _TESTS),
        ]
    )
)
_MOCKS = pa.list_(pa.struct([("kind", _TEXT), ("path", _TEXT), ("reason", _TEXT)]))
_PROBE = pa.struct([("kind", _TEXT), ("target", _TEXT), ("timeout", _REAL)])
_SERVICES = pa.list_(pa.struct([("name", _TEXT), ("command", _TEXT), ("probe", _PROBE), ("user", _TEXT)]))
_SIDECARS = pa.list_(
    pa.struct(
        [
            ("alias", _TEXT),
            ("image", _TEXT),
            ("command", _TEXTS),
            ("env", PAIRS),
            ("ports", pa.list_(_INT)),
            ("probe", _PROBE),
        ]
    )
)
_LIMITS = pa.struct(
    [
        ("command_seconds", _REAL),
        ("attempt_seconds", _REAL),
        ("memory_mb", _INT),
        ("cpus", _REAL),
        ("pids", _INT),
    ]
)
_AGENTS = pa.struct(
    [
        ("goal_setter", _TEXT),
        ("goal_setter_model", _TEXT),
        ("installer", _TEXT),
        ("installer_model", _TEXT),
        ("judge", _TEXT),
        ("judge_model", _TEXT),
    ]
)

_COMMON: list[tuple[str, pa.DataType]] = [
    ("schema_version", _INT),
    ("product_version", _TEXT),
    ("run_id", _TEXT),
    ("flow_run_id", _TEXT),
    ("night_id", _TEXT),
    ("repository", _TEXT),
    ("commit", _TEXT),
    ("started_at", _TIME),
    ("finished_at", _TIME),
]
_TOKENS: list[tuple[str, pa.DataType]] = [
    ("model_seconds", _REAL),
    ("input_tokens", _INT),
    ("cached_tokens", _INT),
    ("output_tokens", _INT),
    ("reasoning_tokens", _INT),
    ("cost_usd", _REAL),
]
_USAGE: list[tuple[str, pa.DataType]] = [("seconds", _REAL), ("steps", _INT), *_TOKENS]
_JUDGED: list[tuple[str, pa.DataType]] = [
    ("ref", _TEXT),
    ("commit_date", _TIME),
    ("configuration", _TEXT),
    ("seed", _INT),
    ("language", _TEXT),
    ("needs_setup", _FLAG),
    ("image", _TEXT),
    ("targets", _TARGETS),
    ("attempts", _INT),
    ("held_out_passed", _INT),
    ("held_out_total", _INT),
    ("offline_ok", _FLAG),
    ("agents", _AGENTS),
    ("team", _TEXT),
    ("stage_seconds", pa.list_(pa.struct([("stage", _TEXT), ("seconds", _REAL)]))),
    ("seconds", _REAL),
    *_TOKENS,
    ("warnings", _TEXTS),
]
_EXTRA: list[tuple[str, pa.DataType]] = [("extra", _TEXT)]

SCHEMAS: Mapping[Dataset, pa.Schema] = {
    Dataset.ENVIRONMENTS: pa.schema(
        [
            *_COMMON,
            ("environment_id", _TEXT),
            *_JUDGED,
            ("image_digest", _TEXT),
            ("image_size_bytes", _INT),
            ("platform", _TEXT),
            ("base_image", _TEXT),
            ("base_digest", _TEXT),
            ("dockerfile", _TEXT),
            ("rebuild_ok", _FLAG),
            ("start_script", _TEXT),
            ("env", PAIRS),
            ("services", _SERVICES),
            ("sidecars", _SIDECARS),
            ("limits", _LIMITS),
            ("mocks", _MOCKS),
            ("modified", _TEXTS),
            *_EXTRA,
        ]
    ),
    Dataset.GOALS: pa.schema(
        [
            *_COMMON,
            ("index", _INT),
            *_GOAL,
            ("trivial", _FLAG),
            ("target", _FLAG),
            ("baseline", _OBSERVATION),
            ("result", _OBSERVATION),
            *_EXTRA,
        ]
    ),
    Dataset.ATTEMPTS: pa.schema(
        [
            *_COMMON,
            ("attempt", _INT),
            ("outcome", _TEXT),
            ("code", _TEXT),
            ("reason", _TEXT),
            ("agent", _TEXT),
            ("model", _TEXT),
            ("failing_command", _TEXT),
            ("exit_code", _INT),
            ("output_tail", _TEXT),
            ("targets", _TARGETS),
            ("summary", _TEXT),
            ("lessons", _TEXTS),
            ("mocks", _MOCKS),
            *_USAGE,
            *_EXTRA,
        ]
    ),
    Dataset.TRAJECTORIES: pa.schema(
        [
            *_COMMON,
            ("sequence", _INT),
            ("role", _TEXT),
            ("agent", _TEXT),
            ("model", _TEXT),
            ("attempt", _INT),
            ("outcome", _TEXT),
            ("messages", _TEXT),
            ("tools", _TEXT),
            ("stop", _TEXT),
            ("shortened", _FLAG),
            *_USAGE,
            *_EXTRA,
        ]
    ),
    Dataset.REPOSITORIES: pa.schema(
        [
            *_COMMON,
            ("outcome", _TEXT),
            ("stage", _TEXT),
            ("code", _TEXT),
            ("reason", _TEXT),
            ("environment_id", _TEXT),
            ("infrastructure_failures", _INT),
            *_JUDGED,
            *_EXTRA,
        ]
    ),
}

RECORDS: Mapping[Dataset, type[Record]] = {
    Dataset.ENVIRONMENTS: EnvironmentRecord,
    Dataset.GOALS: GoalRecord,
    Dataset.ATTEMPTS: AttemptRecord,
    Dataset.TRAJECTORIES: TrajectoryRecord,
    Dataset.REPOSITORIES: RepositoryRecord,
}


def to_row(record: Record) -> dict[str, Any]:
    """Column → plain Python value, JSON columns not yet dumped (the writer cleans their strings first)."""
    return {name: _plain(getattr(record, name)) for name in type(record).model_fields}


def to_table(dataset: Dataset, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of `to_row` as a typed table; typed too where there are none, or where a column is all null.

    Raises:
        ValueError: a row has a column that the schema does not know.
    """
    schema = SCHEMAS[dataset]
    known = frozenset(schema.names)
    prepared = []
    for row in rows:
        if unknown := row.keys() - known:
            raise ValueError(f"{dataset} has no column {', '.join(sorted(unknown))}")
        prepared.append({name: _cell(name, schema.field(name).type, row.get(name)) for name in schema.names})
    return pa.Table.from_pylist(prepared, schema=schema)


def from_row(dataset: Dataset, row: Mapping[str, Any]) -> Record:
    """A row, of this or another schema version, as a record.

    Columns that this version does not know go to `extra`; ones that the row lacks take the record's default.

    Raises:
        pydantic.ValidationError: a column that every record must have is missing or malformed.
    """
    schema, kind = SCHEMAS[dataset], RECORDS[dataset]
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = json.loads(row.get("extra") or "{}")
    for name, value in row.items():
        if name == "extra" or value is None:
            continue
        if name not in kind.model_fields:
            extra[name] = json.loads(json.dumps(value, default=str))
        elif name in JSON_COLUMNS:
            fields[name] = json.loads(value)
        else:
            fields[name] = _restore(value, schema.field(name).type)
    return kind.model_validate({**fields, "extra": extra})


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value


def _cell(name: str, kind: pa.DataType, value: Any) -> Any:
    if name in JSON_COLUMNS:
        return json.dumps(value, ensure_ascii=False, default=str)
    return _paired(value, kind)


def _paired(value: Any, kind: pa.DataType) -> Any:
    """Mappings as lists of (name, value), at any depth."""
    if value is None:
        return None
    if kind == PAIRS:
        return [{"name": name, "value": text} for name, text in value.items()]
    if pa.types.is_list(kind):
        return [_paired(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _paired(value.get(field.name), field.type) for field in kind}
    return value


def _restore(value: Any, kind: pa.DataType) -> Any:
    """The inverse of `_paired`, on what pyarrow or pandas give back; nulls inside structs take the defaults."""
    if kind == PAIRS:
        return {pair["name"]: pair["value"] for pair in value}
    if pa.types.is_list(kind):
        return [_restore(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {
            field.name: _restore(value[field.name], field.type) for field in kind if value.get(field.name) is not None
        }
    return value
