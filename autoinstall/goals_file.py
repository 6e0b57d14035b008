"""Goals of the user's own: a JSON list, which stands in for goal-setting and becomes the targets."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autoinstall.errors import InvalidGoals
from autoinstall.values import Category, Goal, NonEmpty

MAX_BYTES = 4 * 2**20
_HINT = (
    "Write a JSON list of objects with command and description, and, where needed, exit_codes, category, "
    "min_pass_rate, timeout."
)


class _Entry(BaseModel):
    """A goal as users write it: strict, so that "0" is no exit code, and with a description that must say something."""

    model_config = ConfigDict(strict=True, extra="forbid")

    command: NonEmpty
    description: NonEmpty
    exit_codes: Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=1)] = [0]
    category: Annotated[Category, Field(strict=False)] = Category.OTHER
    min_pass_rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    def as_goal(self) -> Goal:
        return Goal(
            command=self.command,
            description=self.description,
            exit_codes=tuple(self.exit_codes),
            category=self.category,
            min_pass_rate=self.min_pass_rate,
            timeout=self.timeout,
        )


def read_goals(path: Path) -> tuple[Goal, ...]:
    """The goals of a file, at least one, in its order.

    Raises:
        InvalidGoals: it cannot be read, or is not of the documented form; the message names the entry and the reason.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidGoals(f"The goals file {path} cannot be read: {error.strerror}.") from None
    if len(content) > MAX_BYTES:
        raise InvalidGoals(f"The goals file {path} is larger than {MAX_BYTES // 2**20} MiB.", hint=_HINT)
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidGoals(f"The goals file {path} is not UTF-8.", hint=_HINT) from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidGoals(f"The goals file {path} is not JSON: {error}.", hint=_HINT) from None
    try:
        return parse_goals(data)
    except InvalidGoals as error:
        raise InvalidGoals(f"The goals file {path}: {error.message}", hint=error.hint) from None


def parse_goals(data: object) -> tuple[Goal, ...]:
    """Goals from parsed JSON.

    Raises:
        InvalidGoals: it is not of the documented form.
    """
    if not isinstance(data, list):
        raise InvalidGoals(f"It must be a list of goals, not {_kind(data)}.", hint=_HINT)
    if not data:
        raise InvalidGoals("The list has no goal.", hint=_HINT)
    return tuple(_goal(index, entry) for index, entry in enumerate(data, start=1))


def _goal(index: int, entry: object) -> Goal:
    if not isinstance(entry, dict):
        raise InvalidGoals(f"Goal {index} must be an object, not {_kind(entry)}.", hint=_HINT)
    try:
        return _Entry.model_validate(entry).as_goal()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidGoals(f"Goal {index}, {where}: {first['msg']}.", hint=_HINT) from None


def _kind(data: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(data), "a number")
