"""What sandboxes cannot reach: the host's services above all; and what they still can."""

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from docker import DockerClient

from autoinstall.errors import EngineFailed
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.sandbox.egress import Egress, host_networks
from autoinstall.settings import EngineSettings, PassThrough, Settings
from autoinstall.values import Probe, ProbeKind, Recipe, Sidecar

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    """A service of the host on all its addresses; its port."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        stop = threading.Event()

        def serve() -> None:
            server.settimeout(0.2)
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, _ = server.accept()
                    connection.sendall(b"a service of the host\n")
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        stop.set()
        thread.join()


def reaches(sandbox: Sandbox, address: str, port: int) -> bool:
    """Whether a connection comes about; where it does not, that it was refused and not waited for in vain."""
    result = sandbox.run(f"exec 3<>/dev/tcp/{address}/{port}", timeout=30)
    assert not result.timed_out
    return result.exit_code == 0


def gateway(sandbox: Sandbox, engine: DockerClient) -> str:
    """The host's end of the sandbox's network."""
    networks = engine.api.inspect_container(sandbox.id)["NetworkSettings"]["Networks"]
    (name,) = networks
    return str(engine.api.inspect_network(name)["IPAM"]["Config"][0]["Gateway"])


def answering(base: Snapshot) -> Sidecar:
    return Sidecar(
        alias="neighbour",
        image=base.digest,
        command=("python3", "-m", "http.server", "7000"),
        ports=(7000,),
        probe=Probe(kind=ProbeKind.HTTP, target="http://neighbour:7000/", timeout=20),
    )


@pytest.mark.parametrize("network", [True, False])
def test_the_host_is_out_of_reach_and_a_sidecar_is_not(
    provider: DockerProvider, base: Snapshot, engine: DockerClient, service: int, network: bool
) -> None:
    spec = SandboxSpec(image=base.digest, network=network, purpose="test")
    with provider.open(spec) as sandbox:
        sandbox.start_sidecar(answering(base))
        addresses = {
            gateway(sandbox, engine),
            *(str(own.network_address) for own in host_networks() if own.version == 4),
        }
        assert addresses
        for address in addresses:
            assert not reaches(sandbox, address, service), f"the host's service answers on {address}"
        for address in ("169.254.169.254", "192.168.255.1", "100.100.100.200"):
            assert not reaches(sandbox, address, 80)
        # An alias is resolved by the engine, and the way there is within the sandbox's own network.
        assert sandbox.run("curl -sf http://neighbour:7000/ >/dev/null").exit_code == 0
        recipe = sandbox.recipe
        # The sidecar is no way around it.
        for container in engine.containers.list(filters={"name": f"{sandbox.id}-neighbour"}):
            found = container.exec_run(["bash", "-c", f"exec 3<>/dev/tcp/{gateway(sandbox, engine)}/{service}"])
            assert found.exit_code != 0
        for undo in ("ip rule flush", "ip rule del pref 400", "ip route add 1.2.3.4 dev lo"):
            assert sandbox.run(undo).exit_code != 0
    provider.settle()
    assert not engine.containers.list(all=True, filters={"name": sandbox.id})
    with provider.open(spec.model_copy(update={"recipe": recipe})) as fresh:
        assert fresh.run("curl -sf http://neighbour:7000/ >/dev/null").exit_code == 0
        assert not reaches(fresh, gateway(fresh, engine), service)


def test_indexes_and_name_servers_stay_reachable(provider: DockerProvider, base: Snapshot) -> None:
    with provider.open(SandboxSpec(image=base.digest, purpose="test")) as sandbox:
        done = sandbox.run("pip download -q --no-deps --no-cache-dir -d /tmp/got six && ls /tmp/got", timeout=120)
        assert done.exit_code == 0, done.output
        assert "six" in done.output
        assert sandbox.run('getent hosts "$(hostname)"').exit_code == 0


def test_without_the_guard_the_host_answers(base: Snapshot, engine: DockerClient, service: int) -> None:
    """So that the tests above are known to be able to fail."""
    with opened(base, EngineSettings(block_private=False)) as sandbox:
        assert reaches(sandbox, gateway(sandbox, engine), service)


def test_hosts_that_the_settings_name_are_reached_on_their_port_alone(
    base: Snapshot, engine: DockerClient, service: int
) -> None:
    bridge = str(engine.api.inspect_network("bridge")["IPAM"]["Config"][0]["Gateway"])
    proxy = PassThrough(http_proxy=f"http://{bridge}:{service}")
    with socket.create_server(("0.0.0.0", 0)) as other, opened(base, EngineSettings(), proxy) as sandbox:
        assert reaches(sandbox, bridge, service)
        assert not reaches(sandbox, bridge, other.getsockname()[1])
    with opened(base, EngineSettings(allow_hosts=(bridge,))) as sandbox:
        assert reaches(sandbox, bridge, service)
        assert not reaches(sandbox, gateway(sandbox, engine), service)


def test_an_engine_that_connects_at_once_is_guarded_too(
    base: Snapshot, engine: DockerClient, service: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Egress, "connects_later", False)
    recipe = Recipe(sidecars=(answering(base),))
    with opened(base, EngineSettings(), recipe=recipe) as sandbox:
        assert not reaches(sandbox, gateway(sandbox, engine), service)
        assert sandbox.run("curl -sf http://neighbour:7000/ >/dev/null").exit_code == 0


def test_an_engine_that_refuses_is_warned_of_once(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Egress) -> str:
        raise EngineFailed("NET_ADMIN is not for you")

    monkeypatch.setattr(Egress, "_trusted_image", refuse)
    recipe = Recipe(sidecars=(answering(base),))
    with caplog.at_level(logging.WARNING), opened(base, EngineSettings(), recipe=recipe) as sandbox:
        assert sandbox.run("curl -sf http://neighbour:7000/ >/dev/null").exit_code == 0
    assert caplog.text.count("NET_ADMIN is not for you") == 1


@contextlib.contextmanager
def opened(
    base: Snapshot, engine: EngineSettings, pass_through: PassThrough | None = None, recipe: Recipe | None = None
) -> Iterator[Sandbox]:
    """A sandbox of a provider with settings of its own."""
    provider = DockerProvider(Settings(engine=engine, pass_through=pass_through or PassThrough()))
    try:
        with provider.open(SandboxSpec(image=base.digest, recipe=recipe or Recipe(), purpose="test")) as sandbox:
            yield sandbox
    finally:
        provider.close()
