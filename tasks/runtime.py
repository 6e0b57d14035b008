"""The runtime that the tasks of this process share, and how a test puts another in its place."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from autoinstall.models.admission import admit_by
from autoinstall.runtime import Runtime, build_runtime
from autoinstall.settings import Settings, get_settings
from tasks.limits import slot

_lock = threading.Lock()
_active: Runtime | None = None


def current_runtime() -> Runtime:
    """The active runtime; one from the process's settings where none was set."""
    global _active  # noqa: PLW0603 - one a process: it holds the connection to the engine
    with _lock:
        if _active is None:
            _active = _built(get_settings())
        return _active


def _built(settings: Settings) -> Runtime:
    """With its calls to models under the limit that they have on all hosts together."""
    admit_by(partial(slot, settings.orchestration.model_limit, settings.orchestration))
    return build_runtime(settings)


@contextmanager
def use_runtime(runtime: Runtime | Settings) -> Iterator[Runtime]:
    """Make `runtime`, or one built from settings, the active one for every thread until the block ends."""
    global _active  # noqa: PLW0603
    chosen = _built(runtime) if isinstance(runtime, Settings) else runtime
    with _lock:
        previous, _active = _active, chosen
    try:
        yield chosen
    finally:
        with _lock:
            _active = previous
