"""The tables that answer what people ask of their nights; pure functions over the frames of `frames_of`.

`report` prints some of them, and `notebooks/yield.ipynb` draws all. A repository that ran several times counts, in
what is said of repositories, by its last run (`statistics.latest`); what is said of a night is of all its runs. What
infrastructure ended, or was cancelled, says nothing of a repository, and is left out of every yield.
"""

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from autoinstall.datasets.reader import load_table
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.statistics import UNDECIDED, latest
from autoinstall.datasets.store import DataPlace, store_of
from autoinstall.values import Outcome

STAGES = ("clone", "goal_setting", "selection", "setup", "verification", "quality", "rebuild", "publishing")
"""In the order in which a run goes through them."""

_REPOSITORIES = (
    *("run_id", "night_id", "repository", "commit", "started_at", "finished_at", "configuration", "outcome", "stage"),
    *("code", "language", "attempts", "held_out_passed", "held_out_total", "offline_ok", "team", "agents", "seconds"),
    *("model_seconds", "input_tokens", "output_tokens", "cost_usd"),
)
_ATTEMPTS = ("run_id", "night_id", "attempt", "outcome", "code", "agent", "model", "seconds", "cost_usd", "started_at")


@dataclass(frozen=True)
class Frames:
    """What the tables are made of.

    Attributes:
        repositories: a row for each run of a repository; beside the dataset's columns `night` (its date, and what tells
            two of one date apart), `model` (of the installer, or the agent that needs none), `decided`, `verified` and
            `held_out` (fraction of the held-out goals that pass).
        stages: run_id, stage, seconds.
        attempts: a row for each set-up attempt, with `model` as above.
    """

    repositories: pd.DataFrame
    stages: pd.DataFrame
    attempts: pd.DataFrame


def frames_of(data: DataPlace) -> Frames:
    """Read what the tables need; a million attempts take seconds.

    Raises:
        StorageFailed: a dataset cannot be read.
    """
    store = store_of(data)
    rows = load_table(store, Dataset.REPOSITORIES, [*_REPOSITORIES, "stage_seconds"])
    attempts = load_table(store, Dataset.ATTEMPTS, list(_ATTEMPTS)).to_pandas()
    return Frames(
        repositories=_described(rows),
        stages=_stages(rows),
        attempts=attempts.assign(model=_first(attempts["model"], attempts["agent"])),
    )


def _described(rows: pa.Table) -> pd.DataFrame:
    agents = rows.column("agents").combine_chunks()
    model, agent = (pc.struct_field(agents, name).to_pandas() for name in ("installer_model", "installer"))
    frame: pd.DataFrame = rows.drop_columns(["agents", "stage_seconds"]).to_pandas()
    played = _first(model, agent)
    return frame.assign(
        night=_nights(frame),
        model=played.to_numpy(),
        language=frame["language"].fillna("unknown"),
        decided=~frame["outcome"].isin(UNDECIDED),
        verified=frame["outcome"] == Outcome.VERIFIED.value,
        held_out=frame["held_out_passed"] / frame["held_out_total"].where(frame["held_out_total"] > 0),
    )


def _first(model: "pd.Series[str]", agent: "pd.Series[str]") -> "pd.Series[str]":
    """The model; where there is none the agent, and where there is neither `none`."""
    known = model.where(model.notna() & (model != ""), agent).astype("object")
    return known.where(known.notna() & (known != ""), "none").astype("str")


def _nights(frame: pd.DataFrame) -> "pd.Series[str]":
    """The date on which each night began, with a number behind it where others did; `single` for runs of no list."""
    begun = frame.groupby("night_id")["started_at"].min().sort_values()
    dates = begun.dt.strftime("%Y-%m-%d")
    several = dates.groupby(dates).cumcount()
    names = dates.where(several == 0, dates + "." + (several + 1).astype(str))
    return frame["night_id"].map(names).astype("object").fillna("single").astype("str")


def _stages(rows: pa.Table) -> pd.DataFrame:
    timings = rows.column("stage_seconds").combine_chunks()
    flat, parents = pc.list_flatten(timings), pc.list_parent_indices(timings)
    return pd.DataFrame(
        {
            "run_id": pc.take(rows.column("run_id").combine_chunks(), parents).to_pandas(),
            "stage": pc.struct_field(flat, "stage").to_pandas(),
            "seconds": pc.struct_field(flat, "seconds").to_pandas(),
        }
    )


def by_night(repositories: pd.DataFrame) -> pd.DataFrame:
    """A row for each night, oldest first: runs, decided, verified, yield_rate, and of all its runs together hours and
    cost_usd."""
    ordered = repositories.sort_values("started_at")
    table = _yields(ordered, "night")
    sums = ordered.groupby("night", sort=False)[["seconds", "cost_usd"]].sum()
    return table.assign(hours=sums["seconds"] / 3600, cost_usd=sums["cost_usd"])


def by(repositories: pd.DataFrame, column: str) -> pd.DataFrame:
    """Repositories by language, model or team, most frequent first: runs, decided, verified, yield_rate, held_out."""
    last = latest(repositories, column) if column in ("model", "team") else latest(repositories)
    table = _yields(last, column)
    accepted = last[last["verified"]]
    return table.assign(held_out=accepted.groupby(column)["held_out"].mean()).sort_values("runs", ascending=False)


