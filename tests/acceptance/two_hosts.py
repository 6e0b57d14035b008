"""A night over two hosts, all parts real: `python -m tests.acceptance.two_hosts DIRECTORY [LIST]`.

Two workers on two engines with separate storage and networks; Prefect's server on PostgreSQL; an image registry that
wants a login; datasets in an S3-compatible storage. The night is started from its deployment and spread over both. Then
each environment is verified on the host that did not build it, from its row alone, and a schedule that no worker
answered for a while is looked at.

Needs root, dockerd, iproute2, iptables, PostgreSQL and docker-registry (`apt-get install postgresql docker-registry`).
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId, FlowRunFilterExpectedStartTime
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.settings import PREFECT_API_URL, temporary_settings

from autoinstall.datasets import reader
from autoinstall.datasets.records import EnvironmentRecord
from autoinstall.datasets.store import store_of
from autoinstall.sandbox.engine import connect
from autoinstall.sandbox.images import ensure_base
from autoinstall.settings import EngineSettings, Settings
from tests.acceptance.machines import Machine, run, second_machine
from tests.acceptance.services import postgres, prefect_server, registry, until
from tests.storage import BUCKET, storage_server

ROOT = Path(__file__).resolve().parents[2]
USER, PASSWORD = "builder", "secret-of-the-registry"
NIGHT_SECONDS = 3600


@dataclass(frozen=True)
class Host:
    """A worker's host; `machine` is None for this one."""

    name: str
    engine: str
    machine: Machine | None
    environment: dict[str, str]

    def command(self, *command: str) -> list[str]:
        return self.machine.command(*command) if self.machine else list(command)

    def images(self) -> set[str]:
        """The ids of the environments that this host's engine has."""
        listed = run("docker", "-H", self.engine, "images", "--no-trunc", "-q", "autoinstall/environment")
        return set(listed.split())


def main() -> int:
    directory = Path(sys.argv[1]).absolute()
    with ExitStack() as stack:
        database = stack.enter_context(postgres(directory / "postgres"))
        api = stack.enter_context(prefect_server(directory / "prefect", database))
        images = stack.enter_context(registry(directory / "registry", USER, PASSWORD))
        storage = stack.enter_context(storage_server())
        ports = [int(address.rstrip("/api").rpartition(":")[2]) for address in (api, images, storage.endpoint)]
        machine = stack.enter_context(second_machine(directory / "second", ports))
        say("server on PostgreSQL, registry, storage and a second engine are up")
        shared = {
            **os.environ,
            **storage.variables(),
            "PREFECT_API_URL": api,
            "PREFECT_CLIENT_MAX_RETRIES": "8",
            "PYTHONPATH": str(ROOT),
            "AUTOINSTALL_HOME": str(ROOT),
            "AUTOINSTALL_DATA": f"s3://{BUCKET}/nights",
            "AUTOINSTALL_REGISTRY__REPOSITORY": f"{images}/team/environments",
            "AUTOINSTALL_REGISTRY__USERNAME": USER,
            "AUTOINSTALL_REGISTRY__PASSWORD": PASSWORD,
        }
        first_engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        hosts = [
            host(directory, "first", first_engine, None, shared),
            host(directory, "second", machine.engine, machine, shared),
        ]
        carry_base(hosts)
        before = hosts[0].images()
        stack.callback(remove_images, hosts[0], before)
        subprocess.run([sys.executable, "deployments/apply.py"], cwd=ROOT, env=shared, check=True)
        list_file = Path(sys.argv[2]) if len(sys.argv) > 2 else samples(directory)
        with temporary_settings({PREFECT_API_URL: api}), get_client(sync_client=True) as client:
            with workers(directory, hosts):
                night = start_night(client, list_file)
                say(f"the night ended as {night.state}")
            data = store_of(shared["AUTOINSTALL_DATA"], storage.settings)
            built = show_rows(client, data, night, hosts, before)
            verified = [verify_elsewhere(hosts, place, record) for place, record in built]
            missed = missed_nights(client, directory, hosts)
        both = {place for place, _ in built} == {0, 1}
        say(f"both hosts built: {both}; verified elsewhere: {sum(verified)} of {len(verified)}")
        say(f"of missed nights one was done: {missed}")
        leaks = PASSWORD in "".join(path.read_text(errors="replace") for path in directory.glob("*.log"))
        say(f"the registry's password is in a log: {leaks}")
        return 0 if both and all(verified) and missed and not leaks else 1


def host(directory: Path, name: str, engine: str, machine: Machine | None, shared: dict[str, str]) -> Host:
    own = {
        "DOCKER_HOST": engine,
        "AUTOINSTALL_ENGINE__HOST": engine,
        "AUTOINSTALL_CACHE": str(directory / f"{name}-cache"),
        "PREFECT_HOME": str(directory / f"{name}-prefect"),
    }
    return Host(name, engine, machine, {**shared, **own})


def samples(directory: Path) -> Path:
    made = run(sys.executable, str(ROOT / "data/make_samples.py"), str(directory / "samples"))
    return Path(made.strip().splitlines()[-1])


