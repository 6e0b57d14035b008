"""Looking files up in a container by way of the engine, once each."""

import posixpath
import shlex
from collections.abc import Iterable, Iterator

from autoinstall.sandbox.contract import WORKSPACE, Sandbox, TreeEntry

_MAX_LINKS = 12


class Files:
    """Files of a sandbox as the engine shows them. Answers are kept: nothing runs in it meanwhile."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._known: dict[str, TreeEntry | None] = {}
        self._found: dict[str, tuple[str, ...]] = {}

    def entry(self, path: str) -> TreeEntry | None:
        """The file or link at `path` itself; None where there is neither."""
        if path not in self._known:
            found = next(iter(self.sandbox.read_tree([path])), None)
            if found is not None and found.kind not in {"file", "symlink"}:
                found = None
            self._known[path] = found
        return self._known[path]

    def resolve(self, path: str) -> tuple[tuple[str, ...], TreeEntry | None]:
        """The links on the way from `path` to its file, the file's own path last, and the file."""
        chain = [posixpath.normpath(path)]
        entry = self.entry(chain[-1])
        while entry is not None and entry.kind == "symlink" and len(chain) < _MAX_LINKS:
            target = entry.content.decode("utf-8", "surrogateescape")
            chain.append(posixpath.normpath(posixpath.join(posixpath.dirname(chain[-1]), target)))
            entry = self.entry(chain[-1])
        return tuple(chain), entry if entry is not None and entry.kind == "file" else None

    def text(self, path: str) -> str:
        """Text of a file, links followed; empty where there is none."""
        entry = self.resolve(path)[1]
        return entry.content.decode("utf-8", "replace") if entry is not None else ""

    def find(self, *arguments: str, containing: str = "") -> tuple[str, ...]:
        """Paths that `find` prints, of files that contain a text where one is given.

        The container is asked only where to look: what is there is read by the engine.
        """
        action = ("-exec", "/usr/bin/grep", "-lF", containing, "{}", "+") if containing else ("-print",)
        quoted = " ".join(map(shlex.quote, (*arguments, *action)))
        if quoted not in self._found:
            output = self.sandbox.run(f"/usr/bin/find {quoted} 2>/dev/null | head -5000", timeout=60).output
            self._found[quoted] = tuple(line for line in output.split("\n") if line.startswith("/"))
        return self._found[quoted]


def on_path(files: Files, name: str, directories: Iterable[str]) -> str | None:
    """Where a shell finds `name`: an executable in the first of the directories that has one."""
    for directory in directories:
        path = f"{directory.rstrip('/')}/{name}"
        entry = files.entry(path)
        if entry is not None and (entry.kind == "symlink" or entry.executable):
            return path
    return None


def in_workspace(path: str) -> str | None:
    """The path relative to /workspace; None where it is outside."""
    return path.removeprefix(f"{WORKSPACE}/") if path.startswith(f"{WORKSPACE}/") else None


def lines(text: str) -> Iterator[str]:
    """Non-empty lines, stripped."""
    return (line.strip() for line in text.splitlines() if line.strip())
