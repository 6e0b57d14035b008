"""An interactive shell in a running environment, over the engine's API: no client program is needed on the host."""

import contextlib
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.contract import STATE_DIR, WORKSPACE

if TYPE_CHECKING:
    from docker import DockerClient

_SHELL = f"[[ -r {STATE_DIR}/env.sh ]] && . {STATE_DIR}/env.sh; exec bash -i"
_CHUNK = 65536


def attach(client: "DockerClient", container: str, env: Mapping[str, str]) -> int:
    """Connect this terminal to a new shell in `container`, with the variables of `env`, until the shell ends.

    Returns:
        The shell's exit code.

    Raises:
        EngineUnavailable, EngineFailed: the engine does not answer, or cannot start it.
    """
    api: Any = client.api
    with engine_errors("open a shell"):
        created = api.exec_create(
            container,
            ["bash", "-c", _SHELL],
            stdin=True,
            tty=True,
            workdir=str(WORKSPACE),
            environment={**env, "TERM": os.environ.get("TERM", "xterm")},
        )
        stream = api.exec_start(created["Id"], tty=True, socket=True)
        connection = getattr(stream, "_sock", stream)

        def resize(*_signal: object) -> None:
            columns, lines = shutil.get_terminal_size()
            # The shell may have ended in the meantime.
            with contextlib.suppress(Exception):
                api.exec_resize(created["Id"], height=lines, width=columns)

        resize()
        previous = signal.signal(signal.SIGWINCH, resize)
        try:
            with _raw(sys.stdin.fileno()):
                _relay(sys.stdin.fileno(), sys.stdout.fileno(), connection)
        finally:
            signal.signal(signal.SIGWINCH, previous)
            stream.close()
        return int(api.exec_inspect(created["Id"])["ExitCode"] or 0)


def _relay(source: int, target: int, connection: Any) -> None:
    """Keys go in and output comes out, until the other side closes."""
    watched = [source, connection]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if connection in ready:
            received = connection.recv(_CHUNK)
            if not received:
                return
            _write_all(target, received)
        if source in ready:
            typed = os.read(source, _CHUNK)
            if typed:
                connection.sendall(typed)
            else:
                watched.remove(source)


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Keys are passed on as they are pressed, ^C too; the terminal is as it was afterwards."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
