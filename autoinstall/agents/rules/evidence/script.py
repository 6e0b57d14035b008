"""Splits shell scripts of CI steps, Makefiles and documents into commands that stand alone."""

import re
import shlex
from collections.abc import Iterator

from pydantic import Field

from autoinstall.values import Value

_BLOCK_OPENERS = re.compile(r"^(if|for|while|until|case|select|function)\b|^\w[\w-]*\s*\(\)\s*\{?|^\{\s*$|^\(\s*$")
_BLOCK_CLOSERS = re.compile(r"(^|[;&|\s])(fi|done|esac)\b|^\}|^\)")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_ASSIGNMENT = re.compile(r"^(?:export\s+)?([A-Za-z_]\w*)=(\S*|\"[^\"]*\"|'[^']*')$")
_IGNORED = re.compile(r"^(set|shopt|trap|exit|true|false|:|echo|printf|return|source|\.|pushd|popd|wait|sleep|unset)\b")


class Line(Value):
    """One command of a script: where it stands (0-based from the script's first line), and what it runs under."""

    command: str
    offset: int
    directory: str = ""
    env: dict[str, str] = Field(default_factory=dict)


def split_script(script: str) -> Iterator[Line]:
    """The simple commands of `script`, in order.

    `cd` and `export` are followed, and what is cloned first is taken for the project itself. Loops, conditions,
    functions and here-documents are left out as a whole, since their parts do not stand alone. Never raises: what
    cannot be understood is skipped.
    """
    directory = cloned = ""
    env: dict[str, str] = {}
    depth = 0
    heredoc = ""
    for offset, line in _logical_lines(script):
        stripped = line.strip()
        if heredoc:
            heredoc = "" if stripped == heredoc else heredoc
            continue
        if match := _HEREDOC.search(line):
            heredoc = match[2]
            continue
        if depth or _BLOCK_OPENERS.match(stripped):
            depth += bool(_BLOCK_OPENERS.match(stripped)) - bool(_BLOCK_CLOSERS.search(stripped))
            depth = max(depth, 0)
            continue
        for part in split_chain(stripped):
            if match := re.match(r"^cd\s+(\S+)$", part):
                step = match[1].strip("'\"/")
                directory = "" if not directory and step == cloned else _join(directory, match[1].strip("'\""))
            elif part.startswith("git clone "):
                cloned = cloned or _clone(part)
            elif match := _ASSIGNMENT.match(part):
                env = {**env, match[1]: match[2].strip("'\"")}
            elif part and not _IGNORED.match(part):
                yield Line(command=part, offset=offset, directory=directory, env=env)


def split_chain(line: str) -> list[str]:
    """`a && b; c` → [a, b, c]; quotes, `$(…)` and parentheses are respected, pipes and `||` stay together."""
    parts: list[str] = []
    current: list[str] = []
    quote = ""
    depth = 0
    index = 0
    while index < len(line):
        char = line[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "#" and not depth and (index == 0 or line[index - 1].isspace()):
            break
        elif depth <= 0 and (line.startswith("&&", index) or char == ";"):
            parts.append("".join(current).strip())
            current = []
            index += 2 if char == "&" else 1
            continue
        if char == "\\" and index + 1 < len(line) and quote != "'":
            current.append(char)
            index += 1
            char = line[index]
        current.append(char)
        index += 1
    parts.append("".join(current).strip())
    return [part for part in parts if part]


def words(command: str) -> list[str]:
    """The command's words with quotes removed; split at spaces where the shell's own rules do not apply."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _logical_lines(script: str) -> Iterator[tuple[int, str]]:
    """Lines with backslash continuations and trailing `&&` joined, each with the offset of its first line."""
    held: list[str] = []
    start = 0
    for offset, line in enumerate(script.splitlines()):
        if not held:
            start = offset
        if line.rstrip().endswith("\\"):
            held.append(line.rstrip()[:-1].strip())
            continue
        held.append(line.strip() if held else line)
        if line.rstrip().endswith(("&&", "||", "|")):
            continue
        yield start, " ".join(held)
        held = []
    if held:
        yield start, " ".join(held)


def _clone(command: str) -> str:
    """The directory that `git clone` makes; empty where it cannot be told."""
    given = words(command)
    url = next((index for index, word in enumerate(given) if re.search(r"[:/]", word)), len(given))
    if url < len(given) - 1:
        return given[-1].strip("/")
    return re.sub(r".*[:/]|\.git$", "", given[url].rstrip("/")) if url < len(given) else ""


def _join(directory: str, step: str) -> str:
    """`directory` after `cd step`, relative to the root; empty where it would leave it or cannot be known."""
    if step.startswith(("/", "~", "$")) or step == "-":
        return ""
    parts = directory.split("/") if directory else []
    for part in step.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts = [*parts, part]
    return "/".join(parts)
