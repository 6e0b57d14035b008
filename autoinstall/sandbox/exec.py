"""Running one command in a container: its limit, its output in bounded memory, and what it left behind."""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from autoinstall.errors import EngineFailed, Infrastructure, SandboxBroken, SandboxLost
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.idleness import Activity, IdleWatch
from autoinstall.sandbox.stream import (
    STDOUT,
    BoundedOutput,
    ExecStream,
    UnknownUser,
    UntilMarker,
    tells_of_unknown_user,
)
from autoinstall.values import CommandResult

if TYPE_CHECKING:
    from docker.api.client import APIClient

TIMED_OUT = 124
NOT_STARTED = 126
MAX_COMMAND_BYTES = 120_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ_SCRIPT = "IFS= read -r -d '' script; eval \"$script\""
_GRACE_SECONDS = 10.0
_KILL_SECONDS = 30.0
_CLOSE_SECONDS = 0.5


@cache
def script(name: str, *shared: str) -> str:
    """A script of this directory, with others in front of it, without comments."""
    files = resources.files(__package__)
    text = "".join(files.joinpath(part).read_text(encoding="utf-8") for part in (*shared, name))
    return re.sub(r"(?m)^\s*#.*\n", "", text)


def check_variable(name: str, value: str) -> None:
    """Raises ValueError where `name` is not the name of a shell variable, or `value` cannot be one's."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of an environment variable")
    if "\0" in value:
        raise ValueError(f"the value of {name} has a NUL byte")


@dataclass(frozen=True)
class Executor:
    """Runs processes in one container.

    Attributes:
        env: variables of every command.
        head, tail: bytes of output that are kept.
        idle: seconds after which a command that does nothing is ended; 0 for never.
    """

    api: "APIClient"
    container: str
    env: Mapping[str, str]
    head: int
    tail: int
    idle: float = 0

    def run(self, command: str, *, timeout: float, user: str, variables: Mapping[str, str]) -> CommandResult:
        """Run `command` by the shell rule; `variables` override those of the env file. See `Sandbox.run`."""
        try:
            return self._run(command, timeout, user, variables)
        except (EngineFailed, SandboxLost) as error:
            if self._has_no_shell():
                raise SandboxBroken("No shell can be started in the sandbox any more.") from error
            raise

    def _has_no_shell(self) -> bool:
        """Whether the container is at work (its first process is a shell, so there was one) and starts no other.

        One that does not answer at all is no sign: the host may be short of something.
        """
        with engine_errors("inspect the sandbox", sandbox=True):
            state = self.api.inspect_container(self.container)["State"]
        if not state.get("Running") or state.get("Paused"):
            return False
        try:
            return b"here" not in self.capture(["bash", "-c", "echo here"], timeout=_KILL_SECONDS)
        except SandboxLost:
            return False
        except EngineFailed:
            return True  # Podman refuses to start what is not there

    def _run(self, command: str, timeout: float, user: str, variables: Mapping[str, str]) -> CommandResult:
        for name, value in variables.items():
            check_variable(name, value)
        # The kernel takes no longer argument; a shell reports its like as 126.
        if len(command.encode("utf-8", "surrogateescape")) > MAX_COMMAND_BYTES or "\0" in command:
            said = (
                f"bash: the command has a NUL byte or more than {MAX_COMMAND_BYTES} bytes; write a file and run that\n"
            )
            return CommandResult(command=command, exit_code=NOT_STARTED, output=said)
        nonce = secrets.token_hex(16)
        argv = ["bash", "-c", _READ_SCRIPT, "autoinstall", nonce]
        pairs = [f"{name}={value}" for name, value in variables.items()]
        parts = "\0".join([script("exec.sh", "lib.sh"), command, *pairs, "", ""]).encode("utf-8", "surrogateescape")
        started = time.monotonic()
        call = _Call(nonce, BoundedOutput(self.head, self.tail))
        try:
            opened = ExecStream(self.api, self.container, argv, user=user, env=self.env, stdin=True)
        except UnknownUser as error:
            return CommandResult(command=command, exit_code=NOT_STARTED, output=f"{error.message}\n")
        watch = IdleWatch(self.idle, self._activity) if 0 < self.idle < timeout else None
        with opened as stream:
            stream.send(parts)
            timed_out = not call.follow(stream, started + timeout, watch)
            idle = timed_out and time.monotonic() < started + timeout
            if timed_out:
                kills = self._kill(call)
                if not call.follow(stream, time.monotonic() + _GRACE_SECONDS):
                    call.kills_after = kills
            status = call.status if call.status is not None else self._status_without_report(call, stream, timed_out)
        duration = time.monotonic() - started
        return CommandResult(
            command=command,
            exit_code=TIMED_OUT if timed_out else status,
            output=call.output.text(),
            dropped_bytes=call.output.dropped,
            duration=duration,
            timed_out=timed_out,
            idle=idle,
            out_of_memory=call.kills_after > call.kills_before,
        )

    def _activity(self) -> Activity | None:
        try:
            with engine_errors("look at the sandbox", sandbox=True):
                stats = self.api.stats(self.container, stream=False, one_shot=True)
        except Infrastructure:
            return None  # an engine without the call; one that is gone is told by the stream
        used = (stats.get("cpu_stats") or {}).get("cpu_usage", {}).get("total_usage", 0)
        if not used:
            return None  # a runtime that does not count
        networks = (stats.get("networks") or {}).values()
        return Activity(
            processor_seconds=used / 1e9, received_bytes=sum(network.get("rx_bytes", 0) for network in networks)
        )

    def _status_without_report(self, call: "_Call", stream: ExecStream, timed_out: bool) -> int:
        """The status where the supervisor did not live to report it: the command killed it, or the container died."""
        if timed_out:
            return TIMED_OUT
        code = stream.exit_code()
        if code is None:
            raise SandboxLost(
                "The engine knows no exit code of the command.", hint="Its container was stopped or lost."
            )
        if not call.started:
            self.capture(["true"], timeout=_KILL_SECONDS)  # raises where it is the container that is gone
            said = call.output.text().strip()[-300:]
            if tells_of_unknown_user(said):
                return code  # the caller's to mend, and the output tells how
            raise EngineFailed(f"The sandbox could not start bash (exit code {code}): {said or 'no output'}")
        call.kills_after = self._kill(call)
        return code

    def _kill(self, call: "_Call") -> int:
        """Kill what the command started; returns the kernel's count of kills for memory."""
        argv = ["bash", "-c", script("kill.sh", "lib.sh"), "autoinstall", call.own, *call.before]
        output = self.capture(argv, timeout=_KILL_SECONDS)
        match = re.search(rb"clean (\d+)", output)
        if not match:
            raise SandboxLost("Processes of a command outlive being killed.", hint="The container does not answer.")
        return int(match[1])

    def capture(self, argv: Sequence[str], *, timeout: float, user: str = "root") -> bytes:
        """The stdout of a short process of our own.

        Raises:
            SandboxLost: it did not end within `timeout` seconds.
        """
        out = bytearray()
        deadline = time.monotonic() + timeout
        with ExecStream(self.api, self.container, argv, user=user, env={}, stdin=False) as stream:
            try:
                while (frames := stream.receive(deadline - time.monotonic())) is not None:
                    for channel, data in frames:
                        if channel == STDOUT:
                            out += data
            except TimeoutError as error:
                raise SandboxLost(
                    "The sandbox does not answer.", hint="It may be out of memory or of processes."
                ) from error
        return bytes(out)


