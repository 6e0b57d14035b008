"""The tables of `report`: what people ask of their nights, for people and as JSON."""

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from autoinstall.datasets import questions
from autoinstall.datasets.questions import Frames

MOST_ROWS = 14
"""Of one table for people; the last nights, and of others the most frequent. JSON has all."""

_FORMS = {
    "yield_rate": "{:.0%}",
    "held_out": "{:.0%}",
    "share": "{:.0%}",
    "flaky_rate": "{:.1%}",
    "hours": "{:,.1f}",
    "minutes": "{:,.0f}",
    "median": "{:,.0f} s",
    "p90": "{:,.0f} s",
    "tokens": "{:,.0f}",
    "cost_usd": "{:,.2f}",
}


@dataclass(frozen=True)
class Answer:
    """One table.

    Attributes:
        name: key in the JSON.
        title: for people.
        latest: the last rows are the ones to show where there are many, and not the first.
    """

    name: str
    title: str
    table: pd.DataFrame
    latest: bool = False

    def records(self) -> list[dict[str, Any]]:
        """All rows as JSON values."""
        frame = self.table if isinstance(self.table.index, pd.RangeIndex) else self.table.reset_index()
        found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
        return found

    def rendered(self) -> Table:
        shown = self.table.tail(MOST_ROWS) if self.latest else self.table.head(MOST_ROWS)
        if not isinstance(shown.index, pd.RangeIndex):
            shown = shown.reset_index()
        table = Table(title=self.title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for name, kind in shown.dtypes.items():
            number = pd.api.types.is_numeric_dtype(kind)
            heading = str(name).replace("_usd", " (USD)").replace("_", " ")
            table.add_column(heading, justify="right" if number else "left", no_wrap=number)
        for row in shown.itertuples(index=False):
            table.add_row(*(_cell(str(name), value) for name, value in zip(shown.columns, row, strict=True)))
        return table


def answers(frames: Frames) -> tuple[Answer, ...]:
    """The tables, in the order in which they are shown."""
    repositories = frames.repositories
    nights = questions.by_night(repositories)
    last = nights.index[-1] if len(nights) else ""
    listed = repositories[repositories["night"] == last]
    return (
        Answer("nights", "Nights", nights, latest=True),
        Answer("funnel", f"From the list to environments, last night ({last})", questions.funnel(listed)),
        Answer("models", "Installer's models, each on its own repositories", questions.by(repositories, "model")),
        Answer("languages", "Languages", questions.by(repositories, "language")),
        Answer("failures", "Why repositories fail", questions.failure_classes(repositories)),
        Answer("attempts", "Attempts to success", questions.attempts_to_success(repositories)),
        Answer("costs", "For each environment, by model", questions.cost_per_environment(repositories, "model")),
        Answer("flakiness", "Attempts whose two verdicts differ", questions.flakiness(frames.attempts)),
        Answer("stages", "Slowest stages", questions.slowest_stages(frames.stages)),
    )


def report_tables(found: tuple[Answer, ...]) -> RenderableType:
    """Those that have rows, one below the other."""
    parts: list[RenderableType] = []
    for answer in found:
        if len(answer.table):
            parts += ["", answer.rendered()]
    return Group(*parts)


def _cell(name: str, value: Any) -> str:
    if pd.isna(value):
        return ""
    return _FORMS[name].format(value) if name in _FORMS else escape(str(value))
