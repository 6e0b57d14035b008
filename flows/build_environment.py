"""One repository, from its URL to rows in the datasets."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, tags
from prefect import runtime as prefect_runtime
from prefect.client.schemas.objects import State
from prefect.context import TagsContext
from prefect.states import Cancelled, Completed, Failed

from autoinstall.agents import next_by_another
from autoinstall.attempts import SetupAttempt
from autoinstall.checkout import without_credentials
from autoinstall.datasets.location import Location
from autoinstall.datasets.records import RunRecords
from autoinstall.datasets.spool import keep_run_rows
from autoinstall.datasets.store import store_of
from autoinstall.datasets.writer import ensure_writable, secrets_of
from autoinstall.errors import AutoinstallError, Infrastructure
from autoinstall.errors import Cancelled as Ended
from autoinstall.journals import remove_journals, write_head
from autoinstall.languages import language_of
from autoinstall.ledger import Ledger
from autoinstall.liveness import scratch
from autoinstall.logs import LINE_CHARACTERS, about
from autoinstall.redaction import hiding, one_line, printable, redact, without_userinfo
from autoinstall.rows import repository_record, run_records
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import GoalResult, Outcome, RepositorySpec
from flows.cancellation import is_alone, watching
from flows.recovery import claim_run, clean_up
from flows.reports import publish_repository_report
from tasks.clone import clone, prepare_initial_state
from tasks.goal_setting import propose_goals, run_baseline
from tasks.limits import in_run_slot
from tasks.logs import logs_in_runs
from tasks.publishing import publish_image, publish_rows, push_image
from tasks.runtime import current_runtime, use_runtime
from tasks.selection import select_targets
from tasks.setup import attempt_setup
from tasks.verification import dockerfile_of, measure_quality, rebuild_image, verify_attempt

_begun: ContextVar[threading.Event | None] = ContextVar("begun", default=None)


@contextmanager
def watching_begin() -> Iterator[threading.Event]:
    """An event that is set once a run of `build_environment` that is started in here begins its work: an error before
    that has done nothing, and one after that has rows."""
    event = threading.Event()
    token = _begun.set(event)
    try:
        yield event
    finally:
        _begun.reset(token)


def run_name(url: str) -> str:
    """`owner/name` of a URL, for people who read lists of runs."""
    path = printable(redact(without_userinfo(url))).rstrip("/").removesuffix(".git")
    return "/".join(path.replace(":", "/").split("/")[-2:])


def _flow_run_name() -> str:
    spec = RepositorySpec.model_validate(prefect_runtime.flow_run.parameters["spec"])
    return f"{run_name(spec.url)}@{(spec.ref or 'HEAD')[:12]}"


@flow(name="build-environment", flow_run_name=_flow_run_name, persist_result=False, validate_parameters=True)
def build_environment(spec: RepositorySpec, data: Location | None = None, night_id: str | None = None) -> State[Any]:
    """Turn one repository into a verified environment, or record why it cannot be.

    Args:
        spec: The repository.
        data: Directory of the datasets, or `s3://bucket/prefix`; by default that of the settings.
        night_id: Flow run of the list that this is part of. Left empty by people.

    Returns:
        A state that tells the outcomes apart in the UI: Verified or Discarded (both completed), Infrastructure or
        Unknown (both failed), Cancelled. Its result is the run's `RunRecords`, without trajectories.
    """
    if event := _begun.get():
        event.set()
    runtime = current_runtime()
    settings = runtime.settings
    data = data or settings.data
    ensure_writable(store_of(data, settings.storage))
    claim_run(settings)
    flow_run_id = str(prefect_runtime.flow_run.id)
    ledger = Ledger(spec, settings, flow_run_id=flow_run_id, night_id=night_id)
    write_head(settings.cache, data, repository_record(ledger))
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=scratch(settings.cache)))
    try:
        # Tags are the flow run's. For a task run with tags Prefect asks the server for slots, which takes seconds.
        with (
            watching(),
            TagsContext(current_tags=set()),
            logs_in_runs(),
            hiding(*secrets_of(settings)),
            about(repository=run_name(spec.url)),
        ):
            if is_alone():
                get_run_logger().info("%s", clean_up(runtime))
            _run_stages(ledger, directory / "checkout", data)
    except AutoinstallError as error:
        ledger.fail(Ended("The night was ended.") if runtime.ended.is_set() else error)
    except Exception as error:  # noqa: BLE001 - the boundary: whatever broke, the repository becomes a row
        get_run_logger().exception("The run broke.")
        ledger.fail(error)
    except KeyboardInterrupt as error:
        ledger.fail(error)
    except BaseException as error:
        ledger.fail(error)
        _publish(publish_rows.fn, ledger, run_records(ledger), data)
        raise
    finally:
        current_runtime().provider.release(ledger.run_id)
        shutil.rmtree(directory, ignore_errors=True)
        _discard_images(ledger)
    records = run_records(ledger)
    _publish(publish_rows, ledger, records, data)
    with hiding(*secrets_of(settings)):
        publish_repository_report(records, data)
        return _final_state(records)


def record_not_begun(spec: RepositorySpec, error: AutoinstallError, data: Location, night_id: str) -> RunRecords:
    """Write the rows of a repository that Prefect's server took no run of."""
    ledger = Ledger(spec, current_runtime().settings, night_id=night_id)
    ledger.fail(error)
    records = run_records(ledger)
    _publish(publish_rows.fn, ledger, records, data)
    return records


