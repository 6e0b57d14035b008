"""Goals of Go repositories."""

import posixpath
import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.go.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.go.modules import Module, builds_here, import_path, modules_of, sources
from autoinstall.agents.rules.ecosystems.goals import (
    MOST_TESTS,
    SUITE_SECONDS,
    candidate,
    evidence_at,
    question_of,
)
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence

MAX_GOAL_MODULES = 3
MAX_LISTED = 400
"""Test functions up to which a run of the whole suite names each of them: more would not be kept of the output."""

MAX_PACKAGES = 4
"""Packages, single tests and programs of one module that become goals."""

_TEST = re.compile(r"(?m)^func (Test[A-Z_]\w*)\(\w+ \*testing\.T\)")
_EXAMPLE = re.compile(r"(?m)^func (Example\w*)\(\) *\{(?P<body>(?:\n(?:\t.*)?)*?\n\t*// *(?i:output):)")
_BENCHMARK = re.compile(r"(?m)^func (Benchmark[A-Z_]\w*)\(\w+ \*testing\.B\)")
_MAIN = re.compile(r"(?m)^func main\(\)")
_REMOTE = re.compile(
    r"testcontainers|dockertest|\bnet\.Dial|sql\.Open\(|redis\.NewClient|https?://(?!localhost|127\.|example\.|\w+\.example)"
    r"|os\.Getenv|exec\.Command"
)
_SIDE = re.compile(
    r"(?i)(?:^|/)(?:examples?|_?tests?|e2e|integration\w*|testutils?|hack|tools?|scripts?|internal/gen\w*)(?:/|$)"
)
_NOT_FORMATTED = "(^|/)(testdata|vendor|third_party)/"


def candidates(context: Context) -> Iterator[Candidate]:
    """Of the main module, and weaker ones of further modules that are not there for its sake."""
    first, *rest = modules_of(context.tree)
    chosen = [first, *(item for item in rest if not item.helper)]
    for index, module in enumerate(chosen[:MAX_GOAL_MODULES]):
        for item in _of_module(context, module):
            # A further module's suite must not stand beside the main one's as its equal.
            yield item.model_copy(update={"weight": max(item.weight - 20 * index, 1)})


def _of_module(context: Context, module: Module) -> Iterator[Candidate]:
    tree = context.tree
    files = [path for path in sources(tree, module.directory) if builds_here(tree, path)]
    packages = _packages(module, [path for path in files if not path.endswith("_test.go")])
    tests = [path for path in files if path.endswith("_test.go")]
    if not packages:
        return
    path = module.path or import_path(tree, context.repository.url)
    where = evidence_at(tree, module.manifest, "module") if module.declared else evidence_at(tree, files[0], "package")
    yield from _suite(tree, module, tests, where)
    yield from _whole(module, path, where, vetted=_in_ci(context, "go vet"))
    yield from _tests(tree, module, tests)
    yield from _samples(tree, module, tests)
    yield from _programs(tree, module, files)
    for directory in packages[:MAX_PACKAGES]:
        name = _package_name(tree, directory, files)
        evidence = evidence_at(tree, _first_of(directory, files), "package ")
        if name and name != "main" and _exports(tree, directory, files):
            yield candidate(
                module.inside(f"go doc -short {_dot(module, directory)}"),
                "lists what the package exports in at least 1 line",
                Category.OTHER,
                38,
                evidence,
            )
        yield candidate(
            module.inside(f"go list -export -f '{{{{.ImportPath}}}} {{{{.Export}}}}' {_dot(module, directory)}"),
            f'compiles the package and names it, "{_import(module, path, directory)}", with the file that came of it',
            Category.BUILD,
            44 if directory == packages[0] else 30,
            evidence,
            timeout=SUITE_SECONDS,
        )


