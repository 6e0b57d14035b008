"""A target that asks a local port where nobody listens → the project's own server, started as a service."""

import re
import shlex
from collections.abc import Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.servers import LOCAL_URL, start_commands
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import CommandResult, Probe, ProbeKind, Service

MAX_COMMANDS = 6
READY_SECONDS = 45.0

_REFUSED = re.compile(r"(?i)connection refused|failed to connect|couldn't connect|ECONNREFUSED|curl: \((?:7|52|56)\)")


class WebRepairer:
    """Starts what should answer on the port that the target asks."""

    name = "web"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        del sandbox
        match = LOCAL_URL.search(failure.command) or LOCAL_URL.search(failure.output)
        asked = any(failure.command == goal.command for goal in context.targets)
        if not match or not asked or not _REFUSED.search(failure.output + _silent_curl(failure)):
            return ()
        port = int(match["port"])
        commands = dict.fromkeys(start_commands(context, port))
        return [_repair(command, port) for command in list(commands)[:MAX_COMMANDS]]


def _silent_curl(failure: CommandResult) -> str:
    """`curl -s` says nothing; its exit code does."""
    return "connection refused" if "curl" in failure.command and failure.exit_code in (7, 52, 56) else ""


def _repair(command: str, port: int) -> Repair:
    shell = f"export PORT={port}; {command}"
    return Repair(
        key=f"web:{port}:{command}",
        why=f"Nothing listens on port {port}; the project's own server is started.",
        services=(
            Service(
                name=f"web-{port}",
                command=f"bash -c {shlex.quote(shell)}",
                probe=Probe(kind=ProbeKind.TCP, target=str(port), timeout=READY_SECONDS),
            ),
        ),
        lesson=f"`{command}` serves port {port}",
    )
