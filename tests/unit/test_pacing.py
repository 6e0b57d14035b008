import logging
import time

import pytest

from autoinstall.errors import ModelUnavailable
from autoinstall.settings import NightSettings
from autoinstall.values import Outcome, RepositorySpec
from flows.pacing import ROW, Pace
from flows.reports import NightRow

QUICK = NightSettings(wait_seconds=0.6, poll_seconds=0.05)


def row(outcome: Outcome, code: str = "") -> NightRow:
    return NightRow(repository="r", outcome=outcome, code=code, reason="so it is")


def specs(number: int) -> list[RepositorySpec]:
    return [RepositorySpec(url=f"https://example.org/r{index}") for index in range(number)]


@pytest.fixture(autouse=True)
def no_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a flow there is no run to log to."""
    monkeypatch.setattr("flows.pacing.get_run_logger", lambda: logging.getLogger("test"))


def test_failures_in_a_row_pause_the_night_and_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.pacing.PAUSE_SECONDS", 0.1)
    said: list[str] = []
    pace = Pace(iter(specs(1000)), QUICK, lambda: None, said.append)
    taken, begun = 0, time.monotonic()
    for spec in pace:
        taken += 1
        pace.takes_again(spec, row(Outcome.INFRASTRUCTURE, ModelUnavailable.code))
    assert ROW <= taken < 20
    assert time.monotonic() - begun >= QUICK.wait_seconds
    assert pace.halted == "so it is"
    assert said[0] == "waits: so it is"


def test_other_failures_do_not() -> None:
    pace = Pace(iter(specs(20)), QUICK, lambda: None, lambda _: None)
    ended = [pace.takes_again(spec, row(Outcome.INFRASTRUCTURE, "clone_failed")) for spec in pace]
    assert (ended, pace.halted) == ([False] * 20, None)


def test_a_repository_is_done_once_more_and_that_is_all() -> None:
    pace = Pace(iter(specs(2)), QUICK, lambda: None, lambda _: None)
    first = next(pace)
    assert pace.takes_again(first, row(Outcome.INFRASTRUCTURE, "interrupted"))
    assert next(pace) == first
    assert not pace.takes_again(first, row(Outcome.INFRASTRUCTURE, "interrupted"))
    assert next(pace) != first
    assert next(pace, None) is None
    assert pace.takes_again(specs(2)[1], row(Outcome.INFRASTRUCTURE, "sandbox_lost"))
    assert next(pace) == specs(2)[1]  # after its end it goes on
