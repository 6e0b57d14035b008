"""Picks ten of the candidates: the telling ones first, spread over categories, no goal twice."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from autoinstall.agents.rules.contract import Candidate
from autoinstall.selection import breadth
from autoinstall.values import Category

QUOTAS = {
    Category.TEST: 5,
    Category.BUILD: 3,
    Category.RUN: 3,
    Category.LINT: 2,
    Category.SETUP: 2,
    Category.OTHER: 3,
}
"""How many of a category are taken while others still have something to offer."""

MAX_GAP = 15
"""A second whole suite may weigh this much less than the first."""

ORDER = (Category.RUN, Category.OTHER, Category.TEST, Category.LINT, Category.BUILD, Category.SETUP)
"""Goals that only look come before those that change: so a trial run of all of them in turn is not spoilt early."""


def choose(candidates: Iterable[Candidate], count: int) -> list[Candidate]:
    """At most `count` candidates, in `ORDER`; among equals, those named first."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        key = candidate.key or normal_form(candidate.goal.command)
        if key not in best or candidate.weight > best[key].weight:
            best[key] = candidate
    commands: dict[str, Candidate] = {}
    for candidate in sorted(best.values(), key=lambda item: -item.weight):
        commands.setdefault(normal_form(candidate.goal.command), candidate)
    ranked, doubtful = _without_doubtful(list(commands.values()))
    chosen = _heaviest_of_each(ranked)
    taken = Counter(candidate.goal.category for candidate in chosen)
    for candidate in ranked:
        if (
            len(chosen) < count
            and candidate not in chosen
            and taken[candidate.goal.category] < QUOTAS[candidate.goal.category]
        ):
            chosen.append(candidate)
            taken[candidate.goal.category] += 1
    for candidate in (*ranked, *doubtful):
        if len(chosen) < count and candidate not in chosen:
            chosen.append(candidate)
    return sorted(chosen[:count], key=lambda item: ORDER.index(item.goal.category))


def _without_doubtful(ranked: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """`ranked`, and taken out of it what weighs nothing and the whole suites that are much weaker than the main one:
    a second suite that nobody vouches for would be as likely to become a target as the main one."""
    suites = [item for item in ranked if item.goal.category is Category.TEST and breadth(item.goal) == 2]
    doubtful = [item for item in suites[1:] if item.weight < suites[0].weight - MAX_GAP]
    doubtful += [item for item in ranked if item.weight <= 0 and item not in doubtful]
    return [item for item in ranked if item not in doubtful], doubtful


def normal_form(command: str) -> str:
    """The command with blanks evened out, so that the same one written twice is seen as one."""
    return re.sub(r"\s+", " ", command.strip())


def _heaviest_of_each(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The heaviest candidate of every category, so that none is crowded out; weak ones have to wait for their turn."""
    first: dict[Category, Candidate] = {}
    for candidate in ranked:
        if candidate.weight >= 30:
            first.setdefault(candidate.goal.category, candidate)
    return sorted(first.values(), key=lambda item: -item.weight)
