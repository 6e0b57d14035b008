"""Reads a goal's description into requirements on the output.

How a description is read:

- Text in backticks or double quotes must appear in the cleaned output: case counts, amounts of white space do not,
  and an ellipsis inside stands for anything. After `no`, `not`, `never` or `without` in the same clause it must
  *not* appear. Text that only repeats the goal's command is no requirement.
- `12 tests pass`, `12 passed`, `2 skipped`, `0 failures`: compared with the test runner's summary, exactly; `at least`,
  `more than`, `about` (a tenth less will do) and `up to` loosen it. Without a summary the number itself must be there.
- `at least 95% of the tests pass`: a tolerance. See `required_pass_rate`.
- `at least 3 lines`: non-empty lines of the output. `at least N` of anything else: some number of the output is that
  large.
- A version (1.2, 1.2.3, v2.0.0-rc1) must appear; 3.11 is also met by 3.11.4.
- Any other number must appear as a number of its own: 5 is not met by 15, 5.2 or x5. Thousands separators do not count.
- `0 errors`, `no …` are met by the number 0 and by an output that counts none.
- No requirement: exit codes and statuses, amounts of time, ports, ordinals, list markers, `Python 3` and its like,
  numbers that are part of a word (utf-8, x86_64, ES2015).
- `prints nothing`, `no output`: the output must be blank.
- A description without a requirement and with fewer than three words, or with nothing but praise ("it works fine",
  "exits successfully without errors"), is trivial and matches nothing.
"""

import math
import re
from collections.abc import Sequence

from autoinstall.outputs.cleaning import clean
from autoinstall.outputs.summaries import total
from autoinstall.values import Goal, TestCounts, Value

_QUOTED = re.compile(r"``(?P<double>[^`]+)``|`(?P<tick>[^`]+)`|\"(?P<quote>[^\"]+)\"|“(?P<curly>[^”]+)”")
_NEGATED = re.compile(r"(?i)(?:\b(?:no|not|never|without|free of)\b|n't\b)(?P<rest>[^.;,:]*)$")
_CLAUSE = re.compile(r"(?i)\b(?:and|but|then|only)\b")
_SILENT = re.compile(
    r"(?i)\b(?:prints?|outputs?|writes?|says?|shows?|produces?) nothing\b"
    r"|\bno output\b|\bempty output\b|\bsilent(?:ly)?\b"
)

_AMOUNT = (
    r"(?P<bound>at least|no (?:fewer|less) than|more than|over|about|around|roughly|approximately"
    r"|some|up to|at most|≥|>=|>|~)?\s*"
)
_PERCENT = re.compile(rf"(?i){_AMOUNT}(?P<number>\d+(?:\.\d+)?)\s?(?:%|percent\b)(?P<rest>[^.;]{{0,40}})")
_TESTS = r"(?:unit |integration |doc ?|test )?(?:tests?|specs?|examples?|cases?|scenarios?)"
_RESULT = r"(?:pass(?:ed|es|ing)?|succeed(?:ed|s)?|ok|fail(?:ed|ures?|s|ing)?|errors?|skipped|collected)"
_COUNT = re.compile(
    rf"(?i)\b{_AMOUNT}(?<![\w.])(?P<number>\d[\d,]*|no|zero)\s+(?:of the )?"
    rf"(?:(?P<noun>{_TESTS})\b(?:[\w' ]{{0,24}}?\b(?P<after>{_RESULT})\b)?|(?P<word>{_RESULT})\b)"
)
_LINES = re.compile(rf"(?i)\b{_AMOUNT}(?P<number>\d[\d,]*)\s+(?:non-?empty )?lines?\b")
_NOT_OUTPUT = re.compile(
    r"(?i)\b(?:exit(?:s|ed|ing)?|return(?:s|ed)?)?\s*(?:with )?(?:an? )?"
    r"(?:exit |return )?(?:code|status)s?(?: of| is| =)?:? \d+(?:(?: or |, ?|/)\d+)*\b"
    r"|\b(?:exits|exit|returns)(?: with)? \d+\b"
    r"|\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|min|mins|minutes?|hours?|h|days?)\b"
    r"|\bports? \d+\b|\blocalhost:\d+\b|\b127\.0\.0\.1(?::\d+)?\b"
    r"|\b\d+(?:st|nd|rd|th)\b"
    r"|^\s*\d+[.)]\s"
    r"|\b(?:python|node|ruby|php|java|jdk|go|es|c|perl|tier|stage|step|level|phase) ?\d+\b(?!\.\d)",
    re.MULTILINE,
)
_VERSION = re.compile(
    r"(?<![\w.+-])v?(?P<version>\d+(?:\.\d+)+(?:[-.]?(?:a|b|rc|alpha|beta|dev|post|pre)[-.]?\d+)?)(?![\w-]|\.\d)"
)
_BOUNDED = re.compile(
    r"(?i)\b(?P<bound>at least|no (?:fewer|less) than|more than|over|up to|at most|about|around|roughly|approximately)"
    r"\s+(?P<number>\d[\d,]*(?:\.\d+)?)(?![\w.]*\w)"
)
_NUMBER = re.compile(r"(?<![\w.,+-])(?P<number>-?\d[\d,]*(?:\.\d+)?)(?![\w-]|\.\d|%)(?P<noun>\s+[A-Za-z]+)?")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

_STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "it",
        "its",
        "is",
        "are",
        "be",
        "was",
        "were",
        "this",
        "that",
        "and",
        "or",
        "of",
        "to",
        "in",
        "on",
        "with",
        "for",
        "by",
        "as",
        "at",
        "any",
        "there",
    ]
)
_NO_NOUNS = _STOP_WORDS | {"after", "before", "but", "from", "if", "then", "when", "where", "while"}
"""After a number they go on with the sentence: "prints 0 and names no file" counts nothing called `and`."""

_PRAISE = frozenset(
    [
        "works",
        "work",
        "working",
        "ok",
        "okay",
        "success",
        "succeeds",
        "succeed",
        "successful",
        "successfully",
        "passes",
        "pass",
        "passed",
        "fine",
        "good",
        "well",
        "done",
        "correct",
        "correctly",
        "properly",
        "expected",
        "runs",
        "run",
        "ran",
        "executes",
        "execute",
        "executed",
        "completes",
        "complete",
        "completed",
        "finishes",
        "finish",
        "finished",
        "exits",
        "exit",
        "exited",
        "returns",
        "return",
        "code",
        "status",
        "zero",
        "command",
        "program",
        "output",
        "result",
        "results",
        "no",
        "not",
        "without",
        "error",
        "errors",
        "problem",
        "problems",
        "issue",
        "issues",
        "should",
        "will",
        "does",
        "all",
        "everything",
        "cleanly",
        "normally",
        "clean",
        "true",
        "yes",
    ]
)


class CountRequirement(Value):
    """A number of tests that the description names. `field`: passed, failed, skipped or ran (any result)."""

    field: str
    low: int
    high: int | None
    text: str


class Requirements(Value):
    """What a description requires of an output.

    Attributes:
        present: quoted texts that must be there.
        absent: quoted texts that must not.
        tokens: numbers and versions that must be there as such.
        bounded: (bound, number) that some number of the output must satisfy.
        zero: nouns of which none may be counted.
        min_lines: non-empty lines of the output; 0 for no requirement.
        pass_rate: fraction of the tests that must pass; None where none is named.
        silent: the output must be blank.
        trivial: the description says nothing, and so matches nothing.
    """

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    bounded: tuple[tuple[str, float], ...] = ()
    counts: tuple[CountRequirement, ...] = ()
    zero: tuple[str, ...] = ()
    min_lines: int = 0
    pass_rate: float | None = None
    silent: bool = False
    trivial: bool = False

    @property
    def positive(self) -> bool:
        """Whether an output that fulfils all this has shown something, rather than merely avoided something."""
        return bool(self.present or self.tokens or self.bounded or self.counts or self.min_lines or self.silent)


class Unmet(Value):
    """A requirement that the output does not fulfil. `missing`: it may be in what was dropped of a long output."""

    reason: str
    missing: bool = False


def read_requirements(goal: Goal) -> Requirements:
    """The requirements of the goal's description; see the module's docstring."""
    text, present, absent = _take_quoted(goal.description, goal.command)
    silent = bool(_SILENT.search(text))
    text, rate, percents = _take_percentages(text)
    text = _NOT_OUTPUT.sub(" ", text)
    text, lines = _take_lines(text)
    text, counts, zero = _take_counts(text)
    versions = tuple(match["version"] for match in _VERSION.finditer(text))
    text = _VERSION.sub(" ", text)
    bounded = tuple((match["bound"].lower(), _number(match["number"])) for match in _BOUNDED.finditer(text))
    text = _BOUNDED.sub(" ", text)
    tokens: list[str] = []
    for match in _NUMBER.finditer(text):
        number, noun = match["number"].replace(",", ""), (match["noun"] or "").strip()
        if number == "0" and noun and noun.lower() not in _NO_NOUNS:
            zero.append(noun)
        else:
            tokens.append(number)
    found = Requirements(
        present=present,
        absent=absent,
        tokens=tuple(dict.fromkeys((*versions, *tokens, *percents))),
        bounded=bounded,
        counts=tuple(counts),
        zero=tuple(zero),
        min_lines=lines,
        pass_rate=rate,
        silent=silent,
    )
    return found.model_copy(update={"trivial": not found.positive and rate is None and is_trivial(goal.description)})


