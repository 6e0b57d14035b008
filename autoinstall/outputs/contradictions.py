"""Signs in an output that contradict a claim of success.

Programs print the word "error" in passing tests, so a sign is a line of a known shape (signs.toml), weighed by where it
stands: the nearer the end, the more it says. Where a test runner's summary shows tests passing, it outranks the signs
of what those tests may well have printed themselves.
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from autoinstall.outputs.cleaning import clean
from autoinstall.outputs.summaries import COLLECTED, total
from autoinstall.values import Category, CommandResult, Goal, TestCounts

_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|NotFound|Timeout|Warning)\b(?::|$)"
)


class Sign(BaseModel):
    """One rule of signs.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: re.Pattern[str]
    reason: str
    tail: int
    outranked: bool = False
    always: bool = False
    categories: tuple[Category, ...] = ()


@cache
def signs() -> tuple[Sign, ...]:
    text = files("autoinstall.outputs").joinpath("signs.toml").read_text(encoding="utf-8")
    return tuple(Sign.model_validate(entry) for entry in tomllib.loads(text)["sign"])


def contradictions(
    goal: Goal, result: CommandResult, summaries: Sequence[TestCounts], pass_rate: float = 1.0
) -> tuple[str, ...]:
    """Why the output contradicts success, one sentence each; empty where it does not.

    Args:
        summaries: what `summarise` reads in the same output.
        pass_rate: fraction of the tests that must pass.
    """
    counted = count_contradiction(goal, summaries, pass_rate)
    if counted:
        return (counted,)
    counts = total(summaries)
    passing = counts is not None and counts.passed > 0
    lines = [line for line in clean(result.output).split("\n") if line.strip()]
    found: dict[str, None] = {}
    for sign in signs():
        if sign.categories and goal.category not in sign.categories:
            continue
        if (result.exit_code != 0 and not sign.always) or (sign.outranked and passing):
            continue
        line = _find(sign, lines, goal.command)
        if line is not None:
            found[f"{sign.reason[0].upper()}{sign.reason[1:]}: {_short(line)}"] = None
    if result.exit_code == 0 and not passing and _ends_in_traceback(lines):
        found[f"The output ends in a Python traceback: {_short(lines[-1])}"] = None
    return tuple(found)


def count_contradiction(goal: Goal, summaries: Sequence[TestCounts], pass_rate: float) -> str:
    """What a runner's summary says against success; empty where it says nothing against it."""
    counts = total(summaries)
    if counts is None:
        return ""
    bad = counts.failed + counts.errors
    if bad and (counts.ran == 0 or counts.passed / counts.ran < pass_rate):
        required = "" if pass_rate == 1 else f", less than the {pass_rate:.0%} required"
        return f"{counts.runner} reports {bad} of {counts.ran} tests as failed{required}{_first_names(counts)}."
    if goal.category is Category.TEST and counts.ran == 0:
        what = "collected no test" if counts.runner == COLLECTED else "ran no test"
        return f"{counts.runner} {what}{f' and skipped {counts.skipped}' if counts.skipped else ''}."
    return ""


def _first_names(counts: TestCounts) -> str:
    if not counts.failed_names:
        return ""
    more = ", …" if len(counts.failed_names) > 3 else ""
    return f" ({', '.join(map(_short, counts.failed_names[:3]))}{more})"


def _find(sign: Sign, lines: Sequence[str], command: str) -> str | None:
    tail = len(lines) - sign.tail if sign.tail else 0
    for index, line in enumerate(lines):
        match = sign.pattern.search(line)
        if match is None:
            continue
        named = match.groupdict().get("command")
        if index >= tail or (named is not None and re.search(rf"(?<![\w./-]){re.escape(named)}(?![\w./-])", command)):
            return line
    return None


def _ends_in_traceback(lines: Sequence[str]) -> bool:
    """Whether the last thing printed is a traceback, its exception's message included (at most 10 lines of it)."""
    start = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].strip() == _TRACEBACK), None)
    if start is None or len(lines) - start > 200:
        return False
    if start and lines[start - 1].startswith(("Exception ignored", "--- Logging error")):
        return False
    end = next((index for index in range(start + 1, len(lines)) if not lines[index].startswith((" ", "\t"))), None)
    return end is not None and _EXCEPTION.match(lines[end]) is not None and len(lines) - end <= 10


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 160 else f"{line[:159]}…"
