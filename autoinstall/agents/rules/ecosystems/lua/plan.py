"""The set-up of a Lua project: a Lua that it is written for, and rocks as Debian packages them."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.debian import contents, versions
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.lua.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.lua.project import Project, lua_constraint, needs_of, project_of
from autoinstall.agents.rules.ecosystems.needs import Need, Provision, shown
from autoinstall.agents.rules.registries import answers, unreachable
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox

TOOLS = "lua-busted lua-check luarocks gcc libc6-dev make"
_NAME = "lua"


def make(context: Context, sandbox: Sandbox) -> Plan:
    """The plan of `context.attempt`: each with another Lua of those that the project allows."""
    project = project_of(context.tree)
    if project is None:
        return Plan(steps=(), exhausted=True)
    choices = lua_versions(lua_constraint(context.tree, project), context.findings.versions.get("lua", ()))
    version = choices[min(context.attempt, len(choices)) - 1]
    provision, from_registry = _provision(context, project, sandbox)
    steps = [SUBMODULES] if context.tree.has(".gitmodules") else []
    steps += _packages(version, provision)
    if from_registry:
        rocks = " && ".join(f"luarocks install {need.split()[0]}" for need in provision.unserved)
        steps.append(Step(command=rocks, why="Rocks that the project needs and Debian does not have", timeout=900))
    return Plan(steps=tuple(steps), env={"LUA_PATH": project.path}, exhausted=context.attempt >= len(choices))


def provide(context: Context, sandbox: Sandbox) -> None:
    """Raises:
    RegistryUnreachable: the project needs rocks that Debian does not have, and LuaRocks does not answer.
    """
    project = project_of(context.tree)
    if project is not None:
        _provision(context, project, sandbox)


def lua_versions(constraint: str, named: tuple[str, ...] = ()) -> list[str]:
    """Debian's versions that the constraint allows, those that the CI names first; all where it allows none."""
    allowed = [version for version in knowledge().versions if _allows(constraint, version)]
    order = sorted(allowed, key=lambda version: not any(version in item for item in named))
    return (order or list(knowledge().versions))[:2]


def served(needs: tuple[Need, ...], sandbox: Sandbox) -> Provision:
    """Debian's packages for the rocks: by their names, then by the files in them."""
    named = {need.name: tuple(package_names(need.name)) for need in needs}
    known = versions(sandbox, (name for names in named.values() for name in names))
    found = {name: next((item for item in names if item in known), "") for name, names in named.items()}
    others = [need.name for need in needs if need.hard and not found[need.name]]
    if others:
        names = "|".join(re.escape(name) for name in others)
        for entry in contents(sandbox, rf"usr/(share|lib/[^/]+)/lua/5\.[0-9]/({names})(\.lua|\.so|/init\.lua)"):
            name = next((item for item in others if re.search(rf"/{re.escape(item)}(?:\.|/init)", entry.path)), "")
            found[name] = entry.package
    return Provision(
        packages=tuple(dict.fromkeys(found[need.name] for need in needs if found[need.name])),
        unserved=tuple(shown(need) for need in needs if need.hard and not found[need.name]),
    )


def package_names(rock: str) -> Iterator[str]:
    table = knowledge().packages
    if rock in table:
        yield table[rock]
        return
    name = rock.lower().replace("_", "-").replace(".", "-")
    bare = re.sub(r"^lua-?|-?lua$", "", name)
    yield from dict.fromkeys((f"lua-{name}", f"lua-{bare}")) if bare else ()


def _provision(context: Context, project: Project, sandbox: Sandbox) -> tuple[Provision, bool]:
    provision = served(needs_of(context.tree, project), sandbox)
    from_registry = bool(provision.unserved) and answers(_NAME, sandbox)
    if provision.unserved and not from_registry:
        raise unreachable(_NAME, provision.unserved)
    return provision, from_registry


def _packages(version: str, provision: Provision) -> Iterator[Step]:
    names = " ".join([f"lua{version} liblua{version}-dev", *TOOLS.split(), *provision.packages])
    yield Step(
        command=apt_install(names),
        why=f"Lua {version}, and rocks as Debian packages them",
        fallback=(f"for name in {names}; do apt-get install -y --no-install-recommends $name; done; lua{version} -v",),
        timeout=900,
    )
    yield Step(
        command=f"update-alternatives --set lua-interpreter /usr/bin/lua{version}; "
        f"update-alternatives --set lua-compiler /usr/bin/luac{version}; lua -v && luac -v",
        why=f"The commands lua and luac are those of Lua {version}",
    )
    yield Step(
        command=f"luarocks config --scope system lua_version {version}",
        why="Rocks are built for it",
        optional=True,
    )


def _allows(constraint: str, version: str) -> bool:
    mine = tuple(int(part) for part in version.split("."))
    for operator, text in re.findall(r"(>=|<=|~>|==|~=|<|>)?\s*(\d+(?:\.\d+)*)", constraint):
        other = tuple(int(part) for part in text.split("."))[:2]
        allowed = {
            ">=": mine >= other,
            ">": mine > other or mine == other,
            "<=": mine <= other,
            "<": mine < other,
            "~=": mine != other,
            "~>": mine[: max(len(other) - 1, 1)] == other[: max(len(other) - 1, 1)] and mine >= other,
        }.get(operator, mine[: len(other)] == other)
        if not allowed:
            return False
    return True
