"""Chooses the build system that a C or C++ project is built with, and lets it plan."""

import re
from collections.abc import Iterable
from typing import Protocol

from autoinstall.agents.rules.contract import Candidate, Context, Findings, Plan, Step
from autoinstall.agents.rules.ecosystems.c.autotools import Autotools
from autoinstall.agents.rules.ecosystems.c.cmake import CMake
from autoinstall.agents.rules.ecosystems.c.meson import Meson
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class BuildSystem(Protocol):
    """One way to build. `commands` matches the commands, in CI and documents, that use it."""

    name: str
    commands: re.Pattern[str]

    def detect(self, tree: Tree) -> bool: ...

    def candidates(self, tree: Tree) -> Iterable[Candidate]: ...

    def steps(self, tree: Tree) -> Iterable[Step]: ...


class CEcosystem:
    name = "c"
    tools = frozenset(
        {
            "cmake",
            "ctest",
            "meson",
            "ninja",
            "make",
            "configure",
            "autoreconf",
            "autogen.sh",
            "gcc",
            "g++",
            "cc",
            "config.status",
        }
    )
    suffixes = frozenset({".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"})

    def __init__(self) -> None:
        # Where nothing says which is meant, the one that needs least of the others' tools comes first.
        self._systems: tuple[BuildSystem, ...] = (CMake(), Autotools(), Meson())

    def detect(self, tree: Tree) -> bool:
        return any(system.detect(tree) for system in self._systems)

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        del sandbox
        return self._choose(context.tree, context.findings).candidates(context.tree)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        del sandbox
        system = self._of_targets(context) or self._choose(context.tree, context.findings)
        return Plan(steps=tuple(system.steps(context.tree)), exhausted=context.attempt >= 2)

    def _of_targets(self, context: Context) -> BuildSystem | None:
        text = "\n".join(goal.command for goal in context.targets)
        detected = [system for system in self._systems if system.detect(context.tree)]
        return next((system for system in detected if system.commands.search(text)), None)

    def _choose(self, tree: Tree, findings: Findings) -> BuildSystem:
        detected = [system for system in self._systems if system.detect(tree)]
        commands = [command.command for command in findings.commands]
        return max(detected, key=lambda system: sum(bool(system.commands.search(command)) for command in commands))
