"""Reads test runners' summaries out of an output.

Summaries that one line or one block of lines tells are rules in runners.toml; `runners.py` has the readers of those
that need more. What comes out is one `TestCounts` a runner: several summaries of one runner (the packages of a
workspace, the binaries of a C project) are added up, and what a runner says twice is counted once.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from autoinstall.outputs.cleaning import clean
from autoinstall.outputs.runners import READERS
from autoinstall.values import TestCounts

COLLECTED = "pytest --collect-only"
"""Runner name of a listing of tests; its `passed` is how many were collected."""

PLAIN = "plain"
"""Runner name of what a home-made suite prints."""

MAX_NAMES = 200
_FIELDS = ("passed", "failed", "errors", "skipped", "total")

# Monorepo tools and ctest -V prefix every line with whose it is; lines of one origin are read together.
_PREFIX = re.compile(
    r"^(?:\d+: "  # ctest -V
    r"|\[(?!(?:ok|err|exception|skip|ignore|timeout)\])[@\w./-]+\]:\s?"  # yarn workspaces foreach
    r"|@[\w.-]+/[\w.-]+(?::[\w:-]+)?:\s"  # lerna, turbo
    r"|[\w.@-]+(?:/[\w.@-]+)+ [\w:-]+: "  # pnpm -r
    r"|[\w.-]+:(?:test|check|unit)[\w:-]*:\s"  # turbo
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z\s)"  # time stamps of CI logs
)


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LineRule(_Rule):
    runner: str = PLAIN
    pattern: re.Pattern[str]
    fold: Literal["sum", "last"] = "sum"


class BlockRule(_Rule):
    runner: str
    need: tuple[int, ...]
    keys: tuple[tuple[re.Pattern[str], Literal["passed", "failed", "errors", "skipped", "total", ""]], ...]


class NameRule(_Rule):
    runner: str
    pattern: re.Pattern[str]


class RunnerTable(_Rule):
    """runners.toml, checked."""

    outer: frozenset[str]
    yields: tuple[tuple[str, str], ...]
    line: tuple[LineRule, ...]
    block: tuple[BlockRule, ...]
    plain: tuple[LineRule, ...]
    names: tuple[NameRule, ...]

    @classmethod
    def load(cls) -> Self:
        text = files("autoinstall.outputs").joinpath("runners.toml").read_text(encoding="utf-8")
        return cls.model_validate(tomllib.loads(text))


@cache
def runner_table() -> RunnerTable:
    return RunnerTable.load()


def summarise(output: str) -> tuple[TestCounts, ...]:
    """What each test runner reports in `output`, in the order of their names; empty where none was recognised.

    A runner that says that no test ran is there, with zero counts. Skipped tests, expected failures and todos count as
    `skipped`; a test file that could not be loaded counts in `errors`.
    """
    table = runner_table()
    found: dict[str, list[TestCounts]] = defaultdict(list)
    streams = _streams(clean(output))
    for lines in streams:
        for counts in _read_stream(lines, table):
            found[counts.runner].append(counts)
    for weaker, stronger in table.yields:
        if stronger in found:
            found.pop(weaker, None)
    if not found:
        found[PLAIN] = [counts for lines in streams for counts in _read_plain(lines, table)]
    return tuple(_merge(runner, several) for runner, several in sorted(found.items()) if several)


def total(summaries: Sequence[TestCounts]) -> TestCounts | None:
    """One count for the whole output; None where no runner was recognised.

    Runners that run other runners' programs (ctest, make check, prove, …) speak for what they ran.
    """
    if not summaries:
        return None
    outer = [counts for counts in summaries if counts.runner in runner_table().outer]
    spoken_for = outer or list(summaries)
    if len(spoken_for) == 1:
        return spoken_for[0]
    return _merge(" + ".join(counts.runner for counts in spoken_for), spoken_for)


def _streams(text: str) -> list[list[str]]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for line in text.split("\n"):
        prefix = match[0] if (match := _PREFIX.match(line)) else ""
        grouped[prefix if not prefix.endswith("Z ") else ""].append(line[len(prefix) :].rstrip())
    return list(grouped.values())


def _read_stream(lines: Sequence[str], table: RunnerTable) -> Iterable[TestCounts]:
    found: list[TestCounts] = []
    for reader in READERS:
        found.extend(reader(lines))
    for rule in table.line:
        found.extend(_read_lines(lines, rule))
    for block in table.block:
        found.extend(_read_blocks(lines, block))
    runners = {counts.runner for counts in found}
    if "unittest" in runners and "stestr" in runners:
        runners.discard("unittest")
    for runner in runners:
        of_runner = _without_repeats([counts for counts in found if counts.runner == runner])
        merged = _merge(runner, of_runner)
        names = merged.failed_names or _names(lines, runner, table)
        yield merged.model_copy(update={"failed_names": names if merged.failed + merged.errors else ()})


def _without_repeats(several: list[TestCounts]) -> list[TestCounts]:
    """Two rules may read one runner (stestr's first line and its block): the fuller one stands."""
    if len(several) == 2 and several[0].runner in {"stestr", "node-tap"}:
        return [max(several, key=lambda counts: (counts.failed, counts.skipped, counts.ran))]
    return several


def _read_lines(lines: Sequence[str], rule: LineRule) -> list[TestCounts]:
    found = [
        _counts(rule.runner, match.groupdict()) for line in lines if (match := rule.pattern.search(line)) is not None
    ]
    return found[-1:] if rule.fold == "last" else found


def _read_blocks(lines: Sequence[str], rule: BlockRule) -> list[TestCounts]:
    found: list[TestCounts] = []
    fields: dict[str, int] = defaultdict(int)
    seen: set[int] = set()

    def close() -> None:
        if set(rule.need) <= seen:
            found.append(_counts(rule.runner, {name: str(value) for name, value in fields.items()}))
        fields.clear()
        seen.clear()

    for line in lines:
        key = next(((index, match) for index, (key, _) in enumerate(rule.keys) if (match := key.search(line))), None)
        if key is None:
            if line.strip():
                close()
            continue
        index, match = key
        if index in seen and rule.keys[index][1]:
            close()
        seen.add(index)
        if rule.keys[index][1]:
            fields[rule.keys[index][1]] += int(match[1])
    close()
    return found


def _read_plain(lines: Sequence[str], table: RunnerTable) -> list[TestCounts]:
    """The first rule that reads anything, so that one line is not read by two of them."""
    return next((found for rule in table.plain if (found := _read_lines(lines, rule))), [])


def _counts(runner: str, groups: Mapping[str, str | None]) -> TestCounts:
    values = dict.fromkeys(_FIELDS, 0)
    given = set()
    for name, value in groups.items():
        if value is not None:
            values[name.rstrip("0123456789")] += int(value)
            given.add(name.rstrip("0123456789"))
    if "total" in given:
        rest = values["total"] - values["failed"] - values["errors"] - values["skipped"]
        if "passed" not in given:
            values["passed"] = max(0, rest)
        elif not given & {"failed", "errors"}:
            values["failed"] = max(0, values["total"] - values["passed"] - values["skipped"])
    del values["total"]
    return TestCounts(runner=runner, **values)


def _merge(runner: str, several: Sequence[TestCounts]) -> TestCounts:
    names = dict.fromkeys(name for counts in several for name in counts.failed_names)
    return TestCounts(
        runner=runner,
        passed=sum(counts.passed for counts in several),
        failed=sum(counts.failed for counts in several),
        errors=sum(counts.errors for counts in several),
        skipped=sum(counts.skipped for counts in several),
        failed_names=tuple(names)[:MAX_NAMES],
    )


def _names(lines: Sequence[str], runner: str, table: RunnerTable) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for rule in table.names:
        if rule.runner == runner:
            found.update((match["name"].strip(), None) for line in lines if (match := rule.pattern.search(line)))
    return tuple(found)[:MAX_NAMES]
