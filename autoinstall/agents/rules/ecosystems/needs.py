"""Packages that scripting languages' projects need, and which of them Debian has."""

import re
from collections.abc import Iterable

from autoinstall.values import Value


class Need(Value):
    """A package as the language's registry names it.

    Attributes:
        constraint: on its version, as written.
        hard: the project declares it for running or for its tests; others are only wished for.
        tool: it runs the tests, so a later version than the project knew may do as well.
    """

    name: str
    constraint: str = ""
    hard: bool = True
    tool: bool = False


class Provision(Value):
    """What of the needs Debian serves: its packages; and in words, the hard needs that it does not serve."""

    packages: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()


def fits(need: Need, version: str) -> bool:
    """Whether Debian's version may do: it has to be of a generation that the constraint allows, to the major version
    alone, since what a project declares is narrower than what works."""
    major = int(re.match(r"\d+", version)[0]) if re.match(r"\d+", version) else 0  # type: ignore[index]
    return any(_allows(part, major, need.tool) for part in re.split(r"\|\|?", need.constraint))


def _allows(constraint: str, major: int, is_tool: bool) -> bool:
    for operator, number in re.findall(r"(\^|~>?|>=|<=|>|<|!=|==?)?\s*v?(\d+(?:\.(?:\d+|\*|x))*)", constraint):
        parts = [int(part) for part in number.split(".") if part.isdigit()]
        first = parts[0]
        below = first - 1 if operator == "<" and not any(parts[1:]) else first
        if operator in {">=", ">"}:
            allowed = major >= first
        elif operator in {"<", "<="}:
            allowed = is_tool or major <= below
        elif operator == "!=":
            allowed = True
        elif operator in {"~", "~>"} and len(parts) == 1:
            allowed = major >= first
        else:
            allowed = major >= first if is_tool else major == first
        if not allowed:
            return False
    return True


def merged(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Each name once, the strictest first."""
    found: dict[str, Need] = {}
    for need in sorted(needs, key=lambda item: (not item.hard, item.tool)):
        found.setdefault(need.name, need)
    return tuple(found.values())


def shown(need: Need, version: str = "") -> str:
    """For a reason: `rails ~> 5.0 (Debian has 6.1)`."""
    text = f"{need.name} {need.constraint}".strip()
    return f"{text} (Debian has {version})" if version else text
