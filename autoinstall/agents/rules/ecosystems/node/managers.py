"""Which package manager a project uses, and how it is had and asked to install."""

import re
import shlex
from datetime import date
from enum import StrEnum

import yaml

from autoinstall.agents.rules.contract import Step
from autoinstall.agents.rules.ecosystems.node.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.node.manifest import Package
from autoinstall.values import Value

RESTORE = "git diff --name-only -z | xargs -0 -r git checkout -q --"
"""Puts tracked files back that an install or a build rewrote."""

# Lock files name the host that each archive came from: a private proxy of long ago, or one that is not reached from
# here. This puts the configured registry in its place; the lock file itself is put back afterwards.
_REHOST = (
    'node -e \'const fs=require("fs"),r=process.argv[1].replace(/\\/?$/,"/"),f=process.argv[2];'
    'fs.writeFileSync(f,fs.readFileSync(f,"utf8")'
    '.replace(/https?:\\/\\/[^\\s"]*?\\/((?:@[^\\/\\s"]+(?:\\/|%2f))?[^\\/\\s"]+\\/-\\/[^\\s"]+)/gi,(m,p)=>r+p))\''
    ' "$(npm config get registry)" '
)


class ManagerKind(StrEnum):
    NPM = "npm"
    PNPM = "pnpm"
    YARN = "yarn"
    BERRY = "berry"


class PackageManager(Value):
    """What installs a project.

    Attributes:
        spec: the npm package that brings it, with a version; empty for the npm that goes with Node.
        fallback_spec: a wider one, where that exact version is not to be had.
        lock: the lock file, relative to the root of the checkout; empty where there is none.
        directory: where it is run.
        pnp: Yarn's plug'n'play: there is no node_modules.
    """

    kind: ManagerKind
    spec: str = ""
    fallback_spec: str = ""
    lock: str = ""
    directory: str = ""
    pnp: bool = False

    @property
    def command(self) -> str:
        return "yarn" if self.kind is ManagerKind.BERRY else self.kind.value

    def run_script(self, script: str) -> str:
        """How a person runs a package script."""
        if script == "test":
            return f"{self.command} test"
        return f"{self.command} run {shlex.quote(script)}"

    def local(self, command: str) -> str:
        """How a person runs a command of a dependency, without fetching one that is not installed."""
        match self.kind:
            case ManagerKind.BERRY:
                return (
                    f"yarn {command}"
                    if command.split(maxsplit=1)[0] in ("node", "run", "exec")
                    else f"yarn run {command}"
                )
            case _:
                return command if command.split(maxsplit=1)[0] == "node" else f"npx --no-install {command}"


def inside(directory: str, command: str) -> str:
    return f"cd {shlex.quote(directory)} && {command}" if directory else command


def detect(package: Package, commit_date: date) -> PackageManager:
    """The package manager by the packageManager field, volta, the lock file, and the commit's date."""
    tree = package.tree
    field = re.match(r"(npm|pnpm|yarn)@(\d+)([\w.-]*)", package.text("packageManager") or _root_field(package))
    lock = tree.first(*(package.path(name) for name in LOCKS)) or ""
    directory = package.directory
    if not lock and directory:
        # A member of a workspace that the root's lock file serves.
        lock = tree.first(*LOCKS) or ""
        directory = (
            "" if lock and package.directory in {item.directory for item in Package(tree, "").members} else directory
        )
        lock = lock if not directory else ""
    name = field.group(1) if field else ""
    if lock.endswith("pnpm-lock.yaml") or name == "pnpm" or (not lock and _only_pnpm(package)):
        return _pnpm(package, field, lock, directory, commit_date)
    if (lock.endswith("yarn.lock") and name != "npm") or name == "yarn":
        return _yarn(package, field, lock if lock.endswith("yarn.lock") else "", directory)
    return PackageManager(kind=ManagerKind.NPM, lock=lock if lock.endswith(".json") else "", directory=directory)


LOCKS = ("pnpm-lock.yaml", "npm-shrinkwrap.json", "package-lock.json", "yarn.lock")


def _root_field(package: Package) -> str:
    return Package(package.tree, "").text("packageManager") if package.directory else ""


def _only_pnpm(package: Package) -> bool:
    wants = any(str(item).startswith("workspace:") for item in package.direct.values())
    return package.tree.has(package.path("pnpm-workspace.yaml")) or (wants and not package.data.get("workspaces"))


