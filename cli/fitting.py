"""Output that fits where it goes: whole into files and pipes, and into a terminal as its width allows."""

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement

WIDEST = 10_000
"""Columns of what is no terminal: a line is as long as its content."""


class Output(Console):
    """A console that folds and cuts nothing where it does not print to a terminal; COLUMNS still bounds it."""

    @property
    def options(self) -> ConsoleOptions:
        found = super().options
        bounded = self._width is not None or self._environ.get("COLUMNS", "").isdigit() or self.file.isatty()
        return found if bounded else found.update(max_width=WIDEST)


class FirstThatFits:
    """Forms of one thing, best first: that is shown whose longest words fit the width, or else the last."""

    def __init__(self, *forms: Callable[[], RenderableType]) -> None:
        self._forms = forms

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        *better, last = self._forms
        unbounded = options.update(max_width=WIDEST)
        for form in better:
            shown = form()
            if Measurement.get(console, unbounded, shown).minimum <= options.max_width:
                yield shown
                return
        yield last()