def is_trivial(description: str) -> bool:
    """Whether the words alone say nothing that could be wrong."""
    words = _WORD.findall(description.lower())
    few = len(words) < 3 and not _QUOTED.search(description)
    return few or all(word in _PRAISE or word in _STOP_WORDS for word in words)


def required_pass_rate(goal: Goal, requirements: Requirements) -> float:
    """The fraction of tests that must pass: the stricter of the goal's `min_pass_rate` and the one in words.

    A goal whose `min_pass_rate` is 1 has not stated a tolerance there, so the one in words holds.
    """
    if requirements.pass_rate is None:
        return goal.min_pass_rate
    return requirements.pass_rate if goal.min_pass_rate == 1 else max(goal.min_pass_rate, requirements.pass_rate)


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


def _take_quoted(description: str, command: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    present: dict[str, None] = {}
    absent: dict[str, None] = {}
    for match in _QUOTED.finditer(description):
        quoted = next(group for group in match.groups() if group is not None).strip()
        if not quoted or quoted == command or command.startswith(f"{quoted} "):
            continue
        # Earlier quotations count as ends of clauses.
        before = _NEGATED.search(_QUOTED.sub(".", description[: match.start()]))
        target = absent if before and not _CLAUSE.search(before["rest"]) else present
        target[quoted] = None
    return _QUOTED.sub(" ", description), tuple(present), tuple(absent)


def _take_percentages(text: str) -> tuple[str, float | None, tuple[str, ...]]:
    rate: float | None = None
    tokens: list[str] = []
    for match in _PERCENT.finditer(text):
        if re.search(rf"(?i)\b(?:{_TESTS}|suite|pass)\b", match["rest"]) and not re.search(
            r"(?i)coverage", match["rest"]
        ):
            number = float(match["number"]) / 100
            if 0 < number <= 1:
                rate = max(rate or 0.0, number)
        elif not match["bound"]:
            tokens.append(f"{match['number']}%")
    return _PERCENT.sub(lambda match: f" {match['rest']}", text), rate, tuple(tokens)


def _take_lines(text: str) -> tuple[str, int]:
    lines = max(
        (int(match["number"].replace(",", "")) for match in _LINES.finditer(text) if _is_lower(match["bound"])),
        default=0,
    )
    return _LINES.sub(" ", text), lines


def _is_lower(bound: str | None) -> bool:
    return (bound or "").lower() not in {"up to", "at most"}


def _take_counts(text: str) -> tuple[str, list[CountRequirement], list[str]]:
    counts: list[CountRequirement] = []
    zero: list[str] = []
    for match in _COUNT.finditer(text):
        word = (match["word"] or match["after"] or "").lower()
        number = 0 if match["number"].lower() in {"no", "zero"} else int(match["number"].replace(",", ""))
        field = _field(word)
        if number == 0 and field != "passed":
            if field in {"failed", "skipped"} and match["number"].isdigit():
                zero.append(word)
            continue
        low, high = _bounds((match["bound"] or "").lower(), number)
        counts.append(CountRequirement(field=field, low=low, high=high, text=" ".join(match[0].split())))
    return _COUNT.sub(" ", text), counts, zero


def _field(word: str) -> str:
    if word.startswith(("pass", "succeed", "ok")):
        return "passed"
    if word.startswith(("fail", "error")):
        return "failed"
    return "skipped" if word == "skipped" else "ran"


def _bounds(bound: str, number: int) -> tuple[int, int | None]:
    if bound in {"more than", "over", ">"}:
        return number + 1, None
    if bound in {"at least", "no fewer than", "no less than", "≥", ">=", "some"}:
        return number, None
    if bound in {"about", "around", "roughly", "approximately", "~"}:
        return number - number // 10, None
    if bound in {"up to", "at most"}:
        return 0, number
    return number, number


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
    return [_number(match) for match in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text)]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


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
