"""A night that leaves its repositories to workers, which are threads here, with scripted agents and sandboxes."""

import csv
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.flow_engine import run_flow
from prefect.states import Crashed

from autoinstall.datasets.nights import facts_of_runs, last_outcomes
from autoinstall.errors import BadInput
from autoinstall.runtime import Runtime
from autoinstall.settings import OrchestrationSettings, Settings
from autoinstall.values import Outcome, RepositorySpec
from flows import dispatch
from flows.build_environment import build_environment
from flows.dispatch import cancel_children, repository_name
from flows.nightly import nightly
from flows.reports import NightRow
from tasks.limits import _exists, slot
from tasks.runtime import use_runtime

pytestmark = pytest.mark.prefect

MakeRuntime = Callable[..., Runtime]
DEPLOYMENT = "build-environment/repository"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"orchestration": OrchestrationSettings(poll_seconds=0.1)})


@pytest.fixture(scope="module")
def deployment() -> UUID:
    """The deployment of single repositories, on a pool that no worker of Prefect's own looks at."""
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="threads", type="process"))
    return build_environment.to_deployment("repository", work_pool_name="threads").apply(work_pool_name="threads")


@pytest.fixture
def repositories(repository: Path, tmp_path: Path) -> Path:
    """A list of a repository, and of one that does not exist."""
    path = tmp_path / "list.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["url", "ref"], [repository, ""], [tmp_path / "absent", ""]])
    return path


class Worker:
    """Does the deployment's runs as they come, each by `handle`."""

    def __init__(self, deployment: UUID, handle: Callable[[SyncPrefectClient, FlowRun], None]) -> None:
        self._deployment = deployment
        self._handle = handle
        self.seen: list[FlowRun] = []
        self.most_at_once = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        wanted = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[self._deployment]))
        with get_client(sync_client=True) as client:
            while not self._over.wait(0.1):
                found = client.read_flow_runs(flow_run_filter=wanted)
                waiting = [run for run in found if run.state_type is StateType.SCHEDULED]
                self.most_at_once = max(self.most_at_once, len(waiting))
                for run in waiting:
                    self.seen.append(run)
                    self._handle(client, run)


def builds(client: SyncPrefectClient, run: FlowRun) -> None:
    """As a worker's process does it."""
    with suppress(Exception):
        run_flow(build_environment, flow_run=run, parameters=build_environment.validate_parameters(run.parameters))


@pytest.fixture
def worker(deployment: UUID) -> Iterator[Callable[..., Worker]]:
    """Start a worker; it ends with the test."""
    started: list[Worker] = []

    def start(handle: Callable[[SyncPrefectClient, FlowRun], None] = builds) -> Worker:
        started.append(Worker(deployment, handle))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def run(runtime: Runtime, path: Path, **options: object) -> tuple[NightRow, ...]:
    with use_runtime(runtime):
        state = nightly(str(path), deployment=DEPLOYMENT, return_state=True, **options)  # type: ignore[call-overload]
    result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    return result


def test_workers_do_the_night_and_its_rows_come_from_the_datasets(
    make_runtime: MakeRuntime, repositories: Path, worker: Callable[..., Worker], data: Path
) -> None:
    at_work = worker()
    rows = run(make_runtime(), repositories, concurrency=1)

    assert [row.outcome for row in rows] == [Outcome.VERIFIED, Outcome.AUTH_OR_NOT_FOUND]
    assert (rows[0].held_out, rows[0].attempts) == ("7/7", 1)
    assert rows[0].commit is not None
    assert at_work.most_at_once == 1
    assert [run.name for run in at_work.seen] == [
        repository_name(RepositorySpec.model_validate(run.parameters["spec"])) for run in at_work.seen
    ]
    assert set(facts_of_runs(data, {str(run.id) for run in at_work.seen})) == {row.flow_run_id for row in rows}

    again = run(make_runtime(), repositories, concurrency=1)
    assert [row.outcome for row in again] == [None, Outcome.AUTH_OR_NOT_FOUND]

    chosen = run(make_runtime(), repositories, only=(Outcome.VERIFIED,))
    assert [row.outcome for row in chosen] == [Outcome.VERIFIED]
    assert last_outcomes(data) == {(row.repository, None): row.outcome for row in rows}


def test_runs_that_die_or_vanish_are_rows_too(
    make_runtime: MakeRuntime, repositories: Path, worker: Callable[..., Worker]
) -> None:
    def loses(client: SyncPrefectClient, run: FlowRun) -> None:
        if run.parameters["spec"]["url"].endswith("absent"):
            client.delete_flow_run(run.id)
        else:
            client.set_flow_run_state(run.id, Crashed(message="The process was killed."), force=True)

    worker(loses)
    rows = run(make_runtime(), repositories, concurrency=2)
    assert [row.outcome for row in rows] == [Outcome.INFRASTRUCTURE, Outcome.INFRASTRUCTURE]
    reasons = " ".join(row.reason for row in rows)
    assert "The process was killed." in reasons
    assert "deleted" in reasons


def test_a_run_that_an_earlier_night_left_is_waited_for(
    *,
    make_runtime: MakeRuntime,
    repositories: Path,
    repository: Path,
    deployment: UUID,
    worker: Callable[..., Worker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = RepositorySpec(url=str(repository))
    with get_client(sync_client=True) as client:
        left = client.create_flow_run_from_deployment(deployment, parameters={"spec": spec.model_dump(mode="json")})
    # It must not have ended before the night looks.
    at_work: list[Worker] = []
    look = dispatch._Pool.under_way

    def under_way(pool: dispatch._Pool) -> dict[str, UUID]:
        found = look(pool)
        at_work.append(worker())
        return found

    monkeypatch.setattr(dispatch._Pool, "under_way", under_way)
    rows = run(make_runtime(), repositories, concurrency=2)
    assert str(left.id) in {row.flow_run_id for row in rows}
    assert len(at_work[0].seen) == 2


def test_cancelling_a_night_cancels_what_it_left_to_workers(
    make_runtime: MakeRuntime, repositories: Path, deployment: UUID, worker: Callable[..., Worker]
) -> None:
    """The hook, called for the night while it waits; the runs end as a worker would have them end."""

    def cancels(client: SyncPrefectClient, run: FlowRun) -> None:
        task = client.read_task_run(run.parent_task_run_id) if run.parent_task_run_id else None
        assert task is not None
        assert task.flow_run_id is not None
        night = client.read_flow_run(task.flow_run_id)
        assert night.state is not None
        cancel_children(nightly, night, night.state)

    worker(cancels)
    rows = run(make_runtime(), repositories, concurrency=2)
    assert [row.outcome for row in rows] == [Outcome.CANCELLED, Outcome.CANCELLED]


def test_a_deployment_that_is_not_there_is_said(make_runtime: MakeRuntime, repositories: Path) -> None:
    with use_runtime(make_runtime()), pytest.raises(BadInput, match="no deployment nowhere/at-all"):
        nightly(str(repositories), deployment="nowhere/at-all")


def test_slots_are_held_while_work_goes_on_and_missing_limits_hold_nobody_up() -> None:
    _exists.cache_clear()
    settings = OrchestrationSettings()
    with get_client(sync_client=True) as client, slot("no-such-limit", settings), slot("", settings):
        client.upsert_global_concurrency_limit_by_name("test-slots", 1)
        with slot("test-slots", settings):
            assert client.read_global_concurrency_limit_by_name("test-slots").active_slots == 1
        assert client.read_global_concurrency_limit_by_name("test-slots").active_slots == 0
