"""When a silent command counts as one that hangs."""

from collections.abc import Sequence

from autoinstall.sandbox.idleness import Activity, IdleWatch

NOTHING = Activity(processor_seconds=0, received_bytes=0)


def ended_at(looks: Sequence[Activity | None], *, limit: float = 300, heard: Sequence[float] = ()) -> float | None:
    """Seconds at which the command is found idle, of looks every 15 s; None where it never is."""
    now = 0.0
    following = iter(looks)
    watch = IdleWatch(limit, lambda: next(following), lambda: now)
    for number in range(1, len(looks) + 1):
        now = number * 15.0
        if now in heard:
            watch.heard()
        if watch.is_idle():
            return now
    return None


def test_a_command_that_does_nothing_is_idle_after_the_limit() -> None:
    assert ended_at([NOTHING] * 40) == 300


def test_what_a_waiting_server_takes_is_nothing() -> None:
    polls = [Activity(processor_seconds=0.2 * number, received_bytes=1000 * number) for number in range(40)]
    assert ended_at(polls) == 300


def test_processor_time_is_work() -> None:
    assert ended_at([Activity(processor_seconds=number, received_bytes=0) for number in range(40)]) is None


def test_a_download_is_work() -> None:
    assert ended_at([Activity(processor_seconds=0, received_bytes=2**20 * number) for number in range(40)]) is None


def test_work_in_between_begins_the_wait_anew() -> None:
    later = Activity(processor_seconds=60, received_bytes=0)
    assert ended_at([NOTHING] * 10 + [later] * 30) == 11 * 15 + 300


def test_output_begins_the_wait_anew() -> None:
    assert ended_at([NOTHING] * 40, heard=[150]) == 450


def test_an_engine_that_does_not_tell_ends_nothing() -> None:
    assert ended_at([None] * 100) is None
