"""Which server of Prefect's a command works with: the configured one, that of `make up`, or one of its own."""

import atexit
import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from autoinstall.errors import OrchestratorUnavailable
from autoinstall.redaction import without_userinfo
from cli.boundary import err

ROOT = Path(__file__).resolve().parents[1]
STATE = Path(os.environ.get("AUTOINSTALL_STATE") or ROOT / ".cache/up")
"""Where deployments/local.py notes what it has started: pid files and logs."""

PREFECT_SETTINGS: Mapping[str, str] = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # The embedded database has one writer at a time: what task runs tell is written many at once, so that requests are
    # refused less often, and one that was is sent again: 2 + 4 + … + 256 seconds, which outlasts a server's restart.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_CLIENT_MAX_RETRIES": "8",
    # By these, a run on another host that was killed is told from one that goes on.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}
"""Of servers on this machine and of what works with them, whoever starts them."""

STOP_SECONDS = 10.0
_ANSWER_SECONDS = 5.0


@contextmanager
def prefect_api() -> Iterator[None]:
    """Have Prefect's client work with a server that answers.

    Raises:
        OrchestratorUnavailable: the configured one does not answer, or one of its own does not start.
    """
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS,
        PREFECT_UI_URL,
        temporary_settings,
    )

    with ExitStack() as stack:
        if given := PREFECT_API_URL.value():
            _check(given)
        else:
            url = running(STATE)
            if url:
                err.print(f"[dim]with the server of make up: {url}[/]")
            else:
                seconds = float(PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.value())
                url = _private_server(seconds)
                # Links must not name a port that nobody has for long.
                stack.enter_context(temporary_settings({PREFECT_UI_URL: ""}))
            stack.enter_context(temporary_settings({PREFECT_API_URL: url}))
        yield


def known() -> str:
    """The address of the API that commands work with; empty where each has a server of its own."""
    return without_userinfo(os.environ.get("PREFECT_API_URL", "")) or running(STATE)


def running(state: Path) -> str:
    """The address of the API that deployments/local.py serves; empty where it serves none."""
    try:
        with (state / "server.pid").open() as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        pass
    except OSError:
        return ""
    try:
        url = (state / "url").read_text().strip()
    except OSError:
        return ""
    return url if _answers(url, _ANSWER_SECONDS) else ""


def _check(url: str) -> None:
    """See that the configured server answers, and serves this version of Prefect.

    Raises:
        OrchestratorUnavailable: it does not.
    """
    from prefect.client.orchestration import get_client

    from flows.examination import reach, unserved

    reach(url)
    try:
        with get_client(sync_client=True) as client:
            client.raise_for_api_version_mismatch()
    except (httpx.HTTPError, RuntimeError) as error:
        raise unserved(url, error) from error


def _private_server(seconds: float) -> str:
    """Start one, and end it when this process ends: Prefect tells it of the last events only then.

    It has a session of its own, since a ^C that ends the command must not end the server that is to hear of that.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("private_server.py")), str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        atexit.register(_stop, server)
        deadline = time.monotonic() + seconds
        while not _answers(url, 1.0):
            if server.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()[-500:]
                raise OrchestratorUnavailable(
                    f"Prefect's server did not start: {said or f'no answer within {seconds:.0f} s'}",
                    hint="PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS gives it more time.",
                )
            time.sleep(0.1)
    return url


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _answers(url: str, seconds: float) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=seconds, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
