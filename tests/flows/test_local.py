"""`make up` and `make down`: the server and the worker of one machine, killed and started again."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import psutil
import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.prefect, pytest.mark.slow]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


Local = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def local(tmp_path: Path, state: Path) -> Iterator[Local]:
    """Call the script with a port, a database and pid files of its own."""
    left_out = ("PREFECT_API_URL", "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE", "PREFECT_API_DATABASE_CONNECTION_URL")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {
        "AUTOINSTALL_PORT": str(free_port()),
        "AUTOINSTALL_STATE": str(state),
        "AUTOINSTALL_DATA": str(tmp_path / "data"),
        "AUTOINSTALL_CACHE": str(tmp_path / "cache"),
        "PREFECT_HOME": str(tmp_path / "prefect"),
    }

    def call(command: str) -> "subprocess.CompletedProcess[str]":
        script = [sys.executable, "deployments/local.py", command]
        return subprocess.run(script, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)

    yield call
    call("down")


def pids(state: Path) -> dict[str, int]:
    return {name: int((state / f"{name}.pid").read_text()) for name in ("server", "worker")}


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


def test_what_is_killed_is_started_again_and_what_is_under_way_ends_with_the_worker(local: Local, state: Path) -> None:
    first = local("up")
    assert first.returncode == 0, first.stderr
    assert first.stdout.strip().startswith("http://127.0.0.1:")
    before = pids(state)

    os.kill(before["server"], signal.SIGKILL)
    os.kill(before["worker"], signal.SIGKILL)
    while not all(map(is_gone, before.values())):
        time.sleep(0.1)
    assert local("status").returncode == 1
    again = local("up")
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    after = pids(state)
    assert not set(after.values()) & set(before.values())
    assert "the deployments are as" in again.stderr  # applied again, they would have lost the night that is due

    assert local("up").returncode == 0
    assert pids(state) == after

    with clone_under_way(f"{first.stdout.strip()}/api"):
        running = psutil.Process(after["worker"]).children(recursive=True)
        assert any("git" in process.name() for process in running)
        assert local("down").returncode == 0
    assert all(map(is_gone, after.values()))
    assert [process for process in running if process.is_running()] == []
    assert list(pd.read_parquet(state.parent / "data/repositories").outcome) == ["cancelled"]
    assert local("down").returncode == 0


@contextmanager
def clone_under_way(api: str) -> Iterator[None]:
    """A run of the deployment for one repository, whose remote answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as remote, temporary_settings({PREFECT_API_URL: api}):
        remote.settimeout(120)
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name("build-environment/repository")
            url = f"http://127.0.0.1:{remote.getsockname()[1]}/owner/name.git"
            client.create_flow_run_from_deployment(deployment.id, parameters={"spec": {"url": url}})
        connection, _ = remote.accept()
        with connection:
            yield
