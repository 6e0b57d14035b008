"""Runs whose process was killed: said so in Prefect, cleaned up after, and, if they were nights, completed.

A run that is killed says nothing: for Prefect it would run for ever, and hold its place in a deployment's limit. So
every run notes the process that has it, and whoever starts next looks whether those are still there.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from prefect import flow, get_run_logger
from prefect import runtime as prefect_runtime
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterId,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.context import SyncClientContext
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Completed, Crashed

from autoinstall.datasets.spool import write_kept_runs
from autoinstall.journals import write_lost_runs
from autoinstall.liveness import clear_scratch, hold, is_alive, is_dead, only_one
from autoinstall.runtime import Runtime
from autoinstall.sandbox.labels import PROCESS, current_process
from autoinstall.settings import NightSettings, Settings
from autoinstall.values import Value
from tasks.runtime import current_runtime, use_runtime

NIGHT = "nightly"
FLOWS = (NIGHT, "build-environment")

SILENT_SECONDS = 300.0
"""A run on another host, which cannot be looked at from here, is dead once its heartbeats have stopped for so long."""

PENDING_SECONDS = 900.0
"""A run that was handed to a worker and has not begun after so long never will."""

_PAGE = 200
_UNFINISHED = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]


class Recovered(Value):
    """What was done about runs that died.

    Attributes:
        runs: names of flow runs that were still said to run.
        kept: ids of runs whose rows the storage had not taken before.
        rows: ids of killed runs whose rows were written.
        removed: containers, networks and images, by name.
        nights: names of nights that were started again.
        left: nights that cannot be started again from here, and why.
    """

    runs: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    nights: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            (self.runs, "Runs that had died"),
            (self.kept, "Wrote the rows of runs that the storage had not taken"),
            (self.rows, "Wrote the rows of runs that were killed"),
            (self.removed, "Removed what dead runs left"),
            (self.nights, "Started again"),
            (self.left, "Not started again"),
        ]
        return (
            "; ".join(f"{said}: {', '.join(names)}" for names, said in parts if names)
            or "Nothing was left to clean up."
        )


def claim_run(settings: Settings) -> None:
    """Note in Prefect which process has the flow run that this is called from."""
    hold(settings.cache)
    flow_run_id: Any = prefect_runtime.flow_run.id
    try:
        with SyncClientContext.get_or_create() as context:
            context.client.update_flow_run_labels(flow_run_id, {PROCESS: str(current_process())})
    except httpx.HTTPError as error:
        get_run_logger().warning("Prefect was not told which process has this run: %s", error)


def clean_up(runtime: Runtime) -> Recovered:
    """What concerns this machine alone: rows, containers, networks, images and checkouts of processes that are gone.
    Nothing where another process is at it."""
    settings, provider = runtime.settings, runtime.provider
    with only_one(settings.cache, "clean-up") as free:
        if not free:
            return Recovered()
        kept = write_kept_runs(settings)
        rows = write_lost_runs(settings, discard=provider.remove_image)
        removed = provider.reap()
        clear_scratch(settings.cache)
    return Recovered(kept=kept, rows=rows, removed=removed)


def recover_all(runtime: Runtime) -> Recovered:
    """Everything: this machine's leftovers, Prefect's runs, and the nights that died. Safe to call at any time, by
    several at once."""
    found = clean_up(runtime)
    with SyncClientContext.get_or_create() as context:
        runs = tuple(run.name for run in end_dead_runs(context.client, runtime.settings))
        nights, left = start_again(context.client, runtime.settings.night)
    return found.model_copy(update={"runs": runs, "nights": nights, "left": left})


@flow(name="recover", flow_run_name="recover", persist_result=False)
def recover() -> State[Any]:
    """End the runs whose process is gone, clean up after them, and start the nights among them again."""
    found = recover_all(current_runtime())
    get_run_logger().info("%s", found)
    return Completed(message=str(found), data=found)


def run_recover(settings: Settings) -> Recovered:
    """Run the flow in this process.

    Raises:
        EngineUnavailable: no container engine answers.
    """
    with use_runtime(settings):
        found: Any = recover(return_state=True).result()
    return Recovered.model_validate(found)


def end_dead_runs(client: SyncPrefectClient, settings: Settings) -> tuple[FlowRun, ...]:
    """Give every flow run whose process is certainly gone its final state: Crashed, or Cancelled where somebody had
    asked for that. One that has a final state keeps it."""
    ended: list[FlowRun] = []
    for run in _unfinished(client):
        reason = _why_dead(client, run, settings)
        # What is dead says nothing more, so the state that is read now is its last.
        state = client.read_flow_run(run.id).state if reason else None
        if state is None or state.is_final():
            continue
        final: State[Any] = Cancelled(message=reason) if state.is_cancelling() else Crashed(message=reason)
        # Not forced: the server itself refuses to let a run crash that has ended.
        if client.set_flow_run_state(run.id, final).status.value == "ACCEPT":
            _end_tasks(client, run, final)
            ended.append(run)
    return tuple(ended)


def _unfinished(client: SyncPrefectClient) -> list[FlowRun]:
    found: list[FlowRun] = []
    while True:
        page = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=list(FLOWS))),
            flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNFINISHED))),
            sort=FlowRunSort.ID_DESC,
            limit=_PAGE,
            offset=len(found),
        )
        found += page
        if len(page) < _PAGE:
            return found


def _why_dead(client: SyncPrefectClient, run: FlowRun, settings: Settings) -> str:
    """Why the run is certainly dead; empty where it may live."""
    if run.state is None:
        return ""
    now = datetime.now(UTC)
    if run.state.is_pending():
        if (night := _begun_within(client, run)) and (_is_over(night) or _why_dead(client, night, settings)):
            return f"{night.name}, which was beginning it, was killed."
        waited = (now - run.state.timestamp).total_seconds()
        return f"It was handed to a worker and never began, for {waited:.0f} s." if waited > PENDING_SECONDS else ""
    process = str(run.labels.get(PROCESS, ""))
    if process and is_dead(process, settings.cache):
        return "Its process was killed."
    if process and is_alive(process, settings.cache):
        return ""  # however long its heartbeats take to come through
    heard = _last_heartbeat(client, run)
    if heard is not None and (now - heard).total_seconds() > SILENT_SECONDS:
        return f"Its process, which cannot be seen from here, has been silent since {heard:%Y-%m-%d %H:%M:%S} UTC."
    return ""


def _begun_within(client: SyncPrefectClient, run: FlowRun) -> FlowRun | None:
    """The run whose process begins this one; None where a worker does, or where Prefect has not recorded it."""
    if run.deployment_id is not None or run.parent_task_run_id is None:
        return None
    task_run = TaskRunFilter(id=TaskRunFilterId(any_=[run.parent_task_run_id]))
    return next(iter(client.read_flow_runs(task_run_filter=task_run, limit=1)), None)


def _is_over(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


def _last_heartbeat(client: SyncPrefectClient, run: FlowRun) -> datetime | None:
    """When Prefect's engine last said that the run lives, where PREFECT_FLOWS_HEARTBEAT_FREQUENCY has it say so."""
    asked = {
        "filter": {
            "event": {"name": ["prefect.flow-run.heartbeat"]},
            "resource": {"id": [f"prefect.flow-run.{run.id}"]},
            "occurred": {"since": (datetime.now(UTC) - timedelta(days=7)).isoformat()},
            "order": "DESC",
        },
        "limit": 1,
    }
    events = client.request("POST", "/events/filter", json=asked).json()["events"]
    return datetime.fromisoformat(events[0]["received"]) if events else None


