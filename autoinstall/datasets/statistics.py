"""Yield: what came out of the repositories that went in, and what it cost.

A repository counts once for each (repository, commit, configuration): its last run does, since a rerun replaces what
an earlier one said.
"""

from collections import Counter

import pandas as pd

from autoinstall.datasets.reader import load
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import DataPlace
from autoinstall.values import Outcome, Value

UNDECIDED = frozenset({Outcome.INFRASTRUCTURE.value, Outcome.UNKNOWN.value, Outcome.CANCELLED.value})
"""Neither verified nor discarded: they say nothing of the repository, and are not held against the yield."""


class Share(Value):
    """How many repositories ended in one way, out of all."""

    name: str
    count: int
    fraction: float


class NightYield(Value):
    """One night, or one day of single runs.

    Attributes:
        night: the flow run of the list; the UTC date for single runs.
        total: repositories that ran.
        seconds: of their pipelines together.
    """

    night: str
    total: int
    verified: int
    seconds: float


class YieldStatistics(Value):
    """What a data directory holds.

    Attributes:
        total: repositories that ran.
        decided: those that are verified or discarded; what infrastructure ended or somebody cancelled is neither.
        verified: accepted.
        yield_rate: verified of decided; None where nothing was decided.
        outcomes, stages, languages: by count, largest first; stages are those of discarded repositories.
        attempts_to_success: (attempts, verified repositories that took so many).
        mean_seconds, median_seconds: of a decided repository's pipeline; None where nothing was decided.
        held_out_mean: mean over environments of the fraction of held-out goals that pass.
        offline_share: fraction of the environments tried offline whose targets match there too.
        tokens, cached_tokens, reasoning_tokens, cost_usd: of all runs; cached ones are part of the input, and
            reasoning ones of the output.
        model_seconds: that models' answers took, in all runs.
        nights: oldest first.
    """

    total: int = 0
    decided: int = 0
    verified: int = 0
    yield_rate: float | None = None
    outcomes: tuple[Share, ...] = ()
    stages: tuple[Share, ...] = ()
    languages: tuple[Share, ...] = ()
    attempts_to_success: tuple[tuple[int, int], ...] = ()
    mean_seconds: float | None = None
    median_seconds: float | None = None
    held_out_mean: float | None = None
    offline_share: float | None = None
    tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    model_seconds: float = 0.0
    cost_usd: float = 0.0
    nights: tuple[NightYield, ...] = ()


def yield_statistics(data: DataPlace) -> YieldStatistics:
    """Statistics of the `repositories` dataset; all zero and empty where there is none yet.

    Raises:
        StorageFailed: the dataset cannot be read.
    """
    return statistics_of(load(data, Dataset.REPOSITORIES))


def latest(repositories: pd.DataFrame, *more: str) -> pd.DataFrame:
    """The last run of each (repository, commit, configuration), oldest first; by `more` columns too where given."""
    ordered = repositories.sort_values("finished_at", kind="stable")
    return ordered.drop_duplicates(["repository", "commit", "configuration", *more], keep="last")


def statistics_of(repositories: pd.DataFrame) -> YieldStatistics:
    """Statistics of a `repositories` frame, for instance of one that the caller filtered."""
    if repositories.empty:
        return YieldStatistics()
    frame = latest(repositories)
    decided = frame[~frame["outcome"].isin(UNDECIDED)]
    accepted = frame[frame["outcome"] == Outcome.VERIFIED.value]
    with_held_out = accepted[accepted["held_out_total"].fillna(0) > 0]
    offline = accepted["offline_ok"].dropna()
    return YieldStatistics(
        total=len(frame),
        decided=len(decided),
        verified=len(accepted),
        yield_rate=len(accepted) / len(decided) if len(decided) else None,
        outcomes=_shares(frame["outcome"]),
        stages=_shares(decided.loc[decided["outcome"] != Outcome.VERIFIED.value, "stage"]),
        languages=_shares(frame["language"].fillna("unknown")),
        attempts_to_success=tuple(sorted(Counter(accepted["attempts"].tolist()).items())),
        mean_seconds=_mean(decided["seconds"]),
        median_seconds=float(decided["seconds"].median()) if len(decided) else None,
        held_out_mean=_mean(with_held_out["held_out_passed"] / with_held_out["held_out_total"]),
        offline_share=_mean(offline.astype(float)),
        tokens=int(repositories["input_tokens"].sum() + repositories["output_tokens"].sum()),
        cached_tokens=int(repositories["cached_tokens"].sum()),
        reasoning_tokens=int(repositories["reasoning_tokens"].sum()),
        model_seconds=float(repositories["model_seconds"].sum()),
        cost_usd=float(repositories["cost_usd"].sum()),
        nights=_nights(repositories),
    )


def _shares(names: "pd.Series[str]") -> tuple[Share, ...]:
    counts = names.value_counts()
    return tuple(
        Share(name=str(name), count=int(count), fraction=int(count) / len(names)) for name, count in counts.items()
    )


def _mean(values: "pd.Series[float]") -> float | None:
    return float(values.mean()) if len(values) else None


def _nights(repositories: pd.DataFrame) -> tuple[NightYield, ...]:
    dates = repositories["started_at"].dt.strftime("%Y-%m-%d")
    night = repositories["night_id"].where(repositories["night_id"].notna(), dates)
    groups = repositories.assign(night=night).sort_values("started_at").groupby("night", sort=False)
    return tuple(
        NightYield(
            night=str(name),
            total=len(rows),
            verified=int((rows["outcome"] == Outcome.VERIFIED.value).sum()),
            seconds=float(rows["seconds"].sum()),
        )
        for name, rows in groups
    )
