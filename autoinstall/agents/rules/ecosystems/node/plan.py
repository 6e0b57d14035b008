"""The set-up of a Node project, and how a later attempt differs from the ones before it."""

import re
import shlex
from datetime import date, timedelta

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.ecosystems.node import managers, toolchain, versions
from autoinstall.agents.rules.ecosystems.node.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.node.managers import ManagerKind, PackageManager
from autoinstall.agents.rules.ecosystems.node.manifest import BUILD_OUTPUT, Package, roots
from autoinstall.agents.rules.ecosystems.node.scripts import parts
from autoinstall.agents.rules.ecosystems.node.semver import lower_bound
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value


class Strategy(Value):
    """One way to set up: the rank of the Node line, and whether the lock file is used."""

    node: int = 0
    locked: bool = True
    floor: bool = False
    why: str = ""


_LOCKED = (
    Strategy(why="as the repository says"),
    Strategy(node=1, why="another line of Node"),
    Strategy(locked=False, why="without the lock file"),
    Strategy(node=2, why="a third line of Node"),
)
_FREE = (
    Strategy(locked=False, why="as the repository says"),
    Strategy(locked=False, floor=True, why="the oldest releases that the manifest allows"),
    Strategy(node=1, locked=False, why="another line of Node"),
    Strategy(node=1, locked=False, floor=True, why="another line of Node with the oldest releases that are allowed"),
)


def make(context: Context, tools: toolchain.Tools, sandbox: Sandbox) -> Plan:
    """The plan for `context.attempt`; exhausted where the next one would repeat it."""
    packages = _wanted(context)
    day = context.repository.commit_date.date()
    steps: list[Step] = []
    main = packages[0]
    env = {**knowledge().env, **_switches(packages)}
    for name, extra in knowledge().env_for.items():
        env |= extra if any(name in package.direct for package in (*packages, *main.members)) else {}
    named = context.findings.versions.get("node", ())
    choice = versions.choose(main, day, tools.major, named)
    manager = managers.detect(main, day)
    ways = _LOCKED if manager.lock else _FREE
    way = ways[min(context.attempt - 1, len(ways) - 1)]
    major = choice.majors[min(way.node, len(choice.majors) - 1)]
    why = choice.why if way.node == 0 else f"Node {major}: {way.why}"
    own, more = toolchain.steps(major, manager, tools, why)
    steps += own
    env |= more
    before = day + timedelta(days=1) if _dated(manager, way, sandbox) else None
    for package in packages:
        its = manager if package is main else managers.detect(package, day)
        steps += _install(package, its, way, before)
        steps += _build(package, its)
    return Plan(steps=tuple(steps), env=env, exhausted=context.attempt >= len(ways))


def _wanted(context: Context) -> tuple[Package, ...]:
    """The packages that the targets work in, the main one of the repository first where they work in it too."""
    tree = context.tree
    found = roots(tree)
    members = {member.directory for package in found for member in package.members}
    wanted: dict[str, Package] = {}
    for goal in context.targets:
        moved = re.match(r"cd\s+(\S+)\s*&&", goal.command)
        directory = moved.group(1).strip("'\"").strip("/") if moved else ""
        if tree.has(f"{directory}/package.json") and directory not in members:
            wanted[directory] = Package(tree, directory)
        elif tree.has("package.json"):
            wanted[found[0].directory] = found[0]
    ordered = [package for package in found if package.directory in wanted]
    ordered += [wanted[name] for name in wanted if name not in {package.directory for package in found}]
    return tuple(ordered) or found[:1]


def _switches(packages: tuple[Package, ...]) -> dict[str, str]:
    """What keeps install scripts from reaching for hosts of their own."""
    found: dict[str, str] = {}
    for package in packages:
        paths = {package.path(name) for name in ("package.json", *managers.LOCKS)} | set(managers.LOCKS)
        paths |= {member.path("package.json") for member in package.members}
        text = "\n".join(package.tree.read(path) for path in sorted(paths))
        for word, extra in knowledge().switches.items():
            if re.search(rf"[\"'/]?(?<![\w-]){re.escape(word)}", text):
                found |= extra
    return found


