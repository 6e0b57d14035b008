"""Programs that the project's own build makes: nobody's records name them, but the build can make them again."""

import posixpath
import shlex
from collections.abc import Collection

from autoinstall.integrity.executables import Executables, npm_scripts
from autoinstall.integrity.files import Files, in_workspace
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table
from autoinstall.sandbox.contract import WORKSPACE
from autoinstall.values import Category, Goal

_ENDINGS = (".js", ".cjs", ".mjs")
_BUILD_SECONDS = 600.0
_MAX_BYTES = 32 * 2**20


def may_be_made(files: Files, tracked: Collection[str], found: Violation) -> bool:
    """Whether what was found is a script where a build of the commit may have put it. Costs no run."""
    if found.kind is not ViolationKind.STUB or not found.path.startswith(f"{WORKSPACE}/"):
        return False
    inside = in_workspace(files.real(found.path))
    return inside is not None and inside not in tracked and inside.endswith(_ENDINGS)


def is_made_again(files: Files, executables: Executables, tracked: Collection[str], found: Violation) -> bool:
    """Whether a script that `may_be_made` comes back, byte for byte, when it is removed and the build is run.

    The build is what a package.json of the commit says; the programs that it calls are examined as a target's are. The
    container is changed by it, so this is asked last, and only where nothing else speaks against the attempt.
    """
    path = files.real(found.path)
    content = _content(files, path)
    directory = _package_of(path.removeprefix(f"{WORKSPACE}/"), tracked)
    if content is None or directory is None:
        return False
    package = posixpath.join(WORKSPACE, directory)
    scripts = npm_scripts(files, package)
    for name in [name for name in integrity_table().builds if name in scripts]:
        command = f"cd {shlex.quote(package)} && npm run {name}"
        goal = Goal(command=command, description="builds the project", category=Category.BUILD)
        if any(violation.path != found.path for violation in executables.check([goal])):
            return False
        files.sandbox.run(f"rm -f -- {shlex.quote(path)} && {command}", timeout=_BUILD_SECONDS)
        if _content(files, path) == content:
            return True
    return False


def _content(files: Files, path: str) -> bytes | None:
    """As it is now, whatever was read before."""
    entry = next(iter(files.sandbox.read_tree([path], max_bytes=_MAX_BYTES)), None)
    return entry.content if entry is not None and entry.kind == "file" else None


def _package_of(inside: str, tracked: Collection[str]) -> str | None:
    """The nearest directory above with a package.json of the commit; empty for the root."""
    directory = posixpath.dirname(inside)
    while posixpath.join(directory, "package.json") not in tracked:
        if not directory:
            return None
        directory = posixpath.dirname(directory)
    return directory
