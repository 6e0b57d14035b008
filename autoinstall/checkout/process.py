"""Runs one git process to its end, or to its limit, and leaves nothing of it behind.

GitPython can start git, but hands it the whole environment of the host, and at a deadline kills one process of the
several that a transfer is made of. Hence this one place that starts git itself: in a session of its own, with exactly
the environment given, whose whole process group is dead when `run` returns or raises.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from git.cmd import Git

from autoinstall.errors import Cancelled, CloneFailed, CloneTimeout, RepositoryTooLarge

MAX_STDOUT = 256 * 2**20
MAX_STDERR = 64 * 2**10
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 1.0


@dataclass(frozen=True)
class Bounds:
    """Limits of one process.

    Attributes:
        timeout: wall seconds.
        stall: seconds without output and without growth of what `size` measures.
        max_bytes: of what `size` measures.
        size: bytes that the process has written so far; None where it writes nothing to speak of.
        cancelled: asked several times a second; True ends the process.
    """

    timeout: float
    stall: float
    max_bytes: int
    size: Callable[[], int] | None = None
    cancelled: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Finished:
    """How it ended. `stderr` is the tail, progress included."""

    code: int
    stdout: bytes
    stderr: str


def run(arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Finished:
    """Runs `git ARGUMENTS`. A non-zero exit is a result.

    Raises:
        CloneTimeout: the time was up, or nothing moved for too long.
        RepositoryTooLarge: it wrote or printed more than it may.
        Cancelled: somebody asked for it.
        CloneFailed: git is not there.
    """
    try:
        process = subprocess.Popen(
            [str(Git.GIT_PYTHON_GIT_EXECUTABLE or "git"), *arguments],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise CloneFailed("git is not installed.", hint="Install git 2.30 or newer.") from None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as stdout, process.stderr as stderr:
        try:
            output, errors = _follow(process, stdout, stderr, arguments[0], bounds)
            _wait(process, _GRACE_SECONDS)  # pipes end a moment before their process does
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)  # politely first, so that git ends and reaps its own children
            _wait(process, _GRACE_SECONDS)
            raise
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Finished(process.returncode, output, errors.decode("utf-8", "replace"))


def _follow(
    process: subprocess.Popen[bytes], stdout: IO[bytes], stderr: IO[bytes], name: str, bounds: Bounds
) -> tuple[bytes, bytes]:
    """Reads both pipes until they end or the process does."""
    output, errors = bytearray(), bytearray()
    started = moved = measured = time.monotonic()
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ, output)
        selector.register(stderr, selectors.EVENT_READ, errors)
        while selector.get_map():
            # Asked before the pipes are: what it writes between a look at them and its end would be lost.
            had_ended = _has_ended(process)
            ready = selector.select(_POLL_SECONDS)
            now = time.monotonic()
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
                moved = now
            del errors[:-MAX_STDERR]
            if bounds.cancelled and bounds.cancelled():
                raise Cancelled("The clone was cancelled.")
            if not ready and had_ended:
                break  # some grandchild still holds the pipes
            if bounds.size and now - measured >= _POLL_SECONDS:  # not at every line of progress
                measured, grown = now, bounds.size()
                if grown != size:
                    size, moved = grown, now
            if size > bounds.max_bytes or len(output) > MAX_STDOUT:
                raise RepositoryTooLarge(
                    f"The repository is larger than {bounds.max_bytes // 2**20} MiB.",
                    hint="Raise AUTOINSTALL_CLONE__MAX_SIZE_MB, or leave the repository out.",
                )
            if now - started > bounds.timeout:
                raise CloneTimeout(
                    f"git {name} took longer than {bounds.timeout:g} s.", hint="Raise AUTOINSTALL_CLONE__TIMEOUT."
                )
            if now - moved > bounds.stall:
                raise CloneTimeout(f"git {name} stood still for {bounds.stall:g} s.", hint="Try again later.")
    return bytes(output), bytes(errors)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without reaping it: until then its number, which is the group's too, cannot belong to anybody else."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not _has_ended(process) and time.monotonic() < until:
        time.sleep(0.002)
