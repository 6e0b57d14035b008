"""A sandbox's network of its own, and the containers beside it."""

import contextlib
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import docker.errors
from docker.types import LogConfig

from autoinstall.errors import ServiceNotReady
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.labels import Kind, labels
from autoinstall.values import Sidecar

if TYPE_CHECKING:
    from docker.api.client import APIClient

    from autoinstall.sandbox.egress import Egress

LOG_TAIL_LINES = 60
_REMOVAL_SECONDS = 20.0


@dataclass
class Neighbourhood:
    """The network of one sandbox and the sidecars on it; made on demand, removed by `close`.

    Attributes:
        name: of the sandbox's container; the network and the sidecars derive theirs from it.
        open: False makes a network without a route out.
        egress: keeps the sandbox and its sidecars away from the host and private networks.
    """

    api: "APIClient"
    name: str
    purpose: str
    owner: str
    open: bool
    egress: "Egress"
    _network: str | None = None
    _attached: bool = False
    _sidecars: dict[str, str] = field(default_factory=dict)
    _held: dict[str, str] = field(default_factory=dict)

    @property
    def connects_later(self) -> bool:
        """Whether the sandbox's container is to be started without a network, for `attach` to guard and connect it."""
        return self.egress.active and self.egress.connects_later

    def make(self) -> str:
        """The network's id; made where there is none yet."""
        if self._network is None:
            with engine_errors("make a network for the sandbox"):
                made = self.api.create_network(
                    f"{self.name}-net",
                    driver="bridge",
                    internal=not self.open,
                    labels=labels(Kind.NETWORK, self.purpose, self.owner),
                    check_duplicate=True,
                )
                self._network = str(made["Id"])
        return self._network

    def attach(self, container: str, *, connected: bool = False) -> None:
        """See to it that the sandbox's running container is on this network, and guarded, before it is if the engine
        can. Does nothing the second time.

        Args:
            connected: it was started on the network; otherwise it has none.
        """
        if self._attached:
            return
        if self.egress.active:
            self.egress.guard(container, self.make(), self.purpose, self.owner)
        if not connected:
            with engine_errors("connect the sandbox to its network", sandbox=True):
                self.api.disconnect_container_from_network(container, "none")
                self.api.connect_container_to_network(container, self.make())
        self._attached = True

    def start(self, sidecar: Sidecar, image: str, bounds: dict[str, Any]) -> None:
        """Start a sidecar; `bounds` are the host configuration that it shares with the sandbox."""
        if self.egress.active:
            held = self.egress.hold(self, sidecar)
            if held is not None:
                self._held[sidecar.alias] = held
        with engine_errors(f"start sidecar {sidecar.alias}"):
            try:
                container = self._create(sidecar, image, bounds, init=True)
            except docker.errors.APIError as error:
                if "container-init binary not found" not in str(error.explanation):
                    raise
                # Podman where no init program is installed: the sidecar's own process is its init process then.
                container = self._create(sidecar, image, bounds, init=False)
            self._sidecars[sidecar.alias] = container
            self.api.start(container)

    def _create(self, sidecar: Sidecar, image: str, bounds: dict[str, Any], *, init: bool) -> str:
        held = self._held.get(sidecar.alias)
        network: dict[str, Any] = {}
        if held is None:
            endpoint = self.api.create_endpoint_config(aliases=[sidecar.alias])
            network = {
                "ports": list(sidecar.ports) or None,
                "networking_config": {"EndpointsConfig": {self.make(): endpoint}},
            }
        made = self.api.create_container(
            image,
            command=list(sidecar.command) or None,
            use_config_proxy=False,
            name=f"{self.name}-{sidecar.alias}-{secrets.token_hex(2)}",
            environment=dict(sidecar.env),
            labels=labels(Kind.SIDECAR, self.purpose, self.owner),
            **network,
            host_config=self.api.create_host_config(
                **bounds,
                network_mode=self.make() if held is None else f"container:{held}",
                init=init,
                log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
            ),
        )
        return str(made["Id"])

    def not_ready(self, sidecar: Sidecar, reason: str) -> ServiceNotReady:
        """The error for a sidecar whose probe failed, with the end of its log."""
        log = b""
        with contextlib.suppress(docker.errors.APIError), engine_errors("read a sidecar's log"):
            log = self.api.logs(self._sidecars[sidecar.alias], tail=LOG_TAIL_LINES)
        tail = log.decode("utf-8", "replace").strip()
        return ServiceNotReady(f"Sidecar {sidecar.alias} is not ready: {reason}\n{tail}".strip())

    def stop(self, alias: str) -> None:
        """Remove one sidecar."""
        for containers in (self._sidecars, self._held):
            container = containers.pop(alias, None)
            if container is not None:
                remove_container(self.api, container)

    def kill(self) -> None:
        """End the sidecars' processes; `close` removes them."""
        for container in self._sidecars.values():
            kill_container(self.api, container)

    def close(self) -> None:
        """Remove the sidecars and the network. The sandbox itself must be gone before."""
        for alias in {*self._sidecars, *self._held}:
            self.stop(alias)
        if self._network is not None:
            with engine_errors("remove a network"), contextlib.suppress(docker.errors.NotFound):
                self.api.remove_network(self._network)
            self._network = None


def kill_container(api: "APIClient", container: str) -> None:
    """End a container's processes. One that is gone or has ended already is fine."""
    with engine_errors("stop a container"):
        try:
            api.kill(container)
        except docker.errors.APIError as error:
            if error.status_code not in (404, 409):
                raise


def remove_container(api: "APIClient", container: str) -> None:
    """Kill and remove a container with its anonymous volumes, and wait until it is gone. One that is gone already, or
    that somebody else is removing, is fine."""
    deadline = time.monotonic() + _REMOVAL_SECONDS
    with engine_errors("remove a container"):
        while True:
            try:
                api.remove_container(container, force=True, v=True)
            except docker.errors.APIError as error:
                if error.status_code == 404:
                    return
                if error.status_code != 409 or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)  # its removal is under way; the network is not free before it has ended
            else:
                return