def _dated(manager: PackageManager, way: Strategy, sandbox: Sandbox) -> bool:
    """Whether npm's --before can be used. Some mirrors date every release by when they first saw it."""
    if manager.kind is not ManagerKind.NPM or (way.locked and manager.lock):
        return False
    probe = knowledge().dated
    result = sandbox.run(f"cd / && npm view {probe.package} time --json", timeout=60)
    return result.exit_code == 0 and f'"{probe.version}": "{probe.day.isoformat()}' in result.output


def _install(package: Package, manager: PackageManager, way: Strategy, before: date | None) -> list[Step]:
    why = f"dependencies of {package.path('package.json')}, {way.why}"
    steps = []
    if package.tree.has(".gitmodules"):
        why += "; submodules as the checkout has them"
    steps.append(managers.install_step(manager, locked=way.locked, before=before, why=why))
    floors = _floors(package) if way.floor else []
    if floors:
        command = f"npm install --no-save --no-package-lock --legacy-peer-deps {' '.join(floors)}"
        steps.append(Step(command=managers.inside(package.directory, command), why=way.why, optional=True))
    steps.append(Step(command=managers.RESTORE, why="tracked files stay as the commit has them", optional=True))
    if (
        package.tree.has("lerna.json")
        and not package.data.get("workspaces")
        and manager.kind is not ManagerKind.PNPM
        and package.members
    ):
        steps.append(_bootstrap(package, manager))
    return steps


def _bootstrap(package: Package, manager: PackageManager) -> Step:
    """Lerna's own linking of members, for workspaces that the package manager does not know of."""
    command = manager.local("lerna bootstrap --no-ci")
    return Step(
        command=managers.inside(package.directory, command),
        why="lerna.json names members that the package manager does not link",
        optional=True,
        fallback=(managers.inside(package.directory, manager.local("lerna link")),),
    )


def _floors(package: Package) -> list[str]:
    """Each direct dependency at the least release that its range allows."""
    found = []
    for name, wanted in package.direct.items():
        low = lower_bound(wanted)
        if low is not None and re.fullmatch(r"(@[\w.-]+/)?[\w.-]+", name):
            found.append(shlex.quote(f"{name}@{low[0]}.{low[1]}.{low[2]}"))
    return found


def _build(package: Package, manager: PackageManager) -> list[Step]:
    """The project's own build, where its entry, its members or the targets need what it makes."""
    name = next(
        (item for item in ("build", "compile", "dist", "bundle", "prepare", "prepublish") if item in package.scripts),
        "",
    )
    if not name or not parts(package, name):
        return []
    entries = [item for item in _entry_files(package) if not package.tree.has(package.path(item))]
    if package.members:
        entries += [
            item
            for member in package.members
            for item in _entry_files(member)
            if not member.tree.has(member.path(item))
        ]
    if not entries:
        return []
    command = manager.run_script(name)
    missing = [item for item in _entry_files(package) if not package.tree.has(package.path(item))]
    if missing and not package.members:
        # An install that ran `prepare` may have built it already.
        command = f"[ -e {shlex.quote(missing[0])} ] || {command}"
    why = f"{package.path('package.json')} names {entries[0]}, which the build makes"
    return [
        Step(command=managers.inside(package.directory, command), why=why, optional=True),
        Step(command=managers.RESTORE, why="tracked files stay as the commit has them", optional=True),
    ]


def _entry_files(package: Package) -> list[str]:
    found = [package.text(key) for key in ("main", "module", "types", "typings")]
    bins = package.data.get("bin")
    found += (
        [bins]
        if isinstance(bins, str)
        else [item for item in bins.values() if isinstance(item, str)]
        if isinstance(bins, dict)
        else []
    )
    exports = package.data.get("exports")
    if exports:
        found += re.findall(r"'\./([^'*]+\.[cm]?js)'", str(exports))[:4]
    return [item.removeprefix("./") for item in found if item and BUILD_OUTPUT.search(item)]
