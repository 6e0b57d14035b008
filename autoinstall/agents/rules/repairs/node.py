"""Remedies for what Node, its package managers and its tools report."""

import re
import shlex
from collections.abc import Iterator, Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.ecosystems.node import managers, toolchain
from autoinstall.agents.rules.ecosystems.node.knowledge import NodeLine, RepairRule, knowledge
from autoinstall.agents.rules.ecosystems.node.knowledge import repairs as repair_table
from autoinstall.agents.rules.ecosystems.node.managers import ManagerKind
from autoinstall.agents.rules.ecosystems.node.manifest import Package, roots
from autoinstall.agents.rules.ecosystems.node.semver import lower_bound
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import CommandResult

EXTRA = "/opt/node-extra"
"""Packages that the project needs and does not declare; linked into its node_modules, so that no install prunes
them."""

_MISSING = re.compile(
    r"(?:Cannot find (?:module|package)|Can't resolve|Could not resolve|Cannot resolve module|unable to resolve"
    r"|Failed to (?:resolve|load) (?:import|url|plugin|config|parser))\s+['\"`]?(?P<name>[^'\"`\s]+)['\"`]?",
    re.I,
)
_NOT_FOUND = re.compile(
    r"(?:sh|bash)(?:: line)?:? (?:\d+: )?(?:exec: )?(?P<name>[\w@./-]+): (?:command )?not found"
    r"|command not found: (?P<name2>[\w@./-]+)"
    r"|Command \"(?P<name3>[\w@./-]+)\" not found"
    r"|missing packages and no YES option: \[\"(?P<name4>@?[^\"@]+)"
    r"|spawn (?P<name5>[\w-]+) ENOENT",
)
_GIT = re.compile(
    r"git (?:ls-remote|clone|fetch)[^\n]*(?:github|gitlab|bitbucket|git@|ssh://)|Permission denied \(publickey\)"
    r"|Could not (?:resolve host|read from remote)|codeload\.[^\n]*(?:ENOTFOUND|ECONN|EAI|40\d)"
    r"|unable to access 'https?://"
    r"|fetch[^\n]*tar\.gz[^\n]*(?:ENOTFOUND|ECONN|EAI_AGAIN|40\d)",
    re.I,
)
_TYPES = re.compile(
    r"node_modules/(?:\.pnpm/[^/\s]+/node_modules/)?(?P<name>@types/[\w.-]+)/[^\s(:]+"
    r"(?:\(\d+,\d+\)|:\d+:\d+)[^\n]*error TS"
)
_BUILTIN = re.compile(
    r"^(?:node:)?(?:fs|path|os|util|http|https|stream|events|assert|url|crypto|child_process|zlib|net|tls|buffer|vm"
    r"|module|worker_threads|test)(?:/|$)"
)
_NAME = re.compile(r"^(?:@[\w.-]+/)?[a-zA-Z0-9][\w.-]*$")
_NODE_OUTPUT = re.compile(
    r"node_modules|npm|pnpm|yarn|node:|\bnode\b|\.[cm]?[jt]sx?\b|gyp|Chrom|browser|webpack|YN\d{4}", re.I
)

_GONE = re.compile(
    r"(?:FETCH_40[0-9]|40[0-9] Not Found|404)[^\n]*?GET\s+https?://[^\s/]+/(?:[^\s]*?/)??(?P<a>(?:@[\w.-]+(?:/|%2f))?[\w.-]+)(?:/-/|:|\s|$)"
    r"|[Nn]o matching version found for (?P<b>(?:@[\w.-]+/)?[\w.-]+)@"
    r"|Couldn't find (?:any versions for|package) \"(?P<c>(?:@[\w.-]+/)?[\w.-]+)"
    r"|https?://\S+?/(?P<d>(?:@[\w.-]+/)?[\w.-]+)/-/\S+: (?:Request failed \\?\"40|Not Found)"
    r"|ERR_PNPM_NO_VERSIONS[^\n]*?for (?P<e>(?:@[\w.-]+/)?[\w.-]+)"
)
_LEFT_OUT = re.compile(r" # without (?P<names>\S+)$")

