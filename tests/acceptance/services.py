"""What a team runs beside its workers, for real: PostgreSQL, Prefect's server on it, an image registry."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

POSTGRES = Path("/usr/lib/postgresql")
REGISTRY = "docker-registry"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def postgres(directory: Path) -> Iterator[str]:
    """A database server of its own below `directory`; gives the address of a database as Prefect wants it."""
    programs = sorted(POSTGRES.glob("*/bin"))[-1]
    user = pwd.getpwnam("postgres")
    directory.mkdir(parents=True)
    os.chown(directory, user.pw_uid, user.pw_gid)
    for parent in directory.parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o111)
    port, data = free_port(), directory / "data"
    as_user: Any = {"user": user.pw_uid, "group": user.pw_gid, "cwd": directory}

    def call(*command: str | Path) -> bool:
        return subprocess.run(command, check=False, stdout=subprocess.DEVNULL, **as_user).returncode == 0

    if not call(programs / "initdb", "-D", data, "-A", "trust", "-U", "prefect", "-N"):
        raise RuntimeError("initdb failed")
    options = ["-D", data, "-p", str(port), "-k", str(directory), "-h", "127.0.0.1", "-c", "fsync=off"]
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen([programs / "postgres", *options], stdout=log, stderr=log, **as_user)
    try:
        until(lambda: call(programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)), "PostgreSQL")
        call(programs / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "prefect", "prefect")
        yield f"postgresql+asyncpg://prefect:unused@127.0.0.1:{port}/prefect"
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def prefect_server(directory: Path, database: str) -> Iterator[str]:
    """Prefect's server on a database; gives the address of its API."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    environment = {
        **os.environ,
        "PREFECT_HOME": str(directory / "home"),
        "PREFECT_API_DATABASE_CONNECTION_URL": database,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/api/health"), "Prefect's server", 300)
        yield f"http://127.0.0.1:{port}/api"
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def registry(directory: Path, user: str, password: str) -> Iterator[str]:
    """An image registry that wants to know who it is; gives `host:port`. Engines take it without TLS on a loopback."""
    program = os.environ.get("DOCKER_REGISTRY") or shutil.which(REGISTRY)
    if program is None:
        raise RuntimeError(f"There is no {REGISTRY}; apt-get install docker-registry, or set DOCKER_REGISTRY.")
    directory.mkdir(parents=True)
    crypt = ["perl", "-e", "print crypt($ARGV[0], q($2b$05$) . q(abcdefghijklmnopqrstuu))", password]
    hashed = subprocess.run(crypt, check=True, capture_output=True, text=True).stdout
    (directory / "users").write_text(f"{user}:{hashed}\n")
    port = free_port()
    (directory / "config.yml").write_text(
        f"version: 0.1\n"
        f"storage: {{filesystem: {{rootdirectory: {directory}/data}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
        f"auth: {{htpasswd: {{realm: test, path: {directory}/users}}}}\n"
    )
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen([program, "serve", directory / "config.yml"], stdout=log, stderr=log)
    login = b64encode(f"{user}:{password}".encode()).decode()
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/v2/", {"Authorization": f"Basic {login}"}), "the registry")
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def answers(url: str, headers: Mapping[str, str] | None = None) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers or {})), timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def until(ready: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait until `ready()` is true.

    Raises:
        TimeoutError: it was not in `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} was not ready in {seconds:.0f} s")
        time.sleep(0.25)
