"""Looks at Prefect as a night will: a server that answers, deployments, workers, limits; for `autoinstall doctor`."""

from collections.abc import Iterator

import httpx
import prefect
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, PREFECT_HOME

from autoinstall.doctor import Check, Status, writable
from autoinstall.errors import OrchestratorUnavailable
from autoinstall.redaction import redact, without_userinfo
from autoinstall.settings import Settings

DEPLOYMENTS = ("nightly/nightly", "nightly/retry-failures", "recover/recover", "build-environment/repository")
"""Of deployments/prefect.yaml."""

SECONDS = 10.0
"""How long the server may take for its first answer."""

_APPLY = "`make up`, or deployments/apply.py against this server, makes it."


def examine_prefect(settings: Settings) -> tuple[Check, ...]:
    """Where runs are kept, and whether nights will be done. Never raises for what it finds."""
    url = PREFECT_API_URL.value()
    if not url:
        home = writable("prefect", PREFECT_HOME.value())
        if home.status is not Status.OK:
            return (home.model_copy(update={"hint": "PREFECT_HOME names another directory."}),)
        detail = f"no server (PREFECT_API_URL is not set): runs are kept in {home.detail}"
        return (home.model_copy(update={"detail": detail}),)
    try:
        reach(url)
        with get_client(sync_client=True) as client:
            detail = f"{without_userinfo(url)}, version {client.api_version()}"
            server = Check(name="prefect", status=Status.OK, detail=detail)
            return (server, *_deployed(client), *_limits(client, settings))
    except OrchestratorUnavailable as error:
        return (_failed(error),)
    except (httpx.HTTPError, RuntimeError) as error:
        # A RuntimeError is what Prefect's client raises for a server that is too old for it.
        return (_failed(unserved(url, error)),)


def reach(url: str) -> None:
    """See that the server of an API's address answers.

    Raises:
        OrchestratorUnavailable: it does not.
    """
    try:
        httpx.get(f"{url.rstrip('/')}/health", timeout=SECONDS).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OrchestratorUnavailable(
            f"The server at {without_userinfo(url)} does not answer: {redact(str(error)) or type(error).__name__}.",
            hint="Start it (`make up`), correct PREFECT_API_URL, or unset it: runs then need no server.",
        ) from error


def unserved(url: str, error: Exception) -> OrchestratorUnavailable:
    """What Prefect's client complains of at a server that answers, in words that say what to do."""
    said = redact(str(error))[:300].rstrip(".")
    return OrchestratorUnavailable(
        f"The server at {without_userinfo(url)} does not serve Prefect {prefect.__version__}: {said}.",
        hint="Use one version of Prefect on both sides, and PREFECT_API_AUTH_STRING where the server wants it.",
    )


def _failed(error: OrchestratorUnavailable) -> Check:
    return Check(name="prefect", status=Status.FAIL, detail=error.message, hint=error.hint)


def _deployed(client: SyncPrefectClient) -> Iterator[Check]:
    """The deployments, and the workers of their pools."""
    pools: dict[str, None] = {}  # each once, in their order
    for name in DEPLOYMENTS:
        try:
            deployment = client.read_deployment_by_name(name)
        except ObjectNotFound:
            yield Check(name="deployments", status=Status.WARN, detail=f"{name} is not there.", hint=_APPLY)
            continue
        if deployment.paused:
            hint = "Unpause it in the UI, or `prefect deployment schedule resume`."
            yield Check(name="deployments", status=Status.WARN, detail=f"{name} is paused.", hint=hint)
        else:
            yield Check(name="deployments", status=Status.OK, detail=f"{name} on the pool {deployment.work_pool_name}")
        if deployment.work_pool_name is not None:
            pools[deployment.work_pool_name] = None
    for pool in pools:
        yield _workers(client, pool)


def _workers(client: SyncPrefectClient, pool: str) -> Check:
    workers = client.read_workers_for_work_pool(pool)
    online = sorted(worker.name for worker in workers if worker.status is WorkerStatus.ONLINE)
    if online:
        return Check(name="workers", status=Status.OK, detail=", ".join(online))
    detail = f"No worker of the pool {pool} is online: what is scheduled waits."
    hint = f"`make up`, or `prefect worker start --pool {pool} --type process`."
    return Check(name="workers", status=Status.WARN, detail=detail, hint=hint)


def _limits(client: SyncPrefectClient, settings: Settings) -> Iterator[Check]:
    """The global concurrency limits that the settings name."""
    for name in filter(None, (settings.orchestration.run_limit, settings.orchestration.model_limit)):
        try:
            limit = client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            detail = f"There is no limit {name}, so nothing bounds that."
            yield Check(name="limits", status=Status.WARN, detail=detail, hint=_APPLY)
        else:
            used = f"{limit.active_slots} of {limit.limit} in use" if limit.active else "not active"
            yield Check(name="limits", status=Status.OK, detail=f"{name}: {used}")
