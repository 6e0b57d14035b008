"""Goals of a Python project: its tests, imports, commands, checkers and builds, each with where it was found."""

import posixpath
import re
import shlex
import sys
from collections.abc import Iterator

from packaging.requirements import Requirement

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, candidate
from autoinstall.agents.rules.ecosystems.python import django
from autoinstall.agents.rules.ecosystems.python.checkers import configured
from autoinstall.agents.rules.ecosystems.python.knowledge import module_distribution
from autoinstall.agents.rules.ecosystems.python.model import PythonProject, SetRole, requirement_name
from autoinstall.agents.rules.ecosystems.python.sources import Sources
from autoinstall.agents.rules.ecosystems.python.suite import Suite
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence

_WANTS_SETTINGS = re.compile(r"(?m)^\s*(?:import|from)\s+(?:django|wagtail|rest_framework)\b")
_NOT_HERE = frozenset(("winreg", "msvcrt", "tkinter", "curses", "idlelib", "turtle", "torch", "tensorflow", "jax"))
"""Modules of other systems, of a display, or of very large libraries."""

_READMES = ("README.md", "README.rst", "README.txt", "README")
_EXAMPLE = re.compile(r"(?m)^ *>>> (.*)$")
_MIN_EXAMPLES = 5
_REACHES_OUT = re.compile(r"requests\.|https?://|urlopen|\bopen\(|connect\(|Client\(|input\(|\bsleep\(|random|\bnow\(")
"""What examples do that give something else everywhere, or need more than the project."""

_MAX_READ = 200
_OPTION_PARSER = re.compile(r"\b(?:argparse|click|typer|docopt|optparse|fire|cyclopts|cleo|getopt|absl|clize|plac)\b")
_IMPORT = re.compile(
    r"(?m)^\s*(?:from\s+(?P<dots>\.*)(?P<module>[\w.]*)\s+import\s+(?P<names>[^#\n]+)|import\s+[\w.]+)"
)
_PASSING = f"at least {MOST_TESTS:.0%} of the tests pass"
_FILES = 5
_MOSTLY = 0.6
_SCRIPTS = 3
_MODULES = 6


def candidates(context: Context, sources: Sources) -> Iterator[Candidate]:
    """All of them; the caller picks."""
    if sources.suite:
        yield from _tests(sources.suite)
    yield from django.candidates(context.tree)
    yield from _usage(context.tree, sources.main)
    for project in sources.projects[:3]:
        yield from _imports(context.tree, project, main=project is sources.main)
        yield from _scripts(context.tree, project)
    yield from _checkers(context.tree, sources)
    yield from _builds(sources)
    yield from _fillers(sources)


def _fillers(sources: Sources) -> Iterator[Candidate]:
    """Weak goals for projects that offer few others."""
    for item in (*sources.main.sets, *sources.files):
        if item.role is not SetRole.RUNTIME:
            continue
        for line in item.requirements[:_FILES]:
            requirement = Requirement(line)
            if requirement.marker is None:
                yield candidate(
                    f"python -c \"from importlib.metadata import version; print('{requirement.name}', "
                    f"version('{requirement.name}'))\"",
                    f'Prints the name of an installed requirement, "{requirement.name}", and its version.',
                    Category.OTHER,
                    24,
                    item.evidence,
                )
    suite = sources.suite
    if suite is None or suite.runner != "pytest":
        return
    for file in [file for file in suite.files if "conftest" not in file.path][: _FILES * 2]:
        yield candidate(
            f"python -m pytest {shlex.quote(file.path)} --collect-only -q",
            f"Lists the tests of {posixpath.basename(file.path)} by name and ends with how many were collected.",
            Category.TEST,
            23,
            Evidence(path=file.path, line=1, text=f"{file.tests} test functions"),
        )


def _tests(suite: Suite) -> Iterator[Candidate]:
    # Where most tests begin with a file that only others serve, the suite tells nothing of a set-up.
    if suite.fetching <= _MOSTLY:
        yield _whole(suite)
    if suite.runner == "pytest":
        yield candidate(
            f"{suite.command} --collect-only -q",
            "Lists the tests by file and name, and ends with how many were collected; no module fails to be imported.",
            Category.TEST,
            62,
            suite.evidence,
        )
    if suite.runner not in ("pytest", "unittest"):
        return
    near = [file for file in suite.files if file.near and "conftest" not in file.path]
    for rank, file in enumerate(near[:_FILES]):
        yield candidate(
            suite.file_command(file.path),
            f"Runs the tests of {posixpath.basename(file.path)} and prints a summary of them; {_PASSING}.",
            Category.TEST,
            78 - 4 * rank,
            Evidence(path=file.path, line=1, text=f"{file.tests} test functions"),
            exit_codes=(0, 1),
            rate=MOST_TESTS,
        )


