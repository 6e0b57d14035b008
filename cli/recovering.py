"""What `autoinstall recover` prints."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoinstall.datasets.store import Store
    from flows.recovery import Recovered


def repositories_of(store: "Store", found: "Recovered") -> dict[str, str]:
    """Run id → repository, as far as the datasets know the runs whose rows were written.

    Raises:
        StorageFailed: they cannot be read.
    """
    if not (wanted := {*found.kept, *found.rows}):
        return {}
    from autoinstall.datasets.reader import load_table
    from autoinstall.datasets.schemas import Dataset

    rows = load_table(store, Dataset.REPOSITORIES, ["run_id", "repository"]).to_pylist()
    return {row["run_id"]: row["repository"] for row in rows if row["run_id"] in wanted}


def recovered(found: "Recovered", names: Mapping[str, str]) -> str:
    """A line for each kind of thing that was done; runs by their repository where `names` has it."""
    removed = f"{len(found.removed)} of containers, networks and images" if found.removed else ""
    parts = [
        ("Runs that had died", ", ".join(found.runs)),
        ("Wrote the rows that the storage had not taken of", ", ".join(names.get(run, run) for run in found.kept)),
        ("Wrote the rows of killed runs of", ", ".join(names.get(run, run) for run in found.rows)),
        ("Removed what dead runs left", removed),
        ("Started again", ", ".join(found.nights)),
        ("Not started again", ", ".join(found.left)),
    ]
    return "\n".join(f"{said}: {what}" for said, what in parts if what) or "Nothing was left to clean up."
