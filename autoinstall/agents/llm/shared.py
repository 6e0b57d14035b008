"""What the goal-setter and the installer have in common."""

import re
import shlex
import time
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from autoinstall.agents.contract import Repository
from autoinstall.agents.llm.contract import AgentTool, Budget
from autoinstall.agents.llm.tools.web import web_tools
from autoinstall.languages import language_of
from autoinstall.models.contract import Message
from autoinstall.outputs.cleaning import clean
from autoinstall.sandbox.contract import Sandbox
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, NonEmpty

MAX_LAYOUT = 60
"""Entries of a checkout's top level that are named in a task."""

MAX_LEFT_OUT = 20
"""Parts that a checkout lacks that are named in a task."""

TAIL = 1500
"""Characters of a command's output that a task or a complaint quotes."""

_VERSIONED = {
    **dict.fromkeys(("python3", "node", "gcc", "cmake", "rustc", "ruby", "php", "perl"), "--version"),
    **dict.fromkeys(("go",), "version"),
    **dict.fromkeys(("java",), "-version"),
}
_NAMED = ("uv", "pip", "npm", "pnpm", "yarn", "make", "cargo", "mvn")
"""Of these the version matters little, and some take a second to tell it."""

_ASK = """for ask in {asked}; do
    command -v "${{ask%% *}}" >/dev/null || continue
    version=; case $ask in *' '*) version=$($ask 2>&1 </dev/null | grep -oE '[0-9]+([.][0-9]+)+' | head -n 1) ;; esac
    echo "${{ask%% *}} $version"
done"""
_ASK_SECONDS = 30.0

Line = Annotated[NonEmpty, Field(max_length=400)]


def with_web(tools: Sequence[AgentTool], settings: Settings) -> tuple[AgentTool, ...]:
    """`tools`, and those for the web where the settings name a search provider."""
    return (*tools, *web_tools(settings))


def budget_of(settings: Settings, seconds: float) -> Budget:
    """The bounds of one agent run that starts now and may take so many seconds."""
    agents = settings.agents
    return Budget(
        deadline=time.monotonic() + seconds, steps=agents.steps, tokens=agents.tokens, cost_usd=agents.cost_usd
    )


def opening(system: str, task: str) -> tuple[Message, ...]:
    """How a conversation starts."""
    return Message(role="system", content=system), Message(role="user", content=task)


def facts(repository: Repository, tree: Tree) -> dict[str, object]:
    """What every task says of the repository."""
    return {
        "url": repository.url,
        "commit": repository.commit,
        "date": f"{repository.commit_date:%Y-%m-%d}",
        "file_count": len(tree.files),
        "language": language_of(tree) or "",
        "layout": layout(tree),
        "left_out": left_out(repository.left_out),
    }


def toolchains(sandbox: Sandbox) -> str:
    """What of the usual toolchains the sandbox has, with versions, and what it lacks; empty where it does not say.

    Every agent asks for this first, so it is asked once, in one call.
    """
    asked = [*(f"{name} {option}" for name, option in _VERSIONED.items()), *_NAMED]
    found = sandbox.run(_ASK.format(asked=" ".join(map(shlex.quote, asked))), timeout=_ASK_SECONDS)
    names = (*_VERSIONED, *_NAMED)
    lines = (line.split() for line in clean(found.output).splitlines())
    present = {words[0]: " ".join(words[:2]) for words in lines if words and words[0] in names}
    if found.exit_code != 0 or not present:
        return ""
    shown = ", ".join(present.values())
    absent = [name for name in names if name not in present]
    return f"{shown}; not there: {', '.join(absent)}" if absent else shown


def layout(tree: Tree) -> str:
    """The top level of a checkout, one entry a line, with how many files lie below each directory."""
    counts = Counter(path.partition("/")[0] for path in tree.files)
    directories = {path.partition("/")[0] for path in tree.files if "/" in path}
    lines = [
        f"{_one_line(name)}/ ({counts[name]} files)" if name in directories else _one_line(name)
        for name in sorted(counts)
    ]
    more = [f"… and {len(lines) - MAX_LAYOUT} more"] if len(lines) > MAX_LAYOUT else []
    return "\n".join([*lines[:MAX_LAYOUT], *more])


def left_out(warnings: Sequence[str]) -> str:
    """What a checkout lacks, one entry a line; why it does is the host's business and says nothing to an agent."""
    lines = [_one_line(": ".join(warning.split(": ")[:2])) for warning in warnings]
    more = [f"… and {len(lines) - MAX_LEFT_OUT} more"] if len(lines) > MAX_LEFT_OUT else []
    return "\n".join([*lines[:MAX_LEFT_OUT], *more])


def tail(result: CommandResult, characters: int = TAIL) -> str:
    """The end of what a command printed, as a terminal would show it."""
    text = clean(result.output).strip()
    return text if len(text) <= characters else f"[…]{text[-characters:]}"


def _one_line(name: str) -> str:
    return re.sub(r"\s+", " ", name)[:120]
