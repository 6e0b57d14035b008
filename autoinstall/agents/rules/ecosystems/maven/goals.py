"""Goals of Maven projects."""

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.ecosystems.jdk import members, public_classes
from autoinstall.agents.rules.ecosystems.maven.knowledge import knowledge, mvn
from autoinstall.agents.rules.ecosystems.maven.pom import Pom, Project, project_of
from autoinstall.tree import Tree
from autoinstall.values import Category

MAX_TEST_CLASSES = 4
MAX_CLASSES = 2
_TEST_CLASS = re.compile(r"(?:^|/)(?:Test\w+|\w+Tests?|\w+TestCase)\.(?:java|kt)$")
_TEST_CALL = re.compile(r"@(?:\w+)?Test\b|extends TestCase|void test\w+\(|fun `")
_ABSTRACT = re.compile(r"\babstract class\b|@Disabled|@Ignore|@Tag\(|@EnabledIf|@Testcontainers")
_REMOTE = re.compile(
    r"https?://(?!localhost|127\.|example\.|www\.w3|java\.sun|xmlns|schemas?\.)|Testcontainers|DriverManager|ServerSocket"
)
_NO_TEST_ELSEWHERE = "-DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false"
_SUCCESS = '"BUILD SUCCESS" is printed'


def candidates(context: Context) -> Iterator[Candidate]:
    project = project_of(context.tree)
    if project is None:
        return
    yield from _whole(context.tree, project)
    yield from _tests(context.tree, project)
    yield from _description(context.tree, project)
    yield from _classes(context.tree, project)


def _whole(tree: Tree, project: Project) -> Iterator[Candidate]:
    root = project.root
    where = evidence_at(tree, root.manifest, "<artifactId>")
    if _test_classes(tree, project):
        yield candidate(
            project.inside(mvn(f"{project.testing} -Dmaven.test.failure.ignore=true")),
            f"runs the unit tests of all modules; at least 90% of the tests pass; {_SUCCESS}",
            Category.TEST,
            96,
            where,
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )
    for arguments, text, category, weight in (
        ("compile", f"compiles the sources: {_SUCCESS}", Category.BUILD, 85),
        ("test-compile", f"compiles the sources and the tests: {_SUCCESS}", Category.BUILD, 60),
        ("package -DskipTests", f"builds what is delivered, without running the tests: {_SUCCESS}", Category.BUILD, 66),
        ("validate", f"reads the project and finds all that it refers to: {_SUCCESS}", Category.SETUP, 64),
        ("dependency:resolve", f"fetches the libraries that the project needs: {_SUCCESS}", Category.SETUP, 50),
        ("javadoc:javadoc", f"writes the documentation of the interface: {_SUCCESS}", Category.BUILD, 30),
    ):
        if arguments == "dependency:resolve" and len(project.poms) > 1:
            continue  # modules are no libraries that could be fetched
        if arguments in ("compile", "test-compile") and project.jars:
            continue
        yield candidate(project.inside(mvn(arguments)), text, category, weight, where, timeout=SUITE_SECONDS)
    for checker in knowledge().checker:
        pom = next((pom for pom in project.poms if checker.plugin in pom.plugins), None)
        if pom is not None:
            yield candidate(
                project.inside(mvn(checker.goal)),
                f"checks the project by its own rules and tells what it finds: {_SUCCESS}",
                Category.LINT,
                48,
                evidence_at(tree, pom.manifest, checker.plugin),
                timeout=SUITE_SECONDS,
            )


def _tests(tree: Tree, project: Project) -> Iterator[Candidate]:
    """Single test classes, those first that reach for nothing outside."""
    found = sorted(_test_classes(tree, project), key=lambda item: _rank(tree, item[1]))
    for index, (pom, path) in enumerate(found[:MAX_TEST_CLASSES]):
        name = posixpath.basename(path).rpartition(".")[0]
        module = (
            f" -pl {posixpath.relpath(pom.directory or '.', project.root.directory or '.')} -am"
            if pom is not project.root
            else ""
        )
        yield candidate(
            project.inside(mvn(f"{project.testing}{module} -Dtest={name} {_NO_TEST_ELSEWHERE}")),
            f"runs the tests of the class {name}: at least 1 test passes, and {_SUCCESS}",
            Category.TEST,
            68 - 4 * index,
            evidence_at(tree, path, "class "),
            timeout=SUITE_SECONDS,
        )


def _description(tree: Tree, project: Project) -> Iterator[Candidate]:
    root = project.root
    if root.version and "$" not in root.version:
        yield candidate(
            project.inside(mvn("-q help:evaluate -Dexpression=project.version -DforceStdout -N")),
            f'evaluates the project and prints its version, "{root.version}"',
            Category.OTHER,
            50,
            evidence_at(tree, root.manifest, "<version>"),
        )
    yield candidate(
        project.inside(mvn("dependency:tree -N")),
        f'shows what the project depends on, under its own name "{root.artifact}": {_SUCCESS}',
        Category.OTHER,
        44,
        evidence_at(tree, root.manifest, "<dependencies>"),
    )
    yield candidate(
        project.inside(mvn("-q help:effective-pom -N")),
        f'prints the whole description of the project with all that it inherits, "<artifactId>{root.artifact}" in it',
        Category.OTHER,
        30,
        evidence_at(tree, root.manifest, "<artifactId>"),
    )


def _classes(tree: Tree, project: Project) -> Iterator[Candidate]:
    """Compiled classes: the one that a jar starts is asked for help, a public one shows its members."""
    found = 0
    for pom in project.poms:
        source = posixpath.join(pom.directory, "src/main/java") + "/"
        classes = posixpath.join(pom.directory, "target/classes")
        paths = [path for path in tree.files if path.startswith(source) and path.endswith(".java")]
        main = f"{source}{pom.main.replace('.', '/')}.java" if pom.main and "$" not in pom.main else ""
        if main in paths and re.search(r"(?i)-{1,2}help|usage", tree.read(main)):
            yield candidate(
                f"java -cp {classes} {pom.main} --help",
                "the program explains how it is used in at least 2 lines",
                Category.RUN,
                60,
                evidence_at(tree, pom.manifest, "<mainClass>"),
                exit_codes=(0, 1, 2),
            )
        for kind, name, evidence in islice(public_classes(tree, paths), MAX_CLASSES - found):
            found += 1
            yield members(kind, name, classes, 52 - 6 * found, evidence)


def _test_classes(tree: Tree, project: Project) -> list[tuple[Pom, str]]:
    found = []
    for pom in project.poms:
        prefix = posixpath.join(pom.directory, "src/test/") if pom.directory else "src/test/"
        for path in tree.files:
            if path.startswith(prefix) and _TEST_CLASS.search(path):
                text = tree.read(path)
                if _TEST_CALL.search(text) and not _ABSTRACT.search(text):
                    found.append((pom, path))
    return found


def _rank(tree: Tree, path: str) -> tuple[int, int, str]:
    text = tree.read(path)
    return len(_REMOTE.findall(text)), abs(len(text) - 6000), path
