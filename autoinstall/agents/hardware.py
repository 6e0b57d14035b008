"""What hardware a repository cannot do without, by its own files, so that a run that cannot succeed ends early."""

import json
import platform
import re
import tomllib
from pathlib import PurePosixPath
from typing import Any

from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.scope import Scope
from autoinstall.errors import NeedsGpu, UnsupportedArch
from autoinstall.tree import Tree

_KERNELS = frozenset({".cu", ".cuh", ".hip"})
_CUDA_EXTENSION = re.compile(r"\bCUDAExtension\s*\(")
_OTHER_EXTENSION = re.compile(r"\b(?:CppExtension|Extension)\s*\(|cuda\.is_available\(\)|CUDA_HOME")
_NAMES = {"x86_64": "amd64", "x64": "amd64", "64": "amd64", "aarch64": "arm64", "i686": "386", "ia32": "386"}
"""Names of architectures → the container engines' own."""


def architecture(machine: str = "") -> str:
    """Of this machine, or of one whose kernel calls itself so, as container engines name it."""
    machine = machine or platform.machine()
    return _NAMES.get(machine, machine)


def check_hardware(tree: Tree, arch: str = "") -> None:
    """See that nothing in the tree says that it cannot run in a sandbox of this machine.

    Args:
        arch: as `architecture` names it; empty for this machine's.

    Raises:
        NeedsGpu, UnsupportedArch: with the file that says so.
    """
    if reason := _needs_gpu(tree):
        raise NeedsGpu(f"{reason}: it needs a GPU.")
    arch = arch or architecture()
    for path, supported in (_by_npm(tree), _by_pixi(tree), _by_cargo(tree)):
        if supported and f"linux/{arch}" not in supported:
            shown = ", ".join(sorted(supported))
            raise UnsupportedArch(
                f"The repository is for {shown} ({path}), and sandboxes here are linux/{arch}.",
                hint="Give it to a worker on a machine of that kind, if there is one.",
            )


def _needs_gpu(tree: Tree) -> str:
    """Kernels that are a part beside other code are no need: that code may do without them."""
    table = load("scope", Scope)
    kernels = [path for path in tree.files if PurePosixPath(path).suffix in _KERNELS]
    code = table.code - table.markup - _KERNELS
    if len(kernels) > sum(PurePosixPath(path).suffix in code for path in tree.files):
        return f"The repository is made of GPU kernels ({kernels[0]} and {len(kernels) - 1} more)"
    script = tree.read("setup.py")
    if kernels and _CUDA_EXTENSION.search(script) and not _OTHER_EXTENSION.search(_CUDA_EXTENSION.sub("", script)):
        return "The repository builds nothing but a CUDA extension (setup.py)"
    return ""


def _by_npm(tree: Tree) -> tuple[str, frozenset[str]]:
    """`os` and `cpu` of package.json: names, or names with `!` in front for all others."""
    try:
        package = json.loads(tree.read("package.json") or "{}")
    except json.JSONDecodeError:
        package = {}
    if not isinstance(package, dict):
        return "package.json", frozenset()
    systems = _allowed(package.get("os"), ("linux", "darwin", "win32"))
    cpus = _allowed(package.get("cpu"), ("x64", "arm64", "arm", "ia32", "ppc64", "s390x", "riscv64"))
    if not (package.get("os") or package.get("cpu")):
        return "package.json", frozenset()
    return "package.json", frozenset(f"{system}/{architecture(cpu)}" for system in systems for cpu in cpus)


def _allowed(listed: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    names = [str(name) for name in listed] if isinstance(listed, list) else [listed] if isinstance(listed, str) else []
    wanted = tuple(name for name in names if not name.startswith("!") and name != "any")
    return wanted or tuple(name for name in known if f"!{name}" not in names)


def _by_pixi(tree: Tree) -> tuple[str, frozenset[str]]:
    """`platforms` of pixi's workspace: `linux-64`, `osx-arm64`, …"""
    manifest = _toml(tree, "pixi.toml")
    table = manifest.get("workspace") or manifest.get("project") or {}
    listed = table.get("platforms") if isinstance(table, dict) else None
    pairs = [str(name).partition("-") for name in listed] if isinstance(listed, list) else []
    return "pixi.toml", frozenset(f"{system}/{architecture(cpu)}" for system, _, cpu in pairs if cpu)


def _by_cargo(tree: Tree) -> tuple[str, frozenset[str]]:
    """The one target that .cargo/config.toml builds for: `thumbv7em-none-eabihf`, `aarch64-unknown-linux-gnu`, …"""
    path = tree.first(".cargo/config.toml", ".cargo/config") or ""
    build = _toml(tree, path).get("build")
    target = build.get("target") if isinstance(build, dict) else None
    if not isinstance(target, str) or target.startswith("wasm"):
        return path, frozenset()  # there are interpreters of it everywhere
    cpu, _, rest = target.partition("-")
    return path, frozenset({f"{'linux' if 'linux' in rest else rest}/{architecture(cpu)}"})


def _toml(tree: Tree, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(tree.read(path)) if path else {}
    except tomllib.TOMLDecodeError:
        return {}
