"""Whether the registry that an ecosystem draws from answers from inside a sandbox: told within seconds."""

import re
from collections.abc import Sequence

from autoinstall.agents.rules.knowledge import load
from autoinstall.errors import RegistryUnreachable
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

CONNECT_SECONDS = 5
PROBE_SECONDS = 10
"""Of the whole question; an answer of whatever status is an answer."""

_SHOWN = 8
_NETWORK = re.compile(
    r"(?i)could not resolve|couldn't resolve|name resolution|name or service not known|getaddrinfo|EAI_AGAIN|ENOTFOUND"
    r"|no such host|unknown host|UnknownHostException|nodename nor servname|connection (?:refused|timed out|reset)"
    r"|ECONNREFUSED|ETIMEDOUT|network is unreachable|no route to host|failed to (?:connect|open tcp)"
    r"|operation timed out|connect timeout|read timed out|proxyconnect|dial tcp|tunnel connection failed"
)


class Registry(Value):
    """Attributes:
    url: a word of the shell, so that variables that name a mirror count.
    """

    name: str
    ecosystems: tuple[str, ...]
    url: str


class RegistryTable(Value):
    """The form of `registries.toml`."""

    registry: tuple[Registry, ...]


def registry_of(ecosystem: str) -> Registry | None:
    table = load("registries", RegistryTable).registry
    return next((item for item in table if ecosystem in item.ecosystems), None)


def probe(registry: Registry) -> str:
    """The command that exits with 0 where the registry answers, and where nothing is there to ask it with."""
    return (
        "command -v curl >/dev/null || exit 0; "
        f"curl -sS -o /dev/null --connect-timeout {CONNECT_SECONDS} --max-time {PROBE_SECONDS} {_quoted(registry.url)}"
    )


def answers(ecosystem: str, sandbox: Sandbox) -> bool:
    """Whether the ecosystem's registry answers; True where none is known."""
    registry = registry_of(ecosystem)
    return registry is None or sandbox.run(probe(registry), timeout=PROBE_SECONDS + 5).exit_code == 0


def silent(sandbox: Sandbox) -> tuple[str, ...]:
    """Names of the registries that do not answer; they are asked all at once."""
    table = load("registries", RegistryTable).registry
    asked = "\n".join(
        f"{{ ({probe(item)}) >/dev/null 2>&1 || echo {index} silent; }} &" for index, item in enumerate(table)
    )
    output = sandbox.run(f"{asked}\nwait", timeout=PROBE_SECONDS + 10).output
    return tuple(item.name for index, item in enumerate(table) if f"{index} silent" in output.splitlines())


def unreachable(ecosystem: str, needs: Sequence[str]) -> RegistryUnreachable:
    """The error for packages that only the registry has."""
    registry = registry_of(ecosystem)
    more = f" and {len(needs) - _SHOWN} more" if len(needs) > _SHOWN else ""
    return RegistryUnreachable(
        f"{registry.name if registry else 'The registry'} does not answer from a sandbox, and the project needs "
        f"{', '.join(needs[:_SHOWN])}{more} from there.",
        hint="`autoinstall doctor` tells what sandboxes reach.",
    )


def is_network_failure(output: str) -> bool:
    """Whether an output speaks of a host that does not answer."""
    return _NETWORK.search(output) is not None


def _quoted(url: str) -> str:
    return url if url.startswith("$(") else f'"{url}"'
