"""Meson projects."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Step
from autoinstall.agents.rules.ecosystems.c.cmake import build_directory
from autoinstall.agents.rules.ecosystems.c.programs import STAGE, question
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUBMODULES, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.system_packages import tools_step
from autoinstall.tree import Tree
from autoinstall.values import Category

_OPTION = re.compile(r"option\s*\(\s*'([\w-]+)'\s*,([^)]*)\)", re.DOTALL)
_TEST_OPTION = re.compile(r"(?i)^(?:\w*[_-])?(?:build[_-])?(?:unit[_-]?)?tests?(?:ing)?(?:[_-]\w+)?$")
_UNWANTED = re.compile(r"(?i)bench|fuzz|install|disable|coverage")
_TEST = re.compile(r"(?<![\w.])test\s*\(\s*'([^']+)'")
_EXECUTABLE = re.compile(r"(?<![\w.])executable\s*\(\s*'([\w.+-]+)'([^)]*)\)", re.DOTALL)


class Meson:
    name = "meson"
    commands = re.compile(r"(?:^|\s)(?:meson|ninja)\b")

    def detect(self, tree: Tree) -> bool:
        return tree.has("meson.build")

    def candidates(self, tree: Tree) -> Iterator[Candidate]:
        build = build_directory(tree)
        where = evidence_at(tree, "meson.build", "project(")
        yield candidate(
            f"meson setup --reconfigure {_options(tree)} {build}".replace("  ", " "),
            'configures the build: "Build targets in project" is printed',
            Category.SETUP,
            70,
            where,
        )
        yield candidate(
            f"meson compile -C {build}",
            'compiles and links all targets: "ninja" is run and stops at no error',
            Category.BUILD,
            85,
            where,
            timeout=SUITE_SECONDS,
        )
        yield from self._tests(tree, build)
        yield candidate(
            f"meson install -C {build} --no-rebuild --destdir {STAGE}",
            'installs the built files into a staging directory: "Installing" is printed',
            Category.BUILD,
            62,
            where,
        )
        yield candidate(
            f"meson introspect --targets --indent {build}",
            'describes the build targets as JSON, each with its "filename"',
            Category.OTHER,
            45,
            where,
        )
        yield candidate(
            f"meson introspect --projectinfo {build}",
            'describes the project as JSON with its "descriptive_name"',
            Category.OTHER,
            40,
            where,
        )
        yield candidate(
            f"ninja -C {build} -t targets all",
            'lists what ninja can build, "phony" targets among it',
            Category.OTHER,
            34,
            where,
        )
        yield candidate(
            f"ninja -C {build} clean && ninja -C {build}",
            "removes what was built and compiles everything again, at least 2 lines tell of it",
            Category.BUILD,
            36,
            where,
            timeout=SUITE_SECONDS,
        )
        for path in _files(tree):
            for name, arguments in _EXECUTABLE.findall(tree.read(path)):
                directory = path.rpartition("/")[0]
                asked = question(tree, directory, name)
                if asked and "install" in arguments:
                    option, printed = asked
                    yield candidate(
                        f"./{build}/{directory + '/' if directory else ''}{name} {option}",
                        f"the built program prints {printed} in at least 1 line",
                        Category.RUN,
                        74,
                        evidence_at(tree, path, name),
                        exit_codes=(0,) if "version" in printed else (0, 1),
                    )

    def steps(self, tree: Tree) -> Iterator[Step]:
        build = build_directory(tree)
        yield tools_step(("meson", "ninja", "pkg-config", "c++"), "meson ninja-build pkg-config g++")
        yield SUBMODULES
        yield Step(
            command=f"meson setup {_options(tree)} {build}".replace("  ", " "),
            why="Configures the build (meson.build).",
            fallback=(f"rm -rf {build} && meson setup {build}",),
        )
        yield Step(command=f"meson compile -C {build}", why="Builds everything.", timeout=1800)

    def _tests(self, tree: Tree, build: str) -> Iterator[Candidate]:
        found = [(path, name) for path in _files(tree) for name in _TEST.findall(tree.read(path))]
        if not any(re.search(r"(?<![\w.])test\s*\(", tree.read(path)) for path in _files(tree)):
            return
        path = found[0][0] if found else "meson.build"
        where = evidence_at(tree, path, "test(")
        yield candidate(
            f"meson test -C {build} --print-errorlogs",
            "builds and runs the project's tests; at least 90% of the tests pass",
            Category.TEST,
            95,
            where,
            exit_codes=(0, 1),
            rate=MOST_TESTS,
            timeout=SUITE_SECONDS,
        )
        yield candidate(
            f"meson test -C {build} --list", "lists the names of the tests in at least 1 line", Category.TEST, 55, where
        )
        for item, name in found[:4]:
            if re.fullmatch(r"[\w.-]+", name):
                yield candidate(
                    f"meson test -C {build} {name}",
                    'runs one test of the suite: "Fail: 0" is counted',
                    Category.TEST,
                    60,
                    evidence_at(tree, item, name),
                )


def _options(tree: Tree) -> str:
    """The project's own test options, switched on where they are off."""
    path = tree.first("meson_options.txt", "meson.options")
    found: list[str] = []
    for name, arguments in _OPTION.findall(tree.read(path)) if path else ():
        if not _TEST_OPTION.search(name) or _UNWANTED.search(name):
            continue
        if re.search(r"value\s*:\s*(?:true|'enabled')", arguments):
            continue
        if "boolean" in arguments:
            found.append(f"-D{name}=true")
        elif "feature" in arguments:
            found.append(f"-D{name}=enabled")
    return " ".join(found)


def _files(tree: Tree) -> list[str]:
    aside = re.compile(r"(?:^|/)(?:subprojects|third_party|vendor)/")
    found = [path for path in tree.files if path.rsplit("/", 1)[-1] == "meson.build" and not aside.search(path)]
    return sorted(found, key=lambda path: (path.count("/"), path))[:60]
