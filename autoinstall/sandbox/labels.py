"""Labels that say what is ours, and which process holds it."""

import hashlib
import os
import socket
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

OURS = "autoinstall"
PURPOSE = "autoinstall.purpose"
OWNER = "autoinstall.owner"
PROCESS = "autoinstall.process"
KIND = "autoinstall.kind"
SNAPSHOT = "autoinstall.snapshot"

ATTEMPT_REPOSITORY = "autoinstall/attempt"
"""Images of attempts that are not accepted yet; they go with the process that made them."""

ENVIRONMENT_REPOSITORY = "autoinstall/environment"
WORKSPACE_REPOSITORY = "autoinstall/workspace"


class Kind(StrEnum):
    """What a labelled object is."""

    SANDBOX = "sandbox"
    SIDECAR = "sidecar"
    BUILD = "build"
    NETWORK = "network"
    ENVIRONMENT = "environment"
    WORKSPACE = "workspace"


class Process(NamedTuple):
    """A process, told apart from every other one on every host and in every boot.

    Attributes:
        host: digest of the machine id.
        boot: id of the machine's boot.
        namespace: its pid namespace; pids mean nothing outside it.
        pid: process id.
        started: start time in clock ticks since boot, since pids are used again.
    """

    host: str
    boot: str
    namespace: str
    pid: int
    started: int

    def __str__(self) -> str:
        return "/".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> "Process | None":
        """The process that a label names; None where the label is not one of ours."""
        parts = text.split("/")
        if len(parts) != 5 or not (parts[3].isdigit() and parts[4].isdigit()):
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]), int(parts[4]))

    def is_dead(self) -> bool:
        """Whether it is certain that the process is gone: it was of this machine, and is no more. False for every
        process that cannot be seen from here (another host, another pid namespace)."""
        here = current_process()
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return True
        return self.namespace == here.namespace and _started(self.pid) != self.started

    def is_alive(self) -> bool:
        """Whether it is certain that the process is there: it can be seen from here."""
        return self[:3] == current_process()[:3] and _started(self.pid) == self.started


def current_process() -> Process:
    """This process."""
    host, boot, namespace = _host(), _boot(), _namespace()
    return Process(host, boot, namespace, os.getpid(), _started(os.getpid()) or 0)


def labels(kind: Kind, purpose: str, owner: str) -> dict[str, str]:
    """Labels of an object that this process makes."""
    return {OURS: "1", KIND: kind, PURPOSE: purpose, OWNER: owner, PROCESS: str(current_process())}


def _started(pid: int) -> int | None:
    try:
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        )
    except (OSError, ValueError, IndexError):
        return None


@cache
def _host() -> str:
    try:
        name = Path("/etc/machine-id").read_text(encoding="utf-8").strip()
    except OSError:
        name = ""
    return hashlib.sha256((name or socket.gethostname()).encode()).hexdigest()[:12]


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"
