"""Stage 4: one set-up attempt."""

from prefect import task

from autoinstall.agents.contract import Assignment
from autoinstall.attempts import SetupAttempt, set_up
from autoinstall.ledger import Ledger
from autoinstall.tree import Tree
from autoinstall.values import Role
from tasks.policy import STAGE, count_retry
from tasks.runtime import current_runtime


@task(name="set-up", task_run_name="set-up attempt {number}", **STAGE)
def attempt_setup(ledger: Ledger, number: int) -> SetupAttempt:
    """Give the installer the initial state and the targets, and nothing of the other goals or of earlier attempts but
    their lessons."""
    count_retry(ledger)
    runtime = current_runtime()
    assignment = Assignment(
        repository=ledger.repository,
        targets=ledger.targets,
        attempt=number,
        lessons=ledger.lessons,
        limits=ledger.spec.limits,
    )
    with ledger.agent_run(Role.INSTALLER, number) as journal:
        return set_up(
            runtime.provider,
            runtime.installer(number),
            ledger.judge(runtime.judge),
            spec=ledger.spec,
            initial=ledger.known_initial,
            assignment=assignment,
            tree=Tree(ledger.known_checkout.path),
            owner=ledger.run_id,
            journal=journal,
        )