def _whole(suite: Suite) -> Candidate:
    return candidate(
        suite.command,
        f"Runs the whole test suite and prints a summary of it; at least {suite.pass_rate:.0%} of the tests pass.",
        Category.TEST,
        95,
        suite.evidence,
        exit_codes=(0, 1),
        rate=suite.pass_rate,
        key="python-test",
        timeout=1800,
    )


def _usage(tree: Tree, project: PythonProject) -> Iterator[Candidate]:
    """The examples that the README shows with what they give; some are always out of date."""
    for path in _READMES:
        text = tree.read(path)
        shown = _EXAMPLE.findall(text)
        names = "|".join(map(re.escape, project.packages)) or r"\b\B"
        own = re.search(rf"(?m)^ *>>> .*\b(?:from|import) (?:{names})\b", text) is not None
        if len(shown) < _MIN_EXAMPLES or not own or _REACHES_OUT.search("\n".join(shown)):
            continue
        yield candidate(
            f"sed 's/^ *```.*//' {path} > ~/examples.txt && "
            "python -m doctest -v -o ELLIPSIS -o NORMALIZE_WHITESPACE ~/examples.txt | tail -n 4",
            f"Runs the examples of {path} and ends with how many gave what it says; at least 50% of the tests pass.",
            Category.RUN,
            61,
            Evidence(path=path, line=tree.find_line(path, ">>>"), text=shown[0].strip()[:200]),
            rate=0.5,
        )
        return


def _imports(tree: Tree, project: PythonProject, *, main: bool) -> Iterator[Candidate]:
    base = f"{project.source_dir}/" if project.source_dir else ""
    for rank, name in enumerate(project.packages[:3]):
        place = base + name.replace(".", "/")
        path = tree.first(f"{place}/__init__.py", f"{place}.py")
        if path is None:
            continue
        yield candidate(
            f"python -c \"import {name}; print('imported', {name}.__name__)\"",
            f'Imports the package and prints "imported {name}".',
            Category.RUN,
            (60 if main else 50) - 6 * rank,
            Evidence(path=path, line=1, text=f"top-level name {name}"),
        )
        if tree.has(f"{place}/__main__.py") and _takes_options(tree, project, f"{place}/__main__.py"):
            yield candidate(
                f"python -m {name} --help",
                "Prints the usage of the program and its options, without a traceback.",
                Category.RUN,
                52,
                Evidence(path=f"{place}/__main__.py", line=1, text="run as a module"),
            )
        for submodule in _submodules(tree, project, base, name) if rank == 0 else ():
            yield candidate(
                f"python -c \"import {submodule} as module; print('imported', module.__name__)\"",
                f'Imports the module and prints "imported {submodule}".',
                Category.RUN,
                44 if main else 38,
                Evidence(path=f"{base}{submodule.replace('.', '/')}.py", line=1, text=f"module {submodule}"),
            )
    if project.name and project.installable:
        # A string, since metadata names may differ from import names.
        yield candidate(
            f"python -c \"from importlib.metadata import version; print('{project.name}', version('{project.name}'))\"",
            f'Prints the name of the installed distribution, "{project.name}", and its version.',
            Category.OTHER,
            48 if main else 40,
            project.evidence,
        )


def _submodules(tree: Tree, project: PythonProject, base: str, name: str) -> list[str]:
    """Public modules directly in the package that import nothing but what is declared, those with most code first.

    In a package of a framework whose modules want settings there are none.
    """
    prefix = f"{base}{name.replace('.', '/')}/"
    inside = [path for path in tree.files if path.startswith(prefix) and path.endswith(".py")]
    if any(_WANTS_SETTINGS.search(tree.read(path)) for path in inside[:_MAX_READ]):
        return []
    declared = {requirement_name(line) for item in project.sets if not item.extra for line in item.requirements}
    paths = [
        path
        for path in inside
        if re.fullmatch(r"[a-z][a-z0-9_]*\.py", path[len(prefix) :])
        and not re.search(r"/(?:conftest|setup|compat|test\w*|_\w+)\.py$", path)
        and _imports_only(tree.read(path), name.split(".", maxsplit=1)[0], declared)
    ]
    paths.sort(key=lambda path: -len(tree.read(path)))
    return [path[len(base) : -len(".py")].replace("/", ".") for path in paths[:_MODULES]]


