"""Packages in directories of Node's, and whether a package manager put them there."""

import json
import posixpath
from collections.abc import Collection, Iterator

from autoinstall.integrity.changes import Changes, node_package
from autoinstall.integrity.files import Files, in_workspace
from autoinstall.integrity.owners import Owners
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.sandbox.contract import WORKSPACE

_NPM = ".package-lock.json"
_RECORDS = {
    _NPM: "",
    ".yarn-integrity": '"{name}@',
    ".yarn-state.yml": '"{name}@',
    ".pnpm/lock.yaml": "{name}@",
}
"""What managers write beside what they install, and how it names a package."""

_WITHOUT_RECORDS = ("bun.lock", "bun.lockb")
"""Lock files of managers that write no such record."""

_ENTRIES = ("package.json", "index.js", "index.cjs", "index.mjs", "index.json", "index.node")


def node_modules(files: Files, changes: Changes, tracked: Collection[str]) -> Iterator[Violation]:
    """Packages below /workspace that no manager's record of what it installed names."""
    packages = sorted(found for path in changes.paths if (found := node_package(path)) is not None)
    inside = [(root, name) for root, name in packages if in_workspace(root) and not name.startswith(".")]
    check = _Check(files, changes, tracked)
    files.look(f"{root}/{name}" for root, name in inside)
    for root, name in inside:
        if complaint := check.complaint(root, name):
            yield Violation(kind=ViolationKind.STUB, path=f"{root}/{name}", detail=complaint)


class _Check:
    def __init__(self, files: Files, changes: Changes, tracked: Collection[str]) -> None:
        self._files = files
        self._changes = changes
        self._tracked = tracked
        self._owners = Owners(files, tracked)
        self._npm: dict[str, dict[str, object]] = {}
        self._described: dict[str, frozenset[str]] = {}

    def complaint(self, root: str, name: str) -> str:
        """What is wrong with the package `name` in the directory `root`; empty where nothing is."""
        path = f"{root}/{name}"
        kind = self._files.kind(path)
        if kind == "symlink":
            return self._about_link(self._files.end(path))
        complaints = [self._by_record(record, root, name) for record in self._records(root)]
        if "" in complaints or (not complaints and f"{path}/package.json" in self._of_old_npm(root)):
            return ""
        if not self._is_importable(path, kind) or self._has_files_in(path):
            return ""
        if complaints:
            return complaints[0]
        if any(self._files.stat(f"{WORKSPACE}/{lock}") is not None for lock in _WITHOUT_RECORDS):
            return ""
        return "is a package that no package manager put there"

    def _of_old_npm(self, root: str) -> frozenset[str]:
        """Up to its sixth version npm wrote into each package where it had it from, and left no record of them all."""
        if root not in self._described:
            found = self._files.find(root, "-maxdepth", "3", "-name", "package.json", containing='"_resolved"')
            self._described[root] = frozenset(path for path, _ in found)
        return self._described[root]

    def _is_importable(self, path: str, kind: str) -> bool:
        if kind == "file":
            return path.endswith((".js", ".json", ".node"))
        return kind == "directory" and any(self._files.stat(f"{path}/{entry}") is not None for entry in _ENTRIES)

    def _about_link(self, end: str) -> str:
        installed = "/node_modules/" in end or not self._changes.may_include(end)
        return "" if installed or self._has_files_in(end) else f"leads to {end}, which is the set-up's own"

    def _records(self, root: str) -> Iterator[str]:
        """Those of the directory itself, and of those above it that workspaces share."""
        directory = posixpath.dirname(root)
        while True:
            for record in _RECORDS:
                if self._files.stat(path := f"{directory}/node_modules/{record}") is not None:
                    yield path
            if directory in {str(WORKSPACE), "/"}:
                return
            directory = posixpath.dirname(directory)

    def _by_record(self, record: str, root: str, name: str) -> str:
        base, _, kind = record.rpartition("/node_modules/")
        if kind != _NPM:
            named = _RECORDS[kind].format(name=name) in self._files.text(record)
            return "" if named else f"is a package that {kind} does not name"
        if record not in self._npm:
            self._npm[record] = self._entries(record)
        entry = self._npm[record].get(f"{root.removeprefix(f'{base}/')}/{name}")
        return self._owners.npm_entry(entry, name)

    def _entries(self, record: str) -> dict[str, object]:
        try:
            entries = json.loads(self._files.text(record)).get("packages", {})
        except (json.JSONDecodeError, AttributeError):
            return {}
        return dict(entries) if isinstance(entries, dict) else {}

    def _has_files_in(self, directory: str) -> bool:
        inside = in_workspace(directory)
        return inside is not None and any(path == inside or path.startswith(f"{inside}/") for path in self._tracked)
