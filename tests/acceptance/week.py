"""A week of nights, and then the ledger: `python -m tests.acceptance.week DIRECTORY`.

Seven nights over a list that changes between them: a repository is added and one removed, branches move, one can never
be built, and one does not exist. The second night is killed and completed, the fourth is cancelled, in the fifth the
engine's disk is full. Prefect's server, a worker and an engine of their own (storage on a small disk of its own, in a
network of its own) are real; the agents act by script.

Prints which rows, images and flow runs are there, and beside them where something else should be; the exit code is 1
then. Needs root, dockerd, iproute2, iptables, a loop device and the default base image on this machine's engine.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling

from autoinstall.datasets.reader import load
from autoinstall.sandbox.labels import ENVIRONMENT_REPOSITORY, WORKSPACE_REPOSITORY
from deployments.apply import ensure_limit, ensure_pool
from tests.acceptance.machines import Machine, run, second_machine
from tests.acceptance.services import prefect_server, until
from tests.acceptance.two_hosts import Host, carry_base, is_over
from tests.acceptance.week_night import GO_ON, PLACE

ROOT = Path(__file__).resolve().parents[2]
POOL, DEPLOYMENT, LIMIT = "week", "week", "autoinstall-runs"
DISK_MB, LEFT_MB = 8192, 100
NIGHT_SECONDS = 900


@dataclass(frozen=True)
class Night:
    """One night, and what it should leave.

    Attributes:
        repositories: its list.
        commits: that are made before it.
        rows: repository, number of its commit, outcome and code.
        states: of the night's flow runs.
        trouble: what happens while `at` is being set up.
    """

    repositories: tuple[str, ...]
    rows: tuple[tuple[str, int, str, str], ...]
    states: tuple[str, ...] = ("Completed",)
    commits: tuple[str, ...] = ()
    trouble: str = ""
    at: str = ""


ABSENT = ("absent", 0, "auth_or_not_found", "auth_or_not_found")
FIRST = ("steady", "moving", "leaving", "hopeless", "absent")
WITH_ADDED = (*FIRST, "added")
WITHOUT_LEAVING = tuple(name for name in WITH_ADDED if name != "leaving")
WEEK = (
    Night(
        FIRST,
        (
            *((name, 1, "verified", "") for name in ("steady", "moving", "leaving")),
            ("hopeless", 1, "gave_up", ""),
            ABSENT,
        ),
        commits=("steady", "moving", "leaving", "hopeless", "added"),
    ),
    Night(
        WITH_ADDED,
        (ABSENT, ("added", 1, "cancelled", "interrupted"), ("added", 1, "verified", "")),
        states=("Crashed", "Completed"),
        trouble="kill",
        at="added",
    ),
    Night(WITH_ADDED, (ABSENT,)),
    Night(
        WITH_ADDED,
        (ABSENT, ("moving", 2, "cancelled", "cancelled")),
        states=("Cancelled",),
        commits=("moving",),
        trouble="cancel",
        at="moving",
    ),
    Night(
        WITH_ADDED,
        (ABSENT, ("moving", 2, "infrastructure", "disk_full")),
        states=("Halted",),
        trouble="full disk",
        at="moving",
    ),
    Night(WITHOUT_LEAVING, (ABSENT, ("moving", 2, "verified", ""))),
    Night(
        WITHOUT_LEAVING,
        (ABSENT, ("moving", 3, "verified", ""), ("hopeless", 2, "gave_up", "")),
        commits=("moving", "hopeless"),
    ),
)


class Week:
    """The processes, and what they write below `place`."""

    def __init__(self, place: Path, machine: Machine, client: SyncPrefectClient) -> None:
        self.place = place
        self.machine = machine
        self.client = client
        self.commits: dict[tuple[str, str], int] = {}
        self.nights: dict[str, int] = {}

    def commit(self, name: str) -> None:
        """One more commit of a repository, which is made with its first."""
        root = self.place / "origin" / name
        number = 1 + sum(known == name for known, _ in self.commits)
        if number == 1:
            root.mkdir(parents=True)
            run("git", "-C", str(root), "init", "-q", "-b", "main")
        (root / "main.py").write_text(f"print('{name}, {number}')\n")
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        run("git", "-C", str(root), "add", ".")
        run("git", "-C", str(root), *identity, "commit", "-qm", str(number))
        self.commits[name, run("git", "-C", str(root), "rev-parse", "HEAD").strip()] = number

    def begin(self, flow: str, **parameters: Any) -> FlowRun:
        deployment = self.client.read_deployment_by_name(f"{flow}/{DEPLOYMENT}")
        return self.client.create_flow_run_from_deployment(deployment.id, parameters=parameters)

    def begin_night(self, number: int, night: Night) -> FlowRun:
        for name in night.commits:
            self.commit(name)
        path = self.place / "list.csv"
        path.write_text("url\n" + "".join(f"{self.place}/origin/{name}\n" for name in night.repositories))
        if night.at:
            (self.place / "stopped").unlink(missing_ok=True)
            (self.place / "stop-at").write_text(night.at)
        begun = self.begin("nightly", repositories=str(path), data=str(self.place / "data"), concurrency=2)
        self.nights[str(begun.id)] = number
        return begun

    def make_trouble(self, night: Night, run_id: UUID) -> None:
        """While the installer waits, and all else of the night has ended."""
        stopped = self.place / "stopped"
        until(stopped.exists, f"the installer at {night.at}", NIGHT_SECONDS)
        first = night.rows[0][0]
        until(lambda: self.has_row(str(run_id), first), f"the row of {first}", NIGHT_SECONDS)
        (self.place / "stop-at").unlink()
        match night.trouble:
            case "kill":
                for process in processes_of(run_id):
                    os.kill(process, signal.SIGKILL)
                recovery = self.begin("recover")
                self.wait_for(recovery.id)
                for other in self.runs("nightly"):
                    if other.parameters.get("resumes") == str(run_id):
                        self.wait_for(other.id)
            case "cancel":
                self.client.set_flow_run_state(run_id, Cancelling(message="Enough."))
            case "full disk":
                with self.ballast():
                    sandbox = stopped.read_text()
                    run("docker", "-H", self.machine.engine, "exec", sandbox, "touch", GO_ON)
                    self.wait_for(run_id)

    @contextmanager
    def ballast(self) -> Iterator[None]:
        """Fill the engine's disk."""
        path = self.place / "disk" / "ballast"
        free = shutil.disk_usage(path.parent).free // 2**20
        run("fallocate", "-l", f"{free - LEFT_MB}M", str(path))
        try:
            yield
        finally:
            path.unlink()

    def has_row(self, night: str, name: str) -> bool:
        rows = load(self.place / "data", "repositories")
        return bool(((rows.night_id == night) & (rows.repository.str.rpartition("/")[2] == name)).any())

    def wait_for(self, run_id: UUID) -> None:
        until(lambda: is_over(self.client, run_id), "a flow run", NIGHT_SECONDS)

    def runs(self, flow: str) -> list[FlowRun]:
        wanted = FlowFilter(name=FlowFilterName(any_=[flow]))
        found = self.client.read_flow_runs(flow_filter=wanted, limit=200)
        return sorted(found, key=lambda one: str(one.expected_start_time))

    def docker(self, *command: str) -> list[str]:
        return run("docker", "-H", self.machine.engine, *command).split()