def _suite(tree: Tree, module: Module, tests: list[str], where: Evidence) -> Iterator[Candidate]:
    """All tests: by name where there are not too many, since a package fails as a whole for one of them.

    Where there are, packages are counted, and one that fails by a test of its own may."""
    count = sum(len(_TEST.findall(tree.read(path))) for path in tests)
    packages = len({posixpath.dirname(path) for path in tests})
    by_name = count <= MAX_LISTED or packages < 3
    rate = MOST_TESTS if by_name else min(MOST_TESTS, round(1 - 1.5 / packages, 2))
    if tests:
        yield candidate(
            module.inside(f"go test -count=1 {'-v ' if by_name else ''}./..."),
            f"runs the tests of all packages; at least {rate:.0%} of the tests pass",
            Category.TEST,
            96,
            where,
            exit_codes=(0, 1),
            rate=rate,
            timeout=SUITE_SECONDS,
        )


def _whole(module: Module, path: str, where: Evidence, *, vetted: bool) -> Iterator[Candidate]:
    yield candidate(
        module.inside("go build ./..."),
        f"compiles all packages of {path} and reports no error",
        Category.BUILD,
        85,
        where,
        timeout=SUITE_SECONDS,
    )
    yield candidate(
        module.inside("go vet ./..."),
        "examines all packages with their tests and names what looks wrong; all of them can be compiled",
        Category.LINT,
        76 if vetted else 60,
        where,
        exit_codes=(0, 1, 2),
        timeout=SUITE_SECONDS,
    )
    yield candidate(
        module.inside(f"git ls-files '*.go' | grep -vE '{_NOT_FORMATTED}' | xargs -r gofmt -l"),
        "parses the Go files and names those that gofmt would lay out otherwise; all of them are valid Go",
        Category.LINT,
        42,
        where,
    )
    yield candidate(
        module.inside("go list ./..."), f'lists the packages, "{path}" in their names', Category.OTHER, 46, where
    )
    if not module.vendored:
        yield candidate(
            module.inside("go mod verify"),
            'compares the downloaded modules with their checksums: "all modules verified" is printed',
            Category.SETUP,
            56,
            where,
        )
        yield candidate(
            module.inside("go mod download"),
            f"fetches all modules that {path} needs, with checksums that match",
            Category.SETUP,
            70,
            where,
        )
        yield candidate(
            module.inside("go list -m all"),
            f'lists the modules of the build, "{path}" first',
            Category.OTHER,
            30,
            where,
        )


def _tests(tree: Tree, module: Module, tests: list[str]) -> Iterator[Candidate]:
    """Single packages and single tests, those first that reach for nothing outside."""
    directories = sorted(
        dict.fromkeys(posixpath.dirname(path) for path in tests),
        key=lambda item: (bool(_SIDE.search(item)), _remote(tree, item, tests), item.count("/"), item),
    )
    for index, directory in enumerate(directories[:MAX_PACKAGES]):
        own = sorted(path for path in tests if posixpath.dirname(path) == directory)
        evidence = evidence_at(tree, own[0], "func Test")
        place = _dot(module, directory)
        if len(directories) > 1:
            yield candidate(
                module.inside(f"go test -count=1 -v {place}"),
                "runs the tests of one package by name, at least 1 passed; at least 90% of the tests pass",
                Category.TEST,
                72 - 4 * index,
                evidence,
                exit_codes=(0, 1),
                rate=MOST_TESTS,
            )
        named = [
            (path, name)
            for path in own
            if not _REMOTE.search(tree.read(path))
            for name in _TEST.findall(tree.read(path))
        ]
        for path, name in [item for item in named if item[1] != "TestMain"][: 3 if index == 0 else 1]:
            yield candidate(
                module.inside(f"go test -count=1 -v -run '^{name}$' {place}"),
                f'runs one test: "--- PASS: {name}" is printed',
                Category.TEST,
                64 - 4 * index,
                evidence_at(tree, path, f"func {name}("),
            )
        if index == 0 and named:
            yield candidate(
                module.inside(f"go test -list . {place}"),
                f'compiles the tests of the package and lists them, "{named[0][1]}" among them',
                Category.BUILD,
                50,
                evidence,
            )


