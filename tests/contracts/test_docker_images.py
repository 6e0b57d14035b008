"""What a committed image says and holds, and how little of the host gets into sandbox and image."""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from autoinstall.sandbox import services
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import CAPABILITIES, DockerProvider
from autoinstall.sandbox.labels import OURS
from autoinstall.settings import PassThrough, Settings
from autoinstall.values import Probe, ProbeKind, Service

pytestmark = pytest.mark.docker

LINUX_CAPABILITIES = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
    "NET_BIND_SERVICE": 10, "SYS_CHROOT": 18, "AUDIT_WRITE": 29,
}  # fmt: skip
"""Their numbers in the kernel."""

SECRET = "s3cr3t-of-the-host"


@pytest.fixture(scope="module")
def secretive(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerProvider]:
    """A provider whose pass-through settings hold credentials."""
    bundle = tmp_path_factory.mktemp("ca") / "ca.pem"
    bundle.write_text("a certificate", encoding="utf-8")
    pass_through = PassThrough(
        ca_bundle=bundle,
        https_proxy=f"http://user:{SECRET}@proxy.example:3128",
        pip_index_url=f"https://user:{SECRET}@index.example/simple",
        env={"TOOL_TOKEN": SECRET},
    )
    provider = DockerProvider(settings.model_copy(update={"pass_through": pass_through}))
    yield provider
    provider.close()


