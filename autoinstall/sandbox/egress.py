"""Keeps what runs in a sandbox away from the host's services, private networks and the clouds' metadata.

A sandbox's network routes through the host, so without more it reaches whatever listens on the host's end of it, and
whatever the host reaches. Routing rules inside the sandbox's own network namespace end that: they need no firewall and
no rights on the host, and whatever engine it is applies them. A short-lived container of the product's own base image
puts them there; it shares the namespace and has the one capability for it, which sandboxes lack, so what runs in them
cannot take the rules away.

Reachable stay the sandbox's own network (its sidecars), the name servers' port, and what the settings name: the hosts
of `pass_through` (proxies and mirrors, which may well be in a private network) and `engine.allow_hosts`.

Where the engine cannot do this a warning says so, once, and sandboxes run without. So it is with runtimes that bring a
network stack of their own, gVisor's above all, to which the namespace's rules mean nothing.
"""

import logging
import re
import secrets
import socket
import threading
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from docker.errors import ImageNotFound
from pydantic import BaseModel, ConfigDict

from autoinstall.errors import EngineFailed, ImageUnavailable
from autoinstall.redaction import redact
from autoinstall.sandbox import images
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.catalogue import DEFAULT
from autoinstall.sandbox.labels import Kind, labels
from autoinstall.sandbox.network import Neighbourhood, remove_container
from autoinstall.settings import PassThrough, Settings
from autoinstall.values import Sidecar

if TYPE_CHECKING:
    from docker import DockerClient

Network = IPv4Network | IPv6Network

_KERNEL_RUNTIMES = frozenset({"", "runc", "crun", "youki"})
"""Runtimes whose containers use the host kernel's network namespaces."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_logger = logging.getLogger(__name__)


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    ranges: tuple[str, ...]
    links: tuple[str, ...]


class Subnet(NamedTuple):
    """A network that a sandbox is on, and the host's end of it."""

    network: Network
    gateway: Network


class Allowed(NamedTuple):
    """Addresses that stay reachable; `port` None means all of them."""

    network: Network
    port: int | None = None


class Rules(NamedTuple):
    """Lines for `ip -batch`, by family."""

    v4: str
    v6: str


