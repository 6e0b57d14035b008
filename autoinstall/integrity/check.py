"""The integrity check as a whole."""

from collections.abc import Sequence
from pathlib import Path

from autoinstall.integrity.additions import added_files, import_paths, variables
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
    *,
    mocks: Sequence[Mock] = (),
    allow_modified: Sequence[str] = (),
    original: Sandbox | None = None,
) -> IntegrityReport:
    """Examine a fresh container before any target runs in it.

    Args:
        sandbox: of the committed image.
        checkout: the pristine tree on the host.
        mocks: what the installer declared.
        allow_modified: globs of tracked files that may differ beside those of integrity.toml; never tests.
        original: a sandbox of the initial state, to tell what the set-up brought from what was there. Without it
            programs that no package manager owns count as the set-up's.

    Raises:
        Infrastructure: a sandbox failed.
    """
    tracked = manifest(checkout)
    comparison = compare(sandbox, checkout, tracked, allow_modified)
    files = Files(sandbox)
    before = Files(original) if original is not None else None
    env = sandbox.recipe.env
    executables = Executables(files, before, tracked, env.get("PATH", ""))
    violations = (
        *comparison.violations,
        *added_files(sandbox, tracked, comparison.additions, mocks),
        *variables(env),
        *import_paths(sandbox, env, tracked),
        *executables.check(targets),
        *path_files(files, before, executables.interpreters()),
    )
    return IntegrityReport(tampered=tuple(dict.fromkeys(violations)), modified=comparison.modified)
