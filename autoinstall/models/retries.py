"""When to try again, and after how long. The only place that retries: the openai package is told not to."""

import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
"""Seconds of the first wait and of the longest one of ours; an endpoint may ask for more."""


def backoff(retry: int) -> float:
    """Seconds before the retry of this number (from 0): doubling, of which a random half is taken off."""
    longest: float = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(retry, 16))
    return longest * random.uniform(0.5, 1)


def sleep_in_slices(seconds: float) -> None:
    """Sleep, waking up often enough to notice that the thread is to end."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.5))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that an endpoint asks to wait, by `retry-after-ms` or `Retry-After` (seconds or an HTTP date).

    None where it asks nothing that can be read. Never negative.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
