"""What commands print for people."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from autoinstall.datasets.location import Location
from autoinstall.datasets.records import EnvironmentRecord, RepositoryRecord
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.statistics import Share, YieldStatistics
from autoinstall.values import GoalResult, Outcome, Verdict
from cli.fitting import FirstThatFits

if TYPE_CHECKING:
    from autoinstall.doctor import Check

REASON_WIDTH = 48
"""Columns that a long reason gets before numbers are shown beside it."""

_NUMBERS = ("held-out", "attempts", "seconds")
"""Of a repository, the most telling first."""

MOST_LINES = 50
"""Repositories that `report` shows one by one."""

UI_ADDRESS = "http://127.0.0.1:4200"
"""Where Prefect's server has its UI when nobody says otherwise."""

_COLOURS = {Outcome.VERIFIED: "green", Outcome.INFRASTRUCTURE: "magenta", Outcome.CANCELLED: "magenta"}
_MARKS = {Verdict.MATCHES: "[green]✓[/]", Verdict.MISMATCH: "[red]✗[/]", Verdict.UNKNOWN: "[yellow]?[/]", None: " "}


class Ended(Protocol):
    """What a row of outcomes is made of: a repository's record, or a night's shorter one."""

    @property
    def repository(self) -> str: ...
    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def environment_id(self) -> str | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def held_out_passed(self) -> int | None: ...
    @property
    def held_out_total(self) -> int | None: ...


def outcome_text(outcome: Outcome | None) -> str:
    """The outcome, coloured; a repository without one was done before and skipped."""
    if outcome is None:
        return "[dim]skipped[/]"
    colour = _COLOURS.get(outcome, "red")
    return f"[{colour}]{outcome}[/]"


def outcomes(rows: Sequence[Ended]) -> RenderableType:
    """One line a repository, or some where a reason is long; a narrow terminal is spared the numbers."""
    return FirstThatFits(
        *(partial(_outcomes, rows, _NUMBERS[:count]) for count in (3, 2, 1)),
        partial(_outcomes, rows, (), limit=2 * REASON_WIDTH),
    )


