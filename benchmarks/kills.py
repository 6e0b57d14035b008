"""What is left after a kill: `python benchmarks/kills.py PLACE [CASE …]`.

A Prefect server, a worker and a night over three repositories with scripted agents and sandboxes, all processes of
their own, below PLACE. In each case something is killed, or cancelled, at a stage; all is started again, and then the
ledger says what has become of rows, runs, journals and checkouts. A case takes minutes, most of them for Prefect's
processes to start.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pandas as pd

from tests.flows.scripted_night import slow_git

ROOT = Path(__file__).resolve().parents[1]
PORT = 4399
API = f"http://127.0.0.1:{PORT}/api"
STAGES = ("clone", "baseline", "attempt-1", "offline", "held-out", "publish")
PREFECT = (sys.executable, "-m", "prefect")


class Bench:
    """The processes, and what they write below `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.place.mkdir(parents=True, exist_ok=True)
        self.environment = {
            **os.environ,
            "PREFECT_HOME": str(place / "prefect"),
            "PREFECT_API_URL": API,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_CLIENT_MAX_RETRIES": "8",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "SCRIPTED_NIGHT": str(place / "night"),
            "PYTHONPATH": str(ROOT),
            "PATH": f"{place}/night/bin:{os.environ['PATH']}",
        }
        self.server: subprocess.Popen[bytes] | None = None
        self.worker: subprocess.Popen[bytes] | None = None

    def spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.place / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def start_server(self) -> None:
        self.server = self.spawn("server", *PREFECT, "server", "start", "--port", str(PORT))
        self.until(self.answers, 300)

    def answers(self) -> bool:
        try:
            return httpx.get(f"{API}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def start_worker(self) -> None:
        self.worker = self.spawn("worker", *PREFECT, "worker", "start", "--pool", "bench", "--type", "process")

    def until(self, condition: Callable[[], Any], seconds: float) -> Any:
        end = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds:.0f} s")
            time.sleep(0.1)
        return found

    def post(self, path: str, body: dict[str, Any]) -> Any:
        while True:
            answer = httpx.post(f"{API}{path}", json=body, timeout=60)
            if answer.status_code != 503:  # the database was locked for too long
                answer.raise_for_status()
                return answer.json()
            time.sleep(1)

    def deploy(self) -> None:
        """The night's deployment, one at a time, and that of its recovery."""
        for flow in ("nightly", "recover"):
            flow_id = self.post("/flows/", {"name": flow})["id"]
            self.post(
                "/deployments/",
                {
                    "name": "bench",
                    "flow_id": flow_id,
                    "work_pool_name": "bench",
                    "entrypoint": f"tests.flows.scripted_night.{flow}",
                    "concurrency_limit": 1,
                    "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}],
                    "enforce_parameter_schema": False,
                },
            )

    def run(self, flow: str, **parameters: Any) -> str:
        deployment = httpx.get(f"{API}/deployments/name/{flow}/bench", timeout=60).json()["id"]
        return str(self.post(f"/deployments/{deployment}/create_flow_run", {"parameters": parameters})["id"])

    def state(self, run: str) -> str:
        return str(httpx.get(f"{API}/flow_runs/{run}", timeout=60).json()["state"]["type"])

    def runs(self) -> list[dict[str, Any]]:
        return list(self.post("/flow_runs/filter", {"limit": 200}))

    def processes_of(self, run: str) -> list[int]:
        """The processes that execute a flow run."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"PREFECT__FLOW_RUN_ID={run}".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def end(self) -> None:
        for process in (self.worker, self.server):
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def prepare(bench: Bench) -> Path:
    """A fresh night over three repositories."""
    night = bench.place / "night"
    shutil.rmtree(night, ignore_errors=True)
    night.mkdir()
    slow_git(night)
    lines = ["url"]
    for name in ("first", "second", "third"):
        root = night / "origin" / name
        root.mkdir(parents=True)
        (root / "main.py").write_text("print('hello')\n")
        for arguments in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=T", "-c", "user.email=t@e.org", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *arguments], cwd=root, check=True)
        lines.append(str(root))
    (night / "list.csv").write_text("\n".join(lines) + "\n")
    return night


def case(bench: Bench, what: str, stage: str) -> dict[str, Any]:
    """One line of the ledger."""
    night = prepare(bench)
    (night / "stop-at").write_text(stage)
    run = bench.run("nightly", repositories=str(night / "list.csv"), data=str(night / "data"), concurrency=2)
    bench.until((night / "stopped").exists, 180)
    begun = time.monotonic()
    line: dict[str, Any] = {"killed": what, "stage": stage}
    match what:
        case "flow":
            for process in bench.processes_of(run):
                os.kill(process, signal.SIGKILL)
        case "worker":
            assert bench.worker
            os.killpg(bench.worker.pid, signal.SIGKILL)
            for process in bench.processes_of(run):
                os.kill(process, signal.SIGKILL)
            bench.worker.wait()
        case "worker alone":
            assert bench.worker
            bench.worker.kill()
            bench.worker.wait()
            (night / "stop-at").unlink()
        case "server":
            assert bench.server
            os.killpg(bench.server.pid, signal.SIGKILL)
            bench.server.wait()
            time.sleep(3)
            bench.start_server()
        case "cancel":
            bench.post(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}})
            bench.until((night / "closed").exists, 60)
            line["stopped within s"] = round(time.monotonic() - begun, 1)
            bench.until(lambda: bench.state(run) == "CANCELLED", 60)
            line["cancelled within s"] = round(time.monotonic() - begun, 1)
    (night / "stop-at").unlink(missing_ok=True)
    if what == "server":  # the sandbox whose command waited goes on
        bench.until(lambda: bench.state(run) in ("COMPLETED", "FAILED", "CRASHED"), 300)
    if bench.worker is None or bench.worker.poll() is not None:
        bench.start_worker()
    if what not in ("cancel",):
        recovery = bench.run("recover")
        bench.until(lambda: bench.state(recovery) in ("COMPLETED", "FAILED", "CRASHED"), 180)
    bench.until(lambda: all(one["state"]["type"] in _FINAL for one in bench.runs()), 300)
    rows = pd.read_parquet(night / "data/repositories") if (night / "data/repositories").exists() else pd.DataFrame()
    verified = rows[rows.outcome == "verified"] if len(rows) else rows
    line |= {
        "night": bench.state(run).lower(),
        "verified": len(verified),
        "of": verified.repository.nunique() if len(verified) else 0,
        "environments": len(pd.read_parquet(night / "data/environments")),
        "other rows": sorted(rows[rows.outcome != "verified"].code) if len(rows) else [],
        "nights": rows.night_id.nunique() if len(rows) else 0,
        "journals": len(list((night / "cache/journals").glob("*"))),
        "checkouts": len(list((night / "cache/runs").glob("*/*"))),
        "unfinished runs": sum(one["state"]["type"] not in _FINAL for one in bench.runs()),
        "seconds": round(time.monotonic() - begun),
    }
    return line


_FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
CASES = [
    *(("flow", stage) for stage in STAGES),
    ("worker", "baseline"),
    ("worker", "offline"),
    ("worker alone", "attempt-1"),
    ("server", "attempt-1"),
    ("cancel", "attempt-1"),
]


def main() -> None:
    bench = Bench(Path(sys.argv[1]).absolute())
    wanted = sys.argv[2:]
    try:
        bench.start_server()
        bench.post("/work_pools/", {"name": "bench", "type": "process"})
        bench.deploy()
        bench.start_worker()
        for what, stage in CASES:
            if not wanted or what in wanted or f"{what}:{stage}" in wanted:
                print(json.dumps(case(bench, what, stage)), flush=True)
    finally:
        bench.end()


if __name__ == "__main__":
    main()
