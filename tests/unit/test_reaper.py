"""Which images a host removes, told from what its engine lists."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker import DockerClient
from docker.errors import ImageNotFound

from autoinstall.sandbox.labels import ENVIRONMENT_REPOSITORY, KIND, OURS, PROCESS, Kind, current_process
from autoinstall.sandbox.reaper import reap

DAY = 86400.0
PULLED = "registry.example.org/team/environments@sha256:" + "a" * 64
ELSEWHERE = str(current_process()._replace(host="another"))
GONE = str(current_process()._replace(started=1))


def image(days: float, kind: Kind, process: str, *, tags: list[str] | None = None, digest: str = "") -> dict[str, Any]:
    return {
        "Id": f"sha256:{days}",
        "Created": int(time.time() - days * DAY),
        "RepoTags": tags or ["<none>:<none>"],
        "RepoDigests": [digest or "<none>@<none>"],
        "Labels": {OURS: "1", KIND: kind.value, PROCESS: process},
    }


@pytest.mark.parametrize(
    ("listed", "goes"),
    [
        (image(20, Kind.ENVIRONMENT, ELSEWHERE, digest=PULLED), True),
        (image(10, Kind.ENVIRONMENT, ELSEWHERE, digest=PULLED), False),
        # What this host made and pushed has its name here, and is the datasets'.
        (image(20, Kind.ENVIRONMENT, GONE, tags=[f"{ENVIRONMENT_REPOSITORY}:a"], digest=PULLED), False),
        (image(20, Kind.ENVIRONMENT, GONE), True),
        (image(20, Kind.ENVIRONMENT, ELSEWHERE), False),
    ],
)
def test_images_that_a_registry_has_are_kept_for_a_while(listed: dict[str, Any], goes: bool, tmp_path: Path) -> None:
    removed: list[str] = []
    api = SimpleNamespace(
        containers=lambda **_: [],
        networks=lambda **_: [],
        images=lambda **_: [listed],
        remove_image=removed.append,
    )
    report = reap(cast(DockerClient, SimpleNamespace(api=api)), tmp_path, workspace_days=14)
    assert list(report.images) == removed == ([listed["Id"]] if goes else [])


def test_an_image_that_another_process_has_just_removed_is_no_failure(tmp_path: Path) -> None:
    def gone(_: str) -> None:
        raise ImageNotFound("No such image")

    listed = image(20, Kind.ENVIRONMENT, GONE)
    api = SimpleNamespace(
        containers=lambda **_: [], networks=lambda **_: [], images=lambda **_: [listed], remove_image=gone
    )
    report = reap(cast(DockerClient, SimpleNamespace(api=api)), tmp_path, workspace_days=14)
    assert report.failed == ()
