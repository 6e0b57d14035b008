"""What a set-up changed, as the engine tells it: beside tracked files, the check looks at nothing else."""

import re
from collections.abc import Collection, Iterable

from autoinstall.sandbox.contract import WORKSPACE

_BULK = re.compile(r"^(?P<root>.*?/(?:node_modules|site-packages|dist-packages|\.cache|_cacache))/(?P<inside>.+)$")
"""Directories that package managers fill with up to hundreds of thousands of files."""

_NODE_PACKAGE = re.compile(r"^(?P<root>/(?:(?!/node_modules/).)*/node_modules)/(?P<name>(?:@[^/]+/)?[^/@][^/]*)$")


def noteworthy(paths: Iterable[str], tracked: Collection[str]) -> frozenset[str]:
    """The changed paths that are worth carrying from the attempt to its check.

    What lies deep inside a directory of installed packages is left out, save below directories that the commit has
    files in; `Changes` knows that anything may be there. What is at the top of one stays: each is a library.

    Args:
        paths: absolute.
        tracked: the checkout's files, relative.
    """
    own = {match["root"] for path in tracked if (match := _BULK.match(f"{WORKSPACE}/{path}"))}
    return frozenset(
        path for path in paths if not _is_bulk(path) or node_package(path) or _BULK.sub(r"\g<root>", path) in own
    )


class Changes:
    """The changed paths of one environment.

    Args:
        paths: absolute, links on the way followed: added, changed or deleted since the initial state, and the
            directories around them.
        tracked: the checkout's files, relative: all that /workspace held at first.
    """

    def __init__(self, paths: Collection[str], tracked: Collection[str]) -> None:
        self.paths = paths
        self._tracked = tracked

    def may_include(self, path: str) -> bool:
        """Whether what lies at a real path may differ from the initial state."""
        inside = path.removeprefix(f"{WORKSPACE}/")
        return path in self.paths or _is_bulk(path) or (inside != path and inside not in self._tracked)


def node_package(path: str) -> tuple[str, str] | None:
    """The directory of packages that a path is at the top of, and its name there, scope included."""
    match = _NODE_PACKAGE.match(path)
    return (match["root"], match["name"]) if match is not None else None


def _is_bulk(path: str) -> bool:
    match = _BULK.match(path)
    # Path files and hooks lie directly in the directory that the interpreter imports from.
    return match is not None and not ("/" not in match["inside"] and match["root"].endswith("-packages"))
