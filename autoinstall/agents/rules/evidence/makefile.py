"""Targets of Makefiles, justfiles and Taskfiles."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import EvidenceCommand, Findings, Source
from autoinstall.agents.rules.evidence.classify import classify
from autoinstall.agents.rules.evidence.yaml_marks import mapping, read_yaml
from autoinstall.tree import Tree
from autoinstall.values import Evidence

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_TARGET = re.compile(r"^(?P<names>[A-Za-z0-9][\w./ -]*?)\s*::?(?!=)(?P<rest>.*)$")
_RECIPE = re.compile(r"^(?P<name>[A-Za-z][\w-]*)(?P<parameters>[^:=]*):(?!=)")


def read_makefiles(tree: Tree) -> Findings:
    """`make TARGET`, `just RECIPE` and `task NAME` for every target of the root's files that has a plain name."""
    commands: list[EvidenceCommand] = []
    if path := tree.first(*MAKEFILES):
        commands.extend(_command(f"make {name}", path, line, name) for name, line in make_targets(tree, path))
    if path := tree.first("justfile", "Justfile", ".justfile"):
        commands.extend(_command(f"just {name}", path, line, name) for name, line in _just_recipes(tree, path))
    if path := tree.first("Taskfile.yml", "Taskfile.yaml"):
        tasks = mapping(mapping(read_yaml(tree, path)).get("tasks"))
        commands.extend(_command(f"task {name}", path, tree.find_line(path, f"{name}:"), name) for name in tasks)
    return Findings(commands=tuple(commands))


def make_targets(tree: Tree, path: str) -> Iterator[tuple[str, int]]:
    """(name, line) of the explicit targets with plain names, each once; no files with suffixes, no pattern rules."""
    seen: set[str] = set()
    for number, line in tree.lines(path):
        match = _TARGET.match(line)
        if not match or line.startswith(("\t", "#", ".")):
            continue
        for name in match["names"].split():
            if name not in seen and re.fullmatch(r"[A-Za-z][\w-]*", name):
                seen.add(name)
                yield name, number


def _just_recipes(tree: Tree, path: str) -> Iterator[tuple[str, int]]:
    for number, line in tree.lines(path):
        match = _RECIPE.match(line)
        if match and not match["parameters"].strip() and not line.startswith(("set ", "export ", "alias ")):
            yield match["name"], number


def _command(command: str, path: str, line: int, section: str) -> EvidenceCommand:
    return EvidenceCommand(
        command=command,
        source=Source.MAKEFILE,
        category=classify(command),
        evidence=Evidence(path=path, line=line, text=section),
        section=section,
    )