def _yields(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    groups = rows.groupby(column, sort=False)
    table = groups.agg(runs=("run_id", "size"), decided=("decided", "sum"), verified=("verified", "sum"))
    return table.assign(yield_rate=table["verified"] / table["decided"].where(table["decided"] > 0))


def failure_classes(repositories: pd.DataFrame) -> pd.DataFrame:
    """Repositories that failed, by stage, outcome and code, most frequent first: repositories and share of all."""
    last = latest(repositories)
    failed = _failed(last)
    counts = failed.groupby(["stage", "outcome", "code"]).size().sort_values(ascending=False, kind="stable")
    return pd.DataFrame({"repositories": counts, "share": counts / max(len(last), 1)}).reset_index()


def stage_outcomes(repositories: pd.DataFrame) -> pd.DataFrame:
    """Repositories that failed: a row for each stage in the order of the run, a column for each outcome."""
    failed = _failed(latest(repositories))
    table = pd.crosstab(failed["stage"], failed["outcome"])
    known = [stage for stage in STAGES if stage in table.index]
    table = table.reindex([*known, *(stage for stage in table.index if stage not in known)])
    return table[table.sum().sort_values(ascending=False).index]


def _failed(last: pd.DataFrame) -> pd.DataFrame:
    """Those that are not verified, for whatever reason but that somebody cancelled them."""
    return last[~last["verified"] & (last["outcome"] != Outcome.CANCELLED.value)]


def attempts_to_success(repositories: pd.DataFrame) -> pd.DataFrame:
    """A row for each number of attempts: verified (repositories that took so many), and yield_rate, that of all decided
    ones had there been no more attempts."""
    last = latest(repositories)
    verified = last.loc[last["verified"], "attempts"].value_counts().sort_index()
    decided = int(last["decided"].sum())
    return pd.DataFrame({"verified": verified, "yield_rate": verified.cumsum() / max(decided, 1)}).rename_axis(
        "attempts"
    )


def cost_per_environment(repositories: pd.DataFrame, column: str) -> pd.DataFrame:
    """By night, language, model or team: environments, and for each of them minutes, tokens and cost_usd, what the
    discarded repositories took included. No value where there is no environment."""
    groups = repositories.sort_values("started_at").groupby(column, sort=False)
    table = groups[["seconds", "input_tokens", "output_tokens", "cost_usd"]].sum()
    environments = groups["verified"].sum()
    each = environments.where(environments > 0)
    return pd.DataFrame(
        {
            "environments": environments,
            "minutes": table["seconds"] / each / 60,
            "tokens": (table["input_tokens"] + table["output_tokens"]) / each,
            "cost_usd": table["cost_usd"] / each,
        }
    )


def held_out_quality(repositories: pd.DataFrame) -> "pd.Series[float]":
    """The fraction of held-out goals that pass, for each environment where some were run."""
    last = latest(repositories)
    rates: pd.Series[float] = last.loc[last["verified"], "held_out"].dropna()
    return rates


def flakiness(attempts: pd.DataFrame) -> pd.DataFrame:
    """By model: attempts that came to verdicts in fresh containers (verified or flaky), flaky ones, and flaky_rate."""
    judged = attempts[attempts["outcome"].isin([Outcome.VERIFIED.value, Outcome.FLAKY.value])]
    flaky = judged["outcome"] == Outcome.FLAKY.value
    table = judged.assign(flaky=flaky).groupby("model").agg(attempts=("run_id", "size"), flaky=("flaky", "sum"))
    return table.assign(flaky_rate=table["flaky"] / table["attempts"]).sort_values("attempts", ascending=False)


def attempt_outcomes(attempts: pd.DataFrame) -> pd.DataFrame:
    """A row for each attempt number, a column for each outcome: attempts."""
    table = pd.crosstab(attempts["attempt"], attempts["outcome"])
    return table[table.sum().sort_values(ascending=False).index]


def slowest_stages(stages: pd.DataFrame) -> pd.DataFrame:
    """By stage, most time in all first: runs, median and p90 (seconds), hours in all, share of all time."""
    groups = stages.groupby("stage")["seconds"]
    table = pd.DataFrame(
        {"runs": groups.size(), "median": groups.median(), "p90": groups.quantile(0.9), "hours": groups.sum() / 3600}
    )
    return table.assign(share=table["hours"] / (table["hours"].sum() or 1)).sort_values("hours", ascending=False)


def funnel(repositories: pd.DataFrame) -> pd.DataFrame:
    """How many repositories came how far: a row for each step, with repositories and share of the list. From the second
    on they are decided ones: the stage in which somebody cancelled a run is not as far as its repository can come."""
    last = latest(repositories)
    decided = last[last["decided"]]
    reached = decided["stage"].map({stage: place for place, stage in enumerate(STAGES)}).fillna(0)
    accepted = last[last["verified"]]
    steps = {
        "on the list": len(last),
        "decided": len(decided),
        "cloned": int((reached > STAGES.index("clone")).sum()),
        "goals found": int((reached > STAGES.index("selection")).sum()),
        "set up": int((reached > STAGES.index("setup")).sum()),
        "verified": len(accepted),
        "all held-out goals pass": int((accepted["held_out"] == 1).sum()),
    }
    counts = pd.Series(steps, name="repositories")
    return pd.DataFrame({"repositories": counts, "share": counts / max(len(last), 1)}).rename_axis("step")
