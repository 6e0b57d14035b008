"""Brings a line of Node, its npm, and another package manager, from the npm registry."""

import re

from autoinstall.agents.rules.contract import Step
from autoinstall.agents.rules.ecosystems.node.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.node.managers import ManagerKind, PackageManager
from autoinstall.agents.rules.ecosystems.node.semver import parse
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

HOME = "/opt/node"
# The versions of the managers are read from their manifests: to ask each of them would start Node three times.
_LOOK_UP = (
    'printf "node "; node --version 2>/dev/null || echo; '
    "for tool in npm pnpm yarn; do "
    'manifest="$(dirname "$(readlink -f "$(command -v $tool)" || echo /)")/../package.json"; '
    """version="$(sed -nE 's/^ *"version": *"([^"]+)".*/\\1/p' "$manifest" 2>/dev/null | head -n 1)"; """
    'printf "%s %s\\n" $tool "$version"; done; '
    'printf "path %s\\n" "$PATH"'
)


class Tools(Value):
    """What the sandbox has: versions, empty where absent, and its PATH."""

    node: str = ""
    npm: str = ""
    pnpm: str = ""
    yarn: str = ""
    path: str = ""

    @property
    def major(self) -> int:
        version = parse(self.node)
        return version[0] if version else 0


def look_up(sandbox: Sandbox) -> Tools:
    """The Node tools that the sandbox has."""
    output = sandbox.run(_LOOK_UP, timeout=60).output
    found = dict(re.findall(r"^(node|npm|pnpm|yarn|path) +(\S.*)$", output, re.M))
    return Tools(**{name: value.strip() for name, value in found.items()})


def steps(major: int, manager: PackageManager, tools: Tools, why: str) -> tuple[tuple[Step, ...], dict[str, str]]:
    """What has to be done, and set, for `manager` on Node `major`; nothing where the sandbox has both.

    Returns:
        steps, and variables that hold from before the first of them.
    """
    other_node = major != tools.major
    release = knowledge().release_of(major)
    specs: list[str] = []
    if other_node:
        specs += [
            f"node-linux-$(uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')@{major}",
            release.npm if release else "npm",
        ]
    if _wants_own_manager(manager, tools):
        specs.append(manager.spec)
    if not specs:
        return (), {}
    home = f"{HOME}-{major}"
    commands = [_command(home, specs, other_node)]
    if manager.fallback_spec != manager.spec:
        wide = [manager.fallback_spec if spec == manager.spec else spec for spec in specs]
        commands.append(_command(home, wide, other_node))
    env = {"PATH": f"{home}/bin:" + ":".join(item for item in tools.path.split(":") if not item.startswith(f"{HOME}-"))}
    if other_node:
        env["npm_config_nodedir"] = f"{home}/node"
    return (Step(command=commands[0], why=why, fallback=tuple(commands[1:])),), env


def _wants_own_manager(manager: PackageManager, tools: Tools) -> bool:
    if manager.kind is ManagerKind.NPM:
        return False
    if manager.kind is ManagerKind.BERRY:
        return True
    have, want = (
        (tools.pnpm if manager.kind is ManagerKind.PNPM else tools.yarn),
        parse(manager.spec.rpartition("@")[2]),
    )
    given = parse(have)
    return given is None or want is None or given[0] != want[0]


def _command(home: str, specs: list[str], other_node: bool) -> str:
    names = " ".join(f'"{spec}"' for spec in specs)
    return f"mkdir -p {home}/bin && cd {home} && npm install --no-package-lock --loglevel=error {names} && " + _link(
        home, other_node
    )


def _link(home: str, other_node: bool) -> str:
    parts = [
        f'for tool in {home}/node_modules/.bin/*; do ln -sf "$(readlink -f "$tool")" {home}/bin/"${{tool##*/}}"; done'
    ]
    if other_node:
        parts += [
            f"ln -sfn {home}/node_modules/node-linux-* {home}/node",
            f"ln -sf {home}/node/bin/node {home}/bin/node",
        ]
    parts.append(f'PATH={home}/bin:"$PATH" node --version')
    return " && ".join(parts)
