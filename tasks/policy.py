"""How tasks are retried: infrastructure failures, and nothing else."""

from typing import Any

from prefect import runtime as prefect_runtime
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from autoinstall.errors import (
    DiskFull,
    EndpointUnsuitable,
    EngineUnavailable,
    ImageUnavailable,
    Infrastructure,
    OrchestratorUnavailable,
    QuotaExhausted,
    RegistryUnreachable,
)
from autoinstall.ledger import Ledger
from tasks.runtime import current_runtime

_POINTLESS = (
    *(EngineUnavailable, DiskFull, ImageUnavailable, QuotaExhausted, EndpointUnsuitable),
    RegistryUnreachable,
)
"""Infrastructure failures that seconds do not mend: they end the repository at once, and a later night tries again."""


async def is_worth_retrying(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether the failure is infrastructure that may have passed. A verdict is never retried."""
    if current_runtime().ended.is_set():
        return False
    try:
        await state.aresult()
    except _POINTLESS:
        return False
    except Infrastructure:
        return True
    except BaseException:  # noqa: BLE001 - what a task raised is only looked at here; the flow handles it
        return False
    return False


async def could_not_begin(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether Prefect's server did not take the flow run of a repository, so that nothing of it was done."""
    try:
        await state.aresult()
    except OrchestratorUnavailable:
        return not current_runtime().ended.is_set()
    except BaseException:  # noqa: BLE001 - what a task raised is only looked at here; the flow handles it
        return False
    return False


STAGE: dict[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": exponential_backoff(backoff_factor=3),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": is_worth_retrying,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}
"""Options of every stage's task. Results stay in memory: they hold whole trajectories, and the datasets keep those."""

PATIENT: dict[str, Any] = {**STAGE, "retries": 6, "retry_delay_seconds": exponential_backoff(backoff_factor=5)}
"""Options of a task that needs a service beyond the engine when all other work is done: waits five minutes for it."""


def count_retry(ledger: Ledger) -> None:
    """Note in the ledger that this task runs again because of an infrastructure failure."""
    if (prefect_runtime.task_run.run_count or 1) > 1:
        ledger.infrastructure_failures += 1
