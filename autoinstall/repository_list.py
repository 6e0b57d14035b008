"""Lists of repositories: CSV, JSON Lines or Parquet, in a file or in a bucket.

| column | holds |
|---|---|
| url | required |
| ref | branch, tag or SHA; empty means the default branch |
| goals | list as in a goals file; in CSV as JSON |
| base_image | a name of the catalogue or an image reference |
| env | object of strings; in CSV as JSON, or as K=V lines |
| limits | object of `Limits`; in CSV as JSON |

Other columns are ignored, so that lists with columns of somebody else's serve too.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BeforeValidator, ValidationError

from autoinstall.datasets.store import store_of
from autoinstall.errors import InvalidGoals, InvalidList
from autoinstall.goals_file import parse_goals
from autoinstall.settings import StorageSettings
from autoinstall.values import Goal, Limits, RepositorySpec

COLUMNS = ("url", "ref", "goals", "base_image", "env", "limits")
_HINT = "Columns: url, and where needed ref, goals, base_image, env, limits. Formats: CSV, JSON Lines, Parquet."
_ABSENT = (
    "Write it, or name another: a CSV file whose first line is `url,ref`, and every further one a repository; "
    "data/repositories.example.csv is an example."
)
_MAX_FIELD_BYTES = 16 * 2**20

_MAX_TOLD = 10
"""Malformed rows that a message names."""


class _BadRow(Exception):
    """What is wrong with one row; where it is a cell, its column is named first."""

    def __init__(self, reason: str, hint: str = _HINT) -> None:
        super().__init__(reason)
        self.hint = hint


_Row = tuple[str, Mapping[str, object] | _BadRow]  # where it stands, for messages; column → value


ListAddress = Annotated[str, BeforeValidator(str)]
"""Path of a file, or `s3://bucket/key`."""


def read_list(address: str | Path, storage: StorageSettings | None = None) -> tuple[RepositorySpec, ...]:
    """The repositories of a file in its order, each once. The suffix tells the format, else the content does.

    Args:
        storage: how a bucket is reached; None means the process's settings.

    Raises:
        InvalidList: it cannot be read, or rows are malformed; the message names the file and the lines.
        StorageFailed: the bucket cannot be read.
    """
    name = str(address)
    content = _content(name, storage)
    found: dict[str, RepositorySpec] = {}  # keeps the order; the JSON of a value tells it from all others
    malformed: list[tuple[str, _BadRow]] = []
    for where, row in _reader(name, content)(name, content):
        try:
            spec = _spec(row)
        except _BadRow as error:
            malformed.append((where, error))
        else:
            found[spec.model_dump_json()] = spec
    if malformed:
        raise _malformed(name, malformed)
    if not found:
        raise InvalidList(f"The repository list {name} has no row.", hint=_HINT)
    return tuple(found.values())


def _malformed(name: str, rows: Sequence[tuple[str, _BadRow]]) -> InvalidList:
    told = [f"{where}: {error}" for where, error in rows[:_MAX_TOLD]]
    hint = " ".join(dict.fromkeys(error.hint for _, error in rows[:_MAX_TOLD]))
    if len(rows) == 1:
        return InvalidList(f"{name}, {told[0]}.", hint=hint)
    more = [f"and {len(rows) - _MAX_TOLD} more"] if len(rows) > _MAX_TOLD else []
    return InvalidList("\n  ".join([f"{name} has {len(rows)} malformed rows:", *told, *more]), hint=hint)


def _content(name: str, storage: StorageSettings | None) -> bytes:
    if name.startswith("s3://"):
        folder, _, key = name.rpartition("/")
        content = store_of(folder, storage).read(key)
        if content is None:
            raise InvalidList(f"There is no repository list {name}.", hint=_ABSENT)
        return content
    try:
        return Path(name).read_bytes()
    except FileNotFoundError:
        raise InvalidList(f"There is no repository list {name}.", hint=_ABSENT) from None
    except OSError as error:
        raise InvalidList(f"The repository list {name} cannot be read: {error.strerror}.", hint=_HINT) from None


def _reader(name: str, content: bytes) -> Callable[[str, bytes], Iterator[_Row]]:
    by_suffix = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet, ".pq": _parquet}
    if (known := by_suffix.get(PurePath(name).suffix.lower())) is not None:
        return known
    if content.startswith(b"PAR1"):
        return _parquet
    return _json_lines if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _csv


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidList(f"{name}, line {line}: not UTF-8.", hint="Save the list as UTF-8.") from None


def _csv(name: str, content: bytes) -> Iterator[_Row]:
    # The csv module rather than pandas: every cell stays the text that it is, and every row knows its line.
    csv.field_size_limit(_MAX_FIELD_BYTES)
    reader = csv.DictReader(io.StringIO(_text(name, content), newline=""), strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if "url" not in names:
            raise InvalidList(f"{name}, line 1: there is no column url.", hint=_HINT)
        if repeated := next((name for name in COLUMNS if names.count(name) > 1), None):
            raise InvalidList(f"{name}, line 1: the column {repeated} is there twice.", hint=_HINT)
        reader.fieldnames = names
        for row in reader:
            surplus = _BadRow("more cells than columns", "Quote cells that have a comma.") if None in row else None
            yield f"line {reader.line_num}", surplus or row
    except csv.Error as error:
        yield f"line {reader.reader.line_num}", _BadRow(str(error))


def _json_lines(name: str, content: bytes) -> Iterator[_Row]:
    for number, line in enumerate(_text(name, content).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            yield where, _BadRow(f"not JSON: {error}", "Write one object a line.")
        else:
            yield where, row if isinstance(row, dict) else _BadRow("not an object", "Write one object a line.")


def _parquet(name: str, content: bytes) -> Iterator[_Row]:
    try:
        source = pq.ParquetFile(io.BytesIO(content))
        wanted = [name for name in source.schema_arrow.names if name in COLUMNS]
        table = source.read(columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise InvalidList(f"{name} is not a readable Parquet file: {str(error).rstrip('.')}.", hint=_HINT) from None
    if "url" not in wanted:
        raise InvalidList(f"{name} has no column url.", hint=_HINT)
    for number, row in enumerate(table.to_pylist(), start=1):
        yield f"row {number}", row


def _spec(cells: Mapping[str, object] | _BadRow) -> RepositorySpec:
    if isinstance(cells, _BadRow):
        raise cells
    try:
        return RepositorySpec(
            url=_string(cells, "url") or "",
            ref=_string(cells, "ref"),
            goals=_goals(cells.get("goals")),
            base_image=_string(cells, "base_image"),
            env=_env(cells.get("env")),
            limits=_limits(cells.get("limits")),
        )
    except ValidationError:
        raise _BadRow("the url is empty") from None


def _string(cells: Mapping[str, object], column: str) -> str | None:
    """Text of the cell; None where it is empty, which tables made with pandas spell NaN."""
    value = cells.get(column)
    if _is_empty(value):
        return None
    if not isinstance(value, str):
        raise _BadRow(f"{column}: must be a string, is {json.dumps(value, default=str)}; quote it")
    return value.strip()


def _is_empty(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # noqa: PLR0124


def _parsed(value: object, column: str) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (json.JSONDecodeError, RecursionError) as error:
        raise _BadRow(f"{column}: not JSON: {error}") from None


def _goals(value: object) -> tuple[Goal, ...] | None:
    if _is_empty(value):
        return None
    try:
        return parse_goals(_without_nulls(_parsed(value, "goals")))
    except InvalidGoals as error:
        raise _BadRow(f"goals: {error.message.rstrip('.')}") from None


def _env(value: object) -> dict[str, str]:
    if _is_empty(value):
        return {}
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        pairs = [line.strip().partition("=") for line in value.splitlines() if line.strip()]
        if not all(name.strip() and mark for name, mark, _ in pairs):
            raise _BadRow("env: neither JSON nor lines of NAME=VALUE")
        found: dict[object, object] = {name.strip(): text for name, _, text in pairs}
    else:
        found = _object(value, "env")
    env = {}
    for name, text in found.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise _BadRow(f"env: the value of {name} must be a string; quote it")
        if not name or "=" in name or "\0" in name + text:
            raise _BadRow(f"env: {name!r} cannot be a variable")
        env[name] = text
    return env


def _limits(value: object) -> Limits:
    if _is_empty(value):
        return Limits()
    try:
        return Limits.model_validate(_object(value, "limits"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _BadRow(f"limits: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _object(value: object, column: str) -> dict[object, object]:
    data = _parsed(value, column)
    if isinstance(data, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in data):
        data = dict(data)  # Parquet's map type
    if not isinstance(data, dict):
        raise _BadRow(f"{column}: must be an object")
    return {name: entry for name, entry in data.items() if entry is not None}


def _without_nulls(data: object) -> object:
    """Parquet gives every row of nested columns all their fields; an absent one is None there."""
    if isinstance(data, list):
        return [_without_nulls(entry) for entry in data]
    if isinstance(data, dict):
        return {name: entry for name, entry in data.items() if entry is not None}
    return data
