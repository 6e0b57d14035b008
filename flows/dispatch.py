"""Where the repositories of a night are done: by threads of this process, or by whatever worker takes them.

Either way at most `concurrency` of them exist at once, so that a night of any length costs the same memory.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures import Future as ThreadFuture
from itertools import islice
from typing import Any, cast
from uuid import UUID

import httpx
from prefect import Flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.futures import PrefectConcurrentFuture
from prefect.states import Cancelling, Crashed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import exponential_backoff

from autoinstall.datasets.location import Location
from autoinstall.errors import BadInput, OrchestratorUnavailable
from autoinstall.journals import INTERRUPTED
from autoinstall.redaction import printable, redact
from autoinstall.settings import Settings
from autoinstall.values import Outcome, RepositorySpec
from flows.build_environment import build_environment, run_name, watching_begin
from flows.reports import NightRow
from tasks.policy import could_not_begin
from tasks.runtime import current_runtime


@task(
    name="repository",
    task_run_name="{name}",
    retries=6,
    retry_delay_seconds=exponential_backoff(backoff_factor=5),
    retry_condition_fn=could_not_begin,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def build_one(name: str, spec: RepositorySpec, data: Location, night_id: str) -> State[Any]:  # noqa: ARG001
    """One repository of the night, as a flow run of its own.

    The state is the flow run's, so that a failure of infrastructure shows in the night's list too.

    Raises:
        OrchestratorUnavailable: Prefect's server did not take the run.
    """
    with watching_begin() as begun:
        try:
            return build_environment(spec, data=data, night_id=night_id, return_state=True)
        except httpx.HTTPError as error:
            # Prefect's client has tried several times; but one that has never reached its server tries once, and each
            # flow run has a client of its own.
            if begun.is_set():
                raise
            raise OrchestratorUnavailable(redact(f"Prefect's server did not take the run: {error}")) from error


_BUILD_ONE: Any = build_one
"""Without its signature: Prefect's runner types what a task *returns*, and takes a returned state for a coroutine."""


def run_here(
    specs: Iterator[RepositorySpec], data: Location, night_id: str, concurrency: int
) -> Iterator[tuple[RepositorySpec, State[Any]]]:
    """Each repository with its final state, as they end, in threads of this process."""
    running: dict[ThreadFuture[Any], RepositorySpec] = {}
    runner: ThreadPoolTaskRunner[Any]
    with ThreadPoolTaskRunner(max_workers=concurrency) as runner:
        try:
            while True:
                for spec in islice(specs, concurrency - len(running)):
                    parameters = {"name": run_name(spec.url), "spec": spec, "data": data, "night_id": night_id}
                    future: PrefectConcurrentFuture[Any] = runner.submit(_BUILD_ONE, parameters)
                    running[future.wrapped_future] = spec
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for thread in finished:
                    yield running.pop(thread), thread.result()
        except BaseException:
            # The threads must not outlive the night: without their sandboxes they end at once.
            current_runtime().end()
            raise


def run_in_pool(
    specs: Iterator[RepositorySpec], data: Location, night_id: str, concurrency: int, deployment: str
) -> Iterator[tuple[RepositorySpec, State[Any], UUID]]:
    """Each repository with its final state, as they end, each a run of `deployment` that any of the pool's workers
    takes. Runs that an earlier night has left under way are waited for rather than begun a second time.

    Raises:
        BadInput: there is no such deployment.
    """
    with get_client(sync_client=True) as client:
        pool = _Pool(client, deployment, current_runtime().settings)
        left = pool.under_way()
        running: dict[UUID, RepositorySpec] = {}
        while True:
            for spec in islice(specs, concurrency - len(running)):
                known = left.pop(_key(spec)) if _key(spec) in left else None
                running[known or pool.submit(spec, data, night_id)] = spec
            if not running:
                return
            for run_id, state in pool.ended(tuple(running)):
                yield running.pop(run_id), state, run_id
            if len(running) == concurrency:
                time.sleep(pool.settings.poll_seconds)


PAGE = 200
"""Flow runs that Prefect's server gives in one answer."""

PATIENCE_SECONDS = 600.0
"""How long nothing may begin before the night says that no worker takes its repositories."""


