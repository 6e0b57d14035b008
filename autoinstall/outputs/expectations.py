"""Reads a goal's description into requirements on the output; `autoinstall.outputs.comparison` holds it to them.

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

import re
import tomllib
from functools import cache
from importlib.resources import files

from autoinstall.values import Goal, Value

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


class Words(Value):
    """words.toml, checked."""

    joining: frozenset[str]
    going_on: frozenset[str]
    praise: frozenset[str]


@cache
def words() -> Words:
    """Words of descriptions that say nothing by themselves."""
    text = files("autoinstall.outputs").joinpath("words.toml").read_text(encoding="utf-8")
    return Words.model_validate(tomllib.loads(text))


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
    bounded = tuple((match["bound"].lower(), number_of(match["number"])) for match in _BOUNDED.finditer(text))
    text = _BOUNDED.sub(" ", text)
    tokens: list[str] = []
    for match in _NUMBER.finditer(text):
        number, noun = match["number"].replace(",", ""), (match["noun"] or "").strip()
        if number == "0" and noun and noun.lower() not in words().joining | words().going_on:
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
    found = _WORD.findall(description.lower())
    few = len(found) < 3 and not _QUOTED.search(description)
    return few or all(word in words().praise or word in words().joining for word in found)


def required_pass_rate(goal: Goal, requirements: Requirements) -> float:
    """The fraction of tests that must pass: the stricter of the goal's `min_pass_rate` and the one in words.

    A goal whose `min_pass_rate` is 1 has not stated a tolerance there, so the one in words holds.
    """
    if requirements.pass_rate is None:
        return goal.min_pass_rate
    return requirements.pass_rate if goal.min_pass_rate == 1 else max(goal.min_pass_rate, requirements.pass_rate)


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


def number_of(text: str) -> float:
    """A number that may have thousands separators."""
    return float(text.replace(",", ""))
