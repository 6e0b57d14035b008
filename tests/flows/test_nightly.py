"""A list of repositories through the flow, with scripted agents and sandboxes."""

import csv
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL

from autoinstall.errors import BadInput, InvalidList, UnusableDirectory
from autoinstall.runtime import Runtime
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.values import Outcome
from flows.nightly import nightly
from flows.reports import NightRow
from tasks.runtime import use_runtime

pytestmark = pytest.mark.prefect

MakeRuntime = Callable[..., Runtime]


@pytest.fixture
def repositories(repository: Path, tmp_path: Path) -> Path:
    """A list of three repositories, the last of which does not exist."""
    second = repository.with_name("second")
    shutil.copytree(repository, second)
    path = tmp_path / "list.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([["url", "ref"], [repository, ""], [second, "main"], [tmp_path / "absent", ""]])
    return path


def run(runtime: Runtime, path: Path, **options: object) -> tuple[str, tuple[NightRow, ...]]:
    with use_runtime(runtime):
        state = nightly(str(path), return_state=True, **options)  # type: ignore[call-overload]
    result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    return state.name, result


def test_every_repository_becomes_a_row(make_runtime: MakeRuntime, repositories: Path, data: Path) -> None:
    name, rows = run(make_runtime(), repositories, concurrency=2)

    assert name == "Completed"
    assert sorted(row.outcome for row in rows) == ["auth_or_not_found", "verified", "verified"]
    table = pd.read_parquet(data / "repositories")
    assert sorted(table.outcome) == ["auth_or_not_found", "verified", "verified"]
    assert table.night_id.nunique() == 1
    assert len(pd.read_parquet(data / "environments")) == 2


def test_done_repositories_are_skipped_unless_forced(
    make_runtime: MakeRuntime, repositories: Path, data: Path, provider: ScriptedProvider
) -> None:
    run(make_runtime(), repositories)
    opened = len(provider.opened)

    _, rows = run(make_runtime(), repositories)
    assert [row.outcome for row in rows].count(None) == 2
    assert len(provider.opened) == opened
    assert len(pd.read_parquet(data / "environments")) == 2

    _, rows = run(make_runtime(), repositories, force=True)
    assert [row.outcome for row in rows].count(None) == 0
    assert len(provider.opened) > opened


def test_one_repository_that_breaks_leaves_the_others_alone(
    make_runtime: MakeRuntime, repositories: Path, provider: ScriptedProvider, data: Path
) -> None:
    answered: list[str] = []

    def breaks_once(call: Call) -> int:
        answered.append(call.command)
        if len(answered) == 1:
            raise ZeroDivisionError("oops")
        return 1

    provider.responses = {re.compile(r"^check part"): breaks_once}
    name, rows = run(make_runtime(), repositories, concurrency=1)

    assert name == "Partial"
    assert sorted(str(row.outcome) for row in rows) == ["auth_or_not_found", "infrastructure", "mismatch"]
    assert len(pd.read_parquet(data / "repositories")) == 3


def test_progress_table_and_pages_are_published(make_runtime: MakeRuntime, repositories: Path) -> None:
    _, rows = run(make_runtime(), repositories)
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts(limit=200)
    kinds = {artifact.type for artifact in artifacts}
    assert {"progress", "table", "markdown"} <= kinds
    night = next(artifact for artifact in artifacts if artifact.type == "progress")
    assert night.key is not None
    pages = [str(artifact.data) for artifact in artifacts if artifact.type == "markdown"]
    environment = next(row.environment_id for row in rows if row.outcome is Outcome.VERIFIED)
    assert any(f"autoinstall shell {environment}" in page for page in pages)


def test_an_interrupted_night_closes_what_it_opened(
    make_runtime: MakeRuntime, repositories: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.nightly.NightReport.add", interrupted)
    with use_runtime(make_runtime()):
        state = nightly(str(repositories), concurrency=1, return_state=True)
    assert state.type.value == "CANCELLED"
    assert provider.opened
    assert all(sandbox.closed for sandbox in provider.opened)


def test_bad_lists_and_directories_are_said_before_anything_runs(
    make_runtime: MakeRuntime, repositories: Path, tmp_path: Path, provider: ScriptedProvider
) -> None:
    with pytest.raises(InvalidList, match=r"absent\.csv"):
        run(make_runtime(), tmp_path / "absent.csv")
    with use_runtime(make_runtime()):
        state = nightly(str(tmp_path / "absent.csv"), return_state=True)
    assert state.name == "Failed"
    assert "data/repositories.example.csv" in (state.message or "")
    with pytest.raises(UnusableDirectory):
        run(make_runtime(), repositories, data=repositories / "below-a-file")
    assert issubclass(InvalidList, BadInput)
    assert provider.opened == []


@pytest.mark.slow
def test_a_database_that_is_locked_again_and_again_fails_no_repository(
    make_runtime: MakeRuntime, repository: Path, tmp_path: Path, data: Path
) -> None:
    """Four at once, while somebody else writes to the server's SQLite database."""
    names = [repository.with_name(f"copy{number}") for number in range(4)]
    for name in names:
        shutil.copytree(repository, name)
    path = tmp_path / "many.csv"
    path.write_text("url\n" + "\n".join(map(str, names)) + "\n")
    over = threading.Event()
    held: list[float] = []

    def lock() -> None:
        database = str(PREFECT_API_DATABASE_CONNECTION_URL.value()).rpartition("sqlite+aiosqlite:///")[2]
        with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
            while not over.wait(0.7):
                connection.execute("BEGIN IMMEDIATE")
                time.sleep(0.3)
                connection.execute("ROLLBACK")
                held.append(0.3)

    thread = threading.Thread(target=lock)
    thread.start()
    try:
        name, rows = run(make_runtime(), path, concurrency=4)
    finally:
        over.set()
        thread.join()

    assert len(held) > 3
    assert (name, [row.outcome for row in rows]) == ("Completed", [Outcome.VERIFIED] * 4)
    assert len(pd.read_parquet(data / "repositories")) == 4