def _outcomes(rows: Sequence[Ended], numbers: Sequence[str], limit: int = 160) -> Table:
    """With some of the numbers, and reasons of up to `limit` characters."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("repository", overflow="ellipsis", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for title in numbers:
        table.add_column(title, justify="right")
    reasons = [one_line(row.reason, limit) for row in rows]
    widest = max((len(row.environment_id or "") for row in rows), default=0)  # an id is there to be copied
    longest = max((len(reason) for reason in reasons), default=0)
    least = max(widest, min(longest, REASON_WIDTH) if numbers else 0)
    table.add_column("environment, or why not", overflow="fold", min_width=least)
    for row, reason in zip(rows, reasons, strict=True):
        shown = {
            "held-out": _held_out(row.held_out_passed, row.held_out_total),
            "attempts": str(row.attempts) if row.attempts else "",
            "seconds": f"{row.seconds:.0f}" if row.seconds else "",
        }
        table.add_row(
            escape(short(row.repository)),
            outcome_text(row.outcome),
            *(shown[title] for title in numbers),
            escape(row.environment_id or reason),
        )
    return table


def repository(row: RepositoryRecord, data: Location) -> RenderableType:
    """The result of one run: verdicts, and what to do next."""
    lines = [f"{outcome_text(row.outcome)}  {escape(row.repository)} {f'at {row.commit[:12]}' if row.commit else ''}"]
    if row.reason:
        lines.append(escape(row.reason.strip()))
    for target in row.targets:
        lines.append(f"  {_MARKS[target.verdict]} {escape(one_line(target.command))}")
        if target.reason:
            lines.append(f"    [dim]{escape(one_line(target.reason))}[/]")
    lines.append(f"{row.attempts} attempt(s), {row.seconds:.0f} s{_quality(row)}")
    if row.environment_id:
        lines += ["", f"Open a shell in it:  {_program()} shell {row.environment_id} --data {escape(str(data))}"]
    return Text.from_markup("\n".join(lines))


def _program(name: str = "autoinstall") -> str:
    """A command beside the one that was called, so that what is printed can be pasted into the same shell."""
    called = Path(sys.argv[0])
    return str(called.with_name(name)) if called.name == "autoinstall" and "/" in sys.argv[0] else name


def goal_results(results: Sequence[GoalResult]) -> RenderableType:
    """Commands with their verdicts."""
    return Text.from_markup(
        "\n".join(
            f"  {_MARKS[result.judgement.verdict]} {escape(one_line(result.goal.command))}\n"
            f"    [dim]exit code {result.result.exit_code}, {result.result.duration:.1f} s: "
            f"{escape(one_line(result.judgement.reason))}[/]"
            for result in results
        )
    )


def environments(records: Sequence[EnvironmentRecord]) -> RenderableType:
    """One line an environment; a narrow terminal is spared what the id or --json tells as well."""
    forms = (("repository", "commit", "accepted"), ("repository", "accepted"), ("repository",), ())
    return FirstThatFits(*(partial(_environments, records, more) for more in forms))


def _environments(records: Sequence[EnvironmentRecord], more: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", no_wrap=True, min_width=max((len(record.environment_id) for record in records), default=2))
    for title in more:
        table.add_column(title, no_wrap=True, min_width=16 if title == "accepted" else None)
    table.add_column("held-out", justify="right", no_wrap=True)
    table.add_column("offline", no_wrap=True)
    for record in records:
        shown = {
            "repository": escape(short(record.repository)),
            "commit": (record.commit or "")[:12],
            "accepted": f"{record.finished_at:%Y-%m-%d %H:%M}",
        }
        table.add_row(
            record.environment_id,
            *(shown[title] for title in more),
            _held_out(record.held_out_passed, record.held_out_total),
            {True: "yes", False: "no", None: ""}[record.offline_ok],
        )
    return table


def statistics(found: YieldStatistics) -> RenderableType:
    """Yield and what it cost."""
    rate = f"{found.yield_rate:.0%}" if found.yield_rate is not None else "none decided"
    lines = [f"[bold]{found.verified}[/] of {found.decided} verified ({rate}), {found.total} in all"]
    if found.mean_seconds is not None:
        lines.append(f"{found.mean_seconds:.0f} s a repository (median {found.median_seconds:.0f} s)")
    if found.attempts_to_success:
        spread = ", ".join(f"{count} after {attempts}" for attempts, count in found.attempts_to_success)
        lines.append(f"attempts to success: {spread}")
    if found.held_out_mean is not None:
        lines.append(f"held-out goals that pass: {found.held_out_mean:.0%}")
    if found.offline_share is not None:
        lines.append(f"environments that work offline: {found.offline_share:.0%}")
    if found.tokens:
        lines.append(f"{found.tokens:,} tokens, {found.cost_usd:.2f} USD")
    parts: list[RenderableType] = [Text.from_markup("\n".join(lines))]
    for title, shares in (
        ("outcome", found.outcomes),
        ("discarded in stage", found.stages),
        ("language", found.languages),
    ):
        if shares:
            parts += ["", _shares(title, shares)]
    return Group(*parts)


def check(found: "Check") -> RenderableType:
    """One finding of the doctor, with what to do about it."""
    marks = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]FAIL[/]"}
    hint = f"\n     [dim]{escape(found.hint)}[/]" if found.hint else ""
    return Text.from_markup(f"{marks[found.status]} [bold]{escape(found.name)}[/]: {escape(found.detail)}{hint}")


def where(data: Location, server: str) -> str:
    """Where the datasets are, and how to look at the runs: those of `server`, an API's address, or of none."""
    runs = server.removesuffix("/api") if server else f"`{_program('prefect')} server start`, then {UI_ADDRESS}"
    return f"\nDatasets: {data}/{{{','.join(Dataset)}}} (pandas.read_parquet reads each)\nRuns:     {runs}"


def short(url: str) -> str:
    """The last two parts of a URL."""
    return "/".join(url.rstrip("/").removesuffix(".git").replace(":", "/").split("/")[-2:])


def one_line(text: str, limit: int = 160) -> str:
    """`text` without line breaks, cut to `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _shares(title: str, shares: Sequence[Share]) -> Table:
    table = Table(title, box=None, pad_edge=False, header_style="bold")
    table.add_column("repositories", justify="right")
    table.add_column("share", justify="right")
    for share in shares:
        table.add_row(escape(share.name), str(share.count), f"{share.fraction:.0%}")
    return table


def _held_out(passed: int | None, total: int | None) -> str:
    return f"{passed}/{total}" if total else ""


def _quality(row: RepositoryRecord) -> str:
    held_out = _held_out(row.held_out_passed, row.held_out_total)
    offline = {True: ", works offline", False: ", needs the network", None: ""}[row.offline_ok]
    return (f", held-out {held_out}" if held_out else "") + offline
