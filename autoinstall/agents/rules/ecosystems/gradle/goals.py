"""Goals of Gradle projects."""

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.ecosystems.gradle.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.gradle.plan import gradle
from autoinstall.agents.rules.ecosystems.gradle.project import Module, Project, project_of, text_of
from autoinstall.agents.rules.ecosystems.jdk import members, public_classes
from autoinstall.tree import Tree
from autoinstall.values import Category

MAX_TEST_CLASSES = 4
MAX_CLASSES = 2
_SUCCESS = '"BUILD SUCCESSFUL" is printed'
_TEST_CLASS = re.compile(
    r"(?:^|/)src/test/(?:java|kotlin|groovy)/(?P<name>.*(?:Test\w*|Tests|Spec))\.(?:java|kt|groovy)$"
)
_TEST_CALL = re.compile(r"@(?:\w+)?Test\b|extends Specification|def \"|fun `|: (?:\w+Spec|FunSpec|StringSpec)\b")
_ASIDE = re.compile(r"\babstract class\b|@Disabled|@Ignore|@Tag\(|@EnabledIf|@Testcontainers")
_REMOTE = re.compile(r"https?://(?!localhost|127\.|example\.)|Testcontainers|DriverManager|ServerSocket")
_COUNTS = r"""grep -rhoE '<testsuite [^>]*errors="[0-9]+"' --include='TEST-*.xml' ."""
"""Gradle itself counts tests only where some fail; its reports have the numbers of each suite."""


def candidates(context: Context) -> Iterator[Candidate]:
    project = project_of(context.tree)
    if project is None:
        return
    tree = context.tree
    where = evidence_at(tree, project.manifest)
    classes = _test_classes(tree, project)
    if classes:
        yield candidate(
            f"{gradle(project, 'cleanTest test --continue')}; {_COUNTS}",
            "runs the unit tests of all projects and shows each suite with its counts; at least 90% of the tests pass",
            Category.TEST,
            96,
            where,
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )
    yield from _tests(tree, project, classes)
    for arguments, text, category, weight in (
        ("--rerun-tasks classes", f"compiles the sources of all projects: {_SUCCESS}", Category.BUILD, 85),
        ("testClasses", f"compiles the sources and the tests: {_SUCCESS}", Category.BUILD, 60),
        ("assemble", f"builds what is delivered, without running the tests: {_SUCCESS}", Category.BUILD, 66),
        ("javadoc", f"writes the documentation of the interface: {_SUCCESS}", Category.BUILD, 30),
        ("help", f"reads the build and all plugins that it applies: {_SUCCESS}", Category.SETUP, 64),
        ("tasks --all", f"lists the tasks of the build: {_SUCCESS}", Category.OTHER, 34),
        ("buildEnvironment", f"shows the plugins that the build is made with: {_SUCCESS}", Category.OTHER, 30),
    ):
        yield candidate(gradle(project, arguments), text, category, weight, where, timeout=SUITE_SECONDS)
    yield from _description(tree, project)
    yield from _checkers(tree, project)
    yield from _programs(tree, project)


def _tests(tree: Tree, project: Project, classes: list[tuple[Module, str, str]]) -> Iterator[Candidate]:
    """Single test classes, those first that reach for nothing outside."""
    ordered = sorted(classes, key=lambda item: _rank(tree, item[1]))
    for index, (module, path, name) in enumerate(ordered[:MAX_TEST_CLASSES]):
        tasks = f"{module.path}:cleanTest {module.path}:test --tests {name}"
        place = f"{module.directory or '.'}/build/test-results"
        yield candidate(
            f"{gradle(project, tasks)} && {_COUNTS.removesuffix(' .')} {place}",
            f"runs the tests of the class {name.rpartition('.')[2]}: at least 1 test passes, and {_SUCCESS}",
            Category.TEST,
            68 - 4 * index,
            evidence_at(tree, path, "class "),
            timeout=SUITE_SECONDS,
        )


def _description(tree: Tree, project: Project) -> Iterator[Candidate]:
    where = evidence_at(tree, project.manifest, project.name)
    if project.name:
        yield candidate(
            gradle(project, "projects"),
            f'lists the projects of the build under the name of its root, "{project.name}"',
            Category.OTHER,
            46,
            where,
        )
    if project.version:
        yield candidate(
            gradle(project, "-q properties"),
            f'prints the properties of the project, its version "{project.version}" among them',
            Category.OTHER,
            48,
            where,
        )
    if project.gradle:
        yield candidate(
            gradle(project, "--version"),
            f'prints the version of the build tool, "Gradle {project.gradle}"',
            Category.OTHER,
            40,
            evidence_at(tree, posixpath.join(project.directory, "gradle/wrapper/gradle-wrapper.properties")),
        )


def _checkers(tree: Tree, project: Project) -> Iterator[Candidate]:
    for checker in knowledge().checker:
        module = next((item for item in project.modules if re.search(checker.pattern, text_of(tree, item.build))), None)
        if module is not None:
            yield candidate(
                gradle(project, checker.task),
                "checks the sources by the project's own rules; what it finds is the sources' own",
                Category.LINT,
                46,
                evidence_at(tree, module.build),
                exit_codes=(0, 1),
                timeout=SUITE_SECONDS,
            )


def _programs(tree: Tree, project: Project) -> Iterator[Candidate]:
    """A program asked for help, and compiled classes that show their members."""
    found = 0
    for module in project.modules:
        source = posixpath.join(module.directory, "src/main/java") + "/"
        paths = [path for path in tree.files if path.startswith(source) and path.endswith(".java")]
        main = next((path for path in paths if path.endswith(f"/{module.main.replace('.', '/')}.java")), "")
        if main and re.search(r"(?i)-{1,2}help|usage", tree.read(main)):
            yield candidate(
                gradle(project, f"-q {module.path}:run --args=--help"),
                "the program explains how it is used in at least 2 lines",
                Category.RUN,
                60,
                evidence_at(tree, module.build, module.main),
                exit_codes=(0, 1),
            )
        for kind, name, evidence in islice(public_classes(tree, paths), MAX_CLASSES - found):
            found += 1
            yield members(
                kind, name, posixpath.join(module.directory, "build/classes/java/main"), 52 - 6 * found, evidence
            )


def _test_classes(tree: Tree, project: Project) -> list[tuple[Module, str, str]]:
    """Module, path and full name."""
    found = []
    for module in project.modules:
        prefix = f"{module.directory}/src/test/" if module.directory else "src/test/"
        for path in tree.files:
            match = _TEST_CLASS.search(path) if path.startswith(prefix) else None
            if match is None:
                continue
            text = tree.read(path)
            package = re.search(r"(?m)^package ([\w.]+)", text)
            if _TEST_CALL.search(text) and not _ASIDE.search(text):
                name = posixpath.basename(match["name"])
                found.append((module, path, f"{package[1]}.{name}" if package else name))
    return found


def _rank(tree: Tree, path: str) -> tuple[int, int, str]:
    text = tree.read(path)
    return len(_REMOTE.findall(text)), abs(len(text) - 6000), path
