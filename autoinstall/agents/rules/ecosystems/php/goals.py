"""Goals of PHP projects."""

import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import candidate, evidence_at
from autoinstall.agents.rules.ecosystems.php.project import Project, classes_of, extensions_of, project_of
from autoinstall.agents.rules.ecosystems.scripting import files_of, inside, single_tests, suite, syntax_check
from autoinstall.tree import Tree
from autoinstall.values import Category

MAX_CLASSES = 4
_FAILS = (0, 1, 2)


def candidates(context: Context) -> Iterator[Candidate]:
    project = project_of(context.tree)
    if project is None:
        return
    tree = context.tree
    yield from _tests(tree, project)
    php = files_of(tree, project.directory, ".php")
    yield syntax_check(
        project.directory,
        "'*.php'",
        "php -l",
        passed="'^No syntax errors'",
        count=len(php),
        evidence=evidence_at(tree, project.at(php[0])),
    )
    yield from _composer(tree, project)
    yield from _programs(tree, project)


def _tests(tree: Tree, project: Project) -> Iterator[Candidate]:
    if not project.tests and not project.configuration:
        return
    where = evidence_at(tree, project.at(project.configuration or project.tests[0]), "testsuite")
    folder = "" if project.configuration else f" {project.tests[0].split('/')[0]}"
    loader = "" if project.configuration or not project.composer else " --bootstrap=vendor/autoload.php"
    yield suite(inside(project.directory, f"{project.phpunit}{loader}{folder}"), where, fails=_FAILS)
    least = max(len(project.tests), 1)
    yield candidate(
        inside(project.directory, f"{project.phpunit}{loader}{folder} --list-tests"),
        f"loads the test classes and lists their tests in at least {least} lines",
        Category.OTHER,
        54,
        where,
        exit_codes=(0, 255),  # what test doubles do as they go, without having been used
    )
    yield from single_tests(
        tree,
        project.directory,
        project.tests,
        lambda path: f"{project.phpunit}{loader} {shlex.quote(path)}",
        fails=_FAILS,
        needle="class ",
        says="runs the tests of one class",
    )


def _composer(tree: Tree, project: Project) -> Iterator[Candidate]:
    if not project.composer:
        return
    where = evidence_at(tree, project.manifest, "name")
    yield candidate(
        inside(project.directory, "composer validate --no-check-all --no-check-publish --no-check-lock"),
        'reads the description of the package: "composer.json is valid" is printed',
        Category.OTHER,
        50,
        where,
    )
    extensions = extensions_of(project)
    if extensions:
        code = "".join(f'echo extension_loaded("{name}") ? "{name} loaded\\n" : "";' for name in extensions)
        yield candidate(
            inside(project.directory, f"php -r '{code}'"),
            f'says of PHP\'s extensions that the package asks for that they are there: "{extensions[0]} loaded"',
            Category.OTHER,
            52,
            evidence_at(tree, project.manifest, f"ext-{extensions[0]}"),
        )
    if not project.autoload:
        return
    yield candidate(
        inside(project.directory, "composer dump-autoload --dev --no-scripts"),
        'writes the autoloader of the sources and the tests: "Generated autoload files"',
        Category.SETUP,
        60,
        evidence_at(tree, project.manifest, "autoload"),
    )
    found = list(classes_of(tree, project, 2000))
    least = max(len(found) * 8 // 10, 1)
    yield candidate(
        inside(project.directory, "composer dump-autoload --dev --optimize --no-scripts"),
        f'writes the autoloader: "Generated optimized autoload files" with at least {least} classes',
        Category.BUILD,
        76,
        evidence_at(tree, project.manifest, "autoload"),
    )
    versioned = sorted(found, key=lambda item: not item.version[0])
    for index, item in enumerate(versioned[:MAX_CLASSES]):
        quoted = item.name.replace("\\", "\\\\")
        loads = f'require "vendor/autoload.php"; echo (new ReflectionClass("{quoted}"))->getFileName(), "\\n";'
        says = f'prints where it lies: "{item.path}"'
        if item.version[0]:
            constant, version = item.version
            loads = f'require "vendor/autoload.php"; echo \\{item.name}::{constant}, "\\n";'
            says = f'prints its version "{version}"'
        yield candidate(
            inside(project.directory, f"php -r '{loads}'"),
            f"finds the class by the autoloader, with all that it is made of, and {says}",
            Category.RUN,
            72 - 6 * index,
            evidence_at(tree, project.at(item.path), "class "),
        )
    yield candidate(
        inside(project.directory, "composer show --self --no-ansi"),
        f'describes the package, "{project.name}" by name'
        if project.name
        else "describes the package in at least 3 lines",
        Category.OTHER,
        30,
        where,
    )


def _programs(tree: Tree, project: Project) -> Iterator[Candidate]:
    for index, path in enumerate(project.programs[:2]):
        if "--help" not in tree.read(project.at(path)) and "Console" not in tree.read(project.at(path)):
            continue
        yield candidate(
            inside(project.directory, f"php {shlex.quote(path)} --help"),
            "the program explains how it is used in at least 2 lines",
            Category.RUN,
            80 - 6 * index,
            evidence_at(tree, project.at(path)),
            exit_codes=(0, 1),
        )
