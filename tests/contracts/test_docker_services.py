"""Services and sidecars: ready before they are handed out, the same in a fresh container, gone afterwards."""

import docker
import pytest

from autoinstall.errors import ServiceNotReady
from autoinstall.sandbox.contract import SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.values import Probe, ProbeKind, Service, Sidecar

pytestmark = pytest.mark.docker

SERVE = "exec python3 -u -m http.server 8123"


def web(user: str = "root") -> Service:
    probe = Probe(kind=ProbeKind.HTTP, target="http://localhost:8123/README.md", timeout=20)
    return Service(name="web", command=f"id -un; sleep 0.5; {SERVE}", probe=probe, user=user)


def cache(base: Snapshot) -> Sidecar:
    """A sidecar that answers, with an environment variable of its own, after a while."""
    program = (
        "import os, time, socketserver; time.sleep(0.5); "
        "handler = type('H', (socketserver.StreamRequestHandler,), "
        "{'handle': lambda self: self.wfile.write(os.environ['ANSWER'].encode())}); "
        "socketserver.TCPServer(('', 7000), handler).serve_forever()"
    )
    return Sidecar(
        alias="cache",
        image=base.digest,
        command=("python3", "-c", program),
        env={"ANSWER": "from the sidecar"},
        ports=(7000,),
        probe=Probe(kind=ProbeKind.TCP, target="cache:7000", timeout=20),
    )


def test_a_service_is_ready_outlives_calls_and_is_started_again_from_its_image(
    provider: DockerProvider, workspace_image: Snapshot, engine: docker.DockerClient
) -> None:
    fetch = "python3 -c \"import urllib.request as u; print(u.urlopen('http://localhost:8123/README.md').read())\""
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.start_service(web(user="nobody"))
        assert "A sample" in sandbox.run(fetch).output
        assert sandbox.run("sleep 60 & sleep 60", timeout=1).timed_out
        assert "A sample" in sandbox.run(fetch).output, "a time limit hit a service"
        assert sandbox.run("head -1 /var/log/autoinstall/web.log").output == "nobody\n"
        recipe = sandbox.recipe
        assert recipe.services == (web(user="nobody"),)
        snapshot = sandbox.snapshot()
    try:
        with provider.open(SandboxSpec(image=snapshot.digest, recipe=recipe, purpose="test")) as fresh:
            assert "A sample" in fresh.run(fetch).output
            # Running the start script again finds it running.
            assert fresh.run("/opt/autoinstall/start.sh && pgrep -fc '^python3 -u'").output.strip() == "1"
        output = engine.containers.run(snapshot.digest, ["bash", "-c", fetch], remove=True)
        assert b"A sample" in output
    finally:
        provider.remove_image(snapshot.reference)


def test_a_service_that_ends_is_named_with_its_log(provider: DockerProvider, workspace_image: Snapshot) -> None:
    probe = Probe(kind=ProbeKind.TCP, target="9999", timeout=30)
    service = Service(name="broken", command="echo the reason it gives; exit 3", probe=probe)
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        with pytest.raises(ServiceNotReady, match=r"broken.*status 3[\s\S]*the reason it gives"):
            sandbox.start_service(service)
        slow = Service(name="slow", command="sleep 1234", probe=probe.model_copy(update={"timeout": 1}))
        with pytest.raises(ServiceNotReady, match="slow is not ready"):
            sandbox.start_service(slow)
        assert sandbox.recipe.services == ()
        assert sandbox.run("pgrep -f 'sleep 123[4]'").exit_code == 1, "it was left running"


def test_a_service_that_puts_itself_into_the_background_serves(
    provider: DockerProvider, workspace_image: Snapshot
) -> None:
    daemon = f"(sleep 0.5; {SERVE}) >/dev/null 2>&1 & exit 0"
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.start_service(web().model_copy(update={"command": daemon}))
        assert sandbox.recipe.services


def test_probes_need_no_more_than_bash(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        sandbox.run("rm -f $(type -ap curl wget nc)")
        sandbox.start_service(web())
        absent = Probe(kind=ProbeKind.HTTP, target="http://localhost:8123/absent", timeout=10)
        sandbox.start_service(Service(name="idle", command="sleep 1000", probe=absent))  # 404 is an answer


@pytest.mark.parametrize("network", [True, False])
def test_a_sidecar_is_reached_by_its_alias_and_destroyed(
    provider: DockerProvider, workspace_image: Snapshot, base: Snapshot, engine: docker.DockerClient, network: bool
) -> None:
    ask = "exec 3<>/dev/tcp/cache/7000; cat <&3"
    with provider.open(SandboxSpec(image=workspace_image.digest, network=network, purpose="test")) as sandbox:
        name = sandbox.id
        sandbox.start_sidecar(cache(base))
        assert sandbox.run(ask, timeout=20).output == "from the sidecar"
        recipe = sandbox.recipe
        assert len(engine.containers.list(all=True, filters={"name": name})) >= 2
    provider.settle()
    assert not engine.containers.list(all=True, filters={"name": name})
    assert not engine.networks.list(filters={"name": name})
    spec = SandboxSpec(image=workspace_image.digest, recipe=recipe, network=network, purpose="test")
    with provider.open(spec) as fresh:
        assert fresh.run(ask, timeout=20).output == "from the sidecar"
        if not network:
            assert fresh.run("exec 3<>/dev/tcp/1.1.1.1/53", timeout=10).exit_code != 0


def test_a_sidecar_that_does_not_answer_is_named_with_its_log(
    provider: DockerProvider, workspace_image: Snapshot, base: Snapshot, engine: docker.DockerClient
) -> None:
    sidecar = cache(base).model_copy(
        update={
            "command": ("bash", "-c", "echo its own words; sleep 100"),
            "probe": Probe(kind=ProbeKind.TCP, target="cache:7000", timeout=1),
        }
    )
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        with pytest.raises(ServiceNotReady, match=r"cache[\s\S]*its own words"):
            sandbox.start_sidecar(sidecar)
        assert sandbox.recipe.sidecars == ()
        assert len(engine.containers.list(all=True, filters={"name": sandbox.id})) == 1
