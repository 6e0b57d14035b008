"""Goals of Lua projects."""

import posixpath
import re
import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, candidate, evidence_at
from autoinstall.agents.rules.ecosystems.lua.project import Project, project_of, version_of
from autoinstall.agents.rules.ecosystems.scripting import calm_first, files_of, inside, single_tests, suite
from autoinstall.tree import Tree
from autoinstall.values import Category

MAX_MODULES = 4
_FAILS = (0, *range(1, 126))
"""busted and LuaUnit exit with the number of failed tests."""


def candidates(context: Context) -> Iterator[Candidate]:
    project = project_of(context.tree)
    if project is None:
        return
    tree = context.tree
    yield from _busted(tree, project)
    yield from _scripts(tree, project)
    yield from _modules(tree, project)
    yield from _members(tree, project)
    yield from _checks(context, project)
    yield from _rock(tree, project)


def _busted(tree: Tree, project: Project) -> Iterator[Candidate]:
    if not project.specs:
        return
    where = evidence_at(tree, project.at(project.specs[0]), "describe")
    regular = all(path.startswith("spec/") and path.endswith("_spec.lua") for path in project.specs)
    folder = "" if regular or tree.has(project.at(".busted")) else f" {project.specs[0].split('/')[0]}"
    yield suite(inside(project.directory, f"busted{folder}"), where, fails=_FAILS)
    yield candidate(
        inside(project.directory, f"busted --list{folder}"),
        f"loads the tests and lists them in at least {len(project.specs)} lines",
        Category.OTHER,
        50,
        where,
        exit_codes=_FAILS,
    )
    yield from single_tests(
        tree,
        project.directory,
        project.specs,
        lambda path: f"busted {shlex.quote(path)}",
        fails=_FAILS,
        needle="describe",
    )


def _scripts(tree: Tree, project: Project) -> Iterator[Candidate]:
    """Scripts with tests: LuaUnit's count theirs, others end with an error where one fails."""
    for index, path in enumerate(calm_first(tree, project.directory, project.tests)[:5]):
        text = tree.read(project.at(path))
        folder = posixpath.dirname(path)
        # What is required as a neighbour, or read by a relative name, is looked for where the script lies.
        beside = re.search(r"""(?:dofile|loadfile|io\.open|package\.path\s*=.*)\s*\(?["']\.\./""", text)
        command = f"cd {folder} && lua {posixpath.basename(path)}" if beside and folder else f"lua {shlex.quote(path)}"
        counted = "luaunit" in text
        if not counted:
            command += " && lua -v"  # says that the end was reached: many of these scripts print nothing
        yield candidate(
            inside(project.directory, command),
            "runs the tests of one script; at least 90% of the tests pass"
            if counted
            else 'runs the checks of one script to its end, where a failed one would stop it; then "Lua" is printed',
            Category.TEST,
            (60 if project.specs else 90) - 4 * index,
            evidence_at(tree, project.at(path)),
            exit_codes=_FAILS if counted else (0,),
            rate=MOST_TESTS if counted else 1.0,
        )


def _modules(tree: Tree, project: Project) -> Iterator[Candidate]:
    lua = files_of(tree, project.directory, ".lua")
    least = max(len(lua) * 8 // 10, 1)
    loop = 'for file in $(git ls-files "*.lua"); do luac -p "$file" && echo "$file"; done | wc -l'
    yield candidate(
        inside(project.directory, loop),
        f"compiles every source file and prints the number of those without an error, at least {least}",
        Category.LINT,
        64,
        evidence_at(tree, project.at(lua[0])),
    )
    for index, (name, path) in enumerate(project.modules[:MAX_MODULES]):
        version = version_of(tree, project, path)
        where = evidence_at(tree, project.at(path), "_VERSION" if version else "return")
        if version:
            code, says = f'print(require("{name}")._VERSION)', f'and prints its version "{version}"'
        else:
            code, says = (
                f'print("{name}", type(require("{name}")))',
                "and prints of which type it is in at least 1 line",
            )
        yield candidate(
            inside(project.directory, f"lua -e '{code}'"),
            f"loads the module with all that it needs {says}",
            Category.RUN,
            72 - 5 * index - (0 if version else 8),
            where,
        )


def _members(tree: Tree, project: Project) -> Iterator[Candidate]:
    """Functions of a module's table, as its source defines them."""
    for name, path in project.modules[:2]:
        text = tree.read(project.at(path))
        returned = re.search(r"(?m)^return (\w+)\s*$", text)
        table = returned[1] if returned else ""
        members = (
            re.findall(rf"(?m)^(?:function {table}[.]([a-z]\w*)|{table}[.]([a-z]\w*) = function)", text)
            if table
            else []
        )
        if members:
            member = next(filter(None, members[0]))
            yield candidate(
                inside(project.directory, f"lua -e 'for name in pairs(require(\"{name}\")) do print(name) end'"),
                f'loads the module and prints the names of what it has, "{member}" among them',
                Category.RUN,
                58,
                evidence_at(tree, project.at(path), f"{table}.{member}"),
            )
        yield candidate(
            inside(project.directory, f"luac -l -p {path}"),
            "compiles the module and lists its instructions in at least 10 lines",
            Category.BUILD,
            48,
            evidence_at(tree, project.at(path)),
        )


def _checks(context: Context, project: Project) -> Iterator[Candidate]:
    tree = context.tree
    named = next((item.evidence for item in context.findings.commands if "luacheck" in item.command), None)
    configured = ".luacheckrc" if tree.has(project.at(".luacheckrc")) else ""
    roots = [root for root in project.roots if root] or ["."]
    yield candidate(
        inside(project.directory, f"luacheck --no-color {' '.join(roots)}"),
        'examines the sources and counts what it finds: "Total:" with "errors in" is printed',
        Category.LINT,
        74 if named or configured else 46,
        named or evidence_at(tree, project.at(configured) if configured else project.manifest),
        exit_codes=(0, 1, 2),
    )


def _rock(tree: Tree, project: Project) -> Iterator[Candidate]:
    if not project.rockspec:
        return
    where = evidence_at(tree, project.at(project.rockspec), "build")
    yield candidate(
        inside(project.directory, f"luarocks make --deps-mode none --tree /tmp/stage {project.rockspec}"),
        'builds the rock below a directory of its own: "is now installed in /tmp/stage" is printed',
        Category.BUILD,
        76,
        where,
    )
    yield candidate(
        inside(project.directory, f"luarocks lint {project.rockspec}"),
        "reads the rockspec and finds no error in what it says",
        Category.LINT,
        34,
        where,
    )
    yield candidate(
        inside(
            project.directory, f"luarocks make --deps-mode none --tree /tmp/tree {project.rockspec} && find /tmp/tree"
        ),
        f'builds the rock and lists its files, at least {max(len(project.modules) // 2, 1)} lines, "lua" in them',
        Category.BUILD,
        50,
        where,
    )
