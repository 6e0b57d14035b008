"""One at a time: who puts files together or takes rows out of them says so in a file beside the datasets.

There is no lock on an object store, but listings show what was written before. Whoever wants the lease writes a file of
his own and then lists: where there is another one, he takes his away and waits. Of two that come at the same time at
least one sees the other, so there are never two; where both do, both try again.

Another file says what is about to replace what. So a reader that meets both takes the new one alone, and what a killed
process left half done is brought to its end by the next that has the lease. No file is ever written twice: on an object
store a reader could get a part of each content.
"""

import random
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta

import pyarrow as pa

from autoinstall.datasets.store import STAGING, Store, StoredFile
from autoinstall.errors import StorageFailed
from autoinstall.sandbox.labels import Process, current_process
from autoinstall.values import Value

STALE = timedelta(hours=1)
"""A lease whose process cannot be seen from here is void after that long; no step under one takes nearly as much."""

WAIT_SECONDS = 30.0
_LEASE = "lease-"
_REPLACEMENT = "replacement-"

_here = threading.Lock()
"""The threads of this process take turns; between processes it is the files that count."""


class Replacement(Value):
    """`output` is there in place of `inputs`, once it is there; paths relative to the location."""

    output: str
    inputs: tuple[str, ...]


class Lease:
    """The right to replace files, until the block of `leased` ends.

    Attributes:
        since: when it was taken, by the storage's clock.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = f"{STAGING}/{_LEASE}{uuid.uuid4().hex}.json"
        self.since = datetime.min

    def acquire(self) -> bool:
        """Take it, and finish what was left half done; False where somebody else has it."""
        self._store.put(self._path, pa.py_buffer(str(current_process()).encode()))
        files = self._store.files(STAGING)
        leases = [file for file in files if file.name.startswith(_LEASE)]
        self.since = next(file.modified for file in leases if file.path == self._path)
        others = [file for file in leases if file.path != self._path]
        if any(not self._is_void(file) for file in others):
            self.release()
            return False
        for file in files:
            if file.name.startswith(_REPLACEMENT):
                self._finish(file)
        for file in others:
            self._store.delete(file.path)
        return True

    def replace(self, inputs: Sequence[str], output: str, content: pa.Buffer) -> None:
        """Put a file in the place of others: first it appears, then they go.

        A reader that does not know of leases may meet rows twice in between: for the time of `len(inputs)` removals,
        which is milliseconds for a thousand files of a directory, and some seconds for a thousand objects.
        """
        path = f"{STAGING}/{_REPLACEMENT}{uuid.uuid4().hex}.json"
        replacement = Replacement(output=output, inputs=tuple(inputs))
        self._store.put(path, pa.py_buffer(replacement.model_dump_json().encode()))
        self._store.put(output, content)
        self._remove(replacement)
        self._store.delete(path)

    def release(self) -> None:
        """Give it back."""
        self._store.delete(self._path)

    def _is_void(self, file: StoredFile) -> bool:
        if self.since - file.modified > STALE:
            return True
        process = Process.parse((self._store.read(file.path) or b"").decode())
        return process is not None and process.is_dead()

    def _finish(self, file: StoredFile) -> None:
        replacement = _replacement(self._store, file)
        if replacement is not None and self._store.exists(replacement.output):
            self._remove(replacement)
        self._store.delete(file.path)

    def _remove(self, replacement: Replacement) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._store.delete, replacement.inputs))


@contextmanager
def leased(store: Store, wait_seconds: float = WAIT_SECONDS) -> Iterator[Lease]:
    """The lease of the datasets, waited for.

    Raises:
        StorageFailed: somebody else has had it all the time.
    """
    with _here:
        lease = Lease(store)
        deadline = time.monotonic() + wait_seconds
        while not lease.acquire():
            if time.monotonic() > deadline:
                raise StorageFailed(
                    f"Somebody else is compacting the datasets below {store.location}.",
                    hint="Try again in some minutes.",
                )
            time.sleep(random.uniform(0.05, 0.5))
        try:
            yield lease
        finally:
            lease.release()


def replacements(store: Store) -> frozenset[Replacement]:
    """What is being replaced at this moment, or was when its process died."""
    files = [file for file in store.files(STAGING) if file.name.startswith(_REPLACEMENT)]
    return frozenset(found for file in files if (found := _replacement(store, file)) is not None)


def finish_interrupted(store: Store) -> None:
    """Bring to its end what dead processes left, unless somebody is at it."""
    if any(file.name.startswith(_REPLACEMENT) for file in store.files(STAGING)):
        lease = Lease(store)
        if lease.acquire():
            lease.release()


def _replacement(store: Store, file: StoredFile) -> Replacement | None:
    try:
        text = store.read(file.path)
    except StorageFailed:
        if store.exists(file.path):
            raise
        return None  # it went while it was read
    return Replacement.model_validate_json(text) if text else None
