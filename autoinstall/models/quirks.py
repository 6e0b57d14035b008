"""The table of what endpoints say when something is wrong (`quirks.toml`)."""

import re
import tomllib
from functools import lru_cache
from importlib import resources
from typing import Annotated

from pydantic import Field, field_validator

from autoinstall.values import Value


def _regular(pattern: str) -> str:
    re.compile(pattern)
    return pattern


Patterns = Annotated[tuple[str, ...], Field(min_length=1)]


class Unsuitable(Value):
    """`hint` may name `{variable}`, the variable that the endpoint's settings are below."""

    pattern: str
    hint: str


class Quirks(Value):
    """The table, flat. All patterns are searched without regard to case."""

    quota: Patterns
    quota_unless: tuple[str, ...]
    context: Patterns
    room: Patterns
    cap: Patterns
    filtered: Patterns
    passing: Patterns
    optional: frozenset[str]
    rejection: str
    no_system: Patterns
    no_null: Patterns
    wants_reasoning: Patterns
    unsuitable: tuple[Unsuitable, ...]
    text_calls: Patterns

    @field_validator(
        "quota", "context", "room", "cap", "filtered", "passing", "no_system", "no_null", "wants_reasoning"
    )
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_regular(pattern) for pattern in patterns)


@lru_cache(maxsize=1)
def quirks() -> Quirks:
    """The table that the package carries."""
    text = resources.files("autoinstall.models").joinpath("quirks.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    groups = ("quota", "context", "room", "cap", "filtered", "passing", "text_calls")
    return Quirks(
        **{name: table[name]["patterns"] for name in groups},
        quota_unless=table["quota"]["unless"],
        **table["parameters"],
        **table["messages"],
        unsuitable=table["unsuitable"],
    )


def said(patterns: tuple[str, ...], text: str) -> re.Match[str] | None:
    """The first of `patterns` that is found in `text`."""
    return next(
        (found for pattern in patterns if (found := re.search(pattern, text, re.IGNORECASE | re.DOTALL))),
        None,
    )
