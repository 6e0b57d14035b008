"""Files and variables that change what tests mean by being there."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatch

from autoinstall.integrity.changes import Changes
from autoinstall.integrity.files import Files
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.sandbox.contract import WORKSPACE
from autoinstall.values import Mock


def added_files(
    files: Files, tracked: Collection[str], changes: Changes, additions: Sequence[str], mocks: Sequence[Mock]
) -> Iterator[Violation]:
    """New configuration of test runners, import hooks, modules in the place of a runner's, and new tests."""
    suspects = {
        path: violation
        for path in dict.fromkeys((*_at_the_top(tracked, changes, mocks), *additions))
        if (violation := _violation(path, tracked)) is not None
    }
    files.look(f"{WORKSPACE}/{path}" for path in suspects)
    yield from (violation for path, violation in suspects.items() if files.stat(f"{WORKSPACE}/{path}") is not None)


def _at_the_top(tracked: Collection[str], changes: Changes, mocks: Sequence[Mock]) -> Iterator[str]:
    table = integrity_table()
    declared = {_relative(mock.path) for mock in mocks} & table.meaning_unless_declared
    for path in (*sorted(table.meaning - declared), *_module_files()):
        if path not in tracked and f"{WORKSPACE}/{path}" in changes.paths:
            yield path


def _violation(path: str, tracked: Collection[str]) -> Violation | None:
    """What a file that the commit does not have would be guilty of."""
    table = integrity_table()
    if path in _module_files():
        detail = "takes the place of a test runner's module"
        return Violation(kind=ViolationKind.MEANING_CHANGED, path=path, detail=detail)
    if matches(path, table.new_tests_elsewhere):
        return None
    name = path.rpartition("/")[2]
    anywhere = "/" not in path or name not in table.meaning_top_only
    if name in table.meaning and anywhere and not _is_made(path, tracked):
        detail = "decides how tests run, and is not the commit's"
        return Violation(kind=ViolationKind.MEANING_CHANGED, path=path, detail=detail)
    if "/" in path and matches(path, table.new_tests):
        return Violation(kind=ViolationKind.TEST_CHANGED, path=path, detail="is a test that the commit does not have")
    return None


def _module_files() -> list[str]:
    return [name for module in integrity_table().modules for name in (f"{module}.py", f"{module}/__init__.py")]


def variables(env: Mapping[str, str]) -> Iterator[Violation]:
    """Variables that make shells and interpreters run something else, or that choose among the tests."""
    table = integrity_table().environment
    for name, value in sorted(env.items()):
        if (name in table.forbidden and value) or name.startswith(table.prefixes):
            detail = "makes every shell or interpreter run something else"
            yield Violation(kind=ViolationKind.ENVIRONMENT, path=name, detail=detail)
        for listed, pattern in table.values:
            if name == listed and re.search(pattern, value):
                detail = "changes which tests run or what counts as a failure"
                yield Violation(kind=ViolationKind.ENVIRONMENT, path=name, detail=detail)


def import_paths(
    files: Files, env: Mapping[str, str], tracked: Collection[str], changes: Changes
) -> Iterator[Violation]:
    """Files on PYTHONPATH that take the place of a runner's module, or that every interpreter runs at its start."""
    names = [f"{hook}.py" for hook in ("sitecustomize", "usercustomize")] + _module_files()
    directories = [_absolute(path) for path in env.get("PYTHONPATH", "").split(":") if path]
    probes = [f"{directory}/{name}" for directory in directories if directory != str(WORKSPACE) for name in names]
    suspects = [path for path in probes if changes.may_include(files.real(path))]
    files.look(suspects)
    for path in suspects:
        if files.stat(path) is not None and path.removeprefix(f"{WORKSPACE}/") not in tracked:
            yield Violation(kind=ViolationKind.STUB, path=path, detail="takes the place of a module, by PYTHONPATH")


def _is_made(path: str, tracked: Collection[str]) -> bool:
    directory, _, name = path.rpartition("/")
    prefix = f"{directory}/" if directory else ""
    return any(
        name == made and any(fnmatch(other, f"{prefix}{source}") and other != path for other in tracked)
        for made, source in integrity_table().made_from
    )


def _relative(path: str) -> str:
    return path.removeprefix(f"{WORKSPACE}/").removeprefix("./")


def _absolute(path: str) -> str:
    return path.rstrip("/") if path.startswith("/") else f"{WORKSPACE}/{path}".rstrip("/.")
