"""CMake projects, built in a directory of their own."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from autoinstall.agents.rules.contract import Candidate, Step
from autoinstall.agents.rules.ecosystems.c.programs import STAGE, question
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUBMODULES, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.evidence.makefile import MAKEFILES
from autoinstall.agents.rules.system_packages import tools_step
from autoinstall.tree import Tree
from autoinstall.values import Category

_OPTION = re.compile(
    r"^\s*(?:cmake_dependent_)?option\s*\(\s*(\w+)\s+\"?(?:[^\"\n]*)\"?\s*(\w*)", re.IGNORECASE | re.MULTILINE
)
_TEST_OPTION = re.compile(r"(?i)tests?(?:ing)?\b|_tests?_|unit_?tests?|build_tests?")
_UNWANTED_OPTION = re.compile(
    r"(?i)bench|fuzz|cover|perf|install|disable|(?:^|_)no_|skip|exclude|cuda|online|network|valgrind|only|system|werror"
)
_ABOUT_TESTS = {
    *("test", "tests", "testing", "unit", "unittest", "unittests", "build", "builds", "run", "make", "use"),
    *("enable", "enabled", "with", "all", "own", "on", "internal"),
}
"""Words of options that switch tests on; any other is a feature that those tests are about."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_REGISTERS = re.compile(
    r"(?i)\b(?:add_test|gtest_discover_tests|gtest_add_tests|catch_discover_tests|doctest_discover_tests)\s*\("
)
_NAMED_TEST = re.compile(r"(?i)\badd_test\s*\(\s*(?:NAME\s+)?\"?([\w.-]+)\"?\s")
_TARGET = re.compile(
    r"(?i)^\s*add_(executable|library)\s*\(\s*([\w.+-]+)\s+(?!.*\b(?:ALIAS|IMPORTED|INTERFACE|EXCLUDE_FROM_ALL)\b)",
    re.MULTILINE,
)
_ELSEWHERE = re.compile(r"RUNTIME_OUTPUT_DIRECTORY|EXECUTABLE_OUTPUT_PATH|OUTPUT_NAME")
_ASIDE = re.compile(
    r"(?i)(?:^|/)(?:third[_-]?party|external|extern|deps?|vendor|contrib|submodules?|examples?|bench\w*|fuzz\w*)/"
)
_TEST_DIR = re.compile(r"(?i)(?:^|/)(?:tests?|unittests?|testing)/")


class CMake:
    name = "cmake"
    commands = re.compile(r"(?:^|\s)(?:cmake|ctest)\s")

    def detect(self, tree: Tree) -> bool:
        return _root(tree) is not None

    def candidates(self, tree: Tree) -> Iterator[Candidate]:
        root = _root(tree) or "CMakeLists.txt"
        build = build_directory(tree)
        where = evidence_at(tree, root, "project")
        yield candidate(
            configure_command(tree),
            'configures the build: "Build files have been written to" is printed',
            Category.SETUP,
            70,
            where,
        )
        yield candidate(
            f"cmake --build {build} -j 2",
            'compiles and links all targets: "[100%]" is printed',
            Category.BUILD,
            85,
            where,
            timeout=SUITE_SECONDS,
        )
        yield from self._tests(tree, build)
        yield from self._targets(tree, build)
        if re.search(r"(?im)^\s*install\s*\(", tree.read(root)):
            yield candidate(
                f"cmake --install {build} --prefix {STAGE}",
                'installs the built files into a staging directory: "Install configuration" is printed',
                Category.BUILD,
                62,
                evidence_at(tree, root, "install("),
            )
        yield candidate(
            f"cmake --build {build} --target help",
            'lists the targets that can be built, "all" among them',
            Category.OTHER,
            42,
            where,
        )
        yield candidate(
            f"cmake -N -LA {build}",
            'lists the cached settings of the build, "CMAKE_BUILD_TYPE" among them',
            Category.OTHER,
            38,
            where,
        )
        yield candidate(
            f"cmake --build {build} --clean-first -j 2",
            'removes what was built and compiles everything again: "[100%]" is printed',
            Category.BUILD,
            34,
            where,
            timeout=SUITE_SECONDS,
        )

    def steps(self, tree: Tree) -> Iterator[Step]:
        build = build_directory(tree)
        yield tools_step(("cmake", "make", "c++"), "cmake make g++")
        yield SUBMODULES
        configure = configure_command(tree)
        plain = f"cmake -S {_source(tree)} -B {build}"
        yield Step(
            command=configure,
            why=f"Configures the build ({_root(tree)}).",
            fallback=(f"rm -rf {build} && {plain}",) if plain != configure else (),
        )
        yield Step(
            command=f"cmake --build {build} -j 4",
            why="Builds everything.",
            fallback=(f"cmake --build {build}",),
            timeout=1800,
        )

    def _tests(self, tree: Tree, build: str) -> Iterator[Candidate]:
        files = _files(tree)
        path = next((item for item in files if _REGISTERS.search(tree.read(item))), None)
        path = path or next(
            (item for item in files if re.search(r"(?i)enable_testing|include\s*\(\s*CTest", tree.read(item))), None
        )
        if path is None:
            return
        where = evidence_at(tree, path, "test")
        yield candidate(
            f"ctest --test-dir {build} --output-on-failure",
            "runs the registered tests; at least 90% of the tests pass",
            Category.TEST,
            95,
            where,
            exit_codes=(0, 8),
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )
        yield candidate(
            f"ctest --test-dir {build} -N",
            'lists the registered tests: "Total Tests:" is printed',
            Category.TEST,
            55,
            where,
        )
        names = [(item, name) for item in files for name in _NAMED_TEST.findall(tree.read(item))]
        for item, name in names[:4]:
            if name.upper() in ("NAME", "COMMAND"):
                continue
            yield candidate(
                f"ctest --test-dir {build} -R '^{re.escape(name)}$'",
                'runs one registered test: "100% tests passed" is printed',
                Category.TEST,
                60,
                evidence_at(tree, item, name),
            )

    def _targets(self, tree: Tree, build: str) -> Iterator[Candidate]:
        source = _source(tree)
        moved = any(_ELSEWHERE.search(tree.read(path)) for path in _files(tree))
        for path in _files(tree):
            text = tree.read(path)
            for kind, name in _TARGET.findall(text):
                where = evidence_at(tree, path, name)
                if kind.lower() == "library" and not _TEST_DIR.search(path):
                    yield candidate(
                        f"cmake --build {build} --target {name}",
                        f'builds the library: "Built target {name}" is printed',
                        Category.BUILD,
                        55,
                        where,
                    )
                if kind.lower() != "executable" or _TEST_DIR.search(path) or "test" in name.lower():
                    continue
                directory = path.rpartition("/")[0]
                asked = question(tree, directory, name)
                if asked and not moved:
                    option, printed = asked
                    inside = posixpath.normpath(posixpath.join(build, posixpath.relpath(directory or ".", source)))
                    yield candidate(
                        f"./{inside}/{name} {option}",
                        f"the built program prints {printed} in at least 1 line",
                        Category.RUN,
                        72,
                        where,
                        exit_codes=(0,) if "version" in printed else (0, 1),
                    )


