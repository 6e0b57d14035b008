"""Looking files up in a container by way of the engine, once each."""

import posixpath
import shlex
from collections.abc import Iterable, Iterator

from autoinstall.sandbox.contract import WORKSPACE, PathStat, Sandbox, TreeEntry

BINARY = (b"\x7fELF", b"\xca\xfe\xba\xbe")

_MAX_LINKS = 12
_HEAD = 4096
_LARGE = 512 * 1024
"""Of larger files the head is read first, and no more where it is a binary's."""
_MAX_BYTES = 16 * 2**20


class Files:
    """Files of a sandbox as the engine shows them. Answers are kept: nothing runs in it meanwhile."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._stats: dict[str, PathStat | None] = {}
        self._entries: dict[str, TreeEntry | None] = {}
        self._found: dict[str, tuple[tuple[str, str], ...]] = {}

    def look(self, paths: Iterable[str]) -> None:
        """Look at many paths at once, so that `stat` knows them."""
        unknown = tuple(dict.fromkeys(path for path in paths if path not in self._stats))
        self._stats.update(zip(unknown, self.sandbox.stat(unknown), strict=True))

    def stat(self, path: str) -> PathStat | None:
        """The file or link at `path` itself; None where there is neither."""
        self.look([path])
        found = self._stats[path]
        return found if found is not None and found.kind in {"file", "symlink"} else None

    def kind(self, path: str) -> str:
        """Of what lies at `path` itself, as in `PathStat`; empty where nothing does."""
        self.look([path])
        found = self._stats[path]
        return found.kind if found is not None else ""

    def load(self, directory: str) -> None:
        """Read everything below a small directory in one go, so that `entry` knows it."""
        for entry in self.sandbox.read_tree([directory]):
            self._stats[entry.path] = PathStat(kind=entry.kind, executable=entry.executable, size=len(entry.content))
            self._entries[entry.path] = entry

    def entry(self, path: str) -> TreeEntry | None:
        """The file or link at `path` itself, with its content, of a large binary only the head."""
        if path not in self._entries:
            found = self.stat(path)
            self._entries[path] = self._read(path, found.size) if found is not None else None
        return self._entries[path]

    def _read(self, path: str, size: int) -> TreeEntry | None:
        if size > _LARGE:
            head = next(iter(self.sandbox.read_tree([path], max_bytes=_HEAD)), None)
            if head is None or head.content.startswith(BINARY):
                return head
        return next(iter(self.sandbox.read_tree([path], max_bytes=_MAX_BYTES)), None)

    def real(self, path: str) -> str:
        """`path` with the links among its directories followed, as the engine names it in its list of changes."""
        directory, name = posixpath.split(posixpath.normpath(path))
        return posixpath.join(self._real_directory(directory), name)

    def _real_directory(self, path: str) -> str:
        if path == "/":
            return path
        real = self.real(path)
        found = self.stat(real)
        return found.target if found is not None and found.kind == "symlink" and found.target else real

    def chain(self, path: str) -> tuple[str, ...]:
        """The links on the way from `path` to its file, the file's own path last."""
        chain = [posixpath.normpath(path)]
        while len(chain) < _MAX_LINKS and (found := self.stat(chain[-1])) is not None and found.kind == "symlink":
            link = self.entry(chain[-1])
            target = link.content.decode("utf-8", "surrogateescape") if link is not None else ""
            chain.append(posixpath.normpath(posixpath.join(posixpath.dirname(chain[-1]), target)))
        return tuple(chain)

    def end(self, path: str) -> str:
        """Where `path` leads in the end; costs less than the way there."""
        path = posixpath.normpath(path)
        found = self.stat(path)
        return found.target or path if found is not None else path

    def resolve(self, path: str) -> tuple[str, TreeEntry | None]:
        """The end of `path`, and the file there."""
        end = self.end(path)
        entry = self.entry(end)
        return end, entry if entry is not None and entry.kind == "file" else None

    def text(self, path: str) -> str:
        """Text of a file, links followed; empty where there is none."""
        entry = self.resolve(path)[1]
        return entry.content.decode("utf-8", "replace") if entry is not None else ""

    def find(self, *arguments: str, containing: str) -> tuple[tuple[str, str], ...]:
        """Files that `find` names with each line of theirs that contains a text.

        The container is asked only where to look: what is there is read by the engine. A NUL ends the names: those of
        Debian's records have colons.
        """
        words = ["/usr/bin/find", *arguments, "-exec", "/usr/bin/grep", "-HZF", "-e", containing, "{}", "+"]
        command = f"{shlex.join(words)} 2>/dev/null | head -5000"
        if command not in self._found:
            output = self.sandbox.run(command, timeout=60).output
            self._found[command] = tuple(
                (path, text)
                for path, _, text in (line.partition("\0") for line in output.split("\n"))
                if path[:1] == "/"
            )
        return self._found[command]


def on_path(files: Files, name: str, directories: Iterable[str]) -> str | None:
    """Where a shell finds `name`: an executable in the first of the directories that has one."""
    paths = [f"{directory.rstrip('/')}/{name}" for directory in directories]
    files.look(paths)
    for path in paths:
        found = files.stat(path)
        if found is not None and (found.kind == "symlink" or found.executable):
            return path
    return None


def in_workspace(path: str) -> str | None:
    """The path relative to /workspace; None where it is outside."""
    return path.removeprefix(f"{WORKSPACE}/") if path.startswith(f"{WORKSPACE}/") else None


def lines(text: str) -> Iterator[str]:
    """Non-empty lines, stripped."""
    return (line.strip() for line in text.splitlines() if line.strip())