def _pnpm(package: Package, field: re.Match[str] | None, lock: str, directory: str, day: date) -> PackageManager:
    lines = knowledge().pnpm
    if field and field.group(1) == "pnpm":
        spec, wide = f"pnpm@{field.group(2)}{field.group(3)}", f"pnpm@{field.group(2)}"
    else:
        found = (
            re.search(r"^lockfileVersion:\s*['\"]?(\d+)(\.\d+)?", package.tree.read(lock)[:2000], re.M)
            if lock
            else None
        )
        major, full = (found.group(1), found.group(1) + (found.group(2) or "")) if found else ("", "")
        fitting = [line for line in lines if line.lockfile in (full, major)] or list(lines)
        exact = [line for line in fitting if line.lockfile == full] or fitting
        spec = next((line.version for line in exact if day < line.until), exact[-1].version)
        wide = spec
    kind = ManagerKind.PNPM
    return PackageManager(kind=kind, spec=spec, fallback_spec=wide, lock=lock, directory=directory)


def _yarn(package: Package, field: re.Match[str] | None, lock: str, directory: str) -> PackageManager:
    tree = package.tree
    text = tree.read(lock)
    berry = "__metadata:" in text[:2000] or bool(field and field.group(1) == "yarn" and int(field.group(2)) >= 2)
    if not berry:
        return PackageManager(
            kind=ManagerKind.YARN, spec="yarn@1", fallback_spec="yarn@1", lock=lock, directory=directory
        )
    try:
        config = yaml.safe_load(tree.read(f"{directory}/.yarnrc.yml" if directory else ".yarnrc.yml")) or {}
    except yaml.YAMLError:
        config = {}
    linker = config.get("nodeLinker", "pnp") if isinstance(config, dict) else "pnp"
    version = re.search(r"__metadata:\s+version:\s*(\d+)", text)
    number = int(version.group(1)) if version else 8
    lines = knowledge().berry
    wide = next((line.version for line in lines if number <= line.lockfile), lines[-1].version)
    spec = wide
    if field and field.group(1) == "yarn" and int(field.group(2)) >= 2:
        spec, wide = f"@yarnpkg/cli-dist@{field.group(2)}{field.group(3)}", f"@yarnpkg/cli-dist@{field.group(2)}"
    return PackageManager(
        kind=ManagerKind.BERRY, spec=spec, fallback_spec=wide, lock=lock, directory=directory, pnp=linker == "pnp"
    )


def install_step(manager: PackageManager, *, locked: bool, before: date | None, why: str) -> Step:
    """Install what the project declares.

    Args:
        locked: use the lock file, where there is one.
        before: take no release that is newer; None where the registry's dates cannot be relied on.
    """
    commands = [
        inside(manager.directory, item) for item in _install_commands(manager, locked and bool(manager.lock), before)
    ]
    return Step(command=commands[0], why=why, fallback=tuple(commands[1:]))


def _install_commands(manager: PackageManager, locked: bool, before: date | None) -> list[str]:
    lock = shlex.quote(manager.lock.rsplit("/", 1)[-1])
    rehost = f"{_REHOST}{lock} && " if locked else ""
    match manager.kind:
        case ManagerKind.NPM:
            cut = f" --before={before.isoformat()}" if before else ""
            loose = f"npm install --no-save --no-package-lock{cut}"
            free = [
                loose,
                f"{loose} --legacy-peer-deps",
                f"{loose} --legacy-peer-deps --ignore-scripts && (npm rebuild || true)",
            ]
            strict = [
                "npm ci",
                "npm ci --legacy-peer-deps",
                f"{rehost}npm install --no-save --legacy-peer-deps",
                f"{rehost}npm install --no-save --legacy-peer-deps --ignore-scripts && (npm rebuild || true)",
            ]
            return [*strict, *free[1:]] if locked else free
        case ManagerKind.PNPM:
            free = [
                "pnpm install --no-frozen-lockfile",
                "pnpm install --no-frozen-lockfile --ignore-scripts --no-strict-peer-dependencies",
            ]
            return ["pnpm install --frozen-lockfile", *free] if locked else free
        case ManagerKind.YARN:
            base = "yarn install --non-interactive --ignore-engines --network-timeout 60000"
            registry = 'YARN_REGISTRY="$(npm config get registry)" '
            strict = [
                f"{rehost}{registry}{base} --frozen-lockfile",
                f"{rehost}{registry}{base} --pure-lockfile",
                f"{rehost}{registry}{base} --pure-lockfile --ignore-scripts && (npm rebuild || true)",
            ]
            free = [
                f"{registry}{base} --no-lockfile",
                f"{registry}{base} --no-lockfile --ignore-scripts",
                "npm install --no-save --no-package-lock --legacy-peer-deps",
            ]
            return [*strict, *free] if locked else free
        case ManagerKind.BERRY:
            registry = 'export YARN_NPM_REGISTRY_SERVER="$(npm config get registry | sed s,/$,,)"; '
            return [
                f"{registry}yarn install --immutable" if locked else f"{registry}yarn install --no-immutable",
                f"{registry}yarn install --no-immutable",
                f"{registry}yarn install --no-immutable --mode=skip-build",
            ]
