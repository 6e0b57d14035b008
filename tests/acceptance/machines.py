"""A second machine inside this one: a network of its own, and in it an engine with storage of its own.

Needs root, iproute2, iptables and dockerd.
"""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_NETWORK = "10.219.77"


@dataclass(frozen=True)
class Machine:
    """Where commands run as on a second host.

    Attributes:
        engine: address of its engine.
    """

    name: str
    engine: str

    def command(self, *command: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self.name}", *command]


@contextmanager
def second_machine(directory: Path, ports: Sequence[int]) -> Iterator[Machine]:
    """Start it; at the end all of it is gone.

    Args:
        directory: for the engine's storage; at most a few gigabytes.
        ports: of this machine's loopback that the second one has on its own loopback too.
    """
    name = f"ai-{os.getpid()}"
    with ExitStack() as stack:
        _network(stack, name)
        for port in ports:
            _forward(name, port)
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        engine = _engine(stack, name, directory)
        yield Machine(name, engine)


def _network(stack: ExitStack, name: str) -> None:
    outside, inside = f"{name}-o", f"{name}-i"
    run("ip", "netns", "add", name)
    stack.callback(run, "ip", "netns", "delete", name)
    run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
    run("ip", "addr", "add", f"{_NETWORK}.1/24", "dev", outside)
    run("ip", "link", "set", outside, "up")
    for command in (
        ("addr", "add", f"{_NETWORK}.2/24", "dev", inside),
        ("link", "set", inside, "up"),
        ("link", "set", "lo", "up"),
        ("route", "add", "default", "via", f"{_NETWORK}.1"),
    ):
        run("ip", "-n", name, *command)
    for table, rule in (
        ("nat", ["POSTROUTING", "-s", f"{_NETWORK}.0/24", "-j", "MASQUERADE"]),
        ("filter", ["FORWARD", "-i", outside, "-j", "ACCEPT"]),
        ("filter", ["FORWARD", "-o", outside, "-j", "ACCEPT"]),
    ):
        run("iptables", "-w", "-t", table, "-I", *rule)
        stack.callback(run, "iptables", "-w", "-t", table, "-D", *rule)


def _engine(stack: ExitStack, name: str, directory: Path) -> str:
    directory.mkdir(parents=True)
    address = f"unix://{directory}/docker.sock"
    command = [
        *("nsenter", f"--net=/run/netns/{name}", "dockerd", f"--host={address}", f"--data-root={directory}/data"),
        *(f"--exec-root={directory}/exec", f"--pidfile={directory}/pid", "--bip=10.219.78.1/24"),
        "--default-address-pool=base=10.219.128.0/17,size=24",
    ]
    with (directory / "log").open("wb") as log:
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
    stack.callback(_end, daemon, directory)
    deadline = time.monotonic() + 120
    while subprocess.run(["docker", "-H", address, "info"], capture_output=True, check=False).returncode != 0:
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"The second engine did not start: {(directory / 'log').read_text()[-2000:]}")
        time.sleep(0.5)
    return address


def _end(daemon: "subprocess.Popen[bytes]", directory: Path) -> None:
    address = f"unix://{directory}/docker.sock"
    left = subprocess.run(["docker", "-H", address, "ps", "-aq"], capture_output=True, text=True, check=False)
    if ids := left.stdout.split():
        subprocess.run(["docker", "-H", address, "rm", "-f", *ids], capture_output=True, check=False)
    daemon.terminate()
    daemon.wait(60)
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        if line.split()[1].startswith(f"{directory}/"):
            subprocess.run(["umount", "-l", line.split()[1]], check=False)


def _forward(name: str, port: int) -> None:
    """Let connections to `port` on the second machine's loopback reach that of this one."""
    listening = threading.Event()
    threading.Thread(target=_listen, args=(name, port, listening), daemon=True).start()
    if not listening.wait(10):
        raise RuntimeError(f"Port {port} cannot be had on the second machine.")


def _listen(name: str, port: int, listening: threading.Event) -> None:
    # A socket stays in the network that its thread was in when it was made.
    with Path(f"/run/netns/{name}").open("rb") as network, Path("/proc/self/ns/net").open("rb") as home:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(network.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "the network cannot be entered")
        server = socket.create_server(("127.0.0.1", port))
        libc.setns(home.fileno(), _CLONE_NEWNET)
    listening.set()
    while True:
        inside, _ = server.accept()
        outside = socket.create_connection(("127.0.0.1", port))
        for source, target in ((inside, outside), (outside, inside)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(2**16):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