def _end_tasks(client: SyncPrefectClient, run: FlowRun, state: State[Any]) -> None:
    """The task runs of a dead flow run end with it."""
    unfinished = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_UNFINISHED)))
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    for task_run in client.read_task_runs(flow_run_filter=of_run, task_run_filter=unfinished, limit=_PAGE):
        client.set_task_run_state(task_run.id, State(type=state.type, name=state.name, message=state.message))


def start_again(client: SyncPrefectClient, settings: NightSettings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Start the nights again that crashed, with the same parameters: what they had done is skipped. Names of those
    that were, and of those that could not be, with the reason.

    A night is left alone once its list was begun again, by a schedule or by hand, and after the settings' number of
    recoveries.
    """
    started: list[str] = []
    left: list[str] = []
    for night, recoveries in _crashed_nights(client, settings):
        if night.deployment_id is None:
            left.append(f"{night.name} (it was started on the command line: the same command completes it)")
        elif recoveries >= settings.recoveries:
            left.append(f"{night.name} (it has died {recoveries + 1} times)")
        else:
            try:
                again = client.create_flow_run_from_deployment(
                    night.deployment_id,
                    parameters={**night.parameters, "resumes": _night_id(night)},
                    # However many look at the same time, it is started once.
                    idempotency_key=f"resumes-{night.id}",
                    tags=["recovery"],
                )
            except ObjectNotFound:
                left.append(f"{night.name} (its deployment is gone)")
            else:
                started.append(f"{night.name} as {again.name}")
    return tuple(started), tuple(left)


def _crashed_nights(client: SyncPrefectClient, settings: NightSettings) -> Iterator[tuple[FlowRun, int]]:
    """The nights that crashed and were the last of their list, each with the number of its recoveries so far."""
    now = datetime.now(UTC)
    nights = client.read_flow_runs(
        flow_filter=FlowFilter(name=FlowFilterName(any_=[NIGHT])),
        flow_run_filter=FlowRunFilter(
            expected_start_time=FlowRunFilterExpectedStartTime(
                after_=now - timedelta(hours=settings.recovery_hours), before_=now
            )
        ),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=_PAGE,
    )
    last: dict[tuple[str, ...], FlowRun] = {}
    for night in nights:
        last.setdefault(tuple(str(night.parameters.get(name)) for name in ("repositories", "data", "only")), night)
    for night in last.values():
        if night.state is not None and night.state.is_crashed():
            yield night, sum(other.parameters.get("resumes") == _night_id(night) for other in nights)


def _night_id(night: FlowRun) -> str:
    return str(night.parameters.get("resumes") or night.id)