def carry_base(hosts: Sequence[Host]) -> None:
    """Give the second engine the first one's base, instead of minutes of building it again."""
    settings = Settings(engine=EngineSettings(host=hosts[0].engine))
    client = connect(settings)
    names = [ensure_base(client, settings).reference, "autoinstall/debian:bookworm"]
    client.close()
    save = subprocess.Popen(["docker", "-H", hosts[0].engine, "save", *names], stdout=subprocess.PIPE)
    load = ["docker", "-H", hosts[1].engine, "load", "-q"]
    subprocess.run(load, stdin=save.stdout, check=True, stdout=subprocess.DEVNULL)
    if save.wait() != 0:
        raise RuntimeError("the base image could not be carried over")


@contextmanager
def workers(directory: Path, hosts: Sequence[Host]) -> Iterator[None]:
    """A worker on each host: the first may do the night and one repository, the second one repository."""
    running = []
    for place, limit in zip(hosts, ("2", "2"), strict=False):
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "autoinstall", "--type", "process"]
        command += ["--name", place.name, "--limit", limit]
        with (directory / f"worker-{place.name}.log").open("ab") as log:
            running.append(
                subprocess.Popen(place.command(*command), cwd=ROOT, env=place.environment, stdout=log, stderr=log)
            )
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:  # nothing runs there any more
                process.kill()
                process.wait()


def start_night(client: SyncPrefectClient, list_file: Path) -> FlowRun:
    deployment = client.read_deployment_by_name("nightly/nightly")
    parameters = {"repositories": str(list_file), "concurrency": 3}
    night = client.create_flow_run_from_deployment(deployment.id, parameters=parameters)
    until(lambda: is_over(client, night.id), "the night", NIGHT_SECONDS)
    return client.read_flow_run(night.id)


def is_over(client: SyncPrefectClient, run_id: UUID) -> bool:
    state = client.read_flow_run(run_id).state
    return state is not None and state.is_final()


def show_rows(
    client: SyncPrefectClient, data: Any, night: FlowRun, hosts: Sequence[Host], before: set[str]
) -> list[tuple[int, EnvironmentRecord]]:
    """Print each repository's row, and give the environments with the index of the host that built them."""
    rows = [row for row in reader.repositories(data) if row.night_id == str(night.id)]
    environments = {record.environment_id: record for record in reader.environments(data)}
    here = hosts[0].images() - before
    built = []
    for row in rows:
        record = environments.get(row.environment_id or "")
        place = None if record is None else 0 if record.image_digest in here else 1
        where = "-" if place is None else hosts[place].name
        name = row.repository.rpartition("/")[2]
        say(f"{row.outcome:12} {name:16} {row.seconds:6.0f} s  on {where:7} {row.image or ''}")
        if record is not None and place is not None:
            if record.image_digest not in hosts[place].images():
                raise RuntimeError(f"{record.environment_id} is on neither engine")
            built.append((place, record))
    return built


def verify_elsewhere(hosts: Sequence[Host], place: int, record: EnvironmentRecord) -> bool:
    other = hosts[1 - place]
    if record.image_digest in other.images():
        raise RuntimeError(f"{record.environment_id} is on both engines")
    command = [sys.executable, "-m", "cli.main", "verify", record.environment_id, "--json"]
    begun = time.monotonic()
    done = subprocess.run(
        other.command(*command), cwd=ROOT, env=other.environment, check=False, capture_output=True, text=True
    )
    outcome = json.loads(done.stdout)["outcome"] if done.stdout else done.stderr[-500:]
    say(f"{record.environment_id}: {outcome} on {other.name} after {time.monotonic() - begun:.0f} s (pull included)")
    return done.returncode == 0


def missed_nights(client: SyncPrefectClient, directory: Path, hosts: Sequence[Host]) -> bool:
    """Let a schedule of every 15 seconds be without a worker for a while, and see what one makes of it afterwards: at
    most one of the nights that were missed is done."""
    deployment = client.read_deployment_by_name("nightly/nightly")
    for schedule in deployment.schedules:
        client.delete_deployment_schedule(deployment.id, schedule.id)
    begun = datetime.now(UTC)
    client.create_deployment_schedules(deployment.id, [(IntervalSchedule(interval=timedelta(seconds=15)), True)])
    time.sleep(75)
    missed = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[deployment.id]),
        expected_start_time=FlowRunFilterExpectedStartTime(after_=begun, before_=datetime.now(UTC)),
    )
    due = [found.id for found in client.read_flow_runs(flow_run_filter=missed)]
    with workers(directory, hosts):
        until(lambda: all(is_over(client, run_id) for run_id in due), "the missed nights", 900)
        (schedule,) = client.read_deployment_schedules(deployment.id)
        client.delete_deployment_schedule(deployment.id, schedule.id)
    names = sorted(str(client.read_flow_run(run_id).state_name) for run_id in due)
    say(f"{len(due)} nights were due without a worker; they became {', '.join(names)}")
    return len(due) >= 3 and names.count("Superseded") >= len(due) - 1


def remove_images(place: Host, before: set[str]) -> None:
    for image in place.images() - before:
        subprocess.run(["docker", "-H", place.engine, "rmi", "-f", image], check=False, capture_output=True)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
