"""The tracked files of an environment, held against the pristine checkout."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.sandbox.contract import WORKSPACE, Sandbox, TreeEntry
from autoinstall.values import Value


class Tracked(Value):
    """One file of the checkout on the host: its tree as checked out, so line ends need no conversion."""

    kind: str
    executable: bool = False


class Comparison(Value):
    """What differs.

    Attributes:
        violations: changes that policy does not allow.
        modified: those that it does.
        additions: files below the tracked top-level entries that the commit does not have, relative.
    """

    violations: tuple[Violation, ...] = ()
    modified: tuple[str, ...] = ()
    additions: tuple[str, ...] = ()


def manifest(root: Path) -> dict[str, Tracked]:
    """Every regular file and symbolic link of a pristine checkout, submodules included, by relative path."""
    found: dict[str, Tracked] = {}
    for directory, names, files in os.walk(root, followlinks=False):
        names[:] = [name for name in names if name != ".git"]
        for name in (*names, *files):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            relative = path.relative_to(root).as_posix()
            if stat.S_ISLNK(mode):
                found[relative] = Tracked(kind="symlink")
            elif stat.S_ISREG(mode) and name != ".git":
                found[relative] = Tracked(kind="file", executable=bool(mode & 0o111))
    return found


def compare(
    sandbox: Sandbox, root: Path, tracked: dict[str, Tracked], allow_modified: Sequence[str] = ()
) -> Comparison:
    """Hold /workspace against the checkout at `root`. Untracked top-level directories are not read.

    Every tracked file is read: engines list a file as changed by its size and times, and those can be forged.
    """
    differing: dict[str, str] = {}
    additions: list[str] = []
    missing = set(tracked)
    for path, entry in _entries(sandbox, tracked):
        expected = tracked.get(path)
        if expected is None:
            if entry.kind in {"file", "symlink"}:
                additions.append(path)
            continue
        missing.discard(path)
        if expected.kind != entry.kind:
            differing[path] = f"is a {entry.kind} instead of a {expected.kind}"
        elif _content(root / path, expected.kind) != entry.content:
            differing[path] = "differs from the commit"
        elif expected.kind == "file" and expected.executable != entry.executable:
            differing[path] = ""
    differing.update((path, "is gone") for path in missing)
    return _by_policy(differing, allow_modified, additions)


def _entries(sandbox: Sandbox, tracked: Iterable[str]) -> Iterator[tuple[str, TreeEntry]]:
    tops = sorted({path.partition("/")[0] for path in tracked})
    for entry in sandbox.read_tree([f"{WORKSPACE}/{top}" for top in tops]):
        path = entry.path.removeprefix(f"{WORKSPACE}/")
        if ".git" not in path.split("/"):
            yield path, entry


def _content(path: Path, kind: str) -> bytes:
    return os.fsencode(os.readlink(path)) if kind == "symlink" else path.read_bytes()


def _by_policy(differing: dict[str, str], allow_modified: Sequence[str], additions: Sequence[str]) -> Comparison:
    table = integrity_table()
    violations: list[Violation] = []
    modified: list[str] = []
    for path, detail in sorted(differing.items()):
        # An execute bit alone changes nothing that a test could tell.
        if not detail:
            modified.append(path)
        elif matches(path, table.tests):
            violations.append(Violation(kind=ViolationKind.TEST_CHANGED, path=path, detail=detail))
        elif matches(path, table.allowed) or matches(path, allow_modified):
            modified.append(path)
        else:
            violations.append(Violation(kind=ViolationKind.SOURCE_CHANGED, path=path, detail=detail))
    return Comparison(violations=tuple(violations), modified=tuple(modified), additions=tuple(additions))
