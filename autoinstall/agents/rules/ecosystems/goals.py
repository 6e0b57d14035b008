"""Short ways to write candidates; what a description may say is in `autoinstall.outputs.expectations`."""

import re
from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Step
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence, Goal, Value

MOST_TESTS = 0.9
"""Pass rate asked of whole suites: healthy projects have tests that fail for reasons of their own."""

SUITE_SECONDS = 1800.0
"""Limit of a whole test suite."""

SUBMODULES = Step(
    command="git submodule update --init --recursive",
    why="Libraries and helpers that the project bundles.",
    optional=True,
    timeout=120,
)


class Question(Value):
    """Sources that match are of a program that answers to `option` with its usage."""

    pattern: str
    option: str


def question_of(questions: Iterable[Question], text: str) -> Question | None:
    """The first that a program with these sources answers to."""
    return next((question for question in questions if re.search(question.pattern, text)), None)


def candidate(
    command: str,
    description: str,
    category: Category,
    weight: int,
    evidence: Evidence,
    *,
    exit_codes: tuple[int, ...] = (0,),
    rate: float = 1.0,
    timeout: float | None = None,
    key: str = "",
) -> Candidate:
    """A candidate goal; `rate` is the goal's `min_pass_rate`."""
    return Candidate(
        goal=Goal(
            command=command,
            description=description,
            category=category,
            exit_codes=exit_codes,
            min_pass_rate=rate,
            evidence=evidence,
            timeout=timeout,
        ),
        weight=weight,
        key=key,
    )


def evidence_at(tree: Tree, path: str, needle: str = "") -> Evidence:
    """The first line of `path` that has `needle`; the file as a whole where none does."""
    line = tree.find_line(path, needle) if needle else 0
    text = tree.read(path).splitlines()[line - 1].strip()[:200] if line else ""
    return Evidence(path=path, line=line, text=text)