def _samples(tree: Tree, module: Module, tests: list[str]) -> Iterator[Candidate]:
    """The documented examples, which state their own output, and a benchmark run once."""
    examples = [(path, match[1]) for path in tests for match in _EXAMPLE.finditer(tree.read(path))]
    for path, name in [item for item in examples if not _REMOTE.search(tree.read(item[0]))][:2]:
        yield candidate(
            module.inside(f"go test -count=1 -v -run '^{name}$' {_dot(module, posixpath.dirname(path))}"),
            f'runs a documented example and compares its output with the stated one: "--- PASS: {name}" is printed',
            Category.RUN,
            62,
            evidence_at(tree, path, f"func {name}("),
        )
    benchmarks = [(path, name) for path in tests for name in _BENCHMARK.findall(tree.read(path))]
    for path, name in benchmarks[:1]:
        yield candidate(
            module.inside(f"go test -run '^$' -bench '^{name}$' -benchtime 1x {_dot(module, posixpath.dirname(path))}"),
            f'runs a benchmark once: its name "{name}" and "ns/op" are printed',
            Category.RUN,
            48,
            evidence_at(tree, path, f"func {name}("),
        )


def _programs(tree: Tree, module: Module, files: list[str]) -> Iterator[Candidate]:
    mains = [path for path in files if not path.endswith("_test.go") and _MAIN.search(tree.read(path))]
    by_directory = {posixpath.dirname(path): path for path in reversed(mains)}
    ordered = sorted(by_directory, key=lambda item: (bool(_SIDE.search(item)), item.count("/"), item))
    for index, directory in enumerate(ordered[:MAX_PACKAGES]):
        text = "\n".join(tree.read(path) for path in files if posixpath.dirname(path) == directory)
        evidence = evidence_at(tree, by_directory[directory], "func main()")
        place = _dot(module, directory)
        asked = question_of(knowledge().question, text)
        if asked is None:
            yield candidate(
                module.inside(f"go build -v -o /tmp/stage/ {place} && find /tmp/stage -type f"),
                "links the program and lists at least 1 line of what was built",
                Category.BUILD,
                52 - 6 * index,
                evidence,
                timeout=SUITE_SECONDS,
            )
            continue
        yield candidate(
            module.inside(f"go build -o /tmp/program {place} && /tmp/program {asked.option}"),
            "the program explains how it is used in at least 2 lines",
            Category.RUN,
            78 - 8 * index - 20 * bool(_SIDE.search(directory)),
            evidence,
            exit_codes=(0, 2),  # that of package flag before Go 1.15; a build that fails ends with 1
            timeout=SUITE_SECONDS,
        )


def _packages(module: Module, files: list[str]) -> list[str]:
    """Directories of the module's packages, the root and the shallow first."""
    found = {posixpath.dirname(path) for path in files}
    return sorted(found, key=lambda item: (item != module.directory, bool(_SIDE.search(item)), item.count("/"), item))


def _package_name(tree: Tree, directory: str, files: list[str]) -> str:
    path = _first_of(directory, files)
    match = re.search(r"(?m)^package (\w+)", tree.read(path))
    return match[1] if match else ""


def _exports(tree: Tree, directory: str, files: list[str]) -> bool:
    own = (path for path in files if posixpath.dirname(path) == directory and not path.endswith("_test.go"))
    return any(re.search(r"(?m)^(?:func|type) [A-Z]", tree.read(path)) for path in own)


def _first_of(directory: str, files: list[str]) -> str:
    return next(path for path in files if posixpath.dirname(path) == directory and not path.endswith("_test.go"))


def _remote(tree: Tree, directory: str, tests: list[str]) -> int:
    return sum(bool(_REMOTE.search(tree.read(path))) for path in tests if posixpath.dirname(path) == directory)


def _dot(module: Module, directory: str) -> str:
    """A package's directory as the go command takes it in the module's directory."""
    inside = posixpath.relpath(directory or ".", module.directory or ".")
    return "." if inside == "." else f"./{inside}"


def _import(module: Module, path: str, directory: str) -> str:
    inside = posixpath.relpath(directory or ".", module.directory or ".")
    return path if inside == "." else f"{path}/{inside}"


def _in_ci(context: Context, command: str) -> bool:
    return any(command in item.command for item in context.findings.commands)
