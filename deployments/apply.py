"""Makes what nights need: of a Prefect server the work pool, the concurrency limits and the deployments; and the bucket
of the datasets, where they are in one.

    PREFECT_API_URL=http://host:4200/api python deployments/apply.py

What is there already stays as it is: applying a deployment again would drop the night that is due.

AUTOINSTALL_WORK_POOL  name of the pool (default: autoinstall)
APPLY_WAIT_SECONDS     how long to wait for the server (default: 300)
"""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate, WorkPoolCreate
from prefect.client.schemas.objects import WorkPool
from prefect.exceptions import ObjectNotFound
from prefect.workers.process import ProcessWorker

from autoinstall.datasets.store import ensure_bucket
from autoinstall.errors import InvalidList, StorageFailed
from autoinstall.repository_list import read_list
from autoinstall.settings import get_settings
from flows.examination import DEPLOYMENTS

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "deployments/prefect.yaml"
FLOWS = ("flows/nightly.py", "flows/build_environment.py", "flows/recovery.py", "autoinstall/values.py")
"""Where the parameters' forms come from."""


def main() -> int:
    pool = os.environ.setdefault("AUTOINSTALL_WORK_POOL", "autoinstall")
    version = os.environ["AUTOINSTALL_DEPLOYMENTS_VERSION"] = version_of(pool)
    settings = get_settings()
    orchestration = settings.orchestration
    if ensure_bucket(settings.data, settings.storage):
        say(f"made the bucket of {settings.data}")
    with get_client(sync_client=True) as client:
        if not wait_for(client, float(os.environ.get("APPLY_WAIT_SECONDS", "300"))):
            say(f"Prefect's server at {client.api_url} does not answer.")
            return 4
        ensure_pool(client, pool)
        ensure_limit(client, orchestration.run_limit, orchestration.runs)
        ensure_limit(client, orchestration.model_limit, orchestration.model_calls)
        applied = all(is_applied(client, name, version) for name in DEPLOYMENTS)
    if applied:
        say("the deployments are as deployments/prefect.yaml has them")
    elif failed := deploy():
        return failed
    for obstacle in unusable_lists(ROOT):
        say(f"until this is mended, nights fail: {obstacle}")
    return 0


def deploy() -> int:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(FILE)]
    # Left out, it stays a placeholder in the deployments, which each worker fills for itself.
    environment = {name: value for name, value in os.environ.items() if name != "AUTOINSTALL_HOME"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    say(f"applied {', '.join(DEPLOYMENTS)}" if done.returncode == 0 else f"not applied:\n{done.stdout}\n{done.stderr}")
    return done.returncode


def unusable_lists(home: Path) -> tuple[str, ...]:
    """What is wrong with the lists that the deployments name, as a worker at `home` would find them."""
    found: dict[str, None] = {}
    for deployment in yaml.safe_load(FILE.read_text())["deployments"]:
        name = deployment.get("parameters", {}).get("repositories")
        if name is not None:
            try:
                read_list(name if "://" in name else home / name)
            except (InvalidList, StorageFailed) as error:
                found[str(error)] = None
    return tuple(found)


def version_of(pool: str) -> str:
    """Changes with all that a deployment is made of."""
    digest = hashlib.sha256(pool.encode())
    for path in (FILE, *(ROOT / name for name in FLOWS)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def wait_for(client: SyncPrefectClient, seconds: float) -> bool:
    """Whether the server answers before the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{str(client.api_url).rstrip('/')}/health", timeout=5).raise_for_status()
        except httpx.HTTPError:
            time.sleep(1)
        else:
            return True
    return False


def ensure_pool(client: SyncPrefectClient, name: str) -> WorkPool:
    try:
        return client.read_work_pool(name)
    except ObjectNotFound:
        say(f"making the work pool {name}")
        template = ProcessWorker.get_default_base_job_template()
        return client.create_work_pool(WorkPoolCreate(name=name, type="process", base_job_template=template))


def ensure_limit(client: SyncPrefectClient, name: str, limit: int) -> None:
    try:
        client.read_global_concurrency_limit_by_name(name)
    except ObjectNotFound:
        say(f"making the concurrency limit {name} of {limit}")
        client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=limit))


def is_applied(client: SyncPrefectClient, name: str, version: str) -> bool:
    try:
        return client.read_deployment_by_name(name).version == version
    except ObjectNotFound:
        return False


def say(text: str) -> None:
    sys.stderr.write(f"deployments: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
