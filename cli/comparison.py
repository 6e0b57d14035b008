"""How `report` shows teams of agents side by side."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from autoinstall.datasets.comparison import Comparison, TeamYield


def comparison(found: Comparison) -> RenderableType:
    """One line a team, and above them what they are compared on."""
    on = (
        f"on the {found.repositories} repositories that all of them decided"
        if found.repositories
        else "each on its own repositories, as there is none that all of them decided"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("agents", overflow="fold")
    for title in ("verified", "yield", "attempts", "held-out", "seconds", "tokens", "USD"):
        table.add_column(title, justify="right", no_wrap=True)
    for team in found.teams:
        table.add_row(escape(team.team), *_numbers(team))
    return Group(f"[bold]Agents compared[/], {on}; seconds, tokens and USD for each environment", table)


def _numbers(team: TeamYield) -> tuple[str, ...]:
    return (
        f"{team.verified}/{team.total}",
        _shown(team.yield_rate, ".0%"),
        _shown(team.attempts, ".1f"),
        _shown(team.held_out, ".0%"),
        _shown(team.seconds, ",.0f"),
        _shown(team.tokens, ",.0f"),
        _shown(team.cost_usd, ",.2f"),
    )


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