class Egress:
    """Guards network namespaces; one a provider, shared by threads."""

    def __init__(self, client: "DockerClient", settings: Settings) -> None:
        self._client = client
        self._api: Any = client.api
        self._settings = settings
        self._lock = threading.Lock()
        self._image = ""
        self._warned: set[str] = set()
        self._podman: bool | None = None

    @property
    def active(self) -> bool:
        """Whether sandboxes are to be guarded."""
        engine = self._settings.engine
        if engine.block_private and engine.runtime not in _KERNEL_RUNTIMES:
            self._warn(f"runtime {engine.runtime} has a network stack of its own")
            return False
        return engine.block_private

    @property
    def connects_later(self) -> bool:
        """Whether a container can be put on its network once it is guarded, so that nothing in it ever runs unguarded.
        Podman does not connect a container that was started without a network."""
        if self._podman is None:
            with engine_errors("ask the engine what it is"):
                components = self._api.version().get("Components") or ()
            self._podman = any("podman" in str(component.get("Name", "")).lower() for component in components)
        return not self._podman

    def guard(self, container: str, network: str, purpose: str, owner: str) -> None:
        """Put the rules into a running container's network namespace. Costs one start of a small container.

        Raises:
            EngineUnavailable, SandboxLost: the engine or the container is gone. What else the engine refuses is a
                warning.
        """
        try:
            rules = make_rules(self._subnets(network), self._allowed(), host_networks() if self._is_local() else ())
            code, output = self._run(container, rules, purpose, owner)
        except (EngineFailed, ImageUnavailable) as error:
            self._warn(str(error))
            return
        if code != 0:
            self._warn(output.strip()[-300:] or f"the rules were refused with status {code}")

    def hold(self, neighbourhood: Neighbourhood, sidecar: Sidecar) -> str | None:
        """A guarded network namespace for a sidecar to be started in: the container that holds it and does nothing
        else. None where the engine refuses it, which is a warning.

        Raises:
            EngineUnavailable: the engine is gone.
        """
        purpose, owner, network = neighbourhood.purpose, neighbourhood.owner, neighbourhood.make()
        doing = f"hold a network for sidecar {sidecar.alias}"
        later = self.connects_later
        endpoint = None if later else self._api.create_endpoint_config(aliases=[sidecar.alias])
        try:
            with engine_errors(doing):
                made = self._create(
                    name=f"{neighbourhood.name}-{sidecar.alias}-net-{secrets.token_hex(2)}",
                    command=["sleep", "infinity"],
                    hostname=sidecar.alias,
                    labels=labels(Kind.SIDECAR, purpose, owner),
                    ports=list(sidecar.ports) or None,
                    networking_config=endpoint and {"EndpointsConfig": {network: endpoint}},
                    host_config={"network_mode": "none" if later else network},
                )
        except (EngineFailed, ImageUnavailable) as error:
            self._warn(str(error))
            return None
        try:
            with engine_errors(doing):
                self._api.start(made)
            self.guard(made, network, purpose, owner)
            if later:
                with engine_errors(doing):
                    self._api.disconnect_container_from_network(made, "none")
                    self._api.connect_container_to_network(made, network, aliases=[sidecar.alias])
        except BaseException:
            remove_container(self._api, made)
            raise
        return made

    def _run(self, container: str, rules: Rules, purpose: str, owner: str) -> tuple[int, str]:
        with engine_errors("guard the sandbox's network", sandbox=True):
            helper = self._create(
                name=f"autoinstall-guard-{secrets.token_hex(4)}",
                command=["bash", "-c", _text("egress.sh"), "autoinstall", rules.v4, rules.v6],
                labels=labels(Kind.SIDECAR, purpose, owner),
                host_config={"network_mode": f"container:{container}", "cap_add": ["NET_ADMIN"]},
            )
        try:
            with engine_errors("guard the sandbox's network", sandbox=True):
                self._api.start(helper)
                code = int(self._api.wait(helper)["StatusCode"])
                return code, "" if code == 0 else self._api.logs(helper).decode("utf-8", "replace")
        finally:
            remove_container(self._api, helper)

    def _create(self, *, host_config: dict[str, Any], **options: Any) -> str:
        bounds = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges"], "mem_limit": "64m", "pids_limit": 32}
        configuration = self._api.create_host_config(**bounds, **host_config, read_only=True)

        def create(image: str) -> str:
            made = self._api.create_container(
                image, entrypoint=[], use_config_proxy=False, host_config=configuration, **options
            )
            return str(made["Id"])

        try:
            return create(self._trusted_image())
        except ImageNotFound:  # removed since it was last looked for
            self._image = ""
            return create(self._trusted_image())

    def _trusted_image(self) -> str:
        """The product's own base, never what an agent made: what runs in it could undo the guard."""
        with self._lock:
            if not self._image:
                found = images.present_base(self._client, self._settings, DEFAULT)
                self._image = (found or images.ensure_base(self._client, self._settings)).digest
            return self._image

    def _subnets(self, network: str) -> tuple[Subnet, ...]:
        with engine_errors("look at the sandbox's network"):
            config = self._api.inspect_network(network)["IPAM"]["Config"] or ()
        found = []
        for entry in config:
            subnet = ip_network(entry["Subnet"], strict=False)
            gateway = str(entry.get("Gateway") or subnet[1]).partition("/")[0]
            found.append(Subnet(subnet, ip_network(gateway)))
        return tuple(found)

    def _allowed(self) -> tuple[Allowed, ...]:
        hosts = (*_hosts_of(self._settings.pass_through), *self._settings.engine.allow_hosts)
        return tuple(allowed for host in dict.fromkeys(hosts) for allowed in self._addresses(host))

    def _addresses(self, host: str) -> Iterator[Allowed]:
        try:
            yield Allowed(ip_network(host, strict=False))
            return
        except ValueError:
            pass  # no address, so a name
        name, port = _name_and_port(host)
        try:
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            self._warn(
                f"host {name}, which the settings name, is unknown here; were it private, it would not be reached"
            )
            return
        for address in {str(entry[4][0]).partition("%")[0] for entry in found}:
            yield Allowed(ip_network(address), port)

    def _is_local(self) -> bool:
        return str(self._api.base_url).startswith("http+docker")

    def _warn(self, reason: str) -> None:
        with self._lock:
            if reason in self._warned:
                return
            self._warned.add(reason)
        _logger.warning("Sandboxes may reach the host's services and private networks: %s", redact(reason))


