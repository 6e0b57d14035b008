"""A list of repositories, a bounded number at a time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures import Future as ThreadFuture
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, tags, task
from prefect import runtime as prefect_runtime
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectConcurrentFuture
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner

from autoinstall.checkout import resolve, without_credentials
from autoinstall.datasets.location import Location
from autoinstall.datasets.reader import done_keys
from autoinstall.datasets.store import store_of
from autoinstall.datasets.writer import ensure_writable
from autoinstall.errors import AutoinstallError
from autoinstall.ledger import configuration_of
from autoinstall.redaction import printable, redact, without_userinfo
from autoinstall.repository_list import read_list
from autoinstall.settings import Settings
from autoinstall.values import Outcome, RepositorySpec
from flows.build_environment import build_environment, records_of, recover_lost_runs, run_name
from flows.reports import NightReport, NightRow
from tasks.runtime import current_runtime, use_runtime

Done = frozenset[tuple[str, str, str]]


@task(name="repository", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def build_one(name: str, spec: RepositorySpec, data: Location, night_id: str, done: Done) -> State[Any]:  # noqa: ARG001
    """One repository of the night, as a flow run of its own; skipped where it was done before.

    The state is the flow run's, so that a failure of infrastructure shows in the night's list too.
    """
    if done and _was_done(spec, done):
        return Completed(name="Skipped", message="Done before at this commit with this configuration.", data=None)
    return build_environment(spec, data=data, night_id=night_id, return_state=True)


_BUILD_ONE: Any = build_one
"""Without its signature: Prefect's runner types what a task *returns*, and takes a returned state for a coroutine."""


def _was_done(spec: RepositorySpec, done: Done) -> bool:
    settings = current_runtime().settings
    try:
        commit = resolve(spec, settings)
    except AutoinstallError:
        return False  # the run itself meets the same error, and makes a row of it
    return (without_userinfo(spec.url), commit, configuration_of(spec, settings)) in done


@flow(name="nightly", flow_run_name="nightly {repositories}", persist_result=False)
def nightly(repositories: Path, data: Location | None = None, concurrency: int = 2, force: bool = False) -> State[Any]:
    """Build an environment of every repository of a list.

    Args:
        repositories: CSV, JSON Lines or Parquet file with url, ref and optional goals, base_image, env, limits.
        data: directory of the datasets, or `s3://bucket/prefix`; None means the settings'.
        concurrency: repositories under way at once.
        force: also those whose commit was done before with the same configuration.

    Returns:
        A completed state, named Partial where infrastructure failed for some, or a failed one where it failed for all.
        Its result is a tuple of `NightRow`, in the order in which the repositories ended.
    """
    runtime = current_runtime()
    data = data or runtime.settings.data
    store = store_of(data, runtime.settings.storage)
    ensure_writable(store)
    specs, settings = without_credentials(read_list(repositories), runtime.settings)
    night_id = str(prefect_runtime.flow_run.id)
    done: Done = frozenset() if force else frozenset(done_keys(store))
    reaped = runtime.provider.reap()
    if reaped:
        get_run_logger().info("Removed what dead runs left: %s", reaped)
    recover_lost_runs(settings)
    report = NightReport(night_id, total=len(specs))
    try:
        with use_runtime(replace(runtime, settings=settings)):
            for spec, state in _run_all(specs, data, night_id, done, concurrency):
                report.add(_row(spec, state))
    finally:
        report.finish()
    return _final_state(report)


def _run_all(
    specs: Sequence[RepositorySpec], data: Location, night_id: str, done: Done, concurrency: int
) -> Iterator[tuple[RepositorySpec, State[Any]]]:
    """Each repository with its final state, as they end; at most `concurrency` of them exist at once."""
    waiting = iter(specs)
    running: dict[ThreadFuture[Any], RepositorySpec] = {}
    runner: ThreadPoolTaskRunner[Any]
    with ThreadPoolTaskRunner(max_workers=concurrency) as runner:
        try:
            while True:
                for spec in islice(waiting, concurrency - len(running)):
                    parameters = {"name": run_name(spec.url), "spec": spec, "data": data, "night_id": night_id}
                    future: PrefectConcurrentFuture[Any] = runner.submit(_BUILD_ONE, {**parameters, "done": done})
                    running[future.wrapped_future] = spec
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for thread in finished:
                    yield running.pop(thread), thread.result()
        except BaseException:
            # The threads must not outlive the night: without their sandboxes they end at once.
            current_runtime().provider.shutdown()
            raise


def _row(spec: RepositorySpec, state: State[Any]) -> NightRow:
    if state.name == "Skipped":
        return NightRow(repository=printable(spec.url), ref=spec.ref, outcome=None, reason=state.message or "")
    try:
        row = records_of(state).repository
    except Exception as error:  # noqa: BLE001 - the boundary: a run that broke beyond its own handling is still a line
        reason = redact(f"{type(error).__name__}: {error}")
        return NightRow(repository=printable(spec.url), ref=spec.ref, outcome=Outcome.INFRASTRUCTURE, reason=reason)
    return NightRow(
        repository=row.repository,
        ref=row.ref,
        commit=row.commit,
        outcome=row.outcome,
        reason=row.reason,
        environment_id=row.environment_id,
        attempts=row.attempts,
        seconds=row.seconds,
        held_out_passed=row.held_out_passed,
        held_out_total=row.held_out_total,
        flow_run_id=row.flow_run_id,
    )


def _final_state(report: NightReport) -> State[Any]:
    failed = sum(row.outcome in (Outcome.INFRASTRUCTURE, Outcome.UNKNOWN) for row in report.rows)
    if failed and failed == len(report.rows):
        return Failed(message=report.summary(), data=tuple(report.rows))
    return Completed(name="Partial" if failed else "Completed", message=report.summary(), data=tuple(report.rows))


def run_nightly(
    list_file: Path, *, data: Location, settings: Settings, concurrency: int = 2, force: bool = False
) -> tuple[NightRow, ...]:
    """Run the flow in this process.

    Raises:
        InvalidList: the list cannot be read.
        UnusableDirectory: `data` cannot be written.
        EngineUnavailable: no container engine answers.
    """
    ensure_writable(store_of(data, settings.storage))
    read_list(list_file)
    with use_runtime(settings), tags("night"):
        state: Any = nightly(list_file, data=data, concurrency=concurrency, force=force, return_state=True)
        result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    return tuple(result)