def _publish(
    publish: Callable[[Ledger, RunRecords, Location], None], ledger: Ledger, records: RunRecords, data: Location
) -> None:
    """Write the rows; what the storage does not take is kept, and written at the start of a later run."""
    try:
        publish(ledger, records, data)
    except AutoinstallError as error:
        kept = keep_run_rows(ledger.settings, data, records)
        get_run_logger().error("%s The rows are kept in %s, and the next run writes them.", error, kept)
    remove_journals(ledger.settings.cache, ledger.run_id)


@in_run_slot
def _run_stages(ledger: Ledger, directory: Path, data: Location) -> None:
    logger = get_run_logger()
    with ledger.stage("clone"):
        ledger.checkout = clone(ledger, directory)
        ledger.language = language_of(Tree(directory))
        state = prepare_initial_state(ledger)
        ledger.base, ledger.initial = state.base, state.image
    write_head(ledger.settings.cache, data, repository_record(ledger))
    _choose_goals(ledger)
    attempts = ledger.settings.verification.attempts
    number: int | None = 1
    while number is not None:
        write_head(ledger.settings.cache, data, repository_record(ledger))
        with ledger.stage("setup"), about(attempt=number):
            attempt = attempt_setup(ledger, number)
        ledger.attempts.append(attempt)
        if attempt.snapshot is not None:
            with ledger.stage("verification"), about(attempt=number):
                ledger.verifications[number] = verify_attempt(ledger, number, attempt)
        ended = f"Attempt {number} of {attempts}: {ledger.outcome}. {ledger.reason}"
        logger.info("%s", one_line(ended, LINE_CHARACTERS))
        if ledger.outcome is Outcome.VERIFIED:
            _accept(ledger, attempt)
            return
        _remove_image(attempt)
        # What fails on a full disk is not the agent's failure.
        current_runtime().provider.check()
        if attempt.report.exhausted:
            logger.info("The installer knows nothing else to try.")
            number = next_by_another(ledger.settings, number)
        else:
            number = number + 1 if number < attempts else None


def _choose_goals(ledger: Ledger) -> None:
    """Propose, run the baseline and select; ask again, bounded, where too few of the goals prove anything."""
    rejected: tuple[GoalResult, ...] = ()
    telling = -1
    for ask in range(1, 2 + ledger.settings.verification.reasks):
        with ledger.stage("goal_setting"):
            if ledger.spec.goals is None:
                ledger.proposals.append(propose_goals(ledger, ask, rejected))
            ledger.baseline = run_baseline(ledger, ask)
        with ledger.stage("selection"):
            ledger.selection = select_targets(ledger)
        if ledger.selection.enough or ledger.spec.goals is not None:
            return
        trivial = tuple(ledger.baseline[index] for index in ledger.selection.trivial)
        if len(ledger.goals) - len(trivial) <= telling:
            return  # asking did not help, and each time costs a baseline
        telling = len(ledger.goals) - len(trivial)
        rejected = (*rejected, *trivial)


