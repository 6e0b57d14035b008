"""The table knowledge/rust.toml, typed."""

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Toolchain(Value):
    """Debian packages separated by blanks: those that must be there, and those that only some goals need."""

    packages: str
    tools: str


class Question(Value):
    """Sources that match are of a program that answers to `option` with its usage."""

    pattern: str
    option: str


class RustTable(Value):
    """The form of `rust.toml`."""

    toolchain: tuple[Toolchain, ...]
    env: dict[str, str]
    question: tuple[Question, ...]


def knowledge() -> RustTable:
    table: RustTable = load("rust", RustTable)
    return table
