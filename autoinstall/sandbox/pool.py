"""The sandboxes of one provider: started ahead of their use, and removed after it, while other work goes on.

An engine takes most of a second to start a container with a network of its own, and half a second to remove it. A
repository takes eight or nine of them one after the other, and nearly always it is known which comes next.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from autoinstall.errors import AutoinstallError, Cancelled
from autoinstall.sandbox.contract import SandboxSpec

_WORKERS = 8

_logger = logging.getLogger(__name__)


class Poolable(Protocol):
    """What the pool asks of a sandbox."""

    def begin(self) -> None:
        """Start its container on its network; what a second call does is nothing."""
        ...

    def is_running(self) -> bool:
        """Whether the container is there and runs."""
        ...

    def stop(self) -> None:
        """End all that runs in it and beside it. Idempotent; never raises."""
        ...

    def close(self) -> None:
        """Remove it with all that lies beside it. Idempotent; never raises."""
        ...


S = TypeVar("S", bound=Poolable)


@dataclass
class Pool(Generic[S]):
    """Thread-safe. `make` gives a sandbox that is not started."""

    make: Callable[[SandboxSpec], S]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _prepared: list[tuple[SandboxSpec, S, Future[None]]] = field(default_factory=list)
    _open: list[S] = field(default_factory=list)
    _removals: set[Future[None]] = field(default_factory=set)
    _workers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_WORKERS, "sandboxes"))
    _shut_down: bool = False

    def prepare(self, spec: SandboxSpec) -> None:
        """See `SandboxProvider.prepare`."""
        with self._lock:
            if not self._shut_down and all(spec != other for other, _, _ in self._prepared):
                sandbox = self.make(spec)
                self._prepared.append((spec, sandbox, self._workers.submit(sandbox.begin)))

    def take(self, spec: SandboxSpec) -> S:
        """A sandbox of `spec`, prepared or new. Whoever takes it retires it.

        Raises:
            Cancelled: after `shutdown`.
        """
        with self._lock:
            if self._shut_down:
                raise Cancelled("The run was cancelled.")
            found = next((entry for entry in self._prepared if entry[0] == spec), None)
            if found is None:
                return self._new(spec)
            self._prepared.remove(found)
            _, sandbox, begun = found
            self._open.append(sandbox)
        try:
            begun.result()
            if sandbox.is_running():
                return sandbox
        except AutoinstallError as error:
            _logger.info("A sandbox could not be started ahead: %s", error)
        except BaseException:
            self.retire(sandbox)
            raise
        self.retire(sandbox)
        with self._lock:
            return self._new(spec)

    def _new(self, spec: SandboxSpec) -> S:
        sandbox = self.make(spec)
        self._open.append(sandbox)
        return sandbox

    def retire(self, sandbox: S) -> None:
        """Remove it in the background: what runs in it is killed at once, the rest waits for what is being started."""
        with self._lock:
            if sandbox in self._open:
                self._open.remove(sandbox)
            self._remove(sandbox, [begun for _, _, begun in self._prepared])

    def release(self, owner: str) -> None:
        """See `SandboxProvider.release`."""
        with self._lock:
            for entry in [entry for entry in self._prepared if entry[0].owner == owner]:
                self._drop(*entry)

    def _drop(self, spec: SandboxSpec, sandbox: S, begun: Future[None]) -> None:
        self._prepared.remove((spec, sandbox, begun))
        self._remove(sandbox, [begun])  # what is still being made cannot be removed

    def _remove(self, sandbox: S, before: Sequence[Future[None]]) -> None:
        def remove() -> None:
            sandbox.stop()
            wait(before)
            sandbox.close()

        removal = self._workers.submit(remove)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    def settle(self) -> None:
        """Wait for what is on its way out."""
        wait(tuple(self._removals))

    def shutdown(self) -> None:
        """See `SandboxProvider.shutdown`."""
        with self._lock:
            self._shut_down = True
            for entry in tuple(self._prepared):
                self._drop(*entry)
            sandboxes = tuple(self._open)
        for sandbox in sandboxes:
            sandbox.close()
        self.settle()
