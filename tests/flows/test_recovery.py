"""What is made of runs whose process was killed or interrupted, with real processes and Prefect's server."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pandas as pd
import pytest
from prefect import task
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.settings import PREFECT_API_URL
from prefect.states import Cancelling, Completed, Crashed, Running

from autoinstall.sandbox.labels import PROCESS, current_process
from autoinstall.settings import NightSettings, Settings
from flows.nightly import nightly
from flows.recovery import _last_heartbeat, end_dead_runs, recover_all, start_again
from tasks.runtime import use_runtime
from tests.flows.scripted_night import runtime_of

pytestmark = pytest.mark.prefect

GONE = str(current_process()._replace(started=1))
ELSEWHERE = str(current_process()._replace(host="another"))
NAMES = ("first", "second", "third")


@pytest.fixture
def client() -> Iterator[SyncPrefectClient]:
    """Prefect's API."""
    with get_client(sync_client=True) as client:
        yield client


class Night:
    """A night in a process of its own."""

    def __init__(self, place: Path, stop_at: str) -> None:
        self.place = place
        (place / "stop-at").write_text(stop_at)
        self._log = place / "night.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "PREFECT_API_URL": PREFECT_API_URL.value(), "PREFECT_LOGGING_LEVEL": "INFO"}
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.flows.scripted_night", str(self.place)],
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                stdout=log,
                stderr=log,
            )

    def wait_until_stopped(self) -> None:
        """Until a command is under way that will not end by itself."""
        assert self.process is not None
        self.wait_for((self.place / "stopped").exists)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 300) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.log
            time.sleep(0.1)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def rows(self) -> list[tuple[str, str]]:
        """Outcome and code of the rows, as they ended."""
        found = pd.read_parquet(self.place / "data/repositories").sort_values("finished_at")
        return list(zip(found.outcome, found.code, strict=True))