# Dependencies that name a git repository or an archive, and those whose names are given, are replaced by the newest
# release of the same name, or left out where there is none.
_WITHOUT = r"""
const fs = require('fs'), { execFileSync } = require('child_process');
const [file, ...names] = process.argv.slice(1), manifest = JSON.parse(fs.readFileSync(file, 'utf8'));
const remote = /^(git|ssh|https?|github|gitlab|bitbucket|gist)[:+@]|^[\w.-]+\/[\w.-]+(#.*)?$/;
for (const key of ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'])
  for (const [name, spec] of Object.entries(manifest[key] || {})) {
    if (!remote.test(spec) && !names.includes(name)) continue;
    let released = true;
    try { execFileSync('npm', ['view', name, 'version'], { stdio: 'ignore' }); } catch (error) { released = false; }
    if (released) manifest[key][name] = '*'; else delete manifest[key][name];
    console.log(name, spec, released ? 'taken as the newest release' : 'left out');
  }
fs.writeFileSync(file, JSON.stringify(manifest, null, 2));
"""
_UNLOCKED = {
    ManagerKind.NPM: "npm install --no-save --no-package-lock --legacy-peer-deps",
    ManagerKind.PNPM: "pnpm install --no-frozen-lockfile --no-lockfile --no-strict-peer-dependencies",
    ManagerKind.YARN: "yarn install --no-lockfile --non-interactive --ignore-engines",
}
_SCRIPT_FAILED = re.compile(
    r"\b(?:pre|post)?install: Failed|ELIFECYCLE|Exit status \d+|npm (?:ERR!|error) command (?:sh|failed)"
    r"|Command failed\.\n"
)
_WITHOUT_SCRIPTS = "export npm_config_ignore_scripts=true YARN_IGNORE_SCRIPTS=true"
_INSTALLS = re.compile(r"\b(?:npm (?:ci|install|i)|(?:pnpm|yarn) install)\b")


class NodeRepairer:
    """See the module; implements `Repairer`."""

    name = "node"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        found = roots(context.tree)
        if not found or not _NODE_OUTPUT.search(f"{failure.command}\n{failure.output}"):
            return ()
        package = _package(context, failure.command, found)
        return tuple(_remedies(context, package, failure, sandbox))


def _package(context: Context, command: str, found: tuple[Package, ...]) -> Package:
    """The package that the command works in."""
    moved = re.match(r"cd\s+(\S+)\s*&&", command)
    directory = moved.group(1).strip("'\"").rstrip("/") if moved else ""
    if moved and context.tree.has(f"{directory}/package.json"):
        return Package(context.tree, directory)
    return found[0]


def _remedies(context: Context, package: Package, failure: CommandResult, sandbox: Sandbox) -> Iterator[Repair]:
    output = failure.output
    yield from _by_table(package, output)
    yield from _unreachable(context, package, failure)
    yield from _workspace_protocol(package, output)
    yield from _missing_modules(context, package, output)
    yield from _missing_programs(package, failure)
    yield from _types(package, output)
    yield from _other_node(context, package, output, sandbox)
    yield from _install_scripts(package, failure)


def add(package: Package, *specs: str) -> str:
    """Put packages into `package`'s node_modules without touching its manifest or what is installed already.

    Args:
        specs: quoted for the shell already.
    """
    target = f"/workspace/{package.directory}".rstrip("/") + "/node_modules"
    link = (
        f"for name in $(node -p \"Object.keys(require('{EXTRA}/package.json').dependencies).join(' ')\"); do "
        f'mkdir -p "$(dirname {shlex.quote(target)}/$name)" && '
        f'{{ [ -e {shlex.quote(target)}/"$name" ] && [ ! -L {shlex.quote(target)}/"$name" ] || '
        f'ln -sfn {EXTRA}/node_modules/"$name" {shlex.quote(target)}/"$name"; }}; done'
    )
    programs = (
        f"mkdir -p {shlex.quote(target)}/.bin && for tool in {EXTRA}/node_modules/.bin/*; do "
        f'[ -e {shlex.quote(target)}/.bin/"$(basename "$tool")" ] || ln -sf "$tool" {shlex.quote(target)}/.bin/; done'
    )
    return (
        f"mkdir -p {EXTRA} && cd {EXTRA} && {{ [ -e package.json ] || echo '{{}}' > package.json; }} && "
        f"npm install --no-package-lock --legacy-peer-deps --loglevel=error {' '.join(specs)} && {link} && {programs}"
    )


def _by_table(package: Package, output: str) -> Iterator[Repair]:
    for rule in repair_table().repair:
        found = re.search(rule.pattern, output)
        if found:
            yield _from_rule(rule, package, {name: value or "" for name, value in found.groupdict().items()})


def _from_rule(rule: RepairRule, package: Package, groups: dict[str, str]) -> Repair:
    commands = []
    for template in rule.commands:
        command = template
        here = f"/workspace/{package.directory}".rstrip("/")
        for name, value in {**groups, "here": here}.items():
            command = command.replace(f"{{{name}}}", shlex.quote(value))
        if command.startswith("{add} "):
            command = add(package, command.removeprefix("{add} "))
        else:
            command = managers.inside(package.directory, command)
        commands.append(command)
    key = f"node:{rule.name}" + ("" if rule.once else ":" + ":".join(groups.values()))
    why = rule.why
    for name, value in groups.items():
        why = why.replace(f"{{{name}}}", value)
    return Repair(key=key, why=why, commands=tuple(commands), env=rule.env, lesson=rule.lesson)


