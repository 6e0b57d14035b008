"""Tools that look at files and change nothing."""

import re
import shlex
from typing import Annotated

from pydantic import Field

from autoinstall.agents.llm.contract import Desk, Observation
from autoinstall.agents.llm.tools.base import TypedTool, failure, seconds_left
from autoinstall.outputs.cleaning import clean
from autoinstall.sandbox.contract import WORKSPACE
from autoinstall.values import NonEmpty, Value

MAX_FILE_BYTES = 16 * 2**20
LINE_CHARACTERS = 2000
"""Of one line that is shown."""

ENTRIES = 300
MATCHES = 150

_MATCH = re.compile(r"(?m)^.+:\d+:")
_SECONDS = 60.0
_FRAME = 300

Path = Annotated[NonEmpty, Field(description="absolute, or relative to /workspace")]
Directory = Annotated[NonEmpty, Field(description="file or directory, absolute or relative to /workspace")]


class ReadArguments(Value):
    path: Path
    start: Annotated[int, Field(ge=1, description="first line, counted from 1")] = 1
    count: Annotated[int, Field(ge=1, le=5000, description="lines to read")] = 400


class ReadFile(TypedTool[ReadArguments]):
    """Shows lines of a text file with their numbers, as many as an observation holds."""

    reads_only = True

    def __init__(self) -> None:
        super().__init__("read_file", ReadArguments)

    def carry_out(self, arguments: ReadArguments, desk: Desk) -> Observation:
        try:
            content = desk.sandbox.read_file(arguments.path, max_bytes=MAX_FILE_BYTES)
        except FileNotFoundError:
            return failure(f"There is no file {arguments.path}; list_files shows what there is.")
        except OSError as error:
            return failure(
                f"{arguments.path} cannot be read: {error}. Parts of a large file are had with bash and sed."
            )
        if b"\0" in content[:8192]:
            return failure(f"{arguments.path} is no text: a binary file of {len(content)} bytes.")
        lines = content.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n").split("\n")
        if arguments.start > len(lines):
            return failure(f"{arguments.path} has {len(lines)} lines only.")
        shown = _numbered(lines, arguments, desk.observation_characters - _FRAME)
        last = arguments.start + len(shown) - 1
        if last < len(lines):
            shown.append(f"[lines {arguments.start} to {last} of {len(lines)}; go on with start={last + 1}]")
        return Observation(text="\n".join(shown) if content else f"{arguments.path} is empty.")


def _numbered(lines: list[str], arguments: ReadArguments, room: int) -> list[str]:
    shown: list[str] = []
    first = arguments.start
    for number, line in enumerate(lines[first - 1 : first - 1 + arguments.count], start=first):
        text = f"{number:6}\t{clean(line)}"
        if len(text) > LINE_CHARACTERS:
            text = f"{text[:LINE_CHARACTERS]} [… {len(text) - LINE_CHARACTERS} characters more]"
        room -= len(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    return shown


class ListArguments(Value):
    path: Directory = str(WORKSPACE)
    depth: Annotated[int, Field(ge=1, le=6, description="levels of directories to go down")] = 2


class ListFiles(TypedTool[ListArguments]):
    """Names what lies below a directory."""

    reads_only = True

    def __init__(self) -> None:
        super().__init__("list_files", ListArguments)

    def carry_out(self, arguments: ListArguments, desk: Desk) -> Observation:
        root = _operand(arguments.path)
        command = (
            f"find {shlex.quote(root)} -mindepth 1 -maxdepth {arguments.depth} "
            r"\( -path '*/.git/*' -o -path '*/node_modules/*' \) -prune -o "
            r"-printf '%P\t%y\t%s\n'"
        )
        result = desk.sandbox.run(command, timeout=seconds_left(desk, _SECONDS))
        if result.exit_code != 0 and not result.output.strip():
            return failure(f"{arguments.path} cannot be listed (exit code {result.exit_code}).")
        if result.exit_code != 0 and "No such file" in result.output:
            return failure(f"There is no {arguments.path}.")
        entries = sorted(filter(None, map(_entry, clean(result.output).split("\n"))))
        if not entries:
            return Observation(text=f"{arguments.path} is a file or an empty directory.")
        return Observation(text=_first(entries, ENTRIES, "list a directory below, or fewer levels"))


def _entry(line: str) -> str:
    name, _, rest = line.partition("\t")
    kind, _, size = rest.partition("\t")
    return f"{name}/" if kind == "d" else f"{name} -> (link)" if kind == "l" else f"{name} {size}" if rest else ""


class SearchArguments(Value):
    pattern: Annotated[NonEmpty, Field(description="regular expression")]
    path: Directory = str(WORKSPACE)
    glob: Annotated[str, Field(description="only files whose path matches, such as *.py; empty for all")] = ""
    ignore_case: bool = False


class SearchFiles(TypedTool[SearchArguments]):
    """Searches files with ripgrep, or with grep where an image has none."""

    reads_only = True

    def __init__(self) -> None:
        super().__init__("search_files", SearchArguments)

    def carry_out(self, arguments: SearchArguments, desk: Desk) -> Observation:
        case = ["-i"] if arguments.ignore_case else []
        where = ["-e", arguments.pattern, "--", _operand(arguments.path)]
        glob = ["--glob", arguments.glob] if arguments.glob else []
        include = [f"--include={arguments.glob}"] if arguments.glob else []
        ripgrep = ["rg", "-nH", "--no-heading", "--color=never", "--hidden", "-g", "!.git", "--max-columns=300"]
        ripgrep += ["--max-columns-preview", "--max-count=40", "--sort=path", *case, *glob, *where]
        grep = ["grep", "-rnHIE", "--color=never", "--exclude-dir=.git", "-m40", *case, *include, *where]
        command = f"if command -v rg >/dev/null; then {shlex.join(ripgrep)}; else {shlex.join(grep)}; fi"
        result = desk.sandbox.run(command, timeout=seconds_left(desk, _SECONDS))
        output = clean(result.output).replace(f"{WORKSPACE}/", "").strip("\n")
        if result.timed_out:
            return failure("The search took too long: search in a smaller directory, or fewer files.")
        if result.exit_code == 1 and not output:
            return Observation(text="No match.")
        if result.exit_code > 1 and not _MATCH.search(output):
            return failure(f"The search failed: {output[:1000]}")
        return Observation(text=_first(output.split("\n"), MATCHES, "search for something narrower"))


def _operand(path: str) -> str:
    """A path as a command of /workspace takes it, whatever its first character."""
    return path if path.startswith("/") else f"{WORKSPACE}/{path}"


def _first(lines: list[str], count: int, advice: str) -> str:
    more = [f"[{len(lines) - count} more; {advice}]"] if len(lines) > count else []
    return "\n".join([*(line[:400] for line in lines[:count]), *more])
