"""What a night leaves behind when its process ends early, with a real engine and a real process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pandas as pd
import pytest

from autoinstall.sandbox.contract import Snapshot, WorkspaceSource

pytestmark = [pytest.mark.prefect, pytest.mark.docker, pytest.mark.slow]

MARK = "sleep 3600.25"


class Night:
    """`autoinstall` in a process of its own, on one repository whose goal never ends."""

    def __init__(self, place: Path, repository: Path, base: Snapshot) -> None:
        self.data = place / "data"
        self._log = place / "night.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
            "PREFECT_HOME": str(place / "prefect"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "AUTOINSTALL_CACHE": str(place / "cache"),
            "AUTOINSTALL_BASE_IMAGE": base.digest,
        }
        goals = place / "goals.json"
        goals.write_text(json.dumps([{"command": MARK, "description": "never ends, which is what this test is for"}]))
        arguments = ["run", str(repository), "--data", str(self.data), "--goals", str(goals)]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli.main", *arguments],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # Whoever runs the tests in the background has it ignored, and so all that is started there.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
            )

    def wait_for_the_goal(self, engine: docker.DockerClient) -> str:
        """Until the goal's command runs in a sandbox of this night; the container's name."""
        end = time.monotonic() + 240
        while time.monotonic() < end:
            assert self.process.poll() is None, self._log.read_text()
            for name in self.containers(engine):
                try:
                    if MARK in str(engine.containers.get(name).top()):
                        return name
                except docker.errors.APIError:
                    continue
            time.sleep(0.5)
        raise AssertionError(f"the goal never ran: {self._log.read_text()}")

    def containers(self, engine: docker.DockerClient) -> list[str]:
        """Names of this night's containers."""
        found = engine.api.containers(all=True, filters={"label": "autoinstall=1"})
        mine = [item for item in found if f"/{self.process.pid}/" in item["Labels"].get("autoinstall.process", "")]
        return [item["Names"][0].lstrip("/") for item in mine]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command of the same installation."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def night(tmp_path: Path, source: WorkspaceSource, base: Snapshot) -> Iterator[Night]:
    """A night that is under way."""
    night = Night(tmp_path, Path(source.path), base)
    yield night
    with contextlib.suppress(ProcessLookupError):
        os.killpg(night.process.pid, signal.SIGKILL)
    night.process.wait()
    night.command("prune")


def to_the_process(night: Night) -> None:
    """As a scheduler ends it."""
    night.process.send_signal(signal.SIGTERM)


def to_the_group(night: Night) -> None:
    """As ^C on a terminal does, which all processes of the group hear."""
    os.killpg(night.process.pid, signal.SIGINT)


@pytest.mark.parametrize("end", [to_the_process, to_the_group])
def test_a_run_that_is_ended_closes_its_sandboxes_and_says_so(
    night: Night, engine: docker.DockerClient, end: Callable[[Night], None]
) -> None:
    night.wait_for_the_goal(engine)
    begun = time.monotonic()
    end(night)
    assert night.process.wait(timeout=60) == 130
    assert time.monotonic() - begun < 60
    assert night.containers(engine) == []
    rows = pd.read_parquet(night.data / "repositories")
    assert list(rows.outcome) == ["cancelled"], rows.reason.tolist()


def test_what_a_killed_run_left_is_pruned_and_nothing_else(night: Night, engine: docker.DockerClient) -> None:
    left = night.wait_for_the_goal(engine)
    bystander = engine.api.create_container(engine_image(engine, left), "true")
    try:
        night.process.kill()
        night.process.wait()
        assert left in night.containers(engine)

        pruned = night.command("prune", "--json")

        assert pruned.returncode == 0, pruned.stderr
        assert left in json.loads(pruned.stdout)["containers"]
        assert night.containers(engine) == []
        assert engine.containers.get(bystander["Id"])
    finally:
        engine.api.remove_container(bystander["Id"], force=True)


def engine_image(engine: docker.DockerClient, container: str) -> str:
    """The image of a container."""
    return str(engine.api.inspect_container(container)["Image"])
