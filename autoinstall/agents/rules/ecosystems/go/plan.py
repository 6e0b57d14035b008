"""The set-up of a Go repository."""

import shlex
from collections.abc import Iterator
from importlib import resources

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.ecosystems.go import toolchain
from autoinstall.agents.rules.ecosystems.go.modules import Module, import_path, modules_of
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.sandbox.contract import Sandbox

MAX_MODULES = 6
"""Modules that are set up: those that the targets work in, then the first of the rest."""

_BUILD_SECONDS = 1800.0
_TIDY = "go mod tidy -e || go mod tidy"
_OLD_LOCKS = (
    "Gopkg.lock",
    "glide.lock",
    "Godeps/Godeps.json",
    "vendor/vendor.json",
    "vendor/manifest",
    "dependencies.tsv",
)


def make(context: Context, sandbox: Sandbox) -> Plan:
    """The plan of `context.attempt`: attempts differ by the line of Go."""
    found = modules_of(context.tree)
    choices = toolchain.choices(context, found)
    choice = choices[min(context.attempt, len(choices)) - 1]
    present = toolchain.look_up(sandbox)
    steps = [*toolchain.steps(choice, present)]
    if context.tree.has(".gitmodules"):
        steps.append(SUBMODULES)
    for module in _wanted(context, found):
        steps += _module_steps(context, module)
    bin_path = f"{toolchain.HOME}/bin:/root/go/bin"
    rest = ":".join(part for part in present.path.split(":") if part and part not in bin_path.split(":"))
    return Plan(steps=tuple(steps), env=_env(found, f"{bin_path}:{rest}"), exhausted=context.attempt >= len(choices))


def _env(found: tuple[Module, ...], path: str) -> dict[str, str]:
    # Results of earlier runs would otherwise stand in for a run of the tests. Modules that were made up here have
    # vendored packages, if any, that no list goes with.
    flags = "-count=1" if found[0].declared else "-count=1 -mod=mod"
    return {"PATH": path, "GOFLAGS": flags, "GO111MODULE": "on"}


def _wanted(context: Context, found: tuple[Module, ...]) -> tuple[Module, ...]:
    text = " ".join(goal.command for goal in context.targets)
    named = [module for module in found if module.directory and f"cd {module.directory} " in text]
    others = [module for module in found if not module.helper]
    return tuple(dict.fromkeys((found[0], *named, *others)))[:MAX_MODULES]


def _dated() -> str:
    return resources.files(__package__).joinpath("dated.sh").read_text(encoding="utf-8")


def _module_steps(context: Context, module: Module) -> Iterator[Step]:
    if not module.declared:
        path = shlex.quote(import_path(context.tree, context.repository.url))
        # `init` of older lines reads the lock files of the tools before modules.
        yield Step(
            command=f"[ -e go.mod ] || go mod init {path}",
            why="The repository is of the time before modules: its import path makes it one",
        )
        yield Step(command=_TIDY, why="What the sources and tests import", optional=True)
        # Lock files of the time name commits, which `init` has taken over.
        if context.tree.first(*_OLD_LOCKS) is None:
            yield Step(
                command=f"bash -c {shlex.quote(_dated())} dated {context.repository.commit_date.date()}; {_TIDY}",
                why="Nothing pins the modules: releases of the commit's time are taken",
                optional=True,
                timeout=600,
            )
    if not module.vendored:
        yield Step(
            command=module.inside("go mod download"),
            why=f"Modules that {module.manifest} names",
            timeout=_BUILD_SECONDS,
            optional=bool(module.directory),
        )
    yield Step(
        command=module.inside("go build ./..."),
        why="Builds the packages",
        timeout=_BUILD_SECONDS,
        optional=True,
    )
    # Compiles the tests too, so that nothing they need is fetched or built for the first time later.
    yield Step(
        command=module.inside("go test -run '^$' ./... || go vet ./..."),
        why="Compiles the tests of all packages",
        timeout=_BUILD_SECONDS,
        optional=True,
    )
