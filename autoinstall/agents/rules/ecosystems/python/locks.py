"""Turns lock files into constraints: the resolver keeps to them, whatever tool wrote them."""

import json
import re
from collections import defaultdict
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from autoinstall.agents.rules.ecosystems.python.manifests import load_toml
from autoinstall.tree import Tree
from autoinstall.values import Evidence, Value

_TOML_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")


class Lock(Value):
    """Pins of a lock file.

    Attributes:
        constraints: `name==version`, with a marker where the lock has one; a distribution that is locked to several
            versions without markers to tell them apart is left out.
        requires_python: the interpreters that the lock was made for; empty where it does not say.
    """

    constraints: tuple[str, ...]
    requires_python: str = ""
    evidence: Evidence


def read_lock(tree: Tree, root: str) -> Lock | None:
    """The lock file at `root`; None where there is none, or it pins nothing."""
    prefix = f"{root}/" if root else ""
    for name in _TOML_LOCKS:
        path = prefix + name
        if tree.has(path):
            lock = _toml(tree, path)
            if lock.constraints:
                return lock
    path = prefix + "Pipfile.lock"
    return _pipfile(tree, path) if tree.has(path) else None


def _toml(tree: Tree, path: str) -> Lock:
    document = load_toml(tree, path)
    pins: dict[str, list[str]] = defaultdict(list)
    packages = document.get("package") or document.get("packages") or []
    for package in packages if isinstance(packages, list) else []:
        if isinstance(package, dict) and _from_index(package):
            pin = _pin(package)
            if pin:
                pins[canonicalize_name(package["name"])].append(pin)
    metadata = document.get("metadata")
    python = document.get("requires-python") or (metadata or {}).get("python-versions") or ""
    return Lock(
        constraints=tuple(lines[0] for lines in pins.values() if len(set(lines)) == 1),
        requires_python=str(python),
        evidence=Evidence(path=path, line=1, text="locked versions"),
    )


def _from_index(package: dict[str, Any]) -> bool:
    if not isinstance(package.get("name"), str) or not isinstance(package.get("version"), str):
        return False
    source = package.get("source")
    if not isinstance(source, dict):
        return not any(key in package for key in ("git", "path", "url", "revision"))
    # uv says {registry = …}; Poetry leaves the source out for the default index and has type = "legacy" for others.
    return "registry" in source or source.get("type") == "legacy"


def _pin(package: dict[str, Any]) -> str | None:
    try:
        version = Version(package["version"])
    except InvalidVersion:
        return None
    # A local part (`2.1.0+cpu`) is only had from the index that it was locked with.
    return f"{canonicalize_name(package['name'])}=={version.public}"


def _pipfile(tree: Tree, path: str) -> Lock | None:
    try:
        document = json.loads(tree.read(path))
    except json.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    pins: dict[str, str] = {}
    for section in ("default", "develop"):
        entries = document.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            version = entry.get("version") if isinstance(entry, dict) else None
            if isinstance(version, str) and re.fullmatch(r"==[\w.!+-]+", version):
                pins.setdefault(canonicalize_name(name), version)
    meta = document.get("_meta")
    requires = meta.get("requires") if isinstance(meta, dict) else None
    python = requires.get("python_version") if isinstance(requires, dict) else None
    return Lock(
        constraints=tuple(name + version for name, version in pins.items()),
        requires_python=f"=={python}.*" if isinstance(python, str) else "",
        evidence=Evidence(path=path, line=1, text="locked versions"),
    )
