"""Reading a command line without running it: which programs it names, seen through the wrappers around them."""

import re
import shlex
from collections.abc import Iterator, Sequence

import bashlex
import bashlex.errors

from autoinstall.values import Value

_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*\+?=")
_INTERPRETER = re.compile(r"^(?:python|pypy)[\d.]*$")
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_INPUTS = frozenset({"<", "<<", "<<-", "<<<"})
_MAX_DEPTH = 5
_HERE = re.compile(r"(?<!<)<<(?P<tabs>-?)[ \t]*(?P<quote>['\"]?)\\?(?P<word>\w+)(?P=quote)")
_HERE_FILE = "/dev/here-document/"
_READS = frozenset({"<", "<<<"})

# Wrappers, with the options of theirs that take a value.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "-C", "-S"}),
    "sudo": frozenset({"-u", "-g"}),
    "timeout": frozenset({"-k", "-s", "--signal", "--kill-after"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "nohup": frozenset(),
    "time": frozenset({"-f", "-o"}),
    "exec": frozenset(),
    "command": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "setsid": frozenset(),
    "xvfb-run": frozenset({"-s", "-n", "-e", "--server-args"}),
    "dbus-run-session": frozenset(),
    "catchsegv": frozenset(),
    "npx": frozenset({"-p", "--package"}),
    "bunx": frozenset(),
    "cross-env": frozenset(),
    "c8": frozenset({"-r", "--reporter"}),
    "nyc": frozenset({"-r", "--reporter"}),
    "xargs": frozenset({"-n", "-I", "-P", "-L"}),
}
_RUNNERS: dict[tuple[str, str], frozenset[str]] = {
    ("uv", "run"): frozenset({"--extra", "--group", "--with", "--python", "-p", "--package", "--directory"}),
    ("poetry", "run"): frozenset(),
    ("pipenv", "run"): frozenset(),
    ("pdm", "run"): frozenset({"-p"}),
    ("hatch", "run"): frozenset(),
    ("rye", "run"): frozenset(),
    ("pnpm", "exec"): frozenset(),
    ("npm", "exec"): frozenset(),
    ("yarn", "exec"): frozenset(),
    ("bundle", "exec"): frozenset(),
    ("coverage", "run"): frozenset({"--source", "--rcfile", "--omit", "--include"}),
}


class SimpleCommand(Value):
    """One program with its arguments, out of a command line.

    Attributes:
        words: program first, quotes removed; empty for a line of assignments alone.
        env: the assignments before it, `NAME=value`.
        feeds: its output goes into the next one of the same pipeline.
        background: it is started with `&`.
        input: the text of the here-document that it reads, or the name of the file; empty where there is neither.
    """

    words: tuple[str, ...]
    env: tuple[str, ...] = ()
    feeds: bool = False
    background: bool = False
    input: str = ""

    @property
    def program(self) -> str:
        """File name of the program; empty where there is none."""
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""


def parse(command: str) -> tuple[SimpleCommand, ...]:
    """The simple commands of a line in order, substitutions and what is given to a shell (`bash -c`) included.

    Here-documents are text, not commands, unless a shell reads them.

    What bashlex cannot read (arithmetic, arrays, `[[ ]]`) is split at separators instead, which finds the same
    programs in any but contrived lines.
    """
    return tuple(_parse(command, 0))


def unwrap(words: Sequence[str]) -> tuple[str, ...]:
    """`words` without what only runs the rest: env, timeout, npx, poetry run, `python -m`, … A wrapper alone stays."""
    rest = tuple(words)
    for _ in range(_MAX_DEPTH):
        inner = _unwrap_once(rest)
        if not inner or inner == rest:
            return rest
        rest = inner
    return rest


def _parse(command: str, depth: int) -> Iterator[SimpleCommand]:
    line, documents = _without_here_documents(command)
    try:
        trees = bashlex.parse(line)
    except (bashlex.errors.ParsingError, NotImplementedError, AssertionError, AttributeError, IndexError, TypeError):
        found = list(_split(line))
    else:
        found = [simple for tree in trees for simple in _walk(tree, feeds=False, background=False)]
    for stood_in in found:
        text = documents.get(stood_in.input, "")
        simple = stood_in.model_copy(update={"input": text}) if text else stood_in
        yield simple
        inner = unwrap(simple.words)
        if depth >= _MAX_DEPTH or not inner or inner[0].rsplit("/", 1)[-1] not in _SHELLS:
            continue
        for position, word in enumerate(inner[1:-1], start=1):
            if re.fullmatch(r"-[a-z]*c", word):
                yield from _parse(inner[position + 1], depth + 1)
                break
        yield from _parse(text, depth + 1) if text else ()


def _without_here_documents(command: str) -> tuple[str, dict[str, str]]:
    """The command with a file in the place of every here-document, and the text of each by that file.

    bashlex cannot read those whose end is quoted.
    """
    documents: dict[str, str] = {}
    kept: list[str] = []
    lines = command.split("\n")
    while lines:
        line, *lines = lines
        for match in list(_HERE.finditer(line)):
            stripped = [text.lstrip("\t") for text in lines] if match["tabs"] else lines
            if match["word"] not in stripped:
                continue  # a shift, or within quotes
            end = stripped.index(match["word"])
            file = f"{_HERE_FILE}{len(documents) + 1}"
            documents[file] = "\n".join(stripped[:end])
            line = line.replace(match[0], f"<{file}", 1)
            lines = lines[end + 1 :]
        kept.append(line)
    return "\n".join(kept), documents


def _walk(node: bashlex.ast.node, *, feeds: bool, background: bool) -> Iterator[SimpleCommand]:
    if node.kind == "command":
        words = [part.word for part in node.parts if part.kind == "word"]
        env = [part.word for part in node.parts if part.kind == "assignment"]
        read = next((part.output.word for part in node.parts if part.kind == "redirect" and part.type in _READS), "")
        yield SimpleCommand(words=tuple(words), env=tuple(env), feeds=feeds, background=background, input=read)
        for part in node.parts:
            for inner in getattr(part, "parts", ()):
                yield from _walk(inner, feeds=False, background=False)
        return
    if node.kind in {"commandsubstitution", "processsubstitution"}:
        yield from _walk(node.command, feeds=False, background=False)
        return
    parts = [*getattr(node, "parts", ()), *getattr(node, "list", ())]
    for index, part in enumerate(parts):
        follower = parts[index + 1] if index + 1 < len(parts) else None
        piped = follower is not None and follower.kind == "pipe"
        behind = follower is not None and follower.kind == "operator" and follower.op == "&"
        yield from _walk(part, feeds=feeds or piped, background=background or behind)


def _split(command: str) -> Iterator[SimpleCommand]:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    redirection = read = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = command.split()
    for piece in [*tokens, ";"]:
        if piece in {"[[", "]]"} or (piece and not set(piece) - set("();<>|&")):
            if set(piece) & set("<>") and not set(piece) & set("();"):
                redirection = piece
                continue
            if words:
                plain = [word for word in words if word not in {"if", "then", "else", "do", "while", "!", "{", "time"}]
                count = next((index for index, word in enumerate(plain) if not _ASSIGNMENT.match(word)), len(plain))
                yield SimpleCommand(
                    words=tuple(plain[count:]),
                    env=tuple(plain[:count]),
                    feeds=piece == "|",
                    background=piece == "&",
                    input=read,
                )
            words, redirection, read = [], "", ""
        elif redirection:
            read, redirection = piece if redirection in _READS else read, ""
        else:
            words.append(piece)


def _unwrap_once(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        return ()
    program = words[0].rsplit("/", 1)[-1]
    if _INTERPRETER.match(program):
        return _unwrap_module(words)
    if len(words) > 1 and (program, words[1]) in _RUNNERS:
        return _after_options(words[2:], _RUNNERS[program, words[1]], numbers=False)
    if program in _WRAPPERS:
        return _after_options(words[1:], _WRAPPERS[program], numbers=program == "timeout")
    return words


def _unwrap_module(words: tuple[str, ...]) -> tuple[str, ...]:
    for index, word in enumerate(words[1:-1], start=1):
        if word == "-m":
            return words[index + 1 :]
        if word in {"-W", "-X"}:
            continue
        if not word.startswith("-") and words[index - 1] not in {"-W", "-X"}:
            break
    return words


def _after_options(words: tuple[str, ...], valued: frozenset[str], *, numbers: bool) -> tuple[str, ...]:
    index = 0
    while index < len(words):
        word = words[index]
        if word in valued:
            index += 2
        elif word.startswith("-") or _ASSIGNMENT.match(word) or (numbers and re.fullmatch(r"[\d.]+[smhd]?", word)):
            index += 1
        else:
            break
    return words[index:]
