"""Finds out from a failure's output which files, commands or libraries are missing."""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Kind(StrEnum):
    HEADER = "header"
    LIBRARY = "library"
    SHARED_LIBRARY = "shared_library"
    COMMAND = "command"
    MODULE = "module"
    CMAKE = "cmake"
    MACRO = "macro"
    DATA = "data"
    WORD = "word"


class Message(Value):
    kind: Kind
    pattern: str


class MessageTable(Value):
    """The form of `missing.toml`."""

    messages: tuple[Message, ...]


class Missing(Value):
    """A thing that is not there; `name` as the tool spells it."""

    kind: Kind
    name: str


def missing_things(output: str) -> Iterator[Missing]:
    """What the output names as missing, each once, in the order of the table: the exact messages come first."""
    seen: set[Missing] = set()
    for kind, pattern in _patterns():
        for match in pattern.finditer(output):
            name = next((group for group in match.groups() if group), "").strip("./")
            if kind is Kind.DATA:
                name = next((group for group in match.groups() if group), "")
            found = Missing(kind=kind, name=name)
            if name and found not in seen:
                seen.add(found)
                yield found


@cache
def _patterns() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    return tuple((message.kind, re.compile(message.pattern)) for message in load("missing", MessageTable).messages)
