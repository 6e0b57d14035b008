"""Goals of Rust projects."""

import posixpath
import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import (
    MOST_TESTS,
    SUITE_SECONDS,
    candidate,
    evidence_at,
    question_of,
)
from autoinstall.agents.rules.ecosystems.rust.flags import named, selection
from autoinstall.agents.rules.ecosystems.rust.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.rust.manifests import Package, Project, Target, project_of
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence

MAX_PACKAGES = 3
MAX_TARGETS = 3
"""Programs, examples and integration tests of one package that become goals."""

_FAILS = (0, 101)
"""cargo exits with 101 where tests fail or the compiler objects."""

_TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub )?fn (\w+)\(\)")
_IGNORE = re.compile(r"#\[(?:ignore\b|cfg_attr\((?:[^\]]|\n)*?\bignore\b)")
_IGNORED = re.compile(r"#\[(?:ignore|should_panic|cfg)\b")
_DOC_EXAMPLE = re.compile(r"(?m)^\s*//[/!] ```(?:rust|no_run|should_panic)?\s*$")
_UNIT = re.compile(r"#\[(?:\w+::)?test\b")
_REMOTE = re.compile(
    r"https?://(?!localhost|127\.|example\.)|reqwest|TcpStream::connect|env::var\(|trybuild|Command::new\(\"(?!cargo)"
)
_NEEDS_INPUT = re.compile(
    r"env::args|stdin\(|TcpListener|TcpStream|\bclap\b|reqwest|hyper|loop \{|env::var|sleep\(|ctrl_?c"
)
_UNSTABLE = re.compile(r"#!\[feature\(")


def candidates(context: Context) -> Iterator[Candidate]:
    project = project_of(context.tree)
    if project is None:
        return
    tree = context.tree
    options = selection(context, project)
    yield from _whole(context, project, f" {options}" if options else "")
    packages = [package for package in project.packages if not package.helper] or list(project.packages)
    for index, package in enumerate(packages[:MAX_PACKAGES]):
        for item in _of_package(tree, project, package):
            yield item.model_copy(update={"weight": max(item.weight - 8 * index, 1)})
    yield from _of_ci(context, project)


def _whole(context: Context, project: Project, chosen: str) -> Iterator[Candidate]:
    tree = context.tree
    first = project.packages[0]
    where = evidence_at(tree, project.manifest, "[workspace]" if project.virtual else "[package]")
    if _tested(tree, project):
        yield candidate(
            project.inside(f"cargo test{chosen} --no-fail-fast"),
            "runs the unit, integration and documentation tests; at least 90% of the tests pass",
            Category.TEST,
            96,
            _cited(context, "test", where),
            exit_codes=_FAILS,
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )
    finished = '"Finished" is printed'
    for command, text, category, weight in (
        (f"cargo build{chosen}", f"compiles the project: {finished}", Category.BUILD, 85),
        (f"cargo check{chosen} --all-targets", f"checks that everything compiles: {finished}", Category.BUILD, 52),
        (f"cargo doc{chosen} --no-deps", f"writes the documentation of the interface: {finished}", Category.BUILD, 50),
        ("cargo fetch", "fetches the crates that the project needs, all of them to be had", Category.SETUP, 70),
    ):
        yield candidate(
            project.inside(command),
            text,
            category,
            weight,
            _cited(context, command.split()[1], where),
            timeout=SUITE_SECONDS,
        )
    yield candidate(
        project.inside(f"cargo clippy{chosen} --all-targets"),
        "examines the code and its tests and names what could be written better; nothing keeps it from building",
        Category.LINT,
        76 if named(context, "clippy") else 55,
        _cited(context, "clippy", where),
        exit_codes=_FAILS,
        timeout=SUITE_SECONDS,
    )
    yield candidate(
        project.inside("cargo fmt --all -- --check"),
        "compares the layout of the sources with rustfmt's and shows what differs; all of them can be parsed",
        Category.LINT,
        46,
        where,
        exit_codes=(0, 1),
    )
    if first.version:
        yield candidate(
            project.inside(f"cargo tree --package {first.name} --depth 1"),
            f'shows the package and what it depends on: "{first.name} v{first.version}" is printed',
            Category.OTHER,
            48,
            evidence_at(tree, first.manifest, "version"),
        )
    yield candidate(
        project.inside("cargo metadata --format-version 1"),
        f'describes packages and dependencies as JSON, with "{first.name}" and "workspace_root" in it',
        Category.OTHER,
        30,
        where,
    )


