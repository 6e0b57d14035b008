"""integrity.toml, checked."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from autoinstall.tree import glob_to_regex


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EnvironmentTable(_Group):
    forbidden: frozenset[str]
    prefixes: tuple[str, ...]
    values: tuple[tuple[str, re.Pattern[str]], ...]


class PathFileTable(_Group):
    names: frozenset[str]
    patterns: tuple[str, ...]


class IntegrityTable(_Group):
    """What the keys mean is said in the file."""

    tests: tuple[str, ...]
    allowed: tuple[str, ...]
    meaning: frozenset[str]
    meaning_top_only: frozenset[str]
    meaning_unless_declared: frozenset[str]
    made_from: tuple[tuple[str, str], ...]
    new_tests: tuple[str, ...]
    new_tests_elsewhere: tuple[str, ...]
    runner_scripts: frozenset[str]
    always_resolved: tuple[str, ...]
    modules: tuple[str, ...]
    builtins: frozenset[str]
    generated: tuple[str, ...]
    builds: tuple[str, ...]
    environment: EnvironmentTable
    known_pth: PathFileTable
    known_modules: frozenset[str]
    known_programs: dict[str, str]


@cache
def integrity_table() -> IntegrityTable:
    text = files("autoinstall.integrity").joinpath("integrity.toml").read_text(encoding="utf-8")
    return IntegrityTable.model_validate(tomllib.loads(text))


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether a relative path matches one of the globs."""
    return any(_regex(glob).fullmatch(path) is not None for glob in globs)


@cache
def _regex(glob: str) -> re.Pattern[str]:
    return glob_to_regex(glob)
