"""Commands in the code blocks of README, CONTRIBUTING and the files written for coding agents."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from autoinstall.agents.rules.contract import EvidenceCommand, Findings, Source
from autoinstall.agents.rules.evidence.classify import classify
from autoinstall.agents.rules.evidence.script import split_script
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence, Value

_SHELLS = {
    "",
    "sh",
    "bash",
    "shell",
    "console",
    "shell-session",
    "shellsession",
    "zsh",
    "terminal",
    "text",
    "cmd",
    "none",
}
_PROMPT = re.compile(r"^\s*(?:\$|%|>|#)\s+(?=\S)")
_AGENT_FILES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".github/copilot-instructions.md", "GEMINI.md")
_DOCUMENTS = re.compile(
    r"(?i)^(?:docs?/|\.github/)?(?:readme|install(?:ation)?|contributing|hacking|development|develop|building|build|testing)"
    r"(?:\.(?:md|markdown|rst|txt))?$"
)
_ELSEWHERE = re.compile(r"(?i)windows|macos|mac os|os x|homebrew|docker|freebsd|fedora|arch linux|android|ios\b")
_RST_BLOCK = re.compile(
    r"^(?P<indent>\s*)(?:\.\.\s+(?:code|code-block|sourcecode|prompt)::\s*(?P<language>\S*).*|.*::)\s*$"
)
_RST_UNDERLINE = re.compile(r"^([=\-~^\"'#*+`:.])\1{2,}\s*$")


class Block(Value):
    """A code block: its text, the 1-based line of its first text line, and the heading it is under."""

    text: str
    line: int
    heading: str


def read_documents(tree: Tree) -> Findings:
    commands: list[EvidenceCommand] = []
    agents = [path for path in _AGENT_FILES if tree.has(path)]
    documents = [path for path in tree.files if _DOCUMENTS.match(path)]
    for path in (*agents, *documents):
        source = Source.AGENTS if path in agents else Source.README
        for block in code_blocks(tree, path):
            if not _ELSEWHERE.search(block.heading):
                commands.extend(_commands(block, path, source))
    return Findings(commands=tuple(commands))


def code_blocks(tree: Tree, path: str) -> Iterator[Block]:
    """Shell-like code blocks of a Markdown or reStructuredText file."""
    text = tree.read(path)
    yield from _rst_blocks(text) if path.endswith(".rst") else _markdown_blocks(text)


def _commands(block: Block, path: str, source: Source) -> Iterator[EvidenceCommand]:
    lines = block.text.splitlines()
    prompted = any(re.match(r"^\s*[$%]\s+\S", line) for line in lines)
    # In a session only the lines with a prompt are commands, the others are what they print.
    kept = [_PROMPT.sub("", line) if re.match(r"^\s*[$%]\s", line) else ("" if prompted else line) for line in lines]
    for line in split_script("\n".join(kept)):
        category = classify(line.command)
        if category is Category.OTHER and not prompted:
            continue
        yield EvidenceCommand(
            command=line.command,
            source=source,
            category=category,
            evidence=Evidence(path=path, line=block.line + line.offset, text=line.command[:300]),
            section=block.heading,
            working_directory=line.directory,
            env=line.env,
        )


def _markdown_blocks(text: str) -> Iterator[Block]:
    heading = ""
    tokens = MarkdownIt("commonmark").parse(text)
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and index + 1 < len(tokens):
            heading = tokens[index + 1].content
        elif token.type in ("fence", "code_block") and token.map:
            language = token.info.strip().split(" ")[0].lower().strip("{}.") if token.info.strip() else ""
            if language in _SHELLS:
                first = token.map[0] + (2 if token.type == "fence" else 1)
                yield Block(text=token.content, line=first, heading=heading)


def _rst_blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    heading = ""
    index = 0
    while index < len(lines):
        if index and _RST_UNDERLINE.match(lines[index]) and lines[index - 1].strip():
            heading = lines[index - 1].strip()
        match = _RST_BLOCK.match(lines[index])
        index += 1
        if not match or (match["language"] or "").lower() not in _SHELLS:
            continue
        while index < len(lines) and (not lines[index].strip() or lines[index].strip().startswith(":")):
            index += 1
        start = index
        base = len(match["indent"])
        while index < len(lines) and (not lines[index].strip() or _indent(lines[index]) > base):
            index += 1
        if index > start:
            width = _indent(lines[start])
            content = "\n".join(line[width:] for line in lines[start:index])
            yield Block(text=content, line=start + 1, heading=heading)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
