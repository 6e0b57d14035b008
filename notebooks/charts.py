"""The charts of yield.ipynb: one function a question, from a table of `autoinstall.datasets.questions` to a figure.

A title says the answer, axes say what is counted in which unit, and where there is nothing to show the chart says so.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#b8b8b8"
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f")
"""Told apart by people who see colours differently, too (Okabe and Ito)."""

CHECKOUT = Path(__file__).resolve().parents[1]

MANY = 7
"""Outcomes shown by name; rarer ones are `other`."""


def announce(data: str, repositories: pd.DataFrame, nights: pd.DataFrame, attempts: pd.DataFrame) -> None:
    """Print where the rows come from and how many there are; on stderr, which notebooks show in red, if none."""
    if repositories.empty:
        hint = "AUTOINSTALL_DATA names another place; the kernel reads it when it starts."
        print(f"THERE IS NOTHING TO SHOW: {data} has no run of a repository. {hint}", file=sys.stderr)
        return
    counts = f"{len(repositories):,} runs of repositories in {len(nights):,} nights, {len(attempts):,} attempts"
    print(f"{data}: {counts}")


def night_yield(nights: pd.DataFrame) -> Figure:
    """What came out of every night?"""
    figure, (above, below) = _figure(rows=2, height=5.6)
    if _nothing(above, below, table=nights):
        return figure
    places = np.arange(len(nights))
    left_out = nights["runs"] - nights["decided"]
    discarded = nights["decided"] - nights["verified"]
    bottom = np.zeros(len(nights))
    for label, values, colour in (
        ("verified", nights["verified"], GREEN),
        ("discarded", discarded, GREY),
        ("undecided: infrastructure, cancelled", left_out, ORANGE),
    ):
        above.bar(places, values, bottom=bottom, color=colour, label=label, width=0.8)
        bottom += values.to_numpy()
    above.set_ylabel("repositories")
    above.yaxis.set_major_locator(MaxNLocator(integer=True))
    above.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False)
    below.plot(places, nights["yield_rate"], marker="o", color=BLUE)
    below.set_ylabel("yield (% of decided)")
    _percent(below.yaxis)
    below.set_ylim(0, 1)
    above.set_xticks([])
    _nights(below, nights.index)
    below.set_xlim(above.get_xlim())  # each point under its bar
    last = nights.iloc[-1]
    return _titled(figure, f"Last night, {nights.index[-1]}: {_of(last['verified'], last['decided'])} verified")


def ranking(table: pd.DataFrame, what: str) -> Figure:
    """Which language, or which model, yields most?"""
    figure, (left, right) = _figure(columns=2, height=1.4 + 0.34 * max(len(table), 3), sharey=True)
    if _nothing(left, right, table=table):
        return figure
    ordered = table.sort_values("yield_rate", na_position="first")
    names = [f"{name} ({int(row.verified)}/{int(row.decided)})" for name, row in ordered.iterrows()]
    for axes, column, label in (
        (left, "yield_rate", "yield (% of decided)"),
        (right, "held_out", "held-out goals that pass (%)"),
    ):
        bars = axes.barh(names, ordered[column].fillna(0), color=BLUE if column == "yield_rate" else GREEN)
        shown = ["" if pd.isna(value) else f"{value:.0%}" for value in ordered[column]]
        axes.bar_label(bars, shown, padding=3)
        axes.set_xlabel(label)
        axes.set_xlim(0, 1.12)
        axes.set_xticks(np.arange(0, 1.01, 0.25))
        _percent(axes.xaxis)
    # Of the many that were tried: one lucky repository of a rare language says little.
    frequent = ordered[ordered["decided"] >= 0.05 * ordered["decided"].sum()].dropna(subset="yield_rate")
    if frequent.empty:
        return _titled(figure, f"No {what} has a decided repository yet")
    best = frequent.iloc[-1]
    share = _of(best["verified"], best["decided"])
    return _titled(figure, f"{frequent.index[-1]} is the {what} that yields most: {share} verified")


def failures(stages: pd.DataFrame) -> Figure:
    """Where do repositories fail, and how?"""
    figure, (axes,) = _figure(height=1.8 + 0.4 * max(len(stages), 2))
    if _nothing(axes, table=stages):
        return figure
    shown = _common(stages)
    left = np.zeros(len(shown))
    for colour, (outcome, counts) in zip(COLOURS, shown.items(), strict=False):
        axes.barh(shown.index, counts, left=left, color=colour, label=outcome)
        left += counts.to_numpy()
    for place, total in enumerate(left):
        axes.annotate(f"{total:.0f}", (total, place), xytext=(4, 0), textcoords="offset points", va="center")
    axes.invert_yaxis()
    axes.set_xlabel("repositories that failed")
    axes.set_ylabel("stage where the run ended")
    axes.margins(x=0.08)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    worst, count = stages.sum(axis=1).idxmax(), stages.sum(axis=1).max()
    return _titled(figure, f"Most are lost in {worst}: {_of(count, stages.to_numpy().sum())} that failed")


def attempts(table: pd.DataFrame) -> Figure:
    """Do later attempts pay?"""
    figure, (axes,) = _figure(height=3.4)
    if _nothing(axes, table=table):
        return figure
    bars = axes.bar(table.index.astype(str), table["verified"], color=GREEN)
    axes.bar_label(
        bars, [f"{count:.0f}\n({rate:.0%})" for count, rate in zip(table["verified"], table["yield_rate"], strict=True)]
    )
    axes.set_xlabel("attempts that it took")
    axes.set_ylabel("verified repositories")
    axes.margins(y=0.2)
    first = table.index[0]
    last = table["yield_rate"].iloc[-1]
    text = f"{table['yield_rate'].iloc[0]:.0%} of all are verified after {first} attempt, {last:.0%} in the end"
    note = "in brackets: yield had there been no more attempts"
    axes.text(1, 0.98, note, ha="right", va="top", transform=axes.transAxes, color="#555555")
    return _titled(figure, text)


def costs(table: pd.DataFrame, what: str) -> Figure:
    """What does an environment cost?"""
    figure, (left, right) = _figure(columns=2, height=1.4 + 0.34 * max(len(table), 3), sharey=True)
    if _nothing(left, right, table=table):
        return figure
    ordered = table.sort_values("minutes", ascending=False)
    names = [f"{name} ({int(count)})" for name, count in ordered["environments"].items()]
    for axes, column, label, form, colour in (
        (left, "minutes", "minutes for each environment", "{:.0f}", BLUE),
        (right, "cost_usd", "US dollars for each environment", "{:.2f}", ORANGE),
    ):
        bars = axes.barh(names, ordered[column].fillna(0), color=colour)
        axes.bar_label(bars, ["none" if pd.isna(value) else form.format(value) for value in ordered[column]], padding=3)
        axes.set_xlabel(label)
        axes.margins(x=0.16)
    total = table["environments"].sum()
    minutes = (table["minutes"] * table["environments"]).sum() / max(total, 1)
    dollars = (table["cost_usd"] * table["environments"]).sum() / max(total, 1)
    if not total:
        return _titled(figure, "There is no environment yet")
    each = f"{minutes:.0f} minutes and {dollars:.2f} US dollars"
    return _titled(figure, f"An environment takes {each}; the {what} that is fastest is {table['minutes'].idxmin()}")


def held_out(rates: "pd.Series[float]") -> Figure:
    """How good are the environments, by the goals that nobody aimed at?"""
    figure, (axes,) = _figure(height=3.2)
    if _nothing(axes, table=rates):
        return figure
    bins = {"none": 0.0, "up to 25%": 0.25, "up to 50%": 0.5, "up to 75%": 0.75, "up to 99%": 0.999, "all": 1.0}
    parts = pd.cut(rates, [-0.001, *bins.values()], labels=list(bins))
    counts = parts.value_counts(sort=False)
    bars = axes.bar(counts.index.astype(str), counts, color=[BLUE] * 5 + [GREEN])
    axes.bar_label(bars, [f"{count} ({count / len(rates):.0%})" for count in counts], padding=3)
    axes.margins(y=0.12)
    axes.set_xlabel("held-out goals of an environment that pass")
    axes.set_ylabel("environments")
    whole = f"{(rates == 1).mean():.0%} of the environments pass all of them"
    return _titled(figure, f"{rates.mean():.0%} of the held-out goals pass; {whole}")


def flaky(table: pd.DataFrame) -> Figure:
    """How often do two fresh containers disagree?"""
    figure, (axes,) = _figure(height=1.2 + 0.4 * max(len(table), 2))
    if _nothing(axes, table=table):
        return figure
    names = [f"{name} ({int(row.flaky)}/{int(row.attempts)})" for name, row in table.iterrows()]
    bars = axes.barh(names, table["flaky_rate"], color=ORANGE)
    axes.bar_label(bars, [f"{rate:.1%}" for rate in table["flaky_rate"]], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("attempts whose two verdicts differ (% of those verified or flaky)")
    _percent(axes.xaxis)
    return _titled(figure, f"{_of(table['flaky'].sum(), table['attempts'].sum())} set-ups that worked once are flaky")


def stage_times(table: pd.DataFrame) -> Figure:
    """Which stages take the time?"""
    figure, (left, right) = _figure(columns=2, height=1.4 + 0.34 * max(len(table), 3), sharey=True)
    if _nothing(left, right, table=table):
        return figure
    ordered = table.iloc[::-1]
    bars = left.barh(ordered.index, ordered["share"], color=BLUE)
    left.bar_label(bars, [f"{hours:,.0f} h" for hours in ordered["hours"]], padding=3)
    left.set_xlabel("share of all time (%)")
    left.margins(x=0.18)
    _percent(left.xaxis)
    minutes = ordered[["median", "p90"]] / 60
    right.hlines(ordered.index, minutes["median"], minutes["p90"], color=GREY, linewidth=3)
    right.plot(minutes["median"], ordered.index, "o", color=BLUE, label="median")
    right.plot(minutes["p90"], ordered.index, "o", color=ORANGE, label="9 of 10 are faster")
    right.set_xlabel("minutes of one run")
    right.legend(loc="lower right", frameon=False)
    return _titled(figure, f"{table.index[0]} takes {table['share'].iloc[0]:.0%} of the time")


def funnel(table: pd.DataFrame, night: str) -> Figure:
    """How far does the list come?"""
    figure, (axes,) = _figure(height=3.2)
    if _nothing(axes, table=table["repositories"]):
        return figure
    bars = axes.barh(table.index, table["repositories"], color=[BLUE] * (len(table) - 2) + [GREEN] * 2)
    axes.bar_label(bars, [f"{row.repositories:.0f} ({row.share:.0%})" for row in table.itertuples()], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("repositories")
    share = table.loc["verified", "share"]
    return _titled(figure, f"{night}: {share:.0%} of the list became environments")


def _figure(*, rows: int = 1, columns: int = 1, height: float, sharey: bool = False) -> tuple[Figure, tuple[Axes, ...]]:
    figure, axes = plt.subplots(rows, columns, figsize=(10, height), sharey=sharey, layout="constrained", squeeze=False)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
    return figure, tuple(axes.flat)


def _titled(figure: Figure, title: str) -> Figure:
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return figure


def _nothing(*axes: Axes, table: "pd.DataFrame | pd.Series[float]") -> bool:
    """Whether there is nothing to draw; the chart then says so."""
    if table.size and np.nansum(table.select_dtypes("number") if isinstance(table, pd.DataFrame) else table) > 0:
        return False
    for each in axes:
        each.set_axis_off()
    axes[0].text(0.5, 0.5, "Nothing to show yet", ha="center", transform=axes[0].transAxes, color="#555555")
    return True


def _common(table: pd.DataFrame) -> pd.DataFrame:
    """The most frequent columns, and the rest as `other`."""
    if len(table.columns) <= MANY + 1:
        return table
    return table.iloc[:, :MANY].assign(other=table.iloc[:, MANY:].sum(axis=1))


def _nights(axes: Axes, names: pd.Index) -> None:
    step = max(1, len(names) // 14)
    axes.set_xticks(np.arange(len(names))[::step], names[::step], rotation=45, ha="right")


def _percent(axis: object) -> None:
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))  # type: ignore[attr-defined]


def _of(part: float, whole: float) -> str:
    return f"{part:.0f} of {whole:.0f} ({part / whole:.0%})" if whole else "none"
