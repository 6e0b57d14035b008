"""Whether the process that a label or a record names is gone.

A process on this machine is told by boot, pid and start time. One that ran in another pid namespace, as that of a
worker in a container of its own does, cannot be seen from here; so each process holds a lock on a file below
`cache/processes` as long as it lives. The kernel lets go of it however the process ends, and shows that to everybody
who shares the directory. What can be told by neither is taken to be alive.
"""

import fcntl
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autoinstall.sandbox.labels import Process, current_process

KEPT_SECONDS = 7 * 86400.0
"""How long the file of a process that is gone stays, for what it left elsewhere to be found."""

_held: dict[Path, int] = {}
"""File descriptors that stay open, and so locked, as long as the process lives."""

_holding = threading.Lock()


def hold(cache: Path) -> None:
    """Let others tell as long as this process lives; the first call of a process counts. A cache that cannot be
    written is left alone: then only processes that can see this one know."""
    path = _path(cache, current_process())
    aside = path.with_suffix(f".{os.getpid()}.new")
    with _holding:
        if path in _held:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(aside, os.O_WRONLY | os.O_CREAT, 0o644)
            fcntl.flock(file, fcntl.LOCK_EX)
            aside.replace(path)  # only now, so that nobody finds it before it is locked
        except OSError:
            return
        _held[path] = file


def is_dead(text: str, cache: Path) -> bool:
    """Whether the process that `text` names, as `Process` writes itself, is certainly gone."""
    process = Process.parse(text)
    if process is None:
        return False
    return process.is_dead() or (process != current_process() and _let_go(_path(cache, process)))


def is_alive(text: str, cache: Path) -> bool:
    """Whether the process that `text` names is certainly there: seen from here, or with its lock in a shared cache."""
    process = Process.parse(text)
    if process is None:
        return False
    path = _path(cache, process)
    return process.is_alive() or (path.exists() and not _let_go(path))


def scratch(cache: Path) -> Path:
    """Where this process puts what nobody needs once it is gone; made if it is absent."""
    path = cache / "runs" / _name(current_process())
    path.mkdir(parents=True, exist_ok=True)
    return path


def clear_scratch(cache: Path) -> None:
    """Remove what processes that are gone left there, and in the end the files that told of them."""
    for path in (cache / "runs").glob("*"):
        if is_dead(path.name.replace("+", "/"), cache):
            shutil.rmtree(path, ignore_errors=True)
    oldest = time.time() - KEPT_SECONDS
    for path in (cache / "processes").glob("*.lock"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest and _let_go(path):
                path.unlink()


@contextmanager
def only_one(cache: Path, name: str) -> Iterator[bool]:
    """False where another process, or another thread, is inside a block of the same name."""
    path = cache / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _let_go(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # there is none, or it is locked
        return False
    return True


def _path(cache: Path, process: Process) -> Path:
    return cache / "processes" / f"{_name(process)}.lock"


def _name(process: Process) -> str:
    return str(process).replace("/", "+")
