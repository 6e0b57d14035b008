"""The table knowledge/gradle.toml, typed."""

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Bound(Value):
    """From version `gradle` on, the JDK that bounds what Gradle runs on."""

    gradle: str
    jdk: int


class Checker(Value):
    """A plugin that checks sources: what a build file that applies it matches, and the task that does it."""

    pattern: str
    task: str


class GradleTable(Value):
    """The form of `gradle.toml`; `line` are the newest JDKs, `least` the oldest."""

    line: tuple[Bound, ...]
    least: tuple[Bound, ...]
    checker: tuple[Checker, ...]
    options: str
    debian: str


def knowledge() -> GradleTable:
    table: GradleTable = load("gradle", GradleTable)
    return table


def order(version: str) -> tuple[int, ...]:
    """Of versions, to compare them by."""
    return tuple(int(part) for part in version.split("."))