@dataclass
class _Call:
    """What is known of a running command. `own` and `before` are the tokens of exec.sh."""

    nonce: str
    output: BoundedOutput
    own: str = ""
    before: tuple[str, ...] = ()
    kills_before: int = 0
    kills_after: int = 0
    status: int | None = None
    started: bool = False
    _control: bytearray = field(default_factory=bytearray)
    _marker: UntilMarker | None = None

    def follow(self, stream: ExecStream, deadline: float, watch: IdleWatch | None = None) -> bool:
        """Take in the stream until it ends; False where `deadline` (monotonic) comes first, or `watch` ends it."""
        if self._marker is None:
            self._marker = UntilMarker(self.nonce.encode())
        while True:
            if self._over:
                # Only the end of the stream is left to come, and an engine may be slow to say so.
                deadline = min(deadline, time.monotonic() + _CLOSE_SECONDS)
            left = deadline - time.monotonic()
            if left <= 0:
                return self._over
            try:
                frames = stream.receive(min(left, watch.interval) if watch else left)
            except TimeoutError:
                if watch and not self._over and watch.is_idle():
                    return False
                continue
            if watch:
                watch.heard()
            if frames is None:
                self.output.add(self._marker.rest())
                return True
            for channel, data in frames:
                if channel != STDOUT:
                    self._take_control(data)
                elif not self._marker.seen:
                    self.output.add(self._marker.feed(data))
                    if self._marker.seen:
                        stream.send(b"\n")

    @property
    def _over(self) -> bool:
        """The command has ended and reported, even if the engine has not closed the stream yet."""
        return self.status is not None and self._marker is not None and self._marker.seen

    def _take_control(self, data: bytes) -> None:
        self._control += data
        while (end := self._control.find(b"\n")) >= 0:
            words = self._control[:end].decode("ascii", "replace").split()
            del self._control[: end + 1]
            match words:
                case [word, "started", kills, own, *before] if word == self.nonce:
                    self.started = True
                    self.kills_before = self.kills_after = int(kills)
                    self.own, self.before = own, tuple(before)
                case [word, "ended", status, kills] if word == self.nonce:
                    self.status, self.kills_after = int(status), int(kills)
                case _:
                    pass  # bash's own remarks, such as that the command was killed
