"""A missing file that has an example beside it → a copy of the example, declared as a mock."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Mock, MockKind

_MISSING = (
    re.compile(r"No such file or directory:? [`'\"]([^'\"\n]+)['\"]"),
    re.compile(r"(?m)[`'\"]([^'\"\n]+)['\"]?:? (?:No such file|does not exist|not found|is missing)"),
    re.compile(r"ENOENT: no such file or directory, \w+ '([^']+)'"),
    re.compile(r"(?m)^(?:cat|cp|\S*\.sh|bash|source|\.|sed|grep)(?:: line \d+)?: ([\w./-]+): No such file"),
    re.compile(
        r"(?i)(?:could not|cannot|can't|unable to|failed to) (?:find|open|load|read)(?: the)?(?: config\w*| settings)?"
        r"(?: file)?:? [`'\"]?([\w./-]+\.\w+|\.env)"
    ),
    re.compile(
        r"(?i)(?:missing|please create|copy \S+ to)(?: a| the)?(?: config\w*)?"
        r"(?: file)?:? [`'\"]?([\w./-]+\.\w+|\.env)\b"
    ),
    re.compile(r"Cannot find module '(\.{1,2}/[^']+|/workspace/[^']+)'"),
)
_MARKS = ("example", "sample", "dist", "template", "default", "tmpl", "tpl", "in", "skel", "orig", "defaults")
_ROOT = "/workspace/"


class MockRepairer:
    """Copies example files to where the project looks for the real ones."""

    name = "mocks"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        del sandbox
        repairs: list[Repair] = []
        for path in missing_files(failure.output):
            for wanted in _places(context.tree, path):
                example = example_of(context.tree, wanted)
                if example and not context.tree.has(wanted):
                    repairs.append(_repair(example, wanted))
        return repairs


def missing_files(output: str) -> Iterator[str]:
    """Paths that the output says are missing, each once, as the output spells them."""
    seen: set[str] = set()
    for pattern in _MISSING:
        for match in pattern.finditer(output):
            if match[1] not in seen:
                seen.add(match[1])
                yield match[1]


def example_of(tree: Tree, path: str) -> str | None:
    """The tracked example for `path`: `config.example.yml`, `.env.sample`, `settings.py.dist`, … in its directory or
    in an `examples`, `config` or `etc` one beside it."""
    directory, name = posixpath.split(path)
    stem, dot, suffix = name.rpartition(".")
    names: list[str] = []
    for mark in _MARKS:
        names += [
            f"{name}.{mark}",
            f"{name}-{mark}",
            f"{mark}.{name}",
            f"{mark}-{name}",
            f"{mark}_{name}",
            f"{name}_{mark}",
        ]
        if dot and stem:
            names += [f"{stem}.{mark}.{suffix}", f"{stem}-{mark}.{suffix}", f"{stem}_{mark}.{suffix}"]
        if name.startswith("."):
            names += [f"{mark}{name}", f"{name[1:]}.{mark}", f"{mark}.{name[1:]}"]
    places = (directory, posixpath.join(directory, "examples"), posixpath.join(directory, "config"), "")
    return tree.first(*(posixpath.join(place, item) for place in places for item in names))


def _places(tree: Tree, path: str) -> Iterator[str]:
    """Where in the tree the path may be meant: from the root, or in any directory that has an example of it."""
    inside = path.removeprefix(_ROOT)
    if inside.startswith("/"):
        return
    inside = posixpath.normpath(inside)
    if not inside.startswith(".."):
        yield inside
    name = posixpath.basename(inside)
    for directory in sorted({posixpath.dirname(item) for item in tree.files}, key=lambda item: (item.count("/"), item))[
        :300
    ]:
        candidate = posixpath.join(directory, name)
        if candidate != inside and example_of_here(tree, candidate):
            yield candidate


def example_of_here(tree: Tree, path: str) -> bool:
    """Whether the path's own directory has an example of it."""
    example = example_of(tree, path)
    return example is not None and posixpath.dirname(example) == posixpath.dirname(path)


def _repair(example: str, wanted: str) -> Repair:
    kind = MockKind.CREDENTIAL if re.search(r"(?i)secret|credential|\.env|token", wanted) else MockKind.FILE
    return Repair(
        key=f"mock:{wanted}",
        why=f"{wanted} is missing; the repository has {example} as its example.",
        # -n: a file that is there by now stays as it is.
        commands=(
            f"mkdir -p {shlex.quote(posixpath.dirname(wanted) or '.')}",
            f"cp -n {shlex.quote(example)} {shlex.quote(wanted)}",
        ),
        mocks=(
            Mock(kind=kind, path=wanted, reason=f"Copied from {example}, which the repository keeps as its example."),
        ),
        lesson=f"{wanted} is to be copied from {example}",
    )