def _unreachable(context: Context, package: Package, failure: CommandResult) -> Iterator[Repair]:
    """A dependency that lies in a git repository out of reach, or a release that the registry does not have."""
    if not _INSTALLS.search(failure.command):
        return
    gone = {name.replace("%2f", "/") for match in _GONE.finditer(failure.output) for name in match.groups() if name}
    if not gone and not _GIT.search(failure.output):
        return
    before = _LEFT_OUT.search(failure.command)
    names = sorted(gone | set(before["names"].split(",") if before else ()))[:20]
    install = _UNLOCKED.get(managers.detect(package, context.repository.commit_date.date()).kind)
    if install is None:
        return
    command = (
        f"node -e {shlex.quote(_WITHOUT)} -- package.json {' '.join(map(shlex.quote, names))} && "
        f"{{ {install}; status=$?; git checkout -q -- package.json; [ $status = 0 ]; }}"
    )
    what = (
        f"the registry does not have {', '.join(names)} as asked for" if names else "a git repository is out of reach"
    )
    yield Repair(
        key=f"node:without:{package.directory}:{','.join(names)}",
        why=f"{what}; the lock file cannot be followed, and the newest release of the same name is taken",
        replacement=managers.inside(package.directory, command) + f" # without {','.join(names)}" * bool(names),
        lesson=what,
    )


def _install_scripts(package: Package, failure: CommandResult) -> Iterator[Repair]:
    """A dependency's install script fails, most often for a binary that it would fetch. Only for an install that has
    left the lock file already: any other one has its own way to do without scripts."""
    command = failure.command
    if "node -e" not in command or not _INSTALLS.search(command) or not _SCRIPT_FAILED.search(failure.output):
        return
    if _WITHOUT_SCRIPTS not in command:
        rebuild = "pnpm rebuild" if "pnpm install" in command else "npm rebuild"
        body, mark, names = command.partition(" # without ")
        yield Repair(
            key=f"node:install-scripts:{package.directory}",
            why="the install script of a dependency fails; whatever can be built without it is",
            replacement=f"{_WITHOUT_SCRIPTS}; {{ {body}; }} && "
            f"{{ unset npm_config_ignore_scripts; {rebuild} || true; }}{mark}{names}",
            lesson="install scripts of dependencies fail",
        )


def _workspace_protocol(package: Package, output: str) -> Iterator[Repair]:
    if re.search(r"Unsupported URL Type \"?(?:workspace|catalog|link|portal):|EUNSUPPORTEDPROTOCOL", output):
        yield Repair(
            key=f"node:workspace-protocol:{package.directory}",
            why="npm does not know the workspace: protocol, pnpm does",
            commands=(
                "command -v pnpm || npm install -g pnpm",
                managers.inside(package.directory, "pnpm install --no-frozen-lockfile"),
            ),
            lesson="the workspace: protocol needs pnpm or Yarn",
        )


def _missing_modules(context: Context, package: Package, output: str) -> Iterator[Repair]:
    for name in list(dict.fromkeys(match["name"] for match in _MISSING.finditer(output)))[:6]:
        if name.startswith((".", "/", "file:")):
            yield from _missing_output(context, package, name)
        elif not _BUILTIN.match(name):
            root = "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
            member = next((item for item in Package(context.tree, "").members if item.name == root), None)
            if member is not None:
                yield from _build(context, package)
            elif _NAME.match(root):
                yield _add_module(package, root)


def _missing_output(context: Context, package: Package, path: str) -> Iterator[Repair]:
    """A file of the project's own that its build makes."""
    if "/node_modules/" in path:
        yield Repair(
            key=f"node:rebuild:{package.directory}",
            why=f"{path[-80:]} is missing from an installed package",
            commands=(managers.inside(package.directory, "npm rebuild"),),
        )
        return
    yield from _build(context, package)


def _build(context: Context, package: Package) -> Iterator[Repair]:
    day = context.repository.commit_date.date()
    candidates = [
        package,
        *([Package(context.tree, "")] if package.directory and context.tree.has("package.json") else []),
    ]
    for owner in candidates:
        for script in (
            "build",
            "compile",
            "build:all",
            "prepare",
            "prepublish",
            "prepublishOnly",
            "prepack",
            "dist",
            "bundle",
            "transpile",
            "tsc",
            "generate",
            "codegen",
            "pretest",
        ):
            if script in owner.scripts:
                manager = managers.detect(owner, day)
                yield Repair(
                    key=f"node:build:{owner.directory}:{script}",
                    why="what the build makes is missing",
                    commands=(
                        managers.inside(owner.directory, manager.run_script(script)),
                        managers.RESTORE,
                    ),
                    lesson=f"the {script} script has to run before the tests",
                )


