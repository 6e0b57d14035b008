"""The line of a failed command's output that says most about why it failed, for people who read reasons."""

import re

from autoinstall.outputs.cleaning import clean

LIMIT = 300
"""Characters of the line that are quoted."""

_ERROR = r"\berr(?:or)?\b|^E: |exception\b|\bfail(?:ed|ure)\b"
_LACK = (
    r"\b(?:cannot|can't|could not|unable|unknown|undefined|unsupported|unresolv\w+|missing|incompatible|no such)\b"
    r"|\bnot (?:found|known|supported|installed|resolved)\b|\bno module\b|\bnon-resolvable\b"
)
_WORDS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in (_ERROR, _LACK, r"^\W*fatal\b"))
"""The later one weighs more than all before it."""

_NO_NEWS = re.compile(r"^\W*(?:warn(?:ing)?|deprecat\w+|note|hint)\b", re.IGNORECASE)


def complaint(output: str) -> str:
    """The first of the lines that say most; the last line where none says anything, empty where there is none."""
    lines = [line.strip() for line in clean(output).splitlines() if line.strip()]
    ranked = [(_rank(line), line) for line in lines]
    best = max((rank for rank, _ in ranked), default=0)
    found = next((line for rank, line in ranked if rank == best), "") if best else (lines or [""])[-1]
    return found if len(found) <= LIMIT else f"{found[: LIMIT - 1]}…"


def _rank(line: str) -> int:
    if _NO_NEWS.match(line):
        return 0
    return sum(2**place for place, words in enumerate(_WORDS) if words.search(line))
