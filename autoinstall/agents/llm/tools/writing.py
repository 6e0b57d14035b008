"""Tools that write files."""

import posixpath
from typing import Annotated

from pydantic import Field

from autoinstall.agents.llm.contract import Desk, Observation
from autoinstall.agents.llm.tools.base import TypedTool, failure
from autoinstall.agents.llm.tools.reading import MAX_FILE_BYTES, Path
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.sandbox.contract import WORKSPACE
from autoinstall.values import Value

_GIT = "[This is git's own: a change of it counts as tampering and makes the attempt worthless. Undo it.]"
_TEST = (
    "[{path} is a test of the commit, or decides how its tests run: a change of it counts as tampering and makes the "
    "attempt worthless. Undo it with `git checkout -- {path}`.]"
)
_SOURCE = (
    "[{path} is a file of the commit. Only lock files and what builds write anew may differ: verification will call it "
    "tampering unless the settings allow this one. `git checkout -- {path}` undoes it.]"
)


class WriteArguments(Value):
    path: Path
    content: Annotated[str, Field(description="the whole new content")]
    executable: Annotated[bool, Field(description="whether it gets the execute bit")] = False


class WriteFile(TypedTool[WriteArguments]):
    """Writes a whole file."""

    def __init__(self) -> None:
        super().__init__("write_file", WriteArguments)

    def carry_out(self, arguments: WriteArguments, desk: Desk) -> Observation:
        content = arguments.content.encode("utf-8", "surrogateescape")
        return _write(arguments.path, content, desk, executable=arguments.executable)


class EditArguments(Value):
    path: Path
    old: Annotated[str, Field(min_length=1, description="text that is in the file exactly once")]
    new: Annotated[str, Field(description="what takes its place")]


class EditFile(TypedTool[EditArguments]):
    """Replaces a piece of a file that is in it exactly once; every other byte stays."""

    def __init__(self) -> None:
        super().__init__("edit_file", EditArguments)

    def carry_out(self, arguments: EditArguments, desk: Desk) -> Observation:
        try:
            content = desk.sandbox.read_file(arguments.path, max_bytes=MAX_FILE_BYTES)
        except FileNotFoundError:
            return failure(f"There is no file {arguments.path}; write_file makes one.")
        except OSError as error:
            return failure(f"{arguments.path} cannot be read: {error}")
        old, new = (text.encode("utf-8", "surrogateescape") for text in (arguments.old, arguments.new))
        count = content.count(old)
        if count == 0:
            ends = " Its lines end with \\r\\n." if b"\r\n" in content and b"\r\n" not in old else ""
            return failure(f"Nothing was changed: `old` is not in {arguments.path}; read it and copy exactly.{ends}")
        if count > 1:
            found = ", ".join(map(str, _lines_of(content, old)))
            return failure(
                f"Nothing was changed: `old` is in {arguments.path} {count} times (lines {found}); "
                "take in more lines around the one that is meant."
            )
        return _write(arguments.path, content.replace(old, new), desk)


def _lines_of(content: bytes, piece: bytes, limit: int = 10) -> list[int]:
    lines: list[int] = []
    position = content.find(piece)
    while position >= 0 and len(lines) < limit:
        lines.append(content.count(b"\n", 0, position) + 1)
        position = content.find(piece, position + len(piece))
    return lines


def _write(path: str, content: bytes, desk: Desk, *, executable: bool = False) -> Observation:
    try:
        desk.sandbox.write_file(path, content, executable=executable)
    except OSError as error:
        return failure(f"{path} cannot be written: {error}")
    written = f"{path} has {len(content)} bytes in {len(content.splitlines())} lines now."
    return Observation(text="\n".join(filter(None, [written, warning(path, desk)])))


def warning(path: str, desk: Desk) -> str:
    """What the model should know that wrote to `path`: verification compares what the commit has."""
    whole = posixpath.normpath(posixpath.join(WORKSPACE, path))
    relative = whole.removeprefix(f"{WORKSPACE}/")
    if relative == whole:
        return ""
    if ".git" in relative.split("/"):
        return _GIT
    if not desk.tree.has(relative):
        return ""
    table = integrity_table()
    if matches(relative, table.tests):
        return _TEST.format(path=relative)
    return "" if matches(relative, table.allowed) else _SOURCE.format(path=relative)
