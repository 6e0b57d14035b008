"""Stage 6: the image is named and pushed, and the rows are written."""

from prefect import task

from autoinstall.datasets.location import Location
from autoinstall.datasets.records import RunRecords
from autoinstall.datasets.store import store_of
from autoinstall.datasets.writer import secrets_of, write_run
from autoinstall.ledger import Ledger
from autoinstall.sandbox.contract import Snapshot
from tasks.policy import PATIENT, STAGE, count_retry
from tasks.runtime import current_runtime


@task(name="publish image", task_run_name="publish image", **STAGE)
def publish_image(ledger: Ledger, snapshot: Snapshot, environment_id: str) -> Snapshot:
    """Name an accepted image, so that it stays."""
    count_retry(ledger)
    return current_runtime().provider.tag(snapshot, f"autoinstall/environment:{environment_id}")


@task(name="push image", task_run_name="push image", **PATIENT)
def push_image(ledger: Ledger, snapshot: Snapshot, environment_id: str) -> Snapshot:
    """Give the image to every host, where the settings name a registry."""
    count_retry(ledger)
    return current_runtime().provider.push(snapshot, environment_id)


@task(name="publish rows", task_run_name="publish rows", **STAGE)
def publish_rows(ledger: Ledger, records: RunRecords, data: Location) -> None:
    """Write the run's rows; writing them again replaces them."""
    count_retry(ledger)
    write_run(store_of(data, ledger.settings.storage), records, secrets=secrets_of(ledger.settings))
