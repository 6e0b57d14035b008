"""Nights while the engine, the disk or an endpoint fails."""

import re
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from prefect.client.base import PrefectHttpxAsyncClient
from prefect.client.orchestration import get_client

from autoinstall.errors import DiskFull, EngineUnavailable, NightHalted
from autoinstall.runtime import Runtime
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.settings import NightSettings, Settings
from autoinstall.values import Outcome
from flows import dispatch
from flows.nightly import nightly, run_nightly
from flows.pacing import ROW
from tasks.runtime import use_runtime
from tests.flows.conftest import INSTALL, works_once_installed

pytestmark = pytest.mark.prefect

MakeRuntime = Callable[..., Runtime]
QUICK = NightSettings(wait_seconds=0.6, poll_seconds=0.05)


@pytest.fixture
def quick(settings: Settings) -> Settings:
    """Settings with short waits."""
    return settings.model_copy(update={"night": QUICK})


@pytest.fixture
def repositories(repository: Path, tmp_path: Path) -> Path:
    """A list of four, one of them four times by different refs."""
    path = tmp_path / "list.csv"
    path.write_text("url,ref\n" + "".join(f"{repository},{ref}\n" for ref in ("", "main", "HEAD", "refs/heads/main")))
    return path


def test_an_engine_that_comes_back_costs_nothing(
    make_runtime: MakeRuntime, quick: Settings, provider: ScriptedProvider, repositories: Path, data: Path
) -> None:
    """Killed in the middle of the second repository, it answers again a moment later."""
    gone = EngineUnavailable("The engine does not answer.")
    seen: list[str] = []

    def dies_once(call: Call) -> int:
        seen.append(call.sandbox.spec.purpose)
        if seen.count("attempt-1") == 2 and seen[-1] == "attempt-1":
            provider.obstacle = gone
            threading.Timer(0.3, setattr, (provider, "obstacle", None)).start()
            raise gone
        call.sandbox.write_file("/opt/installed", b"yes")
        return 0

    provider.responses = {INSTALL: dies_once, re.compile(r"^check part"): works_once_installed}
    with use_runtime(make_runtime(settings=quick)):
        state = nightly(str(repositories), concurrency=1, force=True, return_state=True)

    assert (state.name, len(state.result())) == ("Completed", 4)
    assert {row.outcome for row in state.result()} == {Outcome.VERIFIED}
    rows = pd.read_parquet(data / "repositories")
    assert sorted(zip(rows.outcome, rows.code, strict=True))[0] == ("infrastructure", "engine_unavailable")
    assert len(rows) == 5


def test_a_full_disk_ends_the_night_and_fails_nothing(
    make_runtime: MakeRuntime,
    quick: Settings,
    provider: ScriptedProvider,
    repositories: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fills_the_disk(call: Call) -> int:
        provider.obstacle = DiskFull("/var/lib has 3 MiB free, and 2048 MiB are needed.")
        return 1

    provider.responses = {INSTALL: fills_the_disk}
    provider.default = 1
    with use_runtime(make_runtime(settings=quick)):
        state = nightly(str(repositories), concurrency=1, return_state=True)

    assert (state.name, state.type.value) == ("Halted", "FAILED")
    assert state.message is not None
    assert state.message.startswith("4 of the repositories were not done: /var/lib has 3 MiB free")
    (row,) = pd.read_parquet(f"{quick.data}/repositories").to_dict("records")
    assert (row["outcome"], row["code"]) == ("infrastructure", "disk_full")  # and not the agent's mismatch
    with get_client(sync_client=True) as client:
        progress = [one.description for one in client.read_artifacts(limit=200) if one.type == "progress"]
    assert any("waits: /var/lib has 3 MiB free" in str(text) for text in progress)

    # The command line hears of it, too.
    monkeypatch.setattr("flows.nightly.use_runtime", lambda _: nullcontext())
    with use_runtime(make_runtime(settings=quick)), pytest.raises(NightHalted, match="were not done"):
        run_nightly(str(repositories), data=quick.data, settings=quick)
    assert len(pd.read_parquet(f"{quick.data}/repositories")) == 1


def refuse_runs(times: float, monkeypatch: pytest.MonkeyPatch, retries: int = 3) -> list[httpx.Request]:
    """Have Prefect's client give up on the first so many requests to take a repository's run, as after answers of 503;
    gives those requests."""
    refused: list[httpx.Request] = []
    send = PrefectHttpxAsyncClient.send

    async def answer(client: PrefectHttpxAsyncClient, request: httpx.Request, **named: Any) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith("/task_runs/") and len(refused) < times:
            refused.append(request)
            raise httpx.HTTPStatusError("503", request=request, response=httpx.Response(503, request=request))
        return await send(client, request, **named)

    monkeypatch.setattr(PrefectHttpxAsyncClient, "send", answer)
    monkeypatch.setattr(dispatch, "_BUILD_ONE", dispatch.build_one.with_options(retries=retries, retry_delay_seconds=0))
    return refused


def test_a_run_that_prefect_refuses_at_first_is_begun_later(
    make_runtime: MakeRuntime, quick: Settings, repositories: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refuse_runs(3, monkeypatch)
    with use_runtime(make_runtime(settings=quick)):
        state = nightly(str(repositories), concurrency=2, force=True, return_state=True)

    assert len(refused) == 3
    assert (state.name, len(state.result())) == ("Completed", 4)
    assert list(pd.read_parquet(data / "repositories").outcome) == ["verified"] * 4


def test_a_run_that_prefect_never_takes_has_a_row_all_the_same(
    make_runtime: MakeRuntime, quick: Settings, repositories: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_runs(float("inf"), monkeypatch, retries=1)
    once = quick.model_copy(update={"night": QUICK.model_copy(update={"repeats": 0})})
    with use_runtime(make_runtime(settings=once)):
        state = nightly(str(repositories), concurrency=1, force=True, return_state=True)

    assert state.name == "Halted"
    rows = pd.read_parquet(data / "repositories")
    assert len(rows) == len(state.result(raise_on_failure=False)) == ROW
    assert {(row.outcome, row.code) for row in rows.itertuples()} == {("infrastructure", "orchestrator_unavailable")}
    assert rows.reason.str.contains("503").all()
