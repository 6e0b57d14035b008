"""Ending early: who asks for it, and how a flow in this process hears of it."""

import contextvars
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect import runtime as prefect_runtime
from prefect.client.schemas.objects import StateType
from prefect.context import SyncClientContext

WATCH_SECONDS = 3.0
"""Between two looks at the run's state."""

_ENDED = (StateType.CANCELLING, StateType.CANCELLED)
_SIGNAL = signal.SIGUSR1


def is_alone() -> bool:
    """Whether this flow has the process to itself; those of a night's threads have not."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def watching() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread once somebody has cancelled the flow run in the UI or by the API.

    A worker does that for the processes that it has started; nobody does for a flow that was started on the command
    line, or whose worker was killed. In other threads than the main one this does nothing.
    """
    flow_run_id = prefect_runtime.flow_run.id
    if flow_run_id is None or not is_alone():
        yield
        return
    over = threading.Event()
    before = signal.signal(_SIGNAL, signal.default_int_handler)
    # With its context, so that it shares the flow's client instead of starting a server of its own.
    context = contextvars.copy_context()
    watcher = threading.Thread(target=context.run, args=(_watch, UUID(str(flow_run_id)), over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        signal.signal(_SIGNAL, before)


def _watch(flow_run_id: UUID, over: threading.Event) -> None:
    main, logger, seen = threading.main_thread().ident, get_run_logger(), 0
    with SyncClientContext.get_or_create() as context:
        while main is not None and not over.wait(WATCH_SECONDS):
            try:
                state = context.client.read_flow_run(flow_run_id).state
            except httpx.HTTPError as error:
                logger.debug("The state of this run cannot be read now: %s", error)
                continue
            seen = seen + 1 if state is not None and state.type in _ENDED else 0
            if seen == 2:  # a worker that is there has ended the process by now, in its own way
                logger.info("The run was cancelled; what it has started is being stopped.")
                signal.pthread_kill(main, _SIGNAL)
                return