def _add_module(package: Package, name: str) -> Repair:
    declared = (
        package.direct.get(name)
        or package.table("peerDependencies").get(name)
        or package.table("optionalDependencies").get(name)
    )
    low = lower_bound(declared) if declared else None
    spec = f"{name}@{declared}" if declared and low else name
    return Repair(
        key=f"node:add:{package.directory}:{name}",
        why=f"{name} is used and {'not installed' if declared else 'not declared'}",
        commands=(add(package, shlex.quote(spec)),),
        lesson=f"{name} has to be added",
    )


def _missing_programs(package: Package, failure: CommandResult) -> Iterator[Repair]:
    table = repair_table()
    for match in _NOT_FOUND.finditer(failure.output):
        name = next((item for item in match.groups() if item), "").rsplit("/", 1)[-1]
        if name in ("npm", "npx", "node"):
            continue
        if name in ("pnpm", "yarn", "bun", "lerna", "gulp", "grunt", "bower"):
            yield Repair(
                key=f"node:global:{name}",
                why=f"{name} is called by a script",
                commands=(f"npm install -g {name}{'@1' if name == 'yarn' else ''}",),
                lesson=f"{name} is needed globally",
            )
            continue
        known = table.programs.get(name) or (name if knowledge().kind_of(name) or name in package.direct else "")
        if known:
            yield _add_module(package, known)


def _types(package: Package, output: str) -> Iterator[Repair]:
    """Type definitions newer than the project's TypeScript: the ones of its own day carry its version as a tag."""
    names = list(dict.fromkeys(match["name"] for match in _TYPES.finditer(output)))[:8]
    if not names or "typescript" not in package.direct:
        return
    low = lower_bound(package.direct["typescript"])
    tag = f"ts{low[0]}.{low[1]}" if low else "latest"
    target = f"/workspace/{package.directory}".rstrip("/") + "/node_modules"
    for name in names:
        older = lower_bound(package.direct.get(name, ""))
        wanted = [f"{name}@{tag}"] + (
            [f"{name}@{older[0]}.{older[1]}.{older[2]}", f"{name}@{older[0]}"] if older else []
        )
        tries = " || ".join(
            f"npm install --no-package-lock --legacy-peer-deps --loglevel=error {shlex.quote(item)}" for item in wanted
        )
        prepare = (
            f"mkdir -p {EXTRA}-types && cd {EXTRA}-types && {{ [ -e package.json ] || echo '{{}}' > package.json; }}"
        )
        place = f"cd {shlex.quote(target)} && rm -rf {name} && cp -r {EXTRA}-types/node_modules/{name} {name}"
        yield Repair(
            key=f"node:types:{package.directory}:{name}",
            why=f"{name} is newer than TypeScript {tag[2:]} reads",
            commands=(f"{prepare} && {{ {tries}; }}", place),
            lesson=f"{name} must be as old as the project's TypeScript",
        )


def _other_node(context: Context, package: Package, output: str, sandbox: Sandbox) -> Iterator[Repair]:
    lines = [(line, found) for line in repair_table().node_line if (found := re.search(line.pattern, output))]
    if not lines:
        return
    tools = toolchain.look_up(sandbox)
    for line, found in lines:
        major = _major(line, found, tools.major)
        if major is None or major == tools.major:
            continue
        manager = managers.detect(package, context.repository.commit_date.date())
        own, env = toolchain.steps(major, manager, tools, line.why)
        rebuild = managers.inside(package.directory, f"PATH={env.get('PATH', '$PATH')}; npm rebuild || true")
        pnp = manager.kind is ManagerKind.BERRY and manager.pnp
        yield Repair(
            key=f"node:line:{major}",
            why=f"{line.why}: Node {major} instead of {tools.major}",
            commands=(*(step.command for step in own), *(() if pnp else (rebuild,))),
            env={**env, **({"NODE_OPTIONS": ""} if line.limit and line.limit <= 16 else {})},
            lesson=f"Node {major} is needed: {line.why}",
        )


def _major(line: NodeLine, found: re.Match[str], now: int) -> int | None:
    majors = [item.major for item in knowledge().release]
    if line.limit:
        return max((item for item in majors if item <= line.limit), default=None) if now > line.limit else None
    floor = line.floor
    if not floor:
        floor = int(found.groupdict().get("major") or 0) or now + 1
    return min((item for item in majors if item >= floor), default=None) if now < floor else None
