"""Which of the proposed goals become the targets.

The order of preference is fixed by what says most about an environment; between equals a hash of repository, commit and
seed decides, so that the choice is the same on every machine and in every process.

1. Trivial goals (they match on the untouched sandbox) and set-up goals are left out.
2. The categories take turns: tests first, the others in seeded order. Within a category the goal that says most comes
   first: a whole suite before a part of it, a part before a listing or `--help`. So the held-out goals are no better
   than the targets.
3. Where too few are left: one set-up goal, then trivial ones (test, build, run, lint, other), then the other set-up
goals.
   Without any target of step 2 the environment is marked `needs_setup = False`.
"""

import re
from collections.abc import Callable, Sequence
from hashlib import sha256

from autoinstall.commands import parse, unwrap
from autoinstall.values import Category, Goal, GoalResult, Value

_PREFERENCE = (Category.TEST, Category.BUILD, Category.RUN, Category.LINT, Category.OTHER, Category.SETUP)
_SHALLOW = frozenset(
    {"--help", "-h", "--version", "-V", "--collect-only", "--co", "--list", "--listTests", "-N", "--list-tests"}
)
_FILTERS = re.compile(
    r"^(?:-k|-t|-R|--grep|--filter|-g|--testNamePattern|--testPathPattern|-run|--tests?|--only"
    r"|--package|--lib|--doc|--bins?|--examples?|-pl|--projects|-Dtest)(?:=|$)"
)
_ONE_FILE = re.compile(r"::|\.(?:py|js|jsx|ts|tsx|mjs|cjs|go|rs|c|cc|cpp|rb|php|lua|t|bats|sh)$")
_PART = re.compile(r"^(?!-)(?!\.?/?(?:tests?|specs?|t|src|unittests?|testing|\.\.\.)/?$)\S+/\S+$")


class Selection(Value):
    """The choice, for the record.

    Attributes:
        targets: indices into the goals, in the order in which they will run: ascending.
        trivial: indices of the goals that already match on the untouched sandbox.
        enough: enough goals were left to choose from; if not, the goal-setter is asked again.
        needs_setup: False where nothing that set-up could bring about is among the targets.
        reason: why these, in one sentence.
    """

    targets: tuple[int, ...]
    trivial: tuple[int, ...] = ()
    enough: bool = True
    needs_setup: bool = True
    reason: str = ""


def is_trivial(result: GoalResult) -> bool:
    """Whether a goal proves nothing: it already matches on the untouched sandbox. Set-up goals never are."""
    return result.goal.category is not Category.SETUP and result.matches


def select_all(baseline: Sequence[GoalResult]) -> Selection:
    """Every goal: for those that the user gave."""
    return Selection(
        targets=tuple(range(len(baseline))),
        trivial=_trivial(baseline),
        needs_setup=not all(is_trivial(result) for result in baseline),
        reason="The goals were given.",
    )


def select(baseline: Sequence[GoalResult], repository: str, commit: str, seed: int, count: int) -> Selection:
    """Choose `count` targets (all of them where there are fewer) out of goals with their baseline results."""

    def chance(text: str) -> bytes:
        return sha256(f"{repository}\0{commit}\0{seed}\0{text}".encode()).digest()

    def rank(index: int) -> tuple[int, bytes]:
        goal = baseline[index].goal
        return -breadth(goal), chance(goal.command)

    worthwhile = _worthwhile(baseline)
    chosen = _in_turns(baseline, worthwhile, rank, chance)[:count]
    needs_setup = bool(chosen)
    spare = [index for index, result in enumerate(baseline) if result.goal.category is Category.SETUP]
    spare.sort(key=rank)
    trivial = list(_trivial(baseline))
    trivial.sort(key=lambda index: (_PREFERENCE.index(baseline[index].goal.category), *rank(index)))
    chosen += (spare[:1] + trivial + spare[1:])[: count - len(chosen)]
    return Selection(
        targets=tuple(sorted(chosen)),
        trivial=_trivial(baseline),
        enough=len(worthwhile) >= count,
        needs_setup=needs_setup,
        reason=_reason(baseline, chosen, worthwhile, seed),
    )


def breadth(goal: Goal) -> int:
    """How much of the project a command covers: 2 all of it, 1 a part, 0 nothing but a listing or a help text."""
    words = [word for command in parse(goal.command) for word in unwrap(command.words)[1:]]
    if any(word in _SHALLOW for word in words):
        return 0
    if goal.category is Category.TEST and any(
        _FILTERS.match(word) or _ONE_FILE.search(word) or _PART.match(word)
        for word in words
        if not word.startswith("--bootstrap=")
    ):
        return 1
    return 2


def _trivial(baseline: Sequence[GoalResult]) -> tuple[int, ...]:
    return tuple(index for index, result in enumerate(baseline) if is_trivial(result))


def _worthwhile(baseline: Sequence[GoalResult]) -> list[int]:
    return [
        index
        for index, result in enumerate(baseline)
        if result.goal.category is not Category.SETUP and not result.matches
    ]


def _in_turns(
    baseline: Sequence[GoalResult],
    candidates: Sequence[int],
    rank: Callable[[int], tuple[int, bytes]],
    chance: Callable[[str], bytes],
) -> list[int]:
    groups: dict[Category, list[int]] = {}
    for index in sorted(candidates, key=rank):
        groups.setdefault(baseline[index].goal.category, []).append(index)
    order = sorted(groups, key=lambda category: (category is not Category.TEST, chance(category.value)))
    depth = max(map(len, groups.values()), default=0)
    return [groups[category][turn] for turn in range(depth) for category in order if turn < len(groups[category])]


def _reason(baseline: Sequence[GoalResult], chosen: Sequence[int], worthwhile: Sequence[int], seed: int) -> str:
    kinds = ", ".join(baseline[index].goal.category.value for index in sorted(chosen))
    filled = len(set(chosen) - set(worthwhile))
    tail = f"; {filled} of them trivial or set-up goals, as nothing else was left" if filled else ""
    return f"Seed {seed} over {len(worthwhile)} goals that need set-up: {kinds}{tail}."