def _of_package(tree: Tree, project: Project, package: Package) -> Iterator[Candidate]:
    which = f" --package {package.name}" if len(project.packages) > 1 else ""
    where = evidence_at(tree, package.manifest, "[package]")
    if len(project.packages) > 1:
        yield candidate(
            project.inside(f"cargo test{which}"),
            "runs all tests of one package; at least 90% of the tests pass",
            Category.TEST,
            74,
            where,
            exit_codes=_FAILS,
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )
    if package.lib:
        yield from _library(tree, project, package, which, where)
    for target in _plain(tree, tuple(item for item in package.tests if _runs_tests(tree.read(item.path)))):
        yield candidate(
            project.inside(f"cargo test{which} --test {target.name}"),
            "runs the tests of one file; at least 90% of the tests pass",
            Category.TEST,
            64,
            evidence_at(tree, target.path, "#[test]"),
            exit_codes=_FAILS,
            rate=MOST_TESTS,
        )
        name = _test_name(tree.read(target.path))
        if name:
            yield candidate(
                project.inside(f"cargo test{which} --test {target.name} {name} -- --exact"),
                f'runs one test: "test {name} ... ok" is printed',
                Category.TEST,
                58,
                evidence_at(tree, target.path, f"fn {name}("),
            )
    yield from _programs(tree, project, package)
    for target in [item for item in _plain(tree, package.examples) if not _NEEDS_INPUT.search(tree.read(item.path))]:
        yield candidate(
            project.inside(f"cargo run -q{which} --example {target.name}"),
            "runs an example of how the library is used, which prints at least 1 line"
            if "println!" in tree.read(target.path)
            else "runs an example of how the library is used to its end, without a panic",
            Category.RUN,
            60,
            evidence_at(tree, target.path, "fn main"),
            timeout=SUITE_SECONDS,
        )
    if package.benches and not any(_UNSTABLE.search(tree.read(item.path)) for item in package.benches):
        yield candidate(
            project.inside(f"cargo bench{which} --no-run"),
            'compiles the benchmarks: "Finished" is printed',
            Category.BUILD,
            36,
            evidence_at(tree, package.benches[0].path),
            timeout=SUITE_SECONDS,
        )
    yield candidate(
        project.inside(f"cargo package{which} --list --allow-dirty"),
        'lists the files that are published, "Cargo.toml" among them',
        Category.OTHER,
        34,
        where,
    )


def _library(tree: Tree, project: Project, package: Package, which: str, where: Evidence) -> Iterator[Candidate]:
    folder = posixpath.dirname(package.lib)
    sources = [
        path for path in tree.files if path.endswith(".rs") and path.startswith(f"{folder}/" if folder else "src/")
    ]
    sources = list(dict.fromkeys([package.lib, *sources]))[:400]
    if any(_UNIT.search(tree.read(path)) for path in sources):
        yield candidate(
            project.inside(f"cargo test{which} --lib"),
            "runs the unit tests of the library; at least 90% of the tests pass",
            Category.TEST,
            68,
            where,
            exit_codes=_FAILS,
            rate=MOST_TESTS,
        )
    documented = next((path for path in sources if _DOC_EXAMPLE.search(tree.read(path))), "")
    if documented:
        yield candidate(
            project.inside(f"cargo test{which} --doc"),
            "compiles and runs the examples of the documentation; at least 90% of the tests pass",
            Category.TEST,
            66,
            evidence_at(tree, documented, "```"),
            exit_codes=_FAILS,
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )


def _programs(tree: Tree, project: Project, package: Package) -> Iterator[Candidate]:
    which = f" --package {package.name}" if len(project.packages) > 1 else ""
    for index, target in enumerate([item for item in package.programs if item.plain][:MAX_TARGETS]):
        folder = posixpath.dirname(target.path)
        text = "\n".join(
            tree.read(path)
            for path in tree.files
            if path.endswith(".rs") and path.startswith(f"{folder}/" if folder else "src/")
        )
        text += tree.read(package.manifest)
        asked = question_of(knowledge().question, text)
        if asked:
            yield candidate(
                project.inside(f"cargo run -q{which} --bin {target.name} -- {asked.option}"),
                "the program explains how it is used in at least 2 lines",
                Category.RUN,
                80 - 8 * index,
                evidence_at(tree, target.path, "fn main"),
                timeout=SUITE_SECONDS,
            )


def _of_ci(context: Context, project: Project) -> Iterator[Candidate]:
    """Further combinations of features that the project's CI goes through."""
    if project.directory:
        return
    for verb, category, text in (
        ("build", Category.BUILD, 'compiles as the CI does: "Finished" is printed'),
        ("check", Category.BUILD, 'checks as the CI does: "Finished" is printed'),
        ("test", Category.TEST, "runs the tests as the CI does; at least 90% of the tests pass"),
    ):
        for rest, item in named(context, verb)[:3]:
            if rest and category is Category.TEST:
                yield candidate(
                    f"cargo test {rest}",
                    text,
                    category,
                    62,
                    item.evidence,
                    exit_codes=_FAILS,
                    rate=MOST_TESTS,
                    timeout=SUITE_SECONDS,
                )
            elif rest:
                yield candidate(f"cargo {verb} {rest}", text, category, 48, item.evidence, timeout=SUITE_SECONDS)


def _cited(context: Context, verb: str, otherwise: Evidence) -> Evidence:
    return next((item.evidence for _, item in named(context, verb)), otherwise)


def _tested(tree: Tree, project: Project) -> bool:
    return any(
        package.tests
        or (package.lib and _has_tests(tree, package))
        or any(_UNIT.search(tree.read(item.path)) for item in package.programs)
        for package in project.packages
    )


def _has_tests(tree: Tree, package: Package) -> bool:
    prefix = posixpath.join(package.directory, "src/")
    paths = [package.lib, *(path for path in tree.files if path.endswith(".rs") and path.startswith(prefix))]
    return any(_UNIT.search(text) or _DOC_EXAMPLE.search(text) for text in map(tree.read, paths[:400]))


def _plain(tree: Tree, targets: tuple[Target, ...]) -> list[Target]:
    """Those that need nothing from outside and no unstable feature."""
    found = [
        item
        for item in targets
        if item.plain and not _REMOTE.search(text := tree.read(item.path)) and not _UNSTABLE.search(text)
    ]
    return found[:MAX_TARGETS]


def _runs_tests(text: str) -> bool:
    """Whether a file has tests of its own, not all of them ignored: others hold what the rest share."""
    return len(_UNIT.findall(text)) > len(_IGNORE.findall(text))


def _test_name(text: str) -> str:
    """A test at the top of the file, whose name is its whole path."""
    for match in _TEST.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if not line.strip() and not line and not _IGNORED.search(match[0]):
            return match[1]
    return ""
