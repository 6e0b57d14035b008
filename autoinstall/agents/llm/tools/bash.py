"""The tool that runs commands."""

import contextlib
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from autoinstall.agents.llm.contract import Desk, Observation
from autoinstall.agents.llm.observations import KEPT, excerpt, keep, next_path
from autoinstall.agents.llm.tools.base import TypedTool, descriptions, failure, seconds_left
from autoinstall.agents.llm.tools.hints import hints_for
from autoinstall.commands import parse
from autoinstall.logs import telling
from autoinstall.outputs.cleaning import clean
from autoinstall.values import CommandResult, NonEmpty, Value

KEPT_BYTES = 32 * 2**20
"""Of one output that are kept in its file."""

_MAX_COMMAND = 100_000
_FRAME = 1300
"""Characters of an observation that are kept free for what is said beside the output."""

_DETACHING = frozenset({"nohup", "setsid", "daemonize", "start-stop-daemon", "disown"})
_ENDING = frozenset({"wait", "kill", "pkill", "killall", "fg"})
_SCRIPTS = ("keep.sh", "keep.pl")

_BACKGROUND = (
    "Not run: it would leave a process in the background, which ends with this sandbox and is no part of the "
    "environment. {service}To try something, end it in the same command: `server & sleep 2; curl -s localhost:8000; "
    "kill $!`."
)
_TIMED_OUT = (
    "[It did not end within {seconds:.0f} s; it and all that it started was killed. {service}A long build or download "
    "may get more time by `timeout`, or can be done in parts.]"
)
_IDLE = (
    "[It wrote nothing, used no processor and received nothing for minutes, so it and all that it started was killed. "
    "{service}It may wait for input, for a lock, or for something that does not answer.]"
)
_SERVICE = "A server or another process that has to stay running is started with start_service. "
_OUT_OF_MEMORY = "[The kernel killed a process of it for want of memory: do it with fewer jobs side by side.]"


class BashArguments(Value):
    command: Annotated[NonEmpty, Field(description="the command line, or several lines of script")]
    timeout: Annotated[float, Field(ge=0, description="seconds it may take; 0 means as long as the limits allow")] = 0


class Bash(TypedTool[BashArguments]):
    """Runs a command by the shell rule, with its whole output kept in the sandbox where the model is shown less.

    Args:
        lasting: whether the tools for what lasts (`set_env`, `start_service`) are there too, and are pointed to.
    """

    def __init__(self, *, lasting: bool = False) -> None:
        words = [descriptions()["bash"], descriptions()["bash_lasting"] if lasting else ""]
        super().__init__("bash", BashArguments, description=" ".join(words))
        self._service = _SERVICE if lasting else ""

    def carry_out(self, arguments: BashArguments, desk: Desk) -> Observation:
        if len(arguments.command.encode("utf-8", "surrogateescape")) > _MAX_COMMAND or "\0" in arguments.command:
            return failure(f"The command is longer than {_MAX_COMMAND} bytes or has a NUL: write a file and run that.")
        if leaves_behind(arguments.command):
            return failure(_BACKGROUND.format(service=self._service))
        first = desk.outputs == 0
        path = next_path(desk)
        if first:
            _bring_scripts(desk)
        seconds = seconds_left(desk, arguments.timeout or desk.command_seconds)
        room = max(desk.observation_characters - _FRAME, desk.observation_characters // 2)
        watch = {"BASH_ENV": f"{KEPT}/keep.sh", "AUTOINSTALL_KEEP": f"{path}:{room // 2}:{KEPT_BYTES}"}
        with telling():
            result = desk.sandbox.run(arguments.command, timeout=seconds, env=watch)
        output = clean(result.output)
        if len(output) > room or result.dropped_bytes:
            output = _excerpt(output, result, path, room, desk)
        text = "\n".join(filter(None, [_headline(result), output.rstrip("\n"), *self._hints(result, seconds)]))
        return Observation(text=text, error=result.exit_code != 0)

    def _hints(self, result: CommandResult, seconds: float) -> list[str]:
        hints = []
        if result.idle:
            hints.append(_IDLE.format(service=self._service))
        elif result.timed_out:
            hints.append(_TIMED_OUT.format(seconds=seconds, service=self._service))
        if result.out_of_memory:
            hints.append(_OUT_OF_MEMORY)
        if result.exit_code != 0:
            hints += [f"[{hint}]" for hint in hints_for(clean(result.output))]
        return hints


def _bring_scripts(desk: Desk) -> None:
    # Without them commands run all the same, and what the sandbox drops of their output is lost.
    with contextlib.suppress(OSError):
        for name, content in _scripts().items():
            desk.sandbox.write_file(f"{KEPT}/{name}", content)


@cache
def _scripts() -> dict[str, bytes]:
    return {name: files(__package__).joinpath(name).read_bytes() for name in _SCRIPTS}


def _excerpt(output: str, result: CommandResult, path: str, room: int, desk: Desk) -> str:
    if desk.sandbox.stat([path])[0] is not None:
        more = len(output) + result.dropped_bytes > KEPT_BYTES
        notice = f"\n[The file has the first {KEPT_BYTES >> 20} MiB of it.]" if more else ""
        return excerpt(output, room, path=path, dropped=result.dropped_bytes) + notice
    _bring_scripts(desk)  # somebody emptied /tmp
    kept = keep(output, desk)
    lost = f"\n[{result.dropped_bytes} bytes in the middle are lost.]" if result.dropped_bytes else ""
    return excerpt(output, room, path=kept, dropped=result.dropped_bytes) + lost


def _headline(result: CommandResult) -> str:
    ending = f", {result.ending}" if result.ending else ""
    silent = "" if result.output.strip() else ", no output"
    return f"[exit code {result.exit_code}{ending}, {result.duration:.1f} s{silent}]"


def leaves_behind(command: str) -> bool:
    """Whether a command line leaves a process in the background that it does not wait for or end itself."""
    simple = parse(command)
    detached = any(part.background or part.program in _DETACHING for part in simple)
    return detached and not any(part.program in _ENDING for part in simple)
