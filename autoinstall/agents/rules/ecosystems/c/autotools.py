"""Autotools, and configure scripts written by hand. Built in the tree, as their documents say."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Step
from autoinstall.agents.rules.ecosystems.c.programs import STAGE, question
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUBMODULES, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.system_packages import tools_step
from autoinstall.tree import Tree
from autoinstall.values import Category

_PROGRAMS = re.compile(r"^(?:bin|sbin)_PROGRAMS\s*\+?=\s*((?:.*\\\n)*.*)$", re.MULTILINE)
_TESTS = re.compile(r"^TESTS\s*\+?=\s*((?:.*\\\n)*.*)$", re.MULTILINE)
_LIBRARIES = re.compile(r"^lib_LTLIBRARIES\s*\+?=", re.MULTILINE)
_AUTOGEN = ("autogen.sh", "bootstrap", "bootstrap.sh", "buildconf", "buildconf.sh", "autogen")

RESTORE = "git diff --name-only -z --ignore-submodules | xargs -0 -r git checkout --"
"""Gives tracked files that a generator rewrote their content back."""


class Autotools:
    name = "autotools"
    commands = re.compile(r"(?:^|[\s/])(?:configure|autogen\.sh|autoreconf|bootstrap|buildconf)\b|config\.status")

    def detect(self, tree: Tree) -> bool:
        return tree.first("configure.ac", "configure.in", "configure") is not None

    def candidates(self, tree: Tree) -> Iterator[Candidate]:
        manifest = tree.first("configure.ac", "configure.in", "configure") or ""
        where = evidence_at(tree, manifest, "AC_INIT")
        yield from self._tests(tree)
        yield candidate(
            "make", "compiles and links the whole project, make stops at no error", Category.BUILD, 80, where
        )
        yield candidate(
            f"make install DESTDIR={STAGE} && find {STAGE} -type f",
            "installs the built files into a staging directory and lists at least 1 line of installed files",
            Category.BUILD,
            65,
            where,
        )
        yield from self._programs(tree)
        if manifest != "configure":
            yield candidate(
                "./configure",
                'checks the system and writes the makefiles: "config.status: creating" is printed',
                Category.SETUP,
                70,
                where,
            )
            yield candidate(
                "./config.status --version",
                'prints how the tree was configured, with the words "configured by"',
                Category.OTHER,
                40,
                where,
            )
            yield candidate(
                "./configure --help",
                'prints the options of configure, among them "--prefix=PREFIX"',
                Category.OTHER,
                32,
                where,
            )
        else:
            yield candidate("./configure", "checks the system and writes the makefiles", Category.SETUP, 70, where)
        if script := tree.first(*_AUTOGEN):
            yield candidate(
                "autoreconf --version",
                'prints the version of the tool that makes the configure script, "autoreconf (GNU Autoconf)"',
                Category.OTHER,
                20,
                evidence_at(tree, script),
            )
        yield candidate(
            "make clean all", "removes what was built and compiles everything again", Category.BUILD, 35, where
        )

    def steps(self, tree: Tree) -> Iterator[Step]:
        yield tools_step(
            ("autoreconf", "libtoolize", "pkg-config", "make", "cc", "autopoint"),
            "autoconf automake libtool pkg-config make gcc g++ libc6-dev gettext autopoint autoconf-archive",
        )
        yield SUBMODULES
        if tree.has("configure"):
            yield Step(
                command="touch aclocal.m4 2>/dev/null; sleep 1; "
                "git ls-files | grep -E '(^|/)(configure|config\\.h\\.in|Makefile\\.in)$' | xargs -r touch",
                why="The checkout gave the generated files no order; make would take them for stale.",
                optional=True,
            )
        else:
            script = tree.first(*_AUTOGEN)
            plain = "autoreconf -fi"
            generate = (
                f"NOCONFIGURE=1 sh -c 'if [ -x ./{script} ]; then ./{script}; else sh ./{script}; fi'"
                if script
                else plain
            )
            yield Step(
                command=f"{generate} && test -f configure && {RESTORE}",
                why=f"Makes the configure script ({script or 'configure.ac'}).",
                fallback=(f"{plain} && {RESTORE}",),
            )
        yield Step(
            command="if [ -x configure ]; then ./configure; else sh ./configure; fi",
            why="Checks the system and writes the makefiles.",
        )
        yield Step(command="make -j4", why="Builds everything.", fallback=("make",), timeout=1800)
        if any(_TESTS.search(tree.read(path)) for path in _makefile_ams(tree)):
            yield Step(
                command="make -j4 check TESTS=",
                why="Builds the test programs without running them.",
                optional=True,
                timeout=900,
            )
        yield Step(command=RESTORE, why="Tracked files that the build rewrote get their content back.", optional=True)

    def _tests(self, tree: Tree) -> Iterator[Candidate]:
        files = _makefile_ams(tree)
        with_tests = [path for path in files if _TESTS.search(tree.read(path))]
        own_target = next(
            (
                (path, name)
                for path in (*files, "Makefile.in")
                for name in ("check", "test", "tests")
                if "/" not in path and re.search(rf"^{name}(?:-\w+)?\s*:", tree.read(path), re.MULTILINE)
            ),
            None,
        )
        if with_tests:
            yield candidate(
                "make check",
                "builds and runs the project's tests; at least 90% of the tests pass",
                Category.TEST,
                95,
                evidence_at(tree, with_tests[0], "TESTS"),
                exit_codes=(0, 1, 2),
                rate=MOST_TESTS,
                timeout=SUITE_SECONDS,
            )
        elif own_target:
            path, name = own_target
            yield candidate(
                f"make {name}",
                "builds and runs the project's own tests to their end in at least 2 lines, make stops at no error",
                Category.TEST,
                92,
                evidence_at(tree, path, f"{name}:"),
                timeout=SUITE_SECONDS,
            )
        for path in with_tests:
            directory = path.rpartition("/")[0]
            names = [name for name in _words(_TESTS, tree.read(path)) if re.fullmatch(r"[\w./-]+", name)]
            make = f"make -C {directory} check-TESTS" if directory else "make check-TESTS"
            for name in names[:4]:
                yield candidate(
                    f"{make} TESTS={name}",
                    'runs one test of the suite: "# PASS:  1" is counted',
                    Category.TEST,
                    60,
                    evidence_at(tree, path, name),
                )

    def _programs(self, tree: Tree) -> Iterator[Candidate]:
        for path in _makefile_ams(tree):
            directory = path.rpartition("/")[0]
            for name in _words(_PROGRAMS, tree.read(path)):
                asked = question(tree, directory, name)
                if asked and re.fullmatch(r"[\w.+/-]+", name):
                    option, printed = asked
                    yield candidate(
                        f"./{directory + '/' if directory else ''}{name} {option}",
                        f"the built program prints {printed} in at least 1 line",
                        Category.RUN,
                        75,
                        evidence_at(tree, path, "_PROGRAMS"),
                        exit_codes=(0,) if "version" in printed else (0, 1),
                    )


def _makefile_ams(tree: Tree) -> list[str]:
    return [path for path in tree.files if path.endswith("Makefile.am") and path.count("/") <= 2]


def _words(pattern: re.Pattern[str], text: str) -> list[str]:
    """The plain words of every assignment that the pattern matches, each once; variables are left out."""
    found = " ".join(match[1] for match in pattern.finditer(text)).replace("\\\n", " ")
    return list(dict.fromkeys(word for word in found.split() if not re.search(r"[$@#\\()]", word)))
