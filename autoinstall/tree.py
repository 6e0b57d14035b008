"""Reading an untrusted checkout on the host without ever leaving it.

Symbolic links are not followed anywhere: a link in a repository may point at the host's own files.
"""

import os
import re
import stat
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

MAX_FILE_BYTES = 2 * 2**20
MAX_FILES = 200_000


class Tree:
    """A read-only view of a directory that somebody else filled.

    Args:
        root: the directory. Paths given to the methods are relative to it, with forward slashes.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Regular files, sorted, without git's own; at most `MAX_FILES`. Names that are not UTF-8 are left out:
        they could be neither recorded nor typed."""
        found: list[str] = []
        for directory, names, files in os.walk(self.root, followlinks=False):
            names[:] = sorted(name for name in names if name != ".git" and _is_text(name))
            base = Path(directory)
            for name in files:
                if name == ".git" or not _is_text(name):
                    continue
                path = base / name
                try:
                    if stat.S_ISREG(path.lstat().st_mode):
                        found.append(path.relative_to(self.root).as_posix())
                except OSError:
                    continue
            if len(found) >= MAX_FILES:
                break
        return tuple(sorted(found[:MAX_FILES]))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.files)

    def has(self, path: str) -> bool:
        """Whether there is a regular file at `path`, reached through no symbolic link."""
        return path in self._names

    def has_directory(self, path: str) -> bool:
        """Whether any regular file lies below `path`."""
        prefix = path.rstrip("/") + "/"
        return any(name.startswith(prefix) for name in self.files)

    def first(self, *paths: str) -> str | None:
        """The first of `paths` that exists."""
        return next((path for path in paths if self.has(path)), None)

    def read(self, path: str) -> str:
        """Text of the file without a byte order mark, at most `MAX_FILE_BYTES` of it, invalid UTF-8 replaced;
        empty if absent."""
        if not self.has(path):
            return ""
        try:
            with open(self.root / path, "rb", opener=_open_no_follow) as stream:
                return stream.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace")
        except OSError:
            return ""

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """(1-based number, line without its end) of the file, counted as editors do: a form feed ends no line."""
        text = self.read(path).replace("\r\n", "\n")
        yield from enumerate(text.removesuffix("\n").split("\n") if text else (), start=1)

    def find_line(self, path: str, needle: str) -> int:
        """1-based number of the first line that contains `needle`, 0 where none does: for evidence."""
        return next((number for number, line in self.lines(path) if needle in line), 0)

    def match(self, pattern: str) -> tuple[str, ...]:
        """Files whose path matches a glob; `*` stays within a directory and `**` crosses them."""
        regex = glob_to_regex(pattern)
        return tuple(name for name in self.files if regex.fullmatch(name))


def _is_text(name: str) -> bool:
    """Whether the name is UTF-8; the interpreter shows other bytes as lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _open_no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def glob_to_regex(pattern: str) -> re.Pattern[str]:
    """A glob as `Tree.match` reads it, for whole paths."""
    parts: list[str] = []
    index = 0
    while index < len(pattern):
        if pattern.startswith("**/", index):
            parts.append("(?:.*/)?")
            index += 3
        elif pattern.startswith("**", index):
            parts.append(".*")
            index += 2
        elif pattern[index] == "*":
            parts.append("[^/]*")
            index += 1
        elif pattern[index] == "?":
            parts.append("[^/]")
            index += 1
        else:
            parts.append(re.escape(pattern[index]))
            index += 1
    return re.compile("".join(parts))