@pytest.fixture
def make_night(tmp_path: Path, repository: Path) -> Iterator[Callable[[str], Night]]:
    """A night over three repositories that stops at a stage."""
    nights = []

    def make(stop_at: str) -> Night:
        with (tmp_path / "list.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["url"])
            for name in NAMES:
                shutil.copytree(repository, repository.with_name(name))
                writer.writerow([repository.with_name(name)])
        nights.append(Night(tmp_path, stop_at))
        return nights[-1]

    yield make
    for night in nights:
        if night.process is not None and night.process.poll() is None:
            night.kill()


def states(client: SyncPrefectClient, run: FlowRun) -> set[str]:
    """Types of the state of a night and of its repositories, as Prefect has them now."""
    children = [
        child
        for child in client.read_flow_runs(limit=200)
        if child.parent_task_run_id is not None
        and str(child.parameters.get("night_id")) in (str(run.id), str(run.parameters.get("resumes")))
    ]
    return {client.read_flow_run(one.id).state.type.value for one in [run, *children]}  # type: ignore[union-attr]


def night_of(client: SyncPrefectClient, place: Path) -> FlowRun:
    """The last flow run of the night in `place`."""
    runs = client.read_flow_runs(limit=200)
    mine = [run for run in runs if run.parameters.get("repositories") == str(place / "list.csv")]
    return max(mine, key=lambda run: run.created or datetime.now(UTC))


@pytest.mark.parametrize("stage", ["baseline", "offline"])
def test_a_killed_night_is_completed_and_nothing_is_done_twice(
    client: SyncPrefectClient, make_night: Callable[[str], Night], stage: str
) -> None:
    night = make_night("nothing" if stage == "offline" else stage)
    night.start()
    if stage == "offline":  # once one is done
        night.wait_for(lambda: any(night.place.glob("data/environments/run-*")))
        (night.place / "stop-at").write_text("offline")
    night.wait_until_stopped()
    before = [row for row in night.rows() if row[0] == "verified"]
    night.kill()
    dead = night_of(client, night.place)
    assert states(client, dead) >= {"RUNNING"}

    (night.place / "stop-at").unlink()
    found = recover_all(runtime_of(night.place))

    assert dead.name in found.runs
    assert "RUNNING" not in states(client, dead)
    assert any(dead.name in name and "command line" in name for name in found.left)
    assert set(night.rows()) - set(before) == {("cancelled", "interrupted")}
    assert list((night.place / "cache/journals").iterdir()) == []
    assert list((night.place / "cache/runs").iterdir()) == []

    with use_runtime(runtime_of(night.place)):
        nightly(str(night.place / "list.csv"), data=night.place / "data", resumes=str(dead.id))
    table = pd.read_parquet(night.place / "data/repositories")
    verified = table[table.outcome == "verified"]
    assert sorted(verified.repository.str.rpartition("/")[2]) == sorted(NAMES)
    assert set(table.night_id) == {str(dead.id)}
    assert len(pd.read_parquet(night.place / "data/environments")) == 3
    assert recover_all(runtime_of(night.place)).rows == ()


@pytest.mark.parametrize("by", ["interrupt", "api"])
def test_a_night_that_somebody_ends_stops_at_once_and_says_cancelled(
    client: SyncPrefectClient, make_night: Callable[[str], Night], by: str
) -> None:
    night = make_night("attempt-1")
    night.start()
    night.wait_until_stopped()
    run = night_of(client, night.place)
    assert night.process is not None
    begun = time.monotonic()
    if by == "interrupt":
        night.process.send_signal(signal.SIGINT)
    else:
        client.set_flow_run_state(run.id, Cancelling(message="Enough."))
    night.wait_for((night.place / "closed").exists)
    assert time.monotonic() - begun < 15  # 10 on a machine that does nothing else

    night.process.wait(timeout=120)

    assert states(client, run) == {"CANCELLED"}, night.log
    assert set(night.rows()) == {("cancelled", "cancelled")}
    assert (night.place / "ended").read_text() == "CANCELLED"  # the process came to its own end
    assert recover_all(runtime_of(night.place)).nights == ()  # whoever ended it did not want it completed


# --- What becomes of runs that Prefect still takes for alive


def new_run(client: SyncPrefectClient, state: State, *, process: str | None = None, **parameters: object) -> UUID:
    """A flow run of a night, as a process left it."""
    run = client.create_flow_run(nightly, parameters={"repositories": "list.csv", **parameters}, state=state)
    if process is not None:
        client.update_flow_run_labels(run.id, {PROCESS: process})
    return run.id


def state_of(client: SyncPrefectClient, run: UUID) -> StateType:
    state = client.read_flow_run(run).state
    assert state is not None
    return state.type


def test_only_runs_whose_process_is_certainly_gone_are_ended(
    client: SyncPrefectClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = new_run(client, Running(), process=GONE)
    stopping = new_run(client, Cancelling(), process=GONE)
    alive = new_run(client, Running(), process=str(current_process()))
    elsewhere = new_run(client, Running(), process=ELSEWHERE)
    unknown = new_run(client, Running())
    finished = new_run(client, Completed(), process=GONE)
    end_dead_runs(client, settings)
    found = [state_of(client, run).value for run in (killed, stopping, alive, elsewhere, unknown, finished)]
    assert found == ["CRASHED", "CANCELLED", "RUNNING", "RUNNING", "RUNNING", "COMPLETED"]

    # A host that has fallen silent.
    event = {"event": "prefect.flow-run.heartbeat", "payload": {}, "related": []}
    event |= {"id": "6f5f0c66-6e57-4f6f-a3f5-6b4f0f0a0001", "occurred": datetime.now(UTC).isoformat()}
    event["resource"] = {"prefect.resource.id": f"prefect.flow-run.{elsewhere}"}
    client.request("POST", "/events", json=[event]).raise_for_status()
    end = time.monotonic() + 30
    while _last_heartbeat(client, client.read_flow_run(elsewhere)) is None:  # events are taken in by and by
        assert time.monotonic() < end
        time.sleep(0.5)
    end_dead_runs(client, settings)
    assert state_of(client, elsewhere) is StateType.RUNNING
    monkeypatch.setattr("flows.recovery.SILENT_SECONDS", 0.5)
    end_dead_runs(client, settings)
    assert state_of(client, elsewhere) is StateType.CRASHED

    monkeypatch.setattr("flows.recovery.PENDING_SECONDS", 0.0)
    waiting = client.create_flow_run(nightly, parameters={"repositories": "list.csv"}).id
    end_dead_runs(client, settings)
    assert state_of(client, waiting) is StateType.CRASHED
    assert state_of(client, alive) is StateType.RUNNING


def test_a_repository_that_a_killed_night_was_beginning_is_ended(client: SyncPrefectClient, settings: Settings) -> None:
    @task
    def begin() -> None: ...

    def beginning(night: UUID) -> UUID:
        within = client.create_task_run(begin, night, dynamic_key="0", state=Running()).id
        return client.create_flow_run(nightly, parameters={"repositories": "x"}, parent_task_run_id=within).id

    nights = [
        new_run(client, Running(), process=GONE),
        new_run(client, Crashed()),  # the worker was quicker to say so
        new_run(client, Running(), process=str(current_process())),
    ]
    begun = [beginning(night) for night in nights]
    end_dead_runs(client, settings)
    assert [state_of(client, run).value for run in begun] == ["CRASHED", "CRASHED", "PENDING"]


def test_a_run_that_ends_while_it_is_taken_for_dead_keeps_its_end(
    client: SyncPrefectClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(client, Running(), process=GONE)

    read = SyncPrefectClient.read_flow_run

    def racing(self: SyncPrefectClient, flow_run_id: UUID) -> FlowRun:
        seen = read(self, flow_run_id)
        self.set_flow_run_state(flow_run_id, Completed())
        return seen

    monkeypatch.setattr(SyncPrefectClient, "read_flow_run", racing)
    assert end_dead_runs(client, settings) == ()
    monkeypatch.undo()
    assert state_of(client, run) is StateType.COMPLETED


def test_a_night_is_started_again_a_bounded_number_of_times(client: SyncPrefectClient, tmp_path: Path) -> None:
    flow_id = client.create_flow(nightly)
    deployment = client.create_deployment(flow_id=flow_id, name="nightly", parameters={"concurrency": 1})
    settings = NightSettings(recoveries=2)
    parameters = {"repositories": str(tmp_path / "list.csv"), "data": str(tmp_path), "force": True}
    first = client.create_flow_run_from_deployment(deployment, parameters=parameters)
    client.set_flow_run_state(first.id, Crashed(), force=True)

    for _ in range(2):
        started, _ = start_again(client, settings)
        assert len(started) == 1
        assert start_again(client, settings)[0] == ()  # it is under way
        again = night_of(client, tmp_path)
        assert again.id != first.id
        assert again.parameters == {"concurrency": 1, **parameters, "resumes": str(first.id)}
        client.set_flow_run_state(again.id, Crashed(), force=True)
    started, left = start_again(client, settings)
    assert started == ()
    assert any("has died 3 times" in name for name in left)

    # Begun anew by its schedule, and then once more.
    fresh = client.create_flow_run_from_deployment(deployment, parameters=parameters)
    assert not any("3 times" in name for name in start_again(client, settings)[1])
    client.set_flow_run_state(fresh.id, Crashed(), force=True)
    assert len(start_again(client, settings)[0]) == 1


def test_an_old_night_is_let_be(client: SyncPrefectClient, tmp_path: Path) -> None:
    deployment = client.create_deployment(flow_id=client.create_flow(nightly), name="nightly")
    night = client.create_flow_run_from_deployment(deployment, parameters={"repositories": str(tmp_path / "list.csv")})
    client.set_flow_run_state(night.id, Crashed(), force=True)
    time.sleep(0.1)
    left_and_started = start_again(client, NightSettings(recovery_hours=0.01 / 3600))
    assert left_and_started == ((), ())
