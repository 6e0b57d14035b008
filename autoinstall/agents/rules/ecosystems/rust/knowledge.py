"""The table knowledge/rust.toml, typed."""

from autoinstall.agents.rules.ecosystems.goals import Question
from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Toolchain(Value):
    """Debian packages separated by blanks: those that must be there, and those that only some goals need."""

    packages: str
    tools: str


class RustTable(Value):
    """The form of `rust.toml`."""

    toolchain: tuple[Toolchain, ...]
    env: dict[str, str]
    question: tuple[Question, ...]


def knowledge() -> RustTable:
    table: RustTable = load("rust", RustTable)
    return table
