"""The integrity check as a whole."""

from collections.abc import Collection, Sequence
from pathlib import Path

from autoinstall.integrity.additions import added_files, import_paths, variables
from autoinstall.integrity.changes import Changes, noteworthy
from autoinstall.integrity.executables import Executables, path_files
from autoinstall.integrity.files import Files
from autoinstall.integrity.report import IntegrityReport
from autoinstall.integrity.tracked import compare, manifest
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Goal, Mock


def check_integrity(
    sandbox: Sandbox,
    checkout: Path,
    targets: Sequence[Goal],
    changed: Collection[str],
    *,
    mocks: Sequence[Mock] = (),
    allow_modified: Sequence[str] = (),
) -> IntegrityReport:
    """Examine a fresh container before any target runs in it.

    Args:
        sandbox: of the committed image.
        checkout: the pristine tree on the host.
        changed: what the image holds beyond the initial state: `Sandbox.changed_paths` of the attempt after its
            commit, which `noteworthy` may have thinned. What services changed as they started is added here.
        mocks: what the installer declared.
        allow_modified: globs of tracked files that may differ beside those of integrity.toml; never tests.

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
    violations = (
        *comparison.violations,
        *added_files(files, tracked, changes, comparison.additions, mocks),
        *variables(env),
        *import_paths(files, env, tracked, changes),
        *executables.check(targets),
        *path_files(files, changes, executables.interpreters()),
    )
    return IntegrityReport(tampered=tuple(dict.fromkeys(violations)), modified=comparison.modified)
