"""Files and variables that change what tests mean by being there."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatch

from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.sandbox.contract import WORKSPACE, Sandbox, TreeEntry
from autoinstall.values import Mock


def added_files(
    sandbox: Sandbox, tracked: Collection[str], additions: Sequence[TreeEntry], mocks: Sequence[Mock]
) -> Iterator[Violation]:
    """New configuration of test runners, import hooks, modules in the place of a runner's, and new tests."""
    table = integrity_table()
    declared = {_relative(mock.path) for mock in mocks}
    top = sorted(name for name in table.meaning if name not in tracked and not _is_made(name, tracked))
    modules = [name for module in table.modules for name in (f"{module}.py", f"{module}/__init__.py")]
    probes = [f"{WORKSPACE}/{name}" for name in (*top, *modules) if name not in tracked]
    for entry in sandbox.read_tree(probes):
        path = entry.path.removeprefix(f"{WORKSPACE}/")
        if path in table.meaning_unless_declared and path in declared:
            continue
        detail = (
            "takes the place of a test runner's module"
            if path in modules
            else "decides how tests run, and is not the commit's"
        )
        yield Violation(kind=ViolationKind.MEANING_CHANGED, path=path, detail=detail)
    for entry in additions:
        path = entry.path.removeprefix(f"{WORKSPACE}/")
        name = path.rpartition("/")[2]
        if "/" not in path or matches(path, table.new_tests_elsewhere):
            continue
        if name in table.meaning and name not in table.meaning_top_only and not _is_made(path, tracked):
            detail = "decides how tests run, and is not the commit's"
            yield Violation(kind=ViolationKind.MEANING_CHANGED, path=path, detail=detail)
        elif matches(path, table.new_tests):
            yield Violation(
                kind=ViolationKind.TEST_CHANGED, path=path, detail="is a test that the commit does not have"
            )


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


def import_paths(sandbox: Sandbox, env: Mapping[str, str], tracked: Collection[str]) -> Iterator[Violation]:
    """Files on PYTHONPATH that take the place of a runner's module, or that every interpreter runs at its start."""
    names = [f"{hook}.py" for hook in ("sitecustomize", "usercustomize")]
    names += [name for module in integrity_table().modules for name in (f"{module}.py", f"{module}/__init__.py")]
    directories = [_absolute(path) for path in env.get("PYTHONPATH", "").split(":") if path]
    probes = [f"{directory}/{name}" for directory in directories if directory != str(WORKSPACE) for name in names]
    for entry in sandbox.read_tree(probes):
        if entry.path.removeprefix(f"{WORKSPACE}/") not in tracked:
            yield Violation(
                kind=ViolationKind.STUB, path=entry.path, detail="takes the place of a module, by PYTHONPATH"
            )


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
