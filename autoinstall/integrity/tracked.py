"""The tracked files of an environment, held against the pristine checkout."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autoinstall.integrity.changes import Changes
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.sandbox.contract import WORKSPACE, Sandbox, TreeEntry
from autoinstall.values import Value

_MANY = 8
"""Where more files than that changed in one directory, reading it as a whole is cheaper."""


class Tracked(Value):
    """One file of the checkout on the host: its tree as checked out, so line ends need no conversion."""

    kind: str
    executable: bool = False


class Comparison(Value):
    """What differs.

    Attributes:
        violations: changes that policy does not allow.
        modified: those that it does.
        additions: paths below the tracked top-level entries that the commit does not have, relative.
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
    sandbox: Sandbox, root: Path, tracked: dict[str, Tracked], changes: Changes, allow_modified: Sequence[str] = ()
) -> Comparison:
    """Hold what changed in /workspace against the checkout at `root`.

    What is not among the changes is as it was. That is so for a whole directory too, save where it was deleted and made
    anew: then the engine lists what it holds now, and no more what it held. So of every directory that changed one of
    the entries that are not listed is looked at: is it there, all of them are.
    """
    directories = _directories(tracked)
    gone = _gone_directories(sandbox, directories, changes)
    missing = {path for path in tracked if not gone.isdisjoint(_around(path))}
    listed = [path for path in tracked if f"{WORKSPACE}/{path}" in changes.paths and path not in missing]
    differing = dict.fromkeys(missing, "is gone")
    found = dict(_entries(sandbox, listed))
    for path in listed:
        entry, expected = found.get(path), tracked[path]
        if entry is None:
            differing[path] = "is gone"
        elif expected.kind != entry.kind:
            differing[path] = f"is a {entry.kind} instead of a {expected.kind}"
        elif _content(root / path, expected.kind) != entry.content:
            differing[path] = "differs from the commit"
        elif expected.kind == "file" and expected.executable != entry.executable:
            differing[path] = ""
    tops = {path.partition("/")[0] for path in tracked}
    additions = tuple(
        path
        for path in changes.in_workspace()
        if path not in tracked and path not in directories and path.partition("/")[0] in tops
    )
    return _by_policy(differing, allow_modified, additions)


def _directories(tracked: Iterable[str]) -> dict[str, set[str]]:
    """Every directory of the checkout, relative ("" is its top), with the names in it."""
    found: dict[str, set[str]] = {"": set()}
    for path in tracked:
        for inner in _around(path):
            directory, _, name = inner.rpartition("/")
            found.setdefault(directory, set()).add(name)
    return found


def _gone_directories(sandbox: Sandbox, directories: dict[str, set[str]], changes: Changes) -> set[str]:
    """Directories of the checkout that are none any more, or that do not hold what the changes do not list."""
    changed = [path for path in directories if _absolute(path) in changes.paths]
    # A directory in which something changed is one; of the others it is to be seen.
    alone = [path for path in changed if _absolute(path) not in changes.around]
    stats = sandbox.stat([_absolute(path) for path in alone])
    gone = {path for path, seen in zip(alone, stats, strict=True) if seen is None or seen.kind != "directory"}
    witnesses: dict[str, str] = {}
    for path in changed:
        unlisted = sorted(name for name in directories[path] if _absolute(_join(path, name)) not in changes.paths)
        if path not in gone and unlisted:
            witnesses[path] = _absolute(_join(path, unlisted[0]))
    stats = sandbox.stat(tuple(witnesses.values()))
    for path, seen in zip(witnesses, stats, strict=True):
        if seen is None:
            listed = {name for name in directories[path] if _absolute(_join(path, name)) in changes.paths}
            gone.update(_join(path, name) for name in directories[path] - listed)
    return gone


def _entries(sandbox: Sandbox, paths: Sequence[str]) -> Iterator[tuple[str, TreeEntry]]:
    """One entry for each path that there is; where many of one directory are asked for, it is read as a whole."""
    wanted = set(paths)
    counts = Counter(path.rpartition("/")[0] for path in paths)
    whole = [path for path, count in counts.items() if count > _MANY and path]
    single = [path for path in paths if not set(_around(path)) & set(whole)]
    for entry in sandbox.read_tree([_absolute(path) for path in (*whole, *single)]):
        path = entry.path.removeprefix(f"{WORKSPACE}/")
        if path in wanted:
            yield path, entry


def _around(path: str) -> Iterator[str]:
    """The path and the directories around it, the top aside."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _absolute(path: str) -> str:
    return f"{WORKSPACE}/{path}".rstrip("/")


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
