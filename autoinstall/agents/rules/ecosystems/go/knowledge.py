"""The table knowledge/go.toml, typed."""

from datetime import date

from autoinstall.agents.rules.ecosystems.goals import Question
from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Line(Value):
    """A line of Go (`1.21`), the day of its first release, and its last one."""

    name: str
    since: date
    last: str

    @property
    def minor(self) -> int:
        return int(self.name.partition(".")[2])


class GoTable(Value):
    """The form of `go.toml`; `package` carries the lines from `packaged_from` on, `bootstrap` fetches older ones."""

    package: str
    packaged_from: str
    bootstrap: str
    line: tuple[Line, ...]
    question: tuple[Question, ...]


def knowledge() -> GoTable:
    table: GoTable = load("go", GoTable)
    return table
