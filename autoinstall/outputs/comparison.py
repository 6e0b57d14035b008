"""Holds an output against what a description requires of it."""

import math
import re
from collections.abc import Sequence

from autoinstall.outputs.cleaning import clean
from autoinstall.outputs.expectations import CountRequirement, Requirements, number_of
from autoinstall.outputs.summaries import total
from autoinstall.values import TestCounts, Value


class Unmet(Value):
    """A requirement that the output does not fulfil. `missing`: it may be in what was dropped of a long output."""

    reason: str
    missing: bool = False


def unmet(
    requirements: Requirements, output: str, summaries: Sequence[TestCounts], pass_rate: float = 1.0
) -> tuple[Unmet, ...]:
    """Every requirement that `output` does not fulfil, in the order of the description's kinds."""
    if requirements.trivial:
        return (Unmet(reason="The description is too vague to hold an output against."),)
    text = clean(output)
    flat = " ".join(text.split())
    found = [
        Unmet(reason=f"The output does not contain {_show(quoted)}.", missing=True)
        for quoted in requirements.present
        if not _contains(flat, quoted)
    ]
    found += [
        Unmet(reason=f"The output contains {_show(quoted)}, which it must not.")
        for quoted in requirements.absent
        if _contains(flat, quoted)
    ]
    found += [
        Unmet(reason=f"The output does not show {token}.", missing=True)
        for token in requirements.tokens
        if not has_token(text, token)
    ]
    for bound, number in requirements.bounded:
        if not any(_within(bound, number, value) for value in _numbers(text)):
            found.append(Unmet(reason=f"The output shows no number that is {bound} {number:g}.", missing=True))
    found += [
        Unmet(reason=f"The output counts {noun}, where there must be none.")
        for noun in requirements.zero
        if not has_token(text, "0") and re.search(rf"(?i)(?<![\w.])[1-9]\d*\s+{re.escape(noun.rstrip('s'))}", text)
    ]
    found += [
        problem for count in requirements.counts if (problem := _count_problem(count, text, summaries, pass_rate))
    ]
    lines = sum(1 for line in text.split("\n") if line.strip())
    if lines < requirements.min_lines:
        found.append(
            Unmet(reason=f"The output has {lines} lines instead of at least {requirements.min_lines}.", missing=True)
        )
    if requirements.silent and flat:
        found.append(Unmet(reason="The command printed something, where nothing was expected."))
    return tuple(found)


def has_token(text: str, token: str) -> bool:
    """Whether a number or version stands in `text` by itself. A version may go on (3.11 in 3.11.4)."""
    after = r"(?!\d)" if "." in token and not token.endswith("%") else r"(?![\w]|\.\d)"
    if token.endswith("%"):
        after = ""
    pattern = rf"(?<![\w.])(?<!\d[-,])[vV]?{re.escape(token)}{after}"
    return re.search(pattern, re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)) is not None


def _count_problem(
    count: CountRequirement, text: str, summaries: Sequence[TestCounts], pass_rate: float
) -> Unmet | None:
    everything = total(summaries)
    if everything is None:
        number = count.low if count.high is None else count.high
        if count.high is not None and count.low == count.high:
            return (
                None
                if has_token(text, str(number))
                else Unmet(reason=f"The output does not show {number}.", missing=True)
            )
        fits = any(count.low <= value and (count.high is None or value <= count.high) for value in _numbers(text))
        return (
            None if fits else Unmet(reason=f"The output shows no number that fits {_show(count.text)}.", missing=True)
        )
    # An inner runner's summary serves as well as the outermost one's: the description may mean either.
    counted = (everything, *summaries)
    values = [value for summary in counted for value in _values(count.field, summary)]
    values += [value for summary in counted for value in _as_pytest_says(count.field, summary, text)]
    low, high = count.low, count.high
    if count.field == "passed" and high == low:
        # A tolerance is one for tests that fail for reasons of their own: there may be one more of them, or one less.
        low, high = int(low * pass_rate), math.ceil(low / pass_rate)
    if any(low <= value and (high is None or value <= high) for value in values):
        return None
    return Unmet(
        reason=f"The description says {_show(count.text)}, and {everything.runner} counts {values[0]} {count.field}."
    )


def _values(field: str, counts: TestCounts) -> tuple[int, ...]:
    if field == "passed":
        return (counts.passed,)
    if field == "failed":
        return (counts.failed + counts.errors, counts.failed, counts.errors)
    if field == "skipped":
        return (counts.skipped,)
    return (counts.ran, counts.ran + counts.skipped)


def _as_pytest_says(field: str, counts: TestCounts, text: str) -> list[int]:
    """The number as pytest's own summary has it, which counts unexpected passes and expected failures apart."""
    apart = {"passed": "xpassed", "skipped": "xfailed"}.get(field)
    if apart is None or not counts.runner.startswith("pytest"):
        return []
    numbers = re.findall(rf"\b(\d+) {apart}\b", text)
    values = (value - int(number) for value in _values(field, counts) for number in numbers)
    return [value for value in values if re.search(rf"\b{value} {field}\b", text)]


def _contains(flat: str, quoted: str) -> bool:
    parts = [" ".join(part.split()) for part in re.split(r"\.\.\.|…", quoted)]
    position = 0
    for part in filter(None, parts):
        position = flat.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def _numbers(text: str) -> list[float]:
    return [number_of(match) for match in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text)]


def _within(bound: str, number: float, value: float) -> bool:
    if bound in {"up to", "at most"}:
        return value <= number
    if bound in {"more than", "over"}:
        return value > number
    if bound in {"about", "around", "roughly", "approximately"}:
        return abs(value - number) <= number / 10
    return value >= number


def _show(text: str) -> str:
    return f'"{text if len(text) <= 80 else text[:77] + "…"}"'
