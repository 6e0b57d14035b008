"""The set-up of a Rust project."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.rust.flags import selection
from autoinstall.agents.rules.ecosystems.rust.knowledge import Toolchain, knowledge
from autoinstall.agents.rules.ecosystems.rust.manifests import Project, project_of
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox

_BUILD_SECONDS = 2400.0
LOOK_UP = (
    'cd /; printf "path %s\\n" "$PATH"; cargo --version 2>/dev/null; '
    'rustup toolchain list 2>/dev/null | sed -nE "s/^(\\S+).*/rustup \\1/p" | head -n 1; true'
)


def make(context: Context, sandbox: Sandbox) -> Plan:
    """The plan of `context.attempt`: the newest Rust that the suite has, then the oldest that fetches crates alike."""
    project = project_of(context.tree)
    if project is None:
        return Plan(steps=(), exhausted=True)
    output = sandbox.run(LOOK_UP, timeout=30).output
    steps = [] if "\ncargo " in output else list(_toolchain(context.attempt))
    if context.tree.has(".gitmodules"):
        steps.append(SUBMODULES)
    steps += _build(context, project)
    env = dict(knowledge().env)
    if path := re.search(r"(?m)^path (.+)$", output):
        env["PATH"] = f"/root/.cargo/bin:{path[1].strip()}"
    if installed := re.search(r"(?m)^rustup (\S+)$", output):
        env["RUSTUP_TOOLCHAIN"] = installed[1]  # else a pin would make rustup download another
    return Plan(steps=tuple(steps), env=env, exhausted=context.attempt >= 2)


def _toolchain(attempt: int) -> Iterator[Step]:
    first, *others = knowledge().toolchain
    commands = [_install(first), *map(_install, others)]
    if attempt > 1:
        commands.insert(0, _install_oldest(first))
    yield Step(
        command=f"{commands[0]} && cargo --version",
        why="Rust from Debian; a pinned toolchain is only known to rustup, which is not needed here",
        fallback=tuple(commands[1:]),
        timeout=900,
    )


def _install(toolchain: Toolchain) -> str:
    tools = "; ".join(apt_install(name) for name in toolchain.tools.split())
    return f"{apt_install(toolchain.packages)} && {{ {tools}; cargo --version; }}"


def _install_oldest(toolchain: Toolchain) -> str:
    """The oldest of the versions that the suite and its updates have."""
    name = toolchain.packages.split()[0]
    pinned = " ".join(f'"{package}=$version"' for package in toolchain.packages.split())
    tools = "; ".join(f"{apt_install(f'{tool}=$version')}" for tool in toolchain.tools.split())
    return (
        f"apt-get update -q; version=$(apt-cache madison {name} | awk '{{ print $3 }}' | sort -V | head -n 1) && "
        f"{apt_install(f'--allow-downgrades {pinned}')} && {{ {tools}; cargo --version; }}"
    )


def _build(context: Context, project: Project) -> Iterator[Step]:
    options = selection(context, project)
    chosen = f" {options}" if options else ""
    yield Step(
        command=project.inside("cargo fetch"),
        why=f"Crates that {project.manifest} names",
        timeout=_BUILD_SECONDS,
    )
    yield Step(
        command=project.inside(f"cargo build{chosen}"),
        why="Builds the project",
        timeout=_BUILD_SECONDS,
        optional=True,
    )
    yield Step(
        command=project.inside(f"cargo test{chosen} --no-run"),
        why="Builds the tests",
        timeout=_BUILD_SECONDS,
        optional=True,
    )