def _accept(ledger: Ledger, attempt: SetupAttempt) -> None:
    environment_id = ledger.environment_id
    if attempt.snapshot is None or environment_id is None:
        raise RuntimeError("only a verified attempt can be accepted")
    with ledger.stage("quality"), about(attempt=attempt.number):
        ledger.quality = measure_quality(ledger, attempt)
    _rebuild(ledger, attempt)
    with ledger.stage("publishing"):
        image = publish_image(ledger, attempt.snapshot, environment_id)
        if ledger.settings.registry.repository:
            image = push_image(ledger, image, environment_id)
        ledger.image = image


def _rebuild(ledger: Ledger, attempt: SetupAttempt) -> None:
    """Make the Dockerfile, and see whether it holds. The environment is good whatever keeps us from seeing that."""
    ledger.dockerfile = text = dockerfile_of(ledger, attempt)
    if text is None or not ledger.settings.verification.rebuild:
        return
    with ledger.stage("rebuild"), about(attempt=attempt.number):
        try:
            ledger.rebuilt = rebuild_image(ledger, attempt, text)
        except Infrastructure as error:
            get_run_logger().warning("The environment was not rebuilt: %s", error)
            return
        if not ledger.rebuilt.ok:
            get_run_logger().warning("The image that its Dockerfile makes does not pass: %s", ledger.rebuilt.reason)


def _remove_image(attempt: SetupAttempt) -> None:
    if attempt.snapshot is not None:
        current_runtime().provider.remove_image(attempt.snapshot.digest)


def _discard_images(ledger: Ledger) -> None:
    """Remove the images that no row will name: of an attempt that an error interrupted before it was published."""
    if ledger.image is None:
        try:
            for attempt in ledger.attempts:
                _remove_image(attempt)
        except AutoinstallError as error:  # the run has its rows all the same; the reaper has the image later
            get_run_logger().warning("An image is not removed yet: %s", error)


def _final_state(records: RunRecords) -> State[Any]:
    row = records.repository
    result = records.model_copy(update={"trajectories": ()})
    # The code is what a night in another process goes by.
    parts = (row.outcome, row.code if row.outcome is Outcome.INFRASTRUCTURE else "", row.reason)
    message = one_line(": ".join(filter(None, parts)), LINE_CHARACTERS)
    if row.outcome is Outcome.VERIFIED:
        return Completed(name="Verified", message=row.environment_id or "", data=result)
    if row.outcome is Outcome.CANCELLED:
        return Cancelled(message=message, data=result)
    if row.outcome in (Outcome.INFRASTRUCTURE, Outcome.UNKNOWN):
        return Failed(name=str(row.outcome).capitalize(), message=message, data=result)
    return Completed(name="Discarded", message=message, data=result)


def run_build(spec: RepositorySpec, *, data: Location, settings: Settings) -> RunRecords:
    """Run the flow in this process.

    Raises:
        UnusableDirectory: `data` cannot be written.
    """
    ensure_writable(store_of(data, settings.storage))
    (spec,), settings = without_credentials((spec,), settings)
    with use_runtime(settings), tags("single"):
        return records_of(build_environment(spec, data=data, return_state=True))


def records_of(state: State[Any]) -> RunRecords:
    """The result of a finished run, whatever its outcome.

    Raises:
        Exception: what kept the run from producing rows.
    """
    result: Any = state.result(raise_on_failure=False)
    if isinstance(result, State):  # of a task that returned the flow run's state
        return records_of(result)
    if isinstance(result, RunRecords):
        return result
    raise result if isinstance(result, BaseException) else RuntimeError(f"The run ended without rows: {state}")
