"""Whether the registry that an ecosystem draws from answers from inside a sandbox: told within seconds."""

import re
import shlex
from collections.abc import Sequence

from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.errors import RegistryUnreachable
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

ANSWER_SECONDS = 15
"""Of one question."""

QUICK_SECONDS = 3
"""A question that fails sooner was refused, as by a name that does not resolve, and is not asked again."""

INSTALL_SECONDS = 180
"""Of the tool that asks, where a base lacks it; the set-up would need it next."""

_SHOWN = 8
_ENDED = re.compile(r"(?m)^(\d+) (\d+) (\d+)$")
"""A registry's place in the table, the exit code of its question, and after how many seconds that had ended."""

_NETWORK = re.compile(
    r"(?i)could not resolve|couldn't resolve|name resolution|name or service not known|getaddrinfo|EAI_AGAIN|ENOTFOUND"
    r"|no such host|unknown host|UnknownHostException|nodename nor servname|connection (?:refused|timed out|reset)"
    r"|ECONNREFUSED|ETIMEDOUT|network is unreachable|no route to host|failed to (?:connect|open tcp)"
    r"|operation timed out|connect timeout|read timed out|proxyconnect|dial tcp|tunnel connection failed"
    r"|UnknownIssuer|certificate verif\w+ failed|self.signed[ _]cert|local issuer certificate|SSL certificate problem"
    r"|certificate signed by unknown authority|PKIX path building failed"
)


class Registry(Value):
    """Attributes:
    question: a command of `tool`, which is in Debian's `package`; it exits with 0 where the registry answers.
    """

    name: str
    ecosystems: tuple[str, ...]
    tool: str
    package: str
    question: str


class Survey(Value):
    """Which registries do not answer, as far as there are tools to ask with.

    Attributes:
        silent: names of those that gave no answer, not even asked alone.
        slow: names of those that answered only when asked alone.
    """

    silent: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


class RegistryTable(Value):
    """The form of `registries.toml`."""

    registry: tuple[Registry, ...]


def registry_of(ecosystem: str) -> Registry | None:
    table = load("registries", RegistryTable).registry
    return next((item for item in table if ecosystem in item.ecosystems), None)


def probe(registry: Registry) -> str:
    """The question, bounded; exits with 0 too where there is no tool to ask with."""
    asked = f"timeout {ANSWER_SECONDS} bash -c {shlex.quote(registry.question)}"
    return f"command -v {registry.tool} >/dev/null || exit 0; {asked} </dev/null"


def answers(ecosystem: str, sandbox: Sandbox) -> bool:
    """Whether the ecosystem's registry answers; True where none is known. The tool that asks is installed.

    A question that was not refused but took its time is asked once more: a slow answer is not none.
    """
    registry = registry_of(ecosystem)
    if registry is None:
        return True
    tool = f"command -v {registry.tool} >/dev/null || {{ {apt_install(registry.package)}; }} >/dev/null 2>&1"
    asked = sandbox.run(f"{tool}; {probe(registry)}", timeout=INSTALL_SECONDS + ANSWER_SECONDS)
    return asked.exit_code == 0 or (asked.duration >= QUICK_SECONDS and _answers_alone(registry, sandbox))


def survey(sandbox: Sandbox) -> Survey:
    """Ask all registries: at once, and those that did not answer then, where nothing refused, one after another."""
    table = load("registries", RegistryTable).registry
    asked = "\n".join(
        f"{{ ({probe(item)}) >/dev/null 2>&1; echo {index} $? $SECONDS; }} &" for index, item in enumerate(table)
    )
    output = sandbox.run(f"{asked}\nwait", timeout=2 * ANSWER_SECONDS).output
    ended = {int(index): (int(code), int(seconds)) for index, code, seconds in _ENDED.findall(output)}
    silent: list[str] = []
    slow: list[str] = []
    for index, item in enumerate(table):
        code, seconds = ended.get(index, (1, QUICK_SECONDS))  # one that had not ended by then was at least not refused
        if code != 0:
            answered = seconds >= QUICK_SECONDS and _answers_alone(item, sandbox)
            (slow if answered else silent).append(item.name)
    return Survey(silent=tuple(silent), slow=tuple(slow))


def _answers_alone(registry: Registry, sandbox: Sandbox) -> bool:
    return sandbox.run(probe(registry), timeout=2 * ANSWER_SECONDS).exit_code == 0


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
    """Whether an output speaks of a host that does not answer, or whose certificate the sandbox does not trust."""
    return _NETWORK.search(output) is not None
