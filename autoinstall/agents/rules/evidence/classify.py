"""What a command is about, and whether it can be a goal at all: by the table `knowledge/commands.toml`."""

import re
from functools import cache

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Category, Value


class Rule(Value):
    category: Category
    pattern: str


class CommandTable(Value):
    """The form of `commands.toml`; every entry is a regular expression."""

    wrappers: tuple[str, ...]
    refused: tuple[str, ...]
    rules: tuple[Rule, ...]


def classify(command: str) -> Category:
    """The category of the first rule that matches the unwrapped command; OTHER where none does."""
    bare = unwrap(command)
    return next((category for category, pattern in _rules() if pattern.search(bare)), Category.OTHER)


def is_refused(command: str) -> bool:
    """Whether it publishes, deploys, needs a secret, a terminal or another container, or is only a placeholder."""
    return any(pattern.search(command) for pattern in _refused())


def unwrap(command: str) -> str:
    """The command without the words that only choose where it runs: `sudo`, `poetry run`, `xvfb-run -a`, …

    Variables set in front (`FOO=1 cmd`) are kept out of the result too: they do not change what the command is about.
    """
    previous = None
    while previous != command:
        previous = command
        for pattern in _wrappers():
            command = pattern.sub("", command, count=1).strip()
        command = re.sub(r"^(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)+", "", command)
    return command


@cache
def _rules() -> tuple[tuple[Category, re.Pattern[str]], ...]:
    return tuple((rule.category, re.compile(rule.pattern)) for rule in load("commands", CommandTable).rules)


@cache
def _refused() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in load("commands", CommandTable).refused)


@cache
def _wrappers() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in load("commands", CommandTable).wrappers)
