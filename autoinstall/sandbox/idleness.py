"""Telling a command that hangs from one that works quietly: no output, no processor time, nothing from the network."""

import time
from collections.abc import Callable

from autoinstall.values import Value

LOOK_SECONDS = 15.0
"""Between two looks at a container whose command is silent."""

IDLE_SHARE = 0.02
"""Of one processor: what a server that waits, or a loop that polls, takes at most."""

IDLE_BYTES_PER_SECOND = 1024
"""What keeping connections open takes at most; a download that comes in more slowly has stalled."""


class Activity(Value):
    """What a container has done since its start, all its processes together.

    Attributes:
        processor_seconds: of all processors.
        received_bytes: over its networks.
    """

    processor_seconds: float
    received_bytes: int


class IdleWatch:
    """Says when a command has done nothing for too long.

    Args:
        limit: seconds without a sign of work.
        look: what the container has done so far; None where the engine does not tell, which counts as work.
    """

    def __init__(
        self, limit: float, look: Callable[[], Activity | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._look = look
        self._clock = clock
        self._worked = self._looked = clock()
        self._before: Activity | None = None
        self.interval = min(LOOK_SECONDS, limit / 4)
        """Seconds of silence after which to ask `is_idle`."""

    def heard(self) -> None:
        """The command has written something."""
        self._worked = self._clock()
        self._before = None

    def is_idle(self) -> bool:
        """Look at the container; whether nothing has happened there for the whole limit."""
        now, activity = self._clock(), self._look()
        before, self._before = self._before, activity
        seconds, self._looked = now - self._looked, now
        if activity is None or (before is not None and _worked(before, activity, seconds)):
            self._worked = now
        return now - self._worked >= self._limit


def _worked(before: Activity, after: Activity, seconds: float) -> bool:
    return (
        after.processor_seconds - before.processor_seconds > IDLE_SHARE * seconds
        or after.received_bytes - before.received_bytes > IDLE_BYTES_PER_SECOND * seconds
    )