def make_rules(subnets: Sequence[Subnet], allowed: Iterable[Allowed], host: Iterable[Network]) -> Rules:
    """The routing rules, by preference: what is allowed, the gateways, their networks, and then what is not.

    Args:
        host: the host's own addresses.
    """
    table = _table()
    rules: list[tuple[Network, str]] = []
    for target, port in allowed:
        end = "" if port is None else f" ipproto 6 dport {port}"
        rules.append((target, f"pref 100 to {target}{end} lookup main"))
    for link in [*(subnet.gateway for subnet in subnets), *map(ip_network, table.links)]:
        rules += [(link, f"pref 200 to {link} {end} unreachable") for end in _programs(link)]
    rules += [(network, f"pref 300 to {network} lookup main") for network, _ in subnets]
    for blocked in [*map(ip_network, table.ranges), *host]:
        rules.append((blocked, f"pref 400 to {blocked} unreachable"))
    v4, v6 = (
        "\n".join(f"rule add {rule}" for target, rule in rules if target.version == version) for version in (4, 6)
    )
    return Rules(v4, v6)


def _programs(link: Network) -> Iterator[str]:
    """What programs send, told apart from what the kernel does: a rule for everything would refuse a gateway's use as
    one too, since the engine looks its route up when it connects the container, as UDP to no port."""
    yield "ipproto 6"
    yield "ipproto 17 dport 1-65534"
    if link.num_addresses == 1:  # in a range of IPv6's, ICMP is how neighbours find each other
        yield "ipproto 1" if link.version == 4 else "ipproto 58"


def host_networks() -> tuple[Network, ...]:
    """This host's own addresses, loopback aside: also public ones lead to its services."""
    found: dict[Network, None] = {}
    address = ""
    for line in _lines("/proc/net/fib_trie"):
        if match := re.search(r"\|-- ([\d.]+)$", line):
            address = match[1]
        elif line.strip().startswith("/32 host LOCAL"):
            found[ip_network(address)] = None
    for line in _lines("/proc/net/if_inet6"):
        found[ip_network(int(line.split()[0], 16).to_bytes(16, "big"))] = None
    return tuple(network for network in found if not (network.is_loopback or network.is_link_local))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:  # another system, or a kernel without IPv6
        return []


def _hosts_of(settings: PassThrough) -> Iterator[str]:
    """The hosts of every URL in the settings, with their ports."""
    values = settings.model_dump(exclude={"ca_bundle", "no_proxy", "env"}).values()
    for value in (*values, *settings.env.values()):
        for url in re.findall(r"https?://[^\s,|;'\"]+", str(value)):
            try:
                parts = urlsplit(url)
                port = parts.port or _DEFAULT_PORTS[parts.scheme]
            except ValueError:
                continue  # no address; whoever uses it will say so
            if parts.hostname:
                yield f"[{parts.hostname}]:{port}" if ":" in parts.hostname else f"{parts.hostname}:{port}"


def _name_and_port(host: str) -> tuple[str, int | None]:
    """A name or address from the settings: `host`, `host:port` or `[address]:port`."""
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.startswith("[")):
        return name.strip("[]"), int(port)
    return host.strip("[]"), None


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _table() -> _Table:
    return _Table.model_validate(tomllib.loads(_text("egress.toml")))
