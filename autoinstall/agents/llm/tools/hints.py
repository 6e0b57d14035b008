"""Remedies for failures of a recognised class, said beside the output that shows them."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

MOST = 2
"""Hints beside one output."""


class Hint(BaseModel):
    """One entry of hints.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pattern: re.Pattern[str]
    text: str


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    hint: tuple[Hint, ...]


@cache
def hint_table() -> tuple[Hint, ...]:
    """All hints, in the order of the file."""
    text = files(__package__).joinpath("hints.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    for entry in raw["hint"]:
        entry["pattern"] = re.compile(entry["pattern"], re.IGNORECASE | re.MULTILINE)
    return _Table.model_validate(raw).hint


def hints_for(output: str) -> tuple[str, ...]:
    """What to say beside the output of a command that failed; at most `MOST`."""
    return tuple(hint.text for hint in hint_table() if hint.pattern.search(output))[:MOST]
