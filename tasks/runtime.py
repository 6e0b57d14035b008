"""The runtime that the tasks of this process share, and how a test puts another in its place."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from autoinstall.runtime import Runtime, build_runtime
from autoinstall.settings import Settings, get_settings

_lock = threading.Lock()
_active: Runtime | None = None


def current_runtime() -> Runtime:
    """The active runtime; one from the process's settings where none was set."""
    global _active  # noqa: PLW0603 - one a process: it holds the connection to the engine
    with _lock:
        if _active is None:
            _active = build_runtime(get_settings())
        return _active


@contextmanager
def use_runtime(runtime: Runtime | Settings) -> Iterator[Runtime]:
    """Make `runtime`, or one built from settings, the active one for every thread until the block ends."""
    global _active  # noqa: PLW0603
    chosen = build_runtime(runtime) if isinstance(runtime, Settings) else runtime
    with _lock:
        previous, _active = _active, chosen
    try:
        yield chosen
    finally:
        with _lock:
            _active = previous
