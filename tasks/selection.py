"""Stage 3: which of the goals become the targets."""

from prefect import task

from autoinstall.ledger import Ledger
from autoinstall.selection import Selection, select, select_all
from tasks.policy import STAGE


@task(name="selection", task_run_name="selection", **STAGE)
def select_targets(ledger: Ledger) -> Selection:
    """A seeded choice spread over categories; the user's own goals are all targets."""
    if ledger.spec.goals is not None:
        return select_all(ledger.baseline)
    verification, source = ledger.settings.verification, ledger.known_checkout
    return select(ledger.baseline, source.repository, source.commit, verification.seed, verification.targets)
