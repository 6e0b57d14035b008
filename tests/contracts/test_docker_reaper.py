"""What a killed process leaves is removed, and nothing else is."""

import subprocess
import sys
from pathlib import Path

import docker
import pytest

from autoinstall.errors import DiskFull
from autoinstall.sandbox.contract import SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.sandbox.labels import Kind, current_process, labels
from autoinstall.sandbox.reaper import reap
from autoinstall.settings import Settings

pytestmark = pytest.mark.docker

# Opens a sandbox with a root-owned volume and network, commits another, says so, and waits to be killed.
WORKER = """
import sys, time
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.settings import Settings
provider = DockerProvider(Settings())
with provider.open(SandboxSpec(image=sys.argv[1], purpose="test", owner=sys.argv[2])) as first:
    accepted = provider.tag(first.snapshot(), "autoinstall/environment:reaper-test")
with provider.open(SandboxSpec(image=sys.argv[1], purpose="test", owner=sys.argv[2])) as other:
    attempt = other.snapshot()
with provider.open(SandboxSpec(image=sys.argv[1], purpose="test", owner=sys.argv[2])) as second:
    second.run("touch /workspace/owned-by-root")
    print(second.id, accepted.reference, attempt.reference, flush=True)
    time.sleep(600)
"""


def killed_worker(image: str, owner: str) -> tuple[str, str, str]:
    """Names of what a worker has left behind: a container, an accepted image, and one of an attempt."""
    worker = subprocess.Popen([sys.executable, "-c", WORKER, image, owner], stdout=subprocess.PIPE, text=True)
    assert worker.stdout
    container, reference, attempt = worker.stdout.readline().split()
    worker.kill()
    worker.wait()
    worker.stdout.close()
    return container, reference, attempt


def test_only_what_dead_processes_hold_is_removed(
    provider: DockerProvider, workspace_image: Snapshot, engine: docker.DockerClient, tmp_path: Path
) -> None:
    container, reference, attempt = killed_worker(workspace_image.digest, "reaper-test")
    # A user's own container from one of our images, and what a worker on another host holds.
    users = engine.containers.create(reference, ["sleep", "1"])
    foreign_labels = labels(Kind.SANDBOX, "test", "") | {
        "autoinstall.process": str(current_process()._replace(host="another"))
    }
    foreign = engine.containers.create(workspace_image.digest, ["sleep", "1"], labels=foreign_labels)
    try:
        with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as live:
            assert reap(engine, tmp_path, live_owners=["reaper-test"]).containers.count(container) == 0
            report = reap(engine, tmp_path)
            assert container in report.containers
            assert f"{container}-net" in report.networks
            assert reference not in report.images
            assert attempt in report.images
            assert live.run("echo alive").output == "alive\n"
        assert not engine.containers.list(all=True, filters={"name": container})
        assert not engine.networks.list(filters={"name": container})
        assert {box.id for box in engine.containers.list(all=True)} >= {users.id, foreign.id}
        users.remove(force=True)
        # Which environments are needed is the caller's to say.
        kept = {tag for image in engine.images.list() for tag in image.tags}
        assert reference not in reap(engine, tmp_path, keep=kept).images
        # Podman names it with a registry in front.
        others = {tag for tag in kept if not tag.endswith(reference)}
        assert reference in reap(engine, tmp_path, keep=others).images
        assert not provider.image_exists(reference)
        assert provider.image_exists(workspace_image.digest)
    finally:
        for leftover in (users, foreign):
            try:
                leftover.remove(force=True)
            except docker.errors.NotFound:
                continue


def test_an_expired_environment_goes_by_all_its_names_and_the_freed_bytes_are_told(
    provider: DockerProvider, workspace_image: Snapshot, engine: docker.DockerClient, tmp_path: Path
) -> None:
    """Though the process that made it lives."""
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.run("head -c 30000000 /dev/urandom > /opt/large")
        made = provider.tag(sandbox.snapshot(), "autoinstall/environment:expired-0123")
    engine.api.tag(made.digest, "registry.test/environments", "expired-0123")
    try:
        assert "expired-0123" in str(reap(engine, tmp_path, expired=["expired-0123"], dry_run=True).images)
        assert provider.image_exists(made.reference)
        assert reap(engine, tmp_path, expired=["another"]).images.count(made.reference) == 0
        found = reap(engine, tmp_path, expired=["expired-0123"], measure=True)
        assert {made.reference, "registry.test/environments:expired-0123"} <= set(found.images)
        assert found.freed_bytes > 15_000_000
        assert not provider.image_exists(made.digest)
    finally:
        provider.remove_image("registry.test/environments:expired-0123")
        provider.remove_image(made.reference)


def test_low_disk_starts_nothing_new(settings: Settings, workspace_image: Snapshot) -> None:
    no_room = settings.model_copy(update={"engine": settings.engine.model_copy(update={"min_free_mb": 10**9})})
    provider = DockerProvider(no_room)
    try:
        with pytest.raises(DiskFull), provider.open(SandboxSpec(image=workspace_image.digest)):
            pass
    finally:
        provider.close()
