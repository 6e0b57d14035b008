"""What an environment carries to run anywhere: its env file, its start script and its entrypoint."""

import math
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

from autoinstall.sandbox.contract import STATE_DIR
from autoinstall.sandbox.pass_through import constant_env
from autoinstall.values import Probe, Service

ENV_FILE = STATE_DIR / "env.sh"
START_FILE = STATE_DIR / "start.sh"
ENTRYPOINT_FILE = STATE_DIR / "entrypoint"

_HEAD = "#!/usr/bin/env bash\n"


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def env_file(env: Mapping[str, str]) -> str:
    """The env file: the constant variables unless they are set already, and the recipe's."""
    lines = ["# Variables of the environment; every command has them.\n"]
    lines += [
        f"[[ ${{{name}+set}} ]] || export {name}={shlex.quote(value)}\n"
        for name, value in sorted(constant_env().items())
    ]
    lines += [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(env.items())]
    return "".join(lines)


def entrypoint() -> str:
    """The program that an environment's image runs."""
    return _text("entrypoint.sh")


def start_script(services: Iterable[Service]) -> str:
    """Starts the services in their order, each waited for; ends with a status other than 0, and the name of the
    service, where one does not become ready. Running it again starts what has stopped meanwhile."""
    lines = [_HEAD, _text("services.sh"), f"\n[[ -r {ENV_FILE} ]] && . {ENV_FILE}\nforget_the_dead\n"]
    lines += [start_lines(service) for service in services]
    return "".join([*lines, "exit 0\n"])


def start_services(services: Iterable[Service]) -> str:
    """A command that starts services in a live sandbox, by the very lines of the start script."""
    return "".join([_text("services.sh"), "\nforget_the_dead\n", *map(start_lines, services)])


def probe_script(name: str, probe: Probe) -> str:
    """A command that waits for one probe."""
    return _text("services.sh") + "\n" + probe_lines(name, probe)


def start_lines(service: Service) -> str:
    words = shlex.join(["start_service", service.name, service.user, service.command])
    return f"{words}\n{probe_lines(service.name, service.probe)}"


def probe_lines(name: str, probe: Probe) -> str:
    words = shlex.join(["wait_ready", name, probe.kind, probe.target, str(math.ceil(probe.timeout))])
    return f"{words} || exit\n"
