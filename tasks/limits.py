"""Bounds on what is under way on all hosts together: Prefect's global concurrency limits, by the settings' names."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

from prefect.concurrency.sync import concurrency
from prefect.context import SyncClientContext
from prefect.exceptions import ObjectNotFound

from autoinstall.ledger import Ledger
from autoinstall.settings import OrchestrationSettings

_P = ParamSpec("_P")
_T = TypeVar("_T")


@contextmanager
def slot(name: str, settings: OrchestrationSettings) -> Iterator[None]:
    """Hold a slot of the limit `name`, once one is free. Nothing is waited for where there is no such limit.

    The slot is a lease that is renewed while it is held: after a kill it is free again `lease_seconds` later. Where the
    server cannot be reached for so long, work goes on without it.
    """
    if not name or not _exists(name):
        yield
        return
    with concurrency(name, lease_duration=settings.lease_seconds, raise_on_lease_renewal_failure=False):
        yield


def in_run_slot(
    stages: Callable[Concatenate[Ledger, _P], _T],
) -> Callable[Concatenate[Ledger, _P], _T]:
    """Have the stages of a repository wait for their slot, which they then hold until they end."""

    @wraps(stages)
    def waiting(ledger: Ledger, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        settings = ledger.settings.orchestration
        with ExitStack() as held:
            with ledger.stage("waiting"):
                held.enter_context(slot(settings.run_limit, settings))
            return stages(ledger, *arguments, **named)

    return waiting


@cache
def _exists(name: str) -> bool:
    """Asked once a process: a call to a model must not cost a question to the server where there is no limit."""
    with SyncClientContext.get_or_create() as context:
        try:
            context.client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            return False
    return True
