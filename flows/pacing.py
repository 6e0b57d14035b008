"""The order and the pace in which a night takes its repositories, where the engine, the disk or an endpoint fails.

Nothing new is begun while it could only fail: the night waits, for a bounded time, and then ends in a state of its own
instead of having one repository after the other fail. What failed for such a reason is done once more.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Self

from prefect import get_run_logger

from autoinstall.errors import (
    AutoinstallError,
    DiskFull,
    EndpointUnsuitable,
    EngineFailed,
    EngineUnavailable,
    ModelUnavailable,
    OrchestratorUnavailable,
    QuotaExhausted,
    SandboxLost,
    StorageFailed,
)
from autoinstall.journals import INTERRUPTED
from autoinstall.logs import LINE_CHARACTERS
from autoinstall.redaction import one_line
from autoinstall.settings import NightSettings
from autoinstall.values import Outcome, RepositorySpec
from flows.reports import NightRow

COMMON = frozenset(
    kind.code
    for kind in (
        *(DiskFull, EngineUnavailable, EngineFailed, SandboxLost, StorageFailed, OrchestratorUnavailable),
        *(ModelUnavailable, QuotaExhausted, EndpointUnsuitable),
    )
)
"""What fails for one repository in these ways fails for every other one too, as long as it lasts."""

ROW = 3
"""So many of them one after the other, and the night pauses."""

PAUSE_SECONDS = 60.0
"""How long, before it tries another one."""


class Pace(Iterator[RepositorySpec]):
    """The repositories that a night has still to take; goes on after its end where one is to be done once more.

    Args:
        check: raises where nothing could be begun now: EngineUnavailable, DiskFull. Workers on other hosts have engines
            of their own, so it looks at none for them.
        say: is told why the night waits; an empty text once it goes on.

    Attributes:
        halted: why the night takes nothing more; None as long as it does.
    """

    def __init__(
        self,
        specs: Iterator[RepositorySpec],
        settings: NightSettings,
        check: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self.halted: str | None = None
        self._specs = specs
        self._settings = settings
        self._check = check
        self._say = say
        self._again: deque[RepositorySpec] = deque()
        self._tries: dict[str, int] = {}
        self._failures = 0
        self._reason = ""
        self._pause_until = 0.0
        self._paused_since: float | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RepositorySpec:
        if self.halted is not None or not self._is_free():
            raise StopIteration
        return self._again.popleft() if self._again else next(self._specs)

    def takes_again(self, spec: RepositorySpec, row: NightRow) -> bool:
        """Take note of how a repository ended; whether it will be done once more, and so has not ended yet."""
        self._count(row)
        repeated = row.outcome is Outcome.INFRASTRUCTURE and row.code in COMMON | {INTERRUPTED}
        key = spec.model_dump_json()
        tries = self._tries.pop(key, 0)
        if not repeated or self.halted is not None or tries >= self._settings.repeats:
            return False
        self._tries[key] = tries + 1
        self._again.append(spec)
        get_run_logger().warning("%s", one_line(f"{row.repository} is done once more: {row.reason}", LINE_CHARACTERS))
        return True

    def _count(self, row: NightRow) -> None:
        if row.outcome is not Outcome.INFRASTRUCTURE or row.code not in COMMON:
            self._failures, self._paused_since = 0, None
            return
        self._failures += 1
        self._reason = row.reason
        if self._failures >= ROW:
            now = time.monotonic()
            self._paused_since = self._paused_since or now
            self._pause_until = now + min(PAUSE_SECONDS, self._settings.wait_seconds)

    def _is_free(self) -> bool:
        """Wait until something can be begun; False where that takes too long."""
        begun = self._paused_since or time.monotonic()
        waited = False
        while (obstacle := self._obstacle()) is not None:
            if not waited:
                get_run_logger().warning("The night waits, %.0f s at most: %s", self._settings.wait_seconds, obstacle)
                self._say(f"waits: {obstacle}")
                waited = True
            if time.monotonic() - begun >= self._settings.wait_seconds:
                self.halted = obstacle
                return False
            time.sleep(min(self._settings.poll_seconds, self._settings.wait_seconds))
        if waited:
            get_run_logger().info("The night goes on.")
            self._say("")
        return True

    def _obstacle(self) -> str | None:
        if time.monotonic() < self._pause_until:
            return self._reason
        try:
            self._check()
        except AutoinstallError as error:
            return str(error)
        if self._paused_since is not None and time.monotonic() - self._paused_since >= self._settings.wait_seconds:
            return self._reason
        return None
