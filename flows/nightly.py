"""A list of repositories, a bounded number at a time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from prefect import flow, get_run_logger, tags
from prefect import runtime as prefect_runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
)
from prefect.client.schemas.objects import State
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Cancelled, Completed, Failed

from autoinstall.checkout import without_credentials
from autoinstall.datasets.compaction import compact_above
from autoinstall.datasets.location import Location
from autoinstall.datasets.reader import done_keys
from autoinstall.datasets.store import Store, store_of
from autoinstall.datasets.writer import ensure_writable, secrets_of
from autoinstall.errors import AutoinstallError, BadInput, NightHalted, OrchestratorUnavailable
from autoinstall.errors import Cancelled as Ended
from autoinstall.preflight import ensure_cache
from autoinstall.redaction import hiding, printable, redact
from autoinstall.repository_list import ListAddress, read_list
from autoinstall.settings import Count, Settings
from autoinstall.values import Outcome, RepositorySpec
from flows.build_environment import record_not_begun, records_of
from flows.cancellation import watching
from flows.dispatch import cancel_children, cancel_children_of, row_of_state, run_here, run_in_pool
from flows.due import Done, due, with_outcome, without_ended
from flows.pacing import Pace
from flows.recovery import claim_run, recover_all
from flows.reports import NightReport, NightRow
from tasks.logs import logs_in_runs
from tasks.runtime import current_runtime, use_runtime


@flow(name="nightly", flow_run_name="nightly {repositories}", persist_result=False, on_cancellation=[cancel_children])
def nightly(
    repositories: ListAddress,
    data: Location | None = None,
    *,
    concurrency: Count = 2,
    force: bool = False,
    only: tuple[Outcome, ...] = (),
    deployment: str = "",
    resumes: str | None = None,
) -> State[Any]:
    """Build an environment of every repository of a list.

    Args:
        repositories: CSV, JSON Lines or Parquet file with url, ref and optional goals, base_image, env, limits: a path,
            or `s3://bucket/key`. A branch is looked up every night, and built where its head is new.
        data: Directory of the datasets, or `s3://bucket/prefix`; by default that of the settings.
        concurrency: Repositories under way at once.
        force: Do again what was done before at the same commit with the same configuration.
        only: Only repositories whose last run ended in one of these ways, and those again whatever was done. With none
            chosen, all.
        deployment: Deployment that each repository becomes a run of, for any worker of its pool to take; empty does
            them in the process of the night.
        resumes: Id of a night that died, which this one completes. Left empty by people.

    Returns:
        A completed state, named Partial where infrastructure failed for some, or a failed one where it failed for all,
        or which is named Halted where the rest could not be begun; a cancelled one where somebody interrupted it.
        Its result is a tuple of `NightRow`, in the order in which the repositories ended.
    """
    if newer := newer_night():
        return Completed(name="Superseded", message=f"The night of {newer} is done in its place.", data=())
    runtime = current_runtime()
    data = data or runtime.settings.data
    store = store_of(data, runtime.settings.storage)
    try:
        ensure_cache(runtime.settings.cache)
        ensure_writable(store)
        specs, settings = _listed(repositories, runtime.settings, elsewhere=bool(deployment))
    except BadInput as error:  # people's to mend, to whom a traceback says nothing
        return Failed(message=str(error), data=error)
    claim_run(settings)
    night_id = resumes or str(prefect_runtime.flow_run.id)
    get_run_logger().info("%s", recover_all(runtime))
    if only:
        # What a night that died had begun was cancelled with it.
        specs = with_outcome(specs, store, (*only, Outcome.CANCELLED) if resumes else only)
    report = NightReport(repositories, total=len(specs))
    if resumes:
        specs = without_ended(specs, store, resumes, report.add)
    done = _done(store, resumes, again=force or bool(only))
    hidden = hiding(*secrets_of(settings))
    try:
        with use_runtime(replace(runtime, settings=settings)), watching(), logs_in_runs(), hidden:
            # Of workers elsewhere, the night sees no engine and no disk.
            check = (lambda: None) if deployment else runtime.provider.check
            pace = Pace(due(specs, done, settings, report.add), settings.night, check, report.note)
            if deployment:
                for spec, state, run_id in run_in_pool(pace, data, night_id, concurrency, deployment):
                    row = row_of_state(spec, state, run_id)
                    if not pace.takes_again(spec, row):
                        report.add(row)
                report.complete(store)
            else:
                for spec, state in run_here(pace, data, night_id, concurrency):
                    row = _row(spec, state, data, night_id)
                    if not pace.takes_again(spec, row):
                        report.add(row)
    except KeyboardInterrupt:
        cancel_children_of(UUID(str(prefect_runtime.flow_run.id)))
        message = f"Interrupted after {len(report.rows)} of {report.total} repositories: {report.summary()}."
        return Cancelled(message=message, data=tuple(report.rows))
    finally:
        report.finish()
    _compact(store, settings.storage.compact_above)
    return _final_state(report, pace.halted)


def _listed(address: str, given: Settings, *, elsewhere: bool) -> tuple[tuple[RepositorySpec, ...], Settings]:
    """The list, and the settings with the credentials that its URLs have."""
    specs, settings = without_credentials(read_list(address, given.storage), given)
    if elsewhere and settings.git_credentials != given.git_credentials:
        get_run_logger().warning(
            "Credentials in URLs stay on this host: workers elsewhere need them in AUTOINSTALL_GIT_CREDENTIALS."
        )
    return specs, settings


def _compact(store: Store, files: int) -> None:
    """Put the datasets' files together where there are many; what hinders that is no failure of the night."""
    try:
        done = compact_above(store, files)
    except AutoinstallError as error:
        get_run_logger().warning("The datasets are not compacted: %s", error)
    else:
        if done is not None:
            get_run_logger().info("The datasets' %d files are %d now.", done.before, done.after)