def processes_of(run_id: UUID) -> list[int]:
    """The processes that execute a flow run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"PREFECT__FLOW_RUN_ID={run_id}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


class Book:
    """Compares, line by line."""

    def __init__(self) -> None:
        self.right = True

    def line(self, what: str, found: Any, wanted: Any) -> None:
        same = found == wanted
        self.right &= same
        say(f"{'  ' if same else '! '}{what:28} {shown(found)}" + ("" if same else f"   should be {shown(wanted)}"))


def shown(value: Any) -> str:
    if isinstance(value, Counter):
        return (
            ", ".join(f"{count}× {' '.join(map(str, one)).strip()}" for one, count in sorted(value.items())) or "none"
        )
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def settle(week: Week, book: Book, before: set[str]) -> None:
    """The ledger."""
    data = week.place / "data"
    rows = load(data, "repositories")
    rows = rows.assign(night=rows.night_id.map(week.nights), name=rows.repository.str.rpartition("/")[2])
    rows["number"] = [week.commits.get(key, 0) for key in zip(rows.name, rows.commit, strict=True)]
    say("Rows of repositories")
    for number, night in enumerate(WEEK, start=1):
        mine = rows[rows.night == number]
        found = Counter(zip(mine.name, mine.number, mine.outcome, mine.code, strict=True))
        book.line(f"night {number} {night.trouble}", found, Counter(night.rows))
    book.line("of no night", int(rows.night.isna().sum()), 0)
    wanted = [row for night in WEEK for row in night.rows]
    verified = rows[rows.outcome == "verified"]
    environments = load(data, "environments")
    say("Rows of the other datasets")
    book.line("environments", sorted(environments.environment_id), sorted(verified.environment_id))
    book.line("goals", len(load(data, "goals")), 10 * sum(row[1] > 0 and row[3] != "interrupted" for row in wanted))
    for dataset in ("goals", "attempts", "trajectories"):
        strange = set(load(data, dataset).run_id) - set(rows.run_id)
        book.line(f"{dataset} of no run", sorted(strange), [])
    say("Images")
    settle_images(week, book, environments, before)
    say("Beside them")
    for what in ("container", "volume"):
        book.line(f"{what}s", week.docker(what, "ls", "-q", *(["-a"] if what == "container" else [])), [])
    book.line("networks", sorted(week.docker("network", "ls", "--format", "{{.Name}}")), ["bridge", "host", "none"])
    for folder in ("journals/*", "runs/*/*", "unwritten/*"):
        book.line(folder, [path.name for path in (week.place / "cache").glob(folder)], [])
    say("Flow runs")
    nights: dict[int, list[str]] = {}
    for one in week.runs("nightly"):
        number = week.nights[str(one.parameters.get("resumes") or one.id)]
        nights.setdefault(number, []).append(str(one.state_name))
    for number, night in enumerate(WEEK, start=1):
        book.line(f"night {number}", nights.get(number, []), list(night.states))
    states = Counter((str(one.state_name),) for one in week.runs("build-environment"))
    names = {"verified": "Verified", "cancelled": "Cancelled", "infrastructure": "Infrastructure"}
    expected = Counter(("Crashed" if row[3] == "interrupted" else names.get(row[2], "Discarded"),) for row in wanted)
    book.line("repositories", states, expected)
    until(lambda: slots(week.client) == 0, "the slots of dead runs", 120)
    book.line("slots in use", slots(week.client), 0)


def settle_images(week: Week, book: Book, environments: pd.DataFrame, before: set[str]) -> None:
    images = dict(
        line.split("=") for line in week.docker("images", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}}={{.ID}}")
    )
    mine = {name: digest for name, digest in images.items() if name not in before}
    named = dict(zip(environments.image, environments.image_digest, strict=True))
    accepted = {name: digest for name, digest in mine.items() if name.startswith(f"{ENVIRONMENT_REPOSITORY}:")}
    book.line("environments", sorted(accepted.items()), sorted(named.items()))
    workspaces = [name for name in mine if name.startswith(f"{WORKSPACE_REPOSITORY}:")]
    # One for each commit that was ever begun, until retention has it.
    begun = {row[:2] for night in WEEK for row in night.rows if row[1]}
    book.line("initial states", len(workspaces), len(begun))
    book.line("others", sorted(set(mine) - set(accepted) - set(workspaces)), [])


def slots(client: SyncPrefectClient) -> int:
    return client.read_global_concurrency_limit_by_name(LIMIT).active_slots


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """A file system of its own, of `DISK_MB`."""
    image = path.with_suffix(".img")
    run("truncate", "-s", f"{DISK_MB}M", str(image))
    run("mkfs.ext4", "-q", "-m", "0", str(image))
    path.mkdir()
    run("mount", "-o", "loop", str(image), str(path))
    try:
        yield path
    finally:
        run("umount", str(path))
        image.unlink()


@contextmanager
def worker(place: Path, machine: Machine, environment: Mapping[str, str]) -> Iterator[None]:
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
    with (place / "worker.log").open("ab") as log:
        process = subprocess.Popen(machine.command(*command), cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def deploy(client: SyncPrefectClient) -> None:
    ensure_pool(client, POOL)
    ensure_limit(client, LIMIT, 4)
    for flow in ("nightly", "recover"):
        body = {
            "name": DEPLOYMENT,
            "flow_id": client.request("POST", "/flows/", json={"name": flow}).json()["id"],
            "work_pool_name": POOL,
            "entrypoint": f"tests.acceptance.week_night.{flow}",
            "concurrency_limit": 1,
            "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}],
            "enforce_parameter_schema": False,
        }
        client.request("POST", "/deployments/", json=body).raise_for_status()


def main() -> int:
    place = Path(sys.argv[1]).absolute()
    place.mkdir(parents=True)
    book = Book()
    with (
        prefect_server(place / "server", f"sqlite+aiosqlite:///{place}/prefect.db") as api,
        small_disk(place / "disk") as disk,
        second_machine(disk / "engine", [int(api.split(":")[2].split("/")[0])]) as machine,
        temporary_settings({PREFECT_API_URL: api}),
        get_client(sync_client=True) as client,
    ):
        here = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        carry_base([Host("here", here, None, {}), Host("week", machine.engine, machine, {})])
        deploy(client)
        environment = {
            **os.environ,
            "DOCKER_HOST": machine.engine,
            "PREFECT_API_URL": api,
            "PREFECT_HOME": str(place / "prefect"),
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "DO_NOT_TRACK": "1",
            "PYTHONPATH": str(ROOT),
            PLACE: str(place),
        }
        week = Week(place, machine, client)
        before = set(week.docker("images", "--format", "{{.Repository}}:{{.Tag}}"))
        with worker(place, machine, environment):
            for number, night in enumerate(WEEK, start=1):
                began = time.monotonic()
                said = one_night(week, number, night)
                say(f"night {number} {night.trouble}: {time.monotonic() - began:.0f} s; {said}")
        settle(week, book, before)
    say("All is as it should be." if book.right else "Something is not as it should be.")
    return 0 if book.right else 1


def one_night(week: Week, number: int, night: Night) -> str:
    begun = week.begin_night(number, night)
    if night.trouble:
        week.make_trouble(night, begun.id)
    week.wait_for(begun.id)
    state = week.client.read_flow_run(begun.id).state
    return f"{state.name}: {state.message}" if state else ""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