def build_directory(tree: Tree) -> str:
    """A directory for the build that no tracked file is in."""
    return next(name for name in ("build", "_build", "cmake-build", ".build-env") if not tree.has_directory(name))


def configure_command(tree: Tree) -> str:
    """Configures with the project's own test options switched on."""
    options: dict[str, None] = {}
    root = tree.read(_root(tree) or "")
    declared = {name: default.upper() in ("ON", "TRUE", "1", "YES") for name, default in _OPTION.findall(root)}
    for name, on in declared.items():
        if (
            _TEST_OPTION.search(name)
            and not _UNWANTED_OPTION.search(name)
            and not on
            and _can_be_built(name, declared, root)
        ):
            options[name] = None
    if "BUILD_TESTING" in root or re.search(r"(?i)include\s*\(\s*CTest", root):
        options["BUILD_TESTING"] = None
    return " ".join([f"cmake -S {_source(tree)} -B {build_directory(tree)}", *(f"-D{name}=ON" for name in options)])


def _can_be_built(test_option: str, declared: Mapping[str, bool], root: str) -> bool:
    """Whether all that the tests of an option are about is built: those of a feature need the feature."""
    project = re.search(r"(?im)^\s*project\s*\(\s*([\w.+-]+)", root)
    names = {word.lower() for word in _WORD.findall(project[1] if project else "")}
    first = Counter(_WORD.findall(name)[0].lower() for name in declared)
    words = [word.lower() for word in _WORD.findall(test_option)]
    if first[words[0]] > 1:  # the project's own prefix
        words = words[1:]
    features = [word for word in words if word not in _ABOUT_TESTS | names]
    built = {word.lower() for name, on in declared.items() if on for word in _WORD.findall(name)}
    return set(features) <= built


def _root(tree: Tree) -> str | None:
    """The CMakeLists.txt of the whole project: the root's, or, where a project keeps it aside, one that declares it."""
    if tree.has("CMakeLists.txt"):
        return "CMakeLists.txt"
    if tree.first(*MAKEFILES):
        return None
    aside = [path for path in tree.files if path.endswith("/CMakeLists.txt") and path.count("/") <= 2]
    declared = [
        path for path in aside if re.search(r"(?im)^\s*project\s*\(", tree.read(path)) and not _ASIDE.search(path)
    ]
    return min(declared, key=lambda path: (path.count("/"), path), default=None)


def _source(tree: Tree) -> str:
    return (_root(tree) or "").rpartition("/")[0] or "."


def _files(tree: Tree) -> list[str]:
    """The project's own CMakeLists.txt files, the shallowest first."""
    found = [path for path in tree.files if path.rsplit("/", 1)[-1] == "CMakeLists.txt" and not _ASIDE.search(path)]
    return sorted(found, key=lambda path: (path.count("/"), path))[:60]
