"""What the datasets know of the nights so far, for the night that is under way."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from autoinstall.datasets.reader import load_table
from autoinstall.datasets.records import RETRIED_OUTCOMES
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import DataPlace
from autoinstall.values import Outcome, Value


class RunFacts(Value):
    """What a night tells of one of its repositories. `seconds` is wall time."""

    repository: str
    ref: str | None
    commit: str | None
    outcome: Outcome
    code: str
    reason: str
    environment_id: str | None
    attempts: int
    seconds: float
    held_out_passed: int | None
    held_out_total: int | None
    flow_run_id: str | None


def facts_of_runs(data: DataPlace, flow_run_ids: Collection[str]) -> dict[str, RunFacts]:
    """The rows of runs, by the id of the orchestrator's run that each was done in; runs without a row are absent.

    Raises:
        StorageFailed: the dataset cannot be read.
    """
    table = load_table(data, Dataset.REPOSITORIES, list(RunFacts.model_fields))
    wanted = pa.array(sorted(flow_run_ids), pa.string())
    rows = table.filter(pc.is_in(table["flow_run_id"].cast(pa.string()), wanted)).to_pylist()
    return {row["flow_run_id"]: RunFacts.model_validate(row) for row in rows}


def last_outcomes(data: DataPlace) -> dict[tuple[str, str | None], Outcome]:
    """How the last run of each repository and ref ended.

    Raises:
        StorageFailed: the dataset cannot be read.
    """
    columns = ["repository", "ref", "outcome", "finished_at"]
    table = load_table(data, Dataset.REPOSITORIES, columns).sort_by("finished_at").drop_columns(["finished_at"])
    return {(row["repository"], row["ref"]): Outcome(row["outcome"]) for row in table.to_pylist()}


def ended_without_commit(data: DataPlace, night_id: str) -> frozenset[tuple[str, str | None]]:
    """Repository and ref of those that ended in that night, for good, before their commit was known.

    Raises:
        StorageFailed: the dataset cannot be read.
    """
    table = load_table(data, Dataset.REPOSITORIES, ["repository", "ref", "commit", "outcome", "night_id"])
    return frozenset(
        (row["repository"], row["ref"])
        for row in table.to_pylist()
        if row["night_id"] == night_id and not row["commit"] and row["outcome"] not in RETRIED_OUTCOMES
    )