class _Pool:
    """Runs of one deployment. Prefect's client waits for a server that is away (PREFECT_CLIENT_MAX_RETRIES)."""

    def __init__(self, client: SyncPrefectClient, deployment: str, settings: Settings) -> None:
        self.settings = settings.orchestration
        self._client = client
        self._moved = time.monotonic()
        try:
            self._deployment = client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            hint = "`make up` makes the deployments of deployments/prefect.yaml; an empty name stays in this process."
            raise BadInput(f"Prefect has no deployment {deployment}.", hint=hint) from None

    def submit(self, spec: RepositorySpec, data: Location, night_id: str) -> UUID:
        """Leave a repository to the workers."""
        self._moved = time.monotonic()
        run: Any = run_deployment(
            self._deployment.id,
            parameters={"spec": spec.model_dump(mode="json"), "data": str(data), "night_id": night_id},
            flow_run_name=repository_name(spec),
            tags=["night"],
            timeout=0,
            as_subflow=True,
        )
        return cast(UUID, run.id)

    def under_way(self) -> dict[str, UUID]:
        """The runs of the deployment that have not ended, by the repository that each is about."""
        unfinished = FlowRunFilterState(type=FlowRunFilterStateType(not_any_=[*TERMINAL_STATES, StateType.CANCELLING]))
        deployment = FlowRunFilterDeploymentId(any_=[self._deployment.id])
        wanted = FlowRunFilter(deployment_id=deployment, state=unfinished)
        return {_key(_spec_of(run)): run.id for run in _all_runs(self._client, wanted)}

    def ended(self, ids: Sequence[UUID]) -> Iterator[tuple[UUID, State[Any]]]:
        """Which of the runs have ended, and how; one that somebody deleted has, too."""
        found: dict[UUID, FlowRun] = {}
        for start in range(0, len(ids), PAGE):
            part = FlowRunFilter(id=FlowRunFilterId(any_=list(ids[start : start + PAGE])))
            found |= {run.id: run for run in self._client.read_flow_runs(flow_run_filter=part, limit=PAGE)}
        self._watch(found.values())
        for run_id in ids:
            state = found[run_id].state if run_id in found else Crashed(message="Somebody deleted the flow run.")
            if state is not None and state.is_final():
                yield run_id, state

    def _watch(self, runs: Collection[FlowRun]) -> None:
        """Say so where no worker takes anything."""
        if not all(run.state is not None and run.state.is_scheduled() for run in runs):
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > PATIENCE_SECONDS:
            self._moved = time.monotonic()
            pool = self._deployment.work_pool_name
            get_run_logger().warning("No worker of the pool %s has taken a repository for some time.", pool)


def cancel_children(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # noqa: ARG001
    """A night's hook: with the night, the runs that it left to other workers are cancelled, and those alone."""
    cancel_children_of(flow_run.id)


def cancel_children_of(night: UUID) -> None:
    """Have the workers end what a night has left to them."""
    with get_client(sync_client=True) as client:
        unfinished = FlowRunFilterState(type=FlowRunFilterStateType(not_any_=[*TERMINAL_STATES]))
        children = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[night]), state=unfinished)
        for child in _all_runs(client, children):
            if child.deployment_id is not None:
                client.set_flow_run_state(child.id, Cancelling(message="The night was cancelled."))


def _all_runs(client: SyncPrefectClient, wanted: FlowRunFilter) -> Iterator[FlowRun]:
    """All that fit, a page after the other; listed before the first is handed out, since states change meanwhile."""
    found: list[FlowRun] = []
    while True:
        page = client.read_flow_runs(flow_run_filter=wanted, limit=PAGE, offset=len(found))
        found += page
        if len(page) < PAGE:
            return iter(found)


def _spec_of(run: FlowRun) -> RepositorySpec:
    return RepositorySpec.model_validate(run.parameters["spec"])


def _key(spec: RepositorySpec) -> str:
    return spec.model_dump_json()


def repository_name(spec: RepositorySpec) -> str:
    """`owner/name@ref`, the name of a repository's flow run."""
    return f"{run_name(spec.url)}@{(spec.ref or 'HEAD')[:12]}"


def row_of_state(spec: RepositorySpec, state: State[Any], run_id: UUID) -> NightRow:
    """What the state of a run in another process tells of its outcome: `build_environment` puts it into the message."""
    word, _, reason = (state.message or "").partition(": ")
    code = ""
    if state.name == "Verified":
        outcome, reason, environment = Outcome.VERIFIED, "", state.message
    elif word in Outcome.__members__.values():
        outcome, environment = Outcome(word), None
        if outcome is Outcome.INFRASTRUCTURE:
            code = reason.partition(": ")[0]
    else:
        # The process ended without a word, or the run never began.
        outcome = Outcome.CANCELLED if state.is_cancelled() else Outcome.INFRASTRUCTURE
        code = INTERRUPTED if state.is_crashed() else ""
        reason, environment = redact(f"{state.name}: {state.message or 'no reason is known'}"), None
    return NightRow(
        repository=printable(spec.url),
        ref=spec.ref,
        outcome=outcome,
        code=code,
        reason=reason,
        environment_id=environment,
        flow_run_id=str(run_id),
    )