def test_an_image_carries_the_declared_spec_and_nothing_of_the_host(
    secretive: DockerProvider, workspace_image: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_VARIABLE", SECRET)
    client = secretive.client
    with secretive.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        assert SECRET in sandbox.run("echo $https_proxy").output
        assert sandbox.run("cat $SSL_CERT_FILE").output == "a certificate"
        assert sandbox.run("echo x >$SSL_CERT_FILE").exit_code != 0
        assert sandbox.run("echo $HOST_VARIABLE").output.strip() == ""
        assert SECRET not in json.dumps(client.api.inspect_container(sandbox.id))
        sandbox.set_env("NAME", 'a "quoted" $value')
        sandbox.set_env("PLAIN", "of  a=b c'")
        snapshot = sandbox.snapshot()
        image = client.images.get(snapshot.digest)
    try:
        declared = client.images.get(workspace_image.digest).attrs["Config"]["Env"] or []
        config = image.attrs["Config"]
        assert config["Entrypoint"] == [str(services.ENTRYPOINT_FILE)]
        assert config["Cmd"] == ["bash"]
        assert (config["WorkingDir"], config["User"]) == ("/workspace", "root")
        # What an engine quotes in its own way may be in the env file alone: there or exact, never mangled.
        added = {pair for pair in config["Env"] if pair not in declared}
        assert {"PLAIN=of  a=b c'"} <= added <= {"PLAIN=of  a=b c'", 'NAME=a "quoted" $value'}
        assert set(declared) <= set(config["Env"])
        assert not config["Volumes"]
        assert SECRET not in json.dumps([image.attrs, image.history()])
        # A container that a user starts from it has the same, and no trace of the mounted bundle.
        show = ["bash", "-c", "env; ls /dev/autoinstall* 2>&1; cat /opt/autoinstall/*"]
        output = client.containers.run(snapshot.digest, show, remove=True).decode()
        assert 'NAME=a "quoted" $value\n' in output
        assert "PLAIN=of  a=b c'\n" in output
        assert "TZ=UTC" in output
        assert SECRET not in output
        assert "No such file" in output
    finally:
        secretive.remove_image(snapshot.reference)


def test_a_sandbox_is_confined(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        inspected: dict[str, Any] = provider.client.api.inspect_container(sandbox.id)
        host = inspected["HostConfig"]
        assert not host["Privileged"]
        assert "no-new-privileges" in host["SecurityOpt"]
        assert host["Memory"] == host["MemorySwap"] > 0
        assert host["NanoCpus"] > 0
        assert host["PidsLimit"] > 0
        assert not any("docker.sock" in mount["Source"] for mount in inspected["Mounts"])
        assert {mount["RW"] for mount in inspected["Mounts"]} <= {False}
        found = sandbox.run("ls /var/run/docker.sock /run/docker.sock 2>/dev/null; grep NoNewPrivs /proc/self/status")
        assert found.output.split() == ["NoNewPrivs:", "1"]
        bounding = int(sandbox.run("sed -n 's/^CapBnd:\t//p' /proc/self/status").output, 16)
        assert bounding == sum(1 << LINUX_CAPABILITIES[name] for name in CAPABILITIES)
        assert sandbox.run("mount -t tmpfs none /mnt").exit_code != 0


def test_without_network_there_is_no_route(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, network=False, purpose="test")) as sandbox:
        assert sandbox.run("cat /proc/net/route | wc -l").output.strip() == "1"


def test_the_workspace_is_the_checkout(
    provider: DockerProvider, workspace_image: Snapshot, source: WorkspaceSource
) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        assert sandbox.run("git status --porcelain").output == ""
        assert sandbox.run("git rev-parse HEAD").output.strip() == source.commit
        assert sandbox.run("stat -c '%u:%g %a' . run.sh README.md").output == "0:0 755\n0:0 755\n0:0 644\n"
        assert sandbox.run("readlink link; ./run.sh").output == "src/main.py\nran\n"
        mtime = Path(source.path, "README.md").stat().st_mtime
        assert int(sandbox.run("stat -c %Y README.md").output) == int(mtime)


def test_threads_build_a_workspace_image_once(provider: DockerProvider, base: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    source = WorkspaceSource(path=str(tmp_path), commit=os.urandom(20).hex())
    made: list[Snapshot] = []

    def build() -> None:
        made.append(provider.build_workspace_image(base.digest, source, labels={}))

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    provider.remove_image(made[0].reference)
    assert len({snapshot.digest for snapshot in made}) == 1
    assert len(made) == 3


def test_links_and_tmpfs_are_where_the_shell_sees_them(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.run("mkdir -p /srv/real && ln -s /srv/real linked && chmod 777 /srv/real")
        sandbox.write_file("linked/file", b"1", user="nobody")
        assert sandbox.run("stat -c '%U' /srv/real/file").output == "nobody\n"
        sandbox.write_file("/dev/shm/on tmpfs", b"2" * 2**20)
        assert sandbox.run("wc -c <'/dev/shm/on tmpfs'").output.strip() == str(2**20)
        with pytest.raises(OSError, match="cannot be written"):
            sandbox.write_file("/etc/passwd", b"", user="nobody")
        with pytest.raises(OSError, match="cannot be written"):
            sandbox.write_file("/proc/version", b"x")


def test_hard_links_are_read_with_their_content(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.run("mkdir d && echo same >d/a && ln d/a d/b && mkfifo d/pipe")
        entries = {entry.path: (entry.kind, entry.content) for entry in sandbox.read_tree(["/workspace/d"])}
        assert entries["/workspace/d/a"] == entries["/workspace/d/b"] == ("file", b"same\n")
        assert entries["/workspace/d/pipe"] == ("other", b"")


def test_links_are_read_as_links_wherever_they_lead(provider: DockerProvider, workspace_image: Snapshot) -> None:
    make = """
    mkdir -p d/a/link d/b && cd d && echo x >a/link/link && ln -s elsewhere b/link
    ln -s a/link/link link && ln -s link twice && ln -s a folder && ln -s gone nowhere && ln -s round round
    """
    links = {"link": "a/link/link", "twice": "link", "folder": "a", "nowhere": "gone", "b/link": "elsewhere"}
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        assert sandbox.run(make).exit_code == 0
        paths = [f"/workspace/d/{name}" for name in links]
        entries = [(entry.path, entry.kind, entry.content.decode()) for entry in sandbox.read_tree(paths)]
        assert entries == [(path, "symlink", text) for path, text in zip(paths, links.values(), strict=True)]
        assert {found.kind if found else None for found in sandbox.stat(paths)} == {"symlink"}
        to_nowhere = sandbox.stat(["/workspace/d/nowhere"])[0]
        assert to_nowhere is not None
        assert to_nowhere.target == "/workspace/d/gone"
        assert sandbox.stat(["/workspace/d/round", "/workspace/d/gone", "/workspace/d/nowhere/x"]) == (None, None, None)
        assert list(sandbox.read_tree(["/workspace/d/round", "/workspace/d/gone"])) == []
        through = [entry.path for entry in sandbox.read_tree(["/workspace/d/folder/link/link"])]
        assert through == ["/workspace/d/folder/link/link"]
        assert [entry.kind for entry in sandbox.read_tree(["/etc/localtime"])] == ["symlink"]
        assert [(entry.path, entry.kind) for entry in sandbox.read_tree(["/bin"])] == [("/bin", "symlink")]


def _writer(sandbox: Sandbox) -> Service:
    script = """#!/bin/bash
    if [ -e /run/writer.pid ] && kill -0 $(cat /run/writer.pid); then echo already running; exit 1; fi
    echo $$ >/run/writer.pid
    trap 'echo flushed >>/srv/data; rm -f /run/writer.pid; exit 0' TERM
    while true; do echo line >>/srv/data; sleep 0.01; done
    """
    sandbox.write_file("/opt/writer", script.encode(), executable=True)
    return Service(
        name="writer", command="/opt/writer", probe=Probe(kind=ProbeKind.COMMAND, target="test -s /run/writer.pid")
    )


def test_services_end_in_peace_before_a_commit(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.start_service(_writer(sandbox))
        # One that leaves its pid file behind, with the pid of a process that will be there again.
        sandbox.run(
            "setsid bash -c 'trap \"\" TERM; echo 1 >/run/stubborn.pid; sleep 1000' >/dev/null 2>&1 & sleep 0.3"
        )
        recipe = sandbox.recipe
        started = time.monotonic()
        snapshot = sandbox.snapshot()
        assert time.monotonic() - started < 20
    try:
        with provider.open(SandboxSpec(image=snapshot.digest, recipe=recipe, purpose="test")) as fresh:
            assert "flushed" in fresh.run("cat /srv/data").output
            assert fresh.run("test -e /run/stubborn.pid").exit_code == 1
            assert fresh.run("kill -0 $(cat /run/writer.pid)").exit_code == 0
        # By hand, without the product.
        output = provider.client.containers.run(snapshot.digest, ["cat", "/run/writer.pid"], remove=True)
        assert output.strip().isdigit()
    finally:
        provider.remove_image(snapshot.reference)


def test_nothing_of_a_sandbox_is_left(
    provider: DockerProvider, workspace_image: Snapshot, engine: docker.DockerClient
) -> None:
    names = []

    def interrupted() -> None:
        with provider.open(SandboxSpec(image=workspace_image.digest)) as sandbox:
            names.append(sandbox.id)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    name = names[0]
    provider.settle()
    assert not engine.containers.list(all=True, filters={"name": name})
    assert not engine.networks.list(filters={"name": name, "label": f"{OURS}=1"})


def test_the_hosts_certificates_do_not_matter_to_the_client(
    settings: Settings, workspace_image: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent.pem")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    provider = DockerProvider(settings)
    try:
        assert provider.image_exists(workspace_image.digest)
    finally:
        provider.close()


def test_scripts_of_an_environment_can_be_run(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.write_file("start.sh", services.start_script(()).encode(), executable=True)
        assert sandbox.run("bash -n start.sh && ./start.sh").exit_code == 0
        modes = [entry.executable for entry in sandbox.read_tree(["/workspace/start.sh"])]
    assert modes == [True]