def _imports_only(text: str, own: str, declared: set[str]) -> bool:
    modules = {match[1] for match in re.finditer(r"(?m)^(?:import|from)\s+(\w+)", text)} - {own}
    foreign = {module for module in modules if module not in sys.stdlib_module_names}
    known = all(requirement_name(module_distribution(module)) in declared for module in foreign)
    return known and not modules & _NOT_HERE and "sys.exit(" not in text.split("def ", maxsplit=1)[0]


def _scripts(tree: Tree, project: PythonProject) -> Iterator[Candidate]:
    for rank, (name, target) in enumerate(list(project.scripts.items())[:_SCRIPTS]):
        module = target.split(":")[0].strip()
        path = _module_path(tree, project, module)
        if path is None or not _takes_options(tree, project, path):
            continue
        line = next(
            (
                Evidence(path=manifest, line=tree.find_line(manifest, name), text=f"{name} = {target}")
                for manifest in (project.path("pyproject.toml"), project.path("setup.cfg"), project.path("setup.py"))
                if tree.find_line(manifest, name)
            ),
            project.evidence,
        )
        yield candidate(
            f"{name} --help",
            "Prints the usage of the command and its options, without a traceback.",
            Category.RUN,
            66 - 4 * rank,
            line,
        )


def _takes_options(tree: Tree, project: PythonProject, path: str) -> bool:
    """Whether a program understands `--help`: it, or a module of the project that it imports, parses options."""
    source = tree.read(path)
    if _OPTION_PARSER.search(source):
        return True
    package = posixpath.dirname(path).removeprefix(project.source_dir).strip("/").replace("/", ".")
    for match in _IMPORT.finditer(source):
        dots, module, names = match["dots"] or "", match["module"] or "", (match["names"] or "").replace("(", " ")
        parent = package.rsplit(".", len(dots) - 1)[0] if len(dots) > 1 else package
        whole = ".".join(part for part in (parent if dots else "", module) if part)
        candidates = [whole, *(f"{whole}.{name.strip()}" for name in names.split(",") if name.strip().isidentifier())]
        paths = (_module_path(tree, project, name) for name in candidates if name)
        if any(found and found != path and _OPTION_PARSER.search(tree.read(found)) for found in paths):
            return True
    return False


def _module_path(tree: Tree, project: PythonProject, module: str) -> str | None:
    base = f"{project.source_dir}/" if project.source_dir else ""
    stem = base + module.replace(".", "/")
    return tree.first(f"{stem}.py", f"{stem}/__init__.py", f"{stem}/__main__.py")


def _checkers(tree: Tree, sources: Sources) -> Iterator[Candidate]:
    base = f"{sources.main.source_dir}/" if sources.main.source_dir else ""
    name = next(iter(sources.main.packages), "")
    place = next(
        (path for path in (base + name, f"{base}{name}.py") if tree.has_directory(path) or tree.has(path)), "."
    )
    for checker, evidence in configured(tree):
        yield candidate(
            checker.command.format(shlex.quote(place)),
            f"{checker.description} Findings are the code's own matter.",
            Category.LINT,
            46 if checker.name in ("ruff", "flake8") else 40,
            evidence,
            exit_codes=checker.exit_codes,
        )


def _builds(sources: Sources) -> Iterator[Candidate]:
    main = sources.main
    place = f"./{main.root}" if main.root else "."
    if main.installable:
        yield candidate(
            f"python -m build --wheel --no-isolation --outdir /tmp/wheels {place}",
            'Builds a wheel of the project and ends with "Successfully built".',
            Category.BUILD,
            42,
            main.evidence,
        )
        yield candidate(
            f"python -m pip install --no-deps --no-build-isolation -e {place}",
            'Installs the project in place and ends with "Successfully installed".',
            Category.SETUP,
            36,
            main.evidence,
        )
    if main.packages:
        base = f"{main.source_dir}/" if main.source_dir else ""
        place = next((base + name for name in main.packages if sources.tree.has_directory(base + name)), "")
        if place:
            yield candidate(
                f"python -m compileall {shlex.quote(place)}",
                "Compiles every module of the package and names the directories that it lists.",
                Category.BUILD,
                30,
                main.evidence,
            )
    yield candidate(
        "python -m pip check",
        "Says that no requirement of the installed distributions is broken, or names the broken ones.",
        Category.OTHER,
        15,
        main.evidence,
        exit_codes=(0, 1),
    )
