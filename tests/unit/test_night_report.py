"""The night's progress and table, for lists of any length and a server that does not take them."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from autoinstall.values import Outcome
from flows import reports
from flows.reports import TABLE_ROWS, NightReport, NightRow

Published = list[tuple[str, dict[str, Any]]]
FUNCTIONS = ("create_progress_artifact", "update_progress_artifact", "create_table_artifact")


def row(number: int, outcome: Outcome | None) -> NightRow:
    return NightRow(repository=f"https://example.org/owner/r{number}", outcome=outcome)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Published:
    """What Prefect is given, in its order."""
    found: Published = []

    def taking(name: str) -> Callable[..., Any]:
        def take(*_: object, **arguments: Any) -> Any:
            found.append((name, arguments))
            return uuid4()

        return take

    for name in FUNCTIONS:
        monkeypatch.setattr(reports, name, taking(name))
    return found


def test_a_list_of_thousands_is_told_in_few_requests_and_a_table_of_what_was_done(published: Published) -> None:
    report = NightReport("list.csv", total=5001)
    for number in range(5000):
        report.add(row(number, None))
    report.add(row(5000, Outcome.VERIFIED))
    report.finish()

    assert len(published) < 50  # one a second, and not one a repository
    assert published[-2][1]["description"] == "5001 of 5001 repositories: 1 verified, 5000 skipped"
    name, table = published[-1]
    assert name == "create_table_artifact"
    assert len(table["table"]) == TABLE_ROWS
    assert table["table"][0]["outcome"] == "verified"
    assert table["description"] == f"1 verified, 5000 skipped; {TABLE_ROWS} of 5001 are shown"


@pytest.mark.parametrize("refused", FUNCTIONS)
def test_what_prefect_does_not_take_costs_nothing_else(
    published: Published, refused: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise httpx.HTTPStatusError("503", request=httpx.Request("POST", "http://x"), response=httpx.Response(503))

    monkeypatch.setattr(reports, refused, refuse)
    monkeypatch.setattr(reports, "get_run_logger", lambda: logging.getLogger("run"))
    report = NightReport("list.csv", total=1)
    report.add(row(0, Outcome.VERIFIED))
    report.finish()

    assert report.summary() == "1 verified"
    assert "Prefect did not take the " in caplog.text
    assert refused not in {name for name, _ in published}


def test_what_a_night_waited_for_is_still_told_when_it_ends(published: Published) -> None:
    report = NightReport("list.csv", total=2)
    report.note("waits: no disk")
    report.add(row(0, None))
    report.finish()
    updates = [arguments["description"] for name, arguments in published if name == "update_progress_artifact"]
    assert updates[-1] == "1 of 2 repositories: 1 skipped; waits: no disk"


def test_what_nobody_has_ended_is_not_nothing(published: Published) -> None:
    assert NightReport("list.csv", total=3).summary() == "none ended"
    assert NightReport("list.csv", total=0).summary() == "nothing to do"
    assert published
