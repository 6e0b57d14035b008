"""The integrity check as a whole."""

import posixpath
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from autoinstall.integrity.additions import added_files, import_paths, variables
from autoinstall.integrity.changes import Changes, node_package, noteworthy
from autoinstall.integrity.executables import Executables, path_files
from autoinstall.integrity.files import Files
from autoinstall.integrity.libraries import Libraries
from autoinstall.integrity.modules import node_modules
from autoinstall.integrity.products import is_made_again, may_be_made
from autoinstall.integrity.report import IntegrityReport, Violation
from autoinstall.integrity.tracked import compare, manifest
from autoinstall.sandbox.contract import WORKSPACE, Sandbox
from autoinstall.values import Goal, Mock, MockKind


def check_integrity(
    sandbox: Sandbox,
    checkout: Path,
    targets: Sequence[Goal],
    changed: Collection[str],
    *,
    mocks: Sequence[Mock] = (),
    allow_modified: Sequence[str] = (),
    allow_package_stubs: bool = False,
) -> IntegrityReport:
    """Examine a fresh container before any target runs in it.

    Args:
        sandbox: of the committed image.
        checkout: the pristine tree on the host.
        changed: what the image holds beyond the initial state: `Sandbox.changed_paths` of the attempt after its
            commit, which `noteworthy` may have thinned. What services changed as they started is added here.
        mocks: what the installer declared.
        allow_modified: globs of tracked files that may differ beside those of integrity.toml; never tests.
        allow_package_stubs: a package that the installer made up and declared is no tampering.

    Raises:
        Infrastructure: a sandbox failed.
    """
    tracked = manifest(checkout)
    # Of a sandbox without services nothing has run yet, and listing changes costs an engine seconds on a busy host.
    started = noteworthy(sandbox.changed_paths(), tracked) if sandbox.recipe.services else frozenset[str]()
    changes = Changes(started | frozenset(changed), tracked)
    comparison = compare(sandbox, checkout, tracked, allow_modified)
    files = Files(sandbox)
    env = sandbox.recipe.env
    executables = Executables(files, changes, tracked, env.get("PATH", ""))
    libraries = Libraries(files, changes, checkout, tracked)
    stubs = (*libraries.check(env, comparison.additions), *node_modules(files, changes, tracked))
    declared = [mock for mock in mocks if mock.kind is MockKind.PACKAGE]
    violations = (
        *comparison.violations,
        *added_files(files, tracked, changes, comparison.additions, mocks),
        *variables(env),
        *import_paths(files, env, tracked, changes),
        *executables.check(targets),
        *path_files(files, changes, executables.interpreters()),
        *(_told(stub, declared) for stub in stubs if not (allow_package_stubs and _is_declared(stub, declared))),
    )
    tampered = tuple(dict.fromkeys(violations))
    made = all(may_be_made(files, tracked, found) for found in tampered)
    if made and all(is_made_again(files, executables, tracked, found) for found in tampered):
        tampered = ()
    return IntegrityReport(tampered=tampered, modified=comparison.modified)


def _is_declared(stub: Violation, declared: Sequence[Mock]) -> bool:
    """Whether a mock names a library by its path, by a file in it, or by its module."""
    module = re.split(r"[.-]", stub.path.rpartition("/")[2], maxsplit=1)[0]
    package = node_package(stub.path)
    names = {stub.path, f"{WORKSPACE}/{module}", f"{WORKSPACE}/{package[1]}" if package is not None else ""}
    paths = [posixpath.normpath(posixpath.join(WORKSPACE, mock.path)) for mock in declared]
    return any(path in names or path.startswith(f"{stub.path}/") for path in paths)


def _told(stub: Violation, declared: Sequence[Mock]) -> Violation:
    if not _is_declared(stub, declared):
        return stub
    detail = f"{stub.detail}; it was declared, but the settings allow no stubs of packages"
    return stub.model_copy(update={"detail": detail})
