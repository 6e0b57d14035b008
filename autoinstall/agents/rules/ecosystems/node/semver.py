"""npm's version ranges, as far as choosing releases needs them. Pre-releases and build tags are not told apart."""

import re
from itertools import zip_longest

Version = tuple[int, int, int]

_VERSION = re.compile(r"v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?")
_COMPARATOR = re.compile(r"(>=|<=|>|<|=|\^|~>?)?\s*v?(\d+(?:\.(?:\d+|[xX*]))*|[xX*])[^\s|,]*")
_HYPHEN = re.compile(r"v?(\d+(?:\.[\dxX*]+)*)\s+-\s+v?(\d+(?:\.[\dxX*]+)*)")
_TOP: Version = (10**9, 0, 0)


def parse(text: str) -> Version | None:
    """The first three numbers of a version, missing ones as 0; None where there is none."""
    found = _VERSION.match(text.strip())
    if not found or not found.group(1).isdigit():
        return None
    parts = [int(part) if part and part.isdigit() else 0 for part in found.groups()]
    return parts[0], parts[1], parts[2]


def satisfies(version: str, wanted: str) -> bool:
    """Whether `version` lies in the range `wanted`. A range that cannot be read takes every version."""
    given = parse(version)
    if given is None:
        return True
    return any(all(low <= given < high for low, high in _bounds(part)) for part in wanted.split("||"))


def lower_bound(wanted: str) -> Version | None:
    """The least version that the range's first alternative names; None for `*`, tags and URLs."""
    if re.match(r"\s*(?:[a-z]+[:+/]|[\w-]+/)", wanted, re.I):
        return None
    starts = [low for low, _ in _bounds(wanted.split("||", maxsplit=1)[0]) if low > (0, 0, 0)]
    return max(starts, default=None)


def _bounds(part: str) -> list[tuple[Version, Version]]:
    hyphen = _HYPHEN.search(part)
    if hyphen:
        return [(_span("", hyphen.group(1))[0], _span("<=", hyphen.group(2))[1])]
    return [_span(found.group(1) or "", found.group(2)) for found in _COMPARATOR.finditer(part)]


def _span(operator: str, text: str) -> tuple[Version, Version]:
    numbers = [int(item) for item in text.split(".") if item.isdigit()][:3]
    if not numbers:
        return (0, 0, 0), _TOP
    low = _pad(numbers)
    after = _pad([*numbers[:-1], numbers[-1] + 1])
    match operator:
        case ">=":
            return low, _TOP
        case ">":
            return after, _TOP
        case "<":
            return (0, 0, 0), low
        case "<=":
            return (0, 0, 0), after
        case "~" | "~>":
            return low, _pad([numbers[0], numbers[1] + 1] if len(numbers) > 1 else [numbers[0] + 1])
        case "^":
            return low, _caret(numbers)
        case _:
            return low, after


def _caret(numbers: list[int]) -> Version:
    for index, number in enumerate(numbers):
        if number or index == len(numbers) - 1:
            return _pad([*numbers[:index], number + 1])
    return _TOP


def _pad(numbers: list[int]) -> Version:
    first, second, third = (pair[0] for pair in zip_longest(numbers[:3], (0, 0, 0), fillvalue=0))
    return first, second, third
