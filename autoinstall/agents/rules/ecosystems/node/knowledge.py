"""The tables of knowledge/node.toml, typed."""

from datetime import date

from pydantic import Field

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Release(Value):
    """A line of Node. `npm` is the npm that goes with it, as a package spec."""

    major: int
    since: date
    lts_since: date
    lts: str
    latest: str
    npm: str


class PnpmLine(Value):
    """A line of pnpm, by the lock file it writes. `until`: when the next line with the same lock file came."""

    lockfile: str
    version: str
    min_node: int
    until: date


class BerryLine(Value):
    """A line of Yarn 2 and later, by the `__metadata.version` of its lock file."""

    lockfile: int
    version: str
    min_node: int


class Ceiling(Value):
    """Versions of `package` below `below` work up to Node `max_node`."""

    package: str
    below: str
    max_node: int


class Runner(Value):
    """A test runner: the packages that bring it, what is put before a single test file's path, and whether it answers
    to `--version`."""

    name: str
    packages: tuple[str, ...]
    single: str
    values: tuple[str, ...] = ()
    shows_version: bool = True


class Linter(Value):
    name: str
    package: str
    command: str


class Dated(Value):
    """A release whose day is known."""

    package: str
    version: str
    day: date


class Knowledge(Value):
    release: tuple[Release, ...]
    pnpm: tuple[PnpmLine, ...]
    berry: tuple[BerryLine, ...]
    ceiling: tuple[Ceiling, ...]
    env: dict[str, str]
    switches: dict[str, dict[str, str]]
    env_for: dict[str, dict[str, str]]
    dated: Dated
    tools: dict[str, frozenset[str]]
    runner: tuple[Runner, ...]
    linter: tuple[Linter, ...]
    samples: dict[str, frozenset[str]]

    def release_of(self, major: int) -> Release | None:
        return next((release for release in self.release if release.major == major), None)

    def kind_of(self, tool: str) -> str:
        """`test`, `lint`, `build`, `many` or an empty string."""
        return next((kind for kind in ("test", "lint", "build", "many") if tool in self.tools[kind]), "")


class RepairRule(Value):
    """One row of knowledge/node_repairs.toml.

    Attributes:
        pattern: regular expression, searched in the failure's output; its named groups fill the commands.
        commands: run in the project's directory.
        once: the same rule is applied at most once whatever its groups say.
    """

    name: str
    pattern: str
    why: str
    commands: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    lesson: str = ""
    once: bool = True


class NodeLine(Value):
    """A message that asks for another line of Node.

    Attributes:
        floor: the least line that will do.
        limit: the last line that will do. With neither, the pattern's group `major`, else the next line.
    """

    pattern: str
    why: str
    floor: int = 0
    limit: int = 0


class RepairTable(Value):
    """`programs`: command → package that brings it."""

    repair: tuple[RepairRule, ...]
    node_line: tuple[NodeLine, ...]
    programs: dict[str, str]


def knowledge() -> Knowledge:
    """The tables of versions, tools and scripts."""
    table: Knowledge = load("node", Knowledge)
    return table


def repairs() -> RepairTable:
    """What failing commands say, and the remedies."""
    table: RepairTable = load("node_repairs", RepairTable)
    return table