def _done(store: Store, resumes: str | None, *, again: bool) -> Done:
    """What is skipped; a night that does everything again still does nothing twice when it is completed."""
    if again and resumes is None:
        return frozenset()
    return done_keys(store, night_id=resumes if again else None)


def newer_night() -> str | None:
    """Where this run is one of several that a schedule missed, when the last of them is due; None for that one, and for
    every run that somebody started by hand.

    A schedule's runs wait for a worker. After days without one they would all be done, one after the other; the last
    does for all of them.
    """
    with get_client(sync_client=True) as client:
        this = client.read_flow_run(UUID(str(prefect_runtime.flow_run.id)))
        if not this.auto_scheduled or this.deployment_id is None or this.expected_start_time is None:
            return None
        later = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(
                deployment_id=FlowRunFilterDeploymentId(any_=[this.deployment_id]),
                expected_start_time=FlowRunFilterExpectedStartTime(
                    after_=this.expected_start_time + timedelta(seconds=1), before_=datetime.now(UTC)
                ),
            ),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        )
    return next((str(run.expected_start_time) for run in later if run.auto_scheduled), None)


def _row(spec: RepositorySpec, state: State[Any], data: Location, night_id: str) -> NightRow:
    try:
        row = records_of(state).repository
    except OrchestratorUnavailable as error:
        row = record_not_begun(spec, error, data, night_id).repository
    except Exception as error:  # noqa: BLE001 - the boundary: a run that broke beyond its own handling is still a line
        reason = redact(f"{type(error).__name__}: {error}")
        return NightRow(repository=printable(spec.url), ref=spec.ref, outcome=Outcome.INFRASTRUCTURE, reason=reason)
    return NightRow.of(row)


def _final_state(report: NightReport, halted: str | None) -> State[Any]:
    if halted is not None:
        message = f"{report.left} of the repositories were not done: {halted} {report.summary()}."
        return Failed(name="Halted", message=message, data=tuple(report.rows))
    failed = sum(row.outcome in (Outcome.INFRASTRUCTURE, Outcome.UNKNOWN) for row in report.rows)
    if failed and failed == len(report.rows):
        return Failed(message=report.summary(), data=tuple(report.rows))
    return Completed(name="Partial" if failed else "Completed", message=report.summary(), data=tuple(report.rows))


def run_nightly(
    list_file: str, *, data: Location, settings: Settings, concurrency: int = 2, force: bool = False
) -> tuple[NightRow, ...]:
    """Run the flow in this process.

    Raises:
        InvalidList: the list cannot be read.
        UnusableDirectory: `data` cannot be written.
        EngineUnavailable: no container engine answers.
        NightHalted: the rest of the list could not be begun.
        Cancelled: somebody interrupted it.
    """
    ensure_writable(store_of(data, settings.storage))
    read_list(list_file, settings.storage)
    with use_runtime(settings), tags("night"):
        state: Any = nightly(list_file, data=data, concurrency=concurrency, force=force, return_state=True)
        result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    if state.is_cancelled():
        hint = "The same command goes on with the rest; `autoinstall report` shows what was done."
        raise Ended(state.message or "The night was cancelled.", hint=hint)
    if state.name == "Halted":
        raise NightHalted(state.message, hint="The next night does the rest; `autoinstall report` shows what was done.")
    return tuple(result)
