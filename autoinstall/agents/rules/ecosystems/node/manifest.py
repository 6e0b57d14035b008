"""package.json as it is found in the wild: every field may be absent or of the wrong type."""

import json
import posixpath
import re
from functools import cached_property
from typing import Any

import yaml

from autoinstall.tree import Tree
from autoinstall.values import Evidence

MAX_DEPTH = 3

BUILD_OUTPUT = re.compile(
    r"(?:^|/)(?:dist|lib|build|out|output|es|esm|cjs|umd|types|bundle|pkg|compiled|generated)(?:/|$)"
)
"""Paths that are usually what a build makes."""


class Package:
    """One package.json of a checkout.

    Args:
        directory: relative to the root of the checkout; empty for the root itself.
    """

    def __init__(self, tree: Tree, directory: str) -> None:
        self.tree = tree
        self.directory = directory

    def path(self, name: str) -> str:
        """`name` below this package, relative to the root of the checkout."""
        return posixpath.normpath(posixpath.join(self.directory, name))

    @cached_property
    def data(self) -> dict[str, Any]:
        try:
            loaded = json.loads(self.tree.read(self.path("package.json")).lstrip("\ufeff"))
        except ValueError:
            return {}
        return loaded if isinstance(loaded, dict) else {}

    def text(self, key: str) -> str:
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def table(self, key: str) -> dict[str, str]:
        """A field that maps strings to strings; entries of other types are left out."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            return {}
        return {name: item for name, item in value.items() if isinstance(name, str) and isinstance(item, str)}

    @property
    def name(self) -> str:
        return self.text("name")

    @cached_property
    def scripts(self) -> dict[str, str]:
        return self.table("scripts")

    @cached_property
    def runtime(self) -> dict[str, str]:
        return self.table("dependencies")

    @cached_property
    def direct(self) -> dict[str, str]:
        """Dependencies and development dependencies, name → range."""
        return {**self.table("dependencies"), **self.table("devDependencies")}

    @cached_property
    def workspaces(self) -> tuple[str, ...]:
        """Globs of the workspace's members, from package.json, lerna.json or pnpm-workspace.yaml."""
        value = self.data.get("workspaces")
        if isinstance(value, dict):
            value = value.get("packages")
        if not isinstance(value, list):
            value = self._foreign_workspaces()
        return tuple(item for item in value if isinstance(item, str))

    def _foreign_workspaces(self) -> list[Any]:
        for name, key in (("pnpm-workspace.yaml", "packages"), ("lerna.json", "packages")):
            text = self.tree.read(self.path(name))
            if not text:
                continue
            try:
                loaded = yaml.safe_load(text)
            except yaml.YAMLError:
                continue
            if isinstance(loaded, dict) and isinstance(loaded.get(key), list):
                return list(loaded[key])
        return []

    @cached_property
    def members(self) -> tuple["Package", ...]:
        """Packages of the workspace, without this one."""
        found: dict[str, Package] = {}
        for glob in self.workspaces:
            if glob.startswith("!"):
                continue
            pattern = posixpath.normpath(self.path(glob.rstrip("/"))) + "/package.json"
            for path in self.tree.match(pattern):
                directory = posixpath.dirname(path)
                if "node_modules" not in directory.split("/") and directory != self.directory:
                    found[directory] = Package(self.tree, directory)
        return tuple(found[key] for key in sorted(found))

    def evidence(self, needle: str, text: str = "") -> Evidence:
        path = self.path("package.json")
        line = self.tree.find_line(path, needle)
        return Evidence(path=path, line=line, text=(text or needle)[:200])

    def script_evidence(self, script: str) -> Evidence:
        return self.evidence(f'"{script}":', f'"{script}": "{self.scripts.get(script, "")}"')


def roots(tree: Tree) -> tuple[Package, ...]:
    """The packages to set up, the main one first: the root's, else the shallowest ones that have scripts."""
    if tree.has("package.json"):
        root = Package(tree, "")
        if root.data.get("scripts") or root.direct or root.workspaces or not _nested(tree):
            return (root,)
    return _nested(tree)


def _nested(tree: Tree) -> tuple[Package, ...]:
    found = []
    for path in tree.files:
        directory, name = posixpath.split(path)
        depth = path.count("/")
        if name == "package.json" and 0 < depth <= MAX_DEPTH - 1 and not _foreign(directory):
            package = Package(tree, directory)
            if package.scripts and (package.direct or "test" in package.scripts):
                found.append((depth, "test" not in package.scripts, directory, package))
    return tuple(item[-1] for item in sorted(found, key=lambda item: item[:3])[:3])


def _foreign(directory: str) -> bool:
    parts = set(directory.lower().split("/"))
    return bool(
        parts & {"node_modules", "fixtures", "fixture", "test", "tests", "examples", "example", "templates", "docs"}
    )
