"""Stage 1: the checkout, and the image that every attempt starts from."""

from pathlib import Path

from prefect import task

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.bases import ensure_chosen
from autoinstall.checkout import checkout
from autoinstall.ledger import Ledger
from autoinstall.sandbox.contract import Snapshot, WorkspaceSource
from autoinstall.tree import Tree
from autoinstall.values import Checkout, Value
from tasks.policy import STAGE, count_retry
from tasks.runtime import current_runtime


class InitialState(Value):
    """The base image, and it with the checkout at /workspace."""

    base: Snapshot
    image: Snapshot


@task(name="clone", task_run_name="clone", **STAGE)
def clone(ledger: Ledger, directory: Path) -> Checkout:
    """Fetch the repository at its commit into `directory`."""
    count_retry(ledger)
    return checkout(ledger.spec, directory, ledger.settings)


@task(name="initial state", task_run_name="initial state", **STAGE)
def prepare_initial_state(ledger: Ledger) -> InitialState:
    """See that the base image is there, and put the checkout on it."""
    count_retry(ledger)
    provider = current_runtime().provider
    source = ledger.known_checkout
    if ledger.spec.base_image:
        base = provider.ensure_base(ledger.spec.base_image)
    else:
        repository = Repository(url=source.repository, commit=source.commit, commit_date=source.commit_date)
        base = ensure_chosen(provider, repository, Tree(source.path), ledger.settings)
    image = provider.build_workspace_image(
        base.digest, WorkspaceSource(path=str(source.path), commit=source.commit), labels={}
    )
    return InitialState(base=base, image=image)
