"""Teams of agents and models held against each other on the repositories that all of them tried."""

import pandas as pd

from autoinstall.datasets.reader import load
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.statistics import UNDECIDED, latest
from autoinstall.datasets.store import DataPlace
from autoinstall.values import Outcome, Value


class TeamYield(Value):
    """What one team made of the repositories that are compared.

    Attributes:
        team: as the rows write it (`autoinstall.agents.team_of`).
        ran: repositories that it decided in all, compared or not.
        total, verified: of those that are compared.
        yield_rate: verified of total; None where nothing is compared.
        attempts: mean set-up attempts of a verified repository.
        seconds, tokens, cost_usd: for each verified repository, what the discarded ones took included; None where
            there is none.
        held_out: mean over its environments of the fraction of held-out goals that pass.
    """

    team: str
    ran: int
    total: int
    verified: int
    yield_rate: float | None = None
    attempts: float | None = None
    seconds: float | None = None
    tokens: float | None = None
    cost_usd: float | None = None
    held_out: float | None = None


class Comparison(Value):
    """Teams by yield, best first.

    Attributes:
        repositories: (repository, commit) pairs that every team decided; only these are compared. 0 where there is
            none that all of them did: each team is then shown on its own ones, which says less.
    """

    repositories: int = 0
    teams: tuple[TeamYield, ...] = ()


def compare_teams(data: DataPlace) -> Comparison:
    """The comparison of the `repositories` dataset.

    Raises:
        StorageFailed: the dataset cannot be read.
    """
    return comparison_of(load(data, Dataset.REPOSITORIES))


def comparison_of(repositories: pd.DataFrame) -> Comparison:
    """The comparison of a `repositories` frame, for instance of one that the caller filtered.

    What ended by infrastructure or was cancelled says nothing of a team. Of several runs that a team made of a
    repository at a commit the last one counts.
    """
    if repositories.empty:
        return Comparison()
    frame = repositories.assign(team=_teams(repositories))
    frame = latest(frame[~frame["outcome"].isin(UNDECIDED) & frame["commit"].notna()])
    frame = frame.drop_duplicates(["team", "repository", "commit"], keep="last")
    if frame.empty:
        return Comparison()
    pairs = pd.Series(list(zip(frame["repository"], frame["commit"], strict=True)), index=frame.index)
    by_team = {str(team): set(pairs[rows.index]) for team, rows in frame.groupby("team")}
    common = set.intersection(*by_team.values())
    compared = frame[pairs.isin(common)] if common else frame
    teams = [_yield(team, len(tried), compared[compared["team"] == team]) for team, tried in by_team.items()]
    teams.sort(key=lambda team: (-(team.yield_rate or 0), team.cost_usd or 0, team.team))
    return Comparison(repositories=len(common), teams=tuple(teams))


def _teams(repositories: pd.DataFrame) -> "pd.Series[str]":
    """The team of each row; of rows that older versions wrote, the agents that they name."""
    named = repositories["team"].fillna("")
    agents = repositories["agents"].map(
        lambda agents: (agents or {}).get("installer") or (agents or {}).get("goal_setter") or "unknown"
    )
    return named.where(named != "", agents)


def _yield(team: str, ran: int, rows: pd.DataFrame) -> TeamYield:
    accepted = rows[rows["outcome"] == Outcome.VERIFIED.value]
    scored = accepted[accepted["held_out_total"].fillna(0) > 0]
    tokens = rows["input_tokens"].fillna(0) + rows["output_tokens"].fillna(0)
    each = len(accepted)
    return TeamYield(
        team=team,
        ran=ran,
        total=len(rows),
        verified=each,
        yield_rate=each / len(rows) if len(rows) else None,
        attempts=float(accepted["attempts"].mean()) if each else None,
        seconds=float(rows["seconds"].sum()) / each if each else None,
        tokens=float(tokens.sum()) / each if each else None,
        cost_usd=float(rows["cost_usd"].sum()) / each if each else None,
        held_out=float((scored["held_out_passed"] / scored["held_out_total"]).mean()) if len(scored) else None,
    )
