"""The table knowledge/maven.toml, typed."""

from datetime import date

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Jdk(Value):
    """A JDK, and the oldest Java version that it compiles for."""

    version: int
    least: int


class Options(Value):
    """`always`: of every call; `newer`: the Maven of commits from `newer_from` on; `fetcher`: the plugin for it."""

    always: str
    newer: str
    newer_from: date
    fetcher: str


class Checker(Value):
    """A plugin that checks sources, by its artifact, and its goal."""

    plugin: str
    goal: str


class MavenTable(Value):
    """The form of `maven.toml`."""

    jdk: tuple[Jdk, ...]
    options: Options
    checker: tuple[Checker, ...]


def knowledge() -> MavenTable:
    table: MavenTable = load("maven", MavenTable)
    return table


def mvn(arguments: str) -> str:
    """A call of Maven."""
    return f"mvn {knowledge().options.always} {arguments}"
