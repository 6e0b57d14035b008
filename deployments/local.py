"""Prefect's server with its UI and a worker on this machine: `python deployments/local.py up|down|status`.

Doing `up` again starts what is not running, and changes nothing else. Both go on when the terminal is closed; where a
machine is to start them by itself, see deployments/systemd.

PREFECT_HOME            where the server keeps its database (default: ~/.prefect, which the command line uses too)
AUTOINSTALL_PORT        of the server, on this machine alone (default: 4200)
AUTOINSTALL_WORK_POOL   (default: autoinstall)
AUTOINSTALL_WORKER_RUNS flow runs that the worker does at once: a night and its repositories (default: 5)
AUTOINSTALL_STATE       pid files and logs (default: .cache/up)
"""

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import psutil

from cli.server import PREFECT_SETTINGS, ROOT, STATE

PORT = os.environ.get("AUTOINSTALL_PORT", "4200")
URL = f"http://127.0.0.1:{PORT}"
PREFECT = (sys.executable, "-m", "prefect")
START_SECONDS = 300.0
"""A server that starts for the first time makes its database, which takes long on a small machine."""

STOP_SECONDS = 60.0
KILL_SECONDS = 10.0

ENVIRONMENT = {
    "PREFECT_API_URL": f"{URL}/api",
    "PREFECT_UI_URL": URL,
    "DO_NOT_TRACK": "1",
    **PREFECT_SETTINGS,
    # A night ends where the server forgets that it holds its place, which it would by being started again.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "AUTOINSTALL_HOME": str(ROOT),
}


class Program:
    """A program that is left running. It holds a lock on its pid file for as long as it lives, so that a number that
    is another process's by now is never taken for it."""

    def __init__(self, name: str, *command: str) -> None:
        self.name = name
        self._command = command
        self._pid_file = STATE / f"{name}.pid"
        self.log = STATE / f"{name}.log"

    def pid(self) -> int | None:
        """Of the running program; None where it is not running."""
        try:
            with self._pid_file.open() as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(self._pid_file.read_text())
        except FileNotFoundError:
            pass
        return None

    def start(self, environment: Mapping[str, str]) -> None:
        with self._pid_file.open("a+") as lock, self.log.open("ab") as log:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock.fileno(),),
            )
            lock.truncate(0)
            lock.write(str(process.pid))
        say(f"{self.name} started (pid {process.pid}, log {self.log})")

    def stop(self) -> int:
        """Ask it and all that it runs to end, and end what does not; the number of programs that it ran.

        Of a worker those are flows, each in a session of its own: they close their containers and write their rows.
        They are asked first, and once: a worker that ends asks its flows too, which would cut them short at that.
        """
        pid = self.pid()
        if pid is None:
            return 0
        program = psutil.Process(pid)
        flows = program.children()
        end(flows)
        end([program, *program.children(recursive=True)])
        say(f"{self.name} stopped")
        return len(flows)


def end(processes: Sequence[psutil.Process]) -> None:
    """Ask processes to end, and kill those that do not in their time, with all that these have started."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=STOP_SECONDS)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            for child in (*process.children(recursive=True), process):
                with suppress(psutil.NoSuchProcess):
                    child.kill()
    psutil.wait_procs(left, timeout=KILL_SECONDS)


SERVER = Program("server", *PREFECT, "server", "start", "--host", "127.0.0.1", "--port", PORT)


def worker() -> Program:
    pool = os.environ.get("AUTOINSTALL_WORK_POOL", "autoinstall")
    runs = os.environ.get("AUTOINSTALL_WORKER_RUNS", "5")
    name = f"{socket.gethostname()}-{pool}"
    options = ("--pool", pool, "--type", "process", "--limit", runs, "--name", name)
    return Program("worker", *PREFECT, "worker", "start", *options)


def up() -> int:
    STATE.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **ENVIRONMENT}
    with (STATE / "up.lock").open("w") as once:
        fcntl.flock(once, fcntl.LOCK_EX)
        if SERVER.pid() is None:
            if answers():
                say(f"something that was not started here answers at {URL}; AUTOINSTALL_PORT names another port")
                return 1
            SERVER.start(environment)
        deadline = time.monotonic() + START_SECONDS
        while not answers():
            if SERVER.pid() is None or time.monotonic() > deadline:
                say(f"the server did not start; the end of {SERVER.log}:\n{tail(SERVER.log)}")
                return 1
            time.sleep(0.5)
        applied = subprocess.run([sys.executable, "deployments/apply.py"], cwd=ROOT, env=environment, check=False)
        if applied.returncode != 0:
            return applied.returncode
        if worker().pid() is None:
            worker().start(environment)
            # What was under way when all of it ended is gone on with now, not at the next quarter of an hour.
            again = (*PREFECT, "deployment", "run", "recover/recover")
            subprocess.run(again, cwd=ROOT, env=environment, check=False, stdout=subprocess.DEVNULL)
        (STATE / "url").write_text(f"{URL}/api\n")
    say(f"autoinstall uses this server; export PREFECT_API_URL={URL}/api has Prefect's own command line use it too")
    sys.stdout.write(f"{URL}\n")
    return 0


def down() -> int:
    if worker().stop():
        say("flows were under way: `make up` goes on with nights that were cut short")
    SERVER.stop()
    return 0


def status() -> int:
    missing = 0
    for program in (SERVER, worker()):
        pid = program.pid()
        missing += pid is None
        say(f"{program.name}: {'not running' if pid is None else f'pid {pid}'}")
    return 1 if missing else 0


def answers() -> bool:
    try:
        return httpx.get(f"{URL}/api/health", timeout=5, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-15:])


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    commands = {"up": up, "down": down, "status": status}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(commands)}")
    sys.exit(commands[sys.argv[1]]())
