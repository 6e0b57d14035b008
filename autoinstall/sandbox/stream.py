"""The attached stream of an exec: frames of two channels in bounded memory, and a way to send bytes in."""

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import docker.errors

from autoinstall.errors import EngineFailed, SandboxLost
from autoinstall.sandbox.boundary import engine_errors

if TYPE_CHECKING:
    from docker.api.client import APIClient

STDOUT, STDERR = 1, 2
_HEADER = 8
_CHUNK = 256 * 1024


class Frames:
    """Splits the engine's multiplexed stream: eight bytes of header (channel, three zeros, length), then the payload.

    Payloads are given out as they arrive, so that a long frame costs no more memory than a read.
    """

    def __init__(self) -> None:
        self._header = b""
        self._channel = STDOUT
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """(channel, bytes) of what is complete in `data`."""
        view = memoryview(data)
        while view:
            if self._left:
                part = view[: self._left]
                self._left -= len(part)
                view = view[len(part) :]
                yield self._channel, bytes(part)
                continue
            missing = _HEADER - len(self._header)
            self._header += bytes(view[:missing])
            view = view[missing:]
            if len(self._header) == _HEADER:
                self._channel = self._header[0]
                self._left = int.from_bytes(self._header[4:], "big")
                self._header = b""


class BoundedOutput:
    """Keeps the first `head` and the last `tail` bytes of what is added, and counts the others."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size > self._tail_limit:
            first = self._tail.popleft()
            excess = self._tail_size - self._tail_limit
            lost = min(excess, len(first))
            if lost < len(first):
                self._tail.appendleft(first[lost:])
            self._tail_size -= lost
            self.dropped += lost

    def text(self) -> str:
        """All of it as text, with a line in place of what was dropped."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self.dropped:
            return (head + tail).decode("utf-8", "replace")
        # What the cut left of a character is no character.
        start = next((index for index, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
        notice = f"\n[... {self.dropped} bytes dropped ...]\n"
        return head.decode("utf-8", "ignore") + notice + tail[start:].decode("utf-8", "replace")


class UntilMarker:
    """Passes bytes on up to a marker that may be split over reads."""

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._pending = b""
        self.seen = False

    def feed(self, data: bytes) -> bytes:
        """What of `data` and of earlier calls is certain to come before the marker."""
        if self.seen:
            return b""
        data = self._pending + data
        at = data.find(self._marker)
        if at >= 0:
            self.seen = True
            self._pending = b""
            return data[:at]
        keep = _overlap(data, self._marker)
        self._pending = data[len(data) - keep :]
        return data[: len(data) - keep]

    def rest(self) -> bytes:
        """What was held back, where the stream ended without the marker."""
        rest, self._pending = self._pending, b""
        return rest


def _overlap(data: bytes, marker: bytes) -> int:
    """Length of the longest end of `data` that is a beginning of `marker`."""
    for size in range(min(len(marker) - 1, len(data)), 0, -1):
        if data.endswith(marker[:size]):
            return size
    return 0


class UnknownUser(EngineFailed):
    """The container has no such user. Podman refuses to start the process; Docker has its stream tell."""


def tells_of_unknown_user(said: str) -> bool:
    """Whether an engine's words mean that the user of a process does not exist."""
    return "unable to find user" in said or "no matching entries in passwd" in said


class ExecStream:
    """A process started in a container, with its streams attached. A context manager; leaving it closes the stream.

    Args:
        argv: the process; `user` and `env` are its own.
        stdin: whether bytes will be sent.

    Raises:
        SandboxLost: the container is gone. UnknownUser: there is no `user`. EngineUnavailable, EngineFailed: as
        everywhere.
    """

    def __init__(
        self, api: "APIClient", container: str, argv: Sequence[str], *, user: str, env: Mapping[str, str], stdin: bool
    ) -> None:
        self._api = api
        self._frames = Frames()
        with engine_errors("start a command in the sandbox", sandbox=True):
            created = api.exec_create(
                container, list(argv), stdin=stdin, user=user, environment=dict(env), stdout=True, stderr=True
            )
            self.id: str = created["Id"]
            attached: Any = self._start()
            self._response = attached._response
            # The client's buffered reader may have taken in the first frames together with the headers.
            self._socket: socket.socket = getattr(attached, "_sock", attached)
            self._socket.setblocking(False)
            self._early: bytes = self._response.raw._fp.fp.read1(_CHUNK) or b""
            self._socket.setblocking(True)

    def _start(self) -> object:
        try:
            return self._api.exec_start(self.id, socket=True)
        except docker.errors.APIError as error:
            said = str(error.explanation)
            if tells_of_unknown_user(said):
                raise UnknownUser(said) from error
            raise

    def receive(self, timeout: float) -> list[tuple[int, bytes]] | None:
        """The next frames, or None at the end of the stream.

        Raises:
            TimeoutError: nothing came within `timeout` seconds.
        """
        if self._early:
            data, self._early = self._early, b""
        else:
            self._socket.settimeout(max(timeout, 0.001))
            try:
                data = self._socket.recv(_CHUNK)
            except ConnectionError:
                return None
        return list(self._frames.feed(data)) if data else None

    def send(self, data: bytes) -> None:
        """Write to the process's stdin. Where the process has ended already, what it leaves to receive tells.

        Raises:
            SandboxLost: the process does not take the bytes.
        """
        self._socket.settimeout(30)
        with contextlib.suppress(ConnectionError):
            try:
                self._socket.sendall(data)
            except TimeoutError as error:
                raise SandboxLost("The sandbox does not take what is sent to it.") from error

    def can_send(self, timeout: float) -> bool:
        """Whether the stream takes bytes now; False once there is something to receive instead."""
        readable, writable, _ = select.select([self._socket], [self._socket], [], timeout)
        return bool(writable) and not readable

    def send_some(self, data: memoryview) -> int:
        """Write what the stream takes at once; returns the number of bytes."""
        self._socket.settimeout(30)
        try:
            return self._socket.send(data)
        except OSError as error:
            raise SandboxLost(f"The stream to the sandbox broke: {error}.") from error

    def exit_code(self, grace: float = 2.0) -> int | None:
        """The process's exit code as the engine knows it; None where it still runs after `grace` seconds, or where
        the engine has none."""
        deadline = time.monotonic() + grace
        while True:
            with engine_errors("inspect a command in the sandbox", sandbox=True):
                state = self._api.exec_inspect(self.id)
            if not state.get("Running"):
                code = state.get("ExitCode")
                return code if isinstance(code, int) else None
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)

    def close(self) -> None:
        self._response.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
