"""Projects that a plain Makefile builds: mostly C, but whatever `make` does without another package manager."""

import re
from collections.abc import Iterable, Iterator

from autoinstall.agents.rules.contract import Candidate, Context, Plan, Step
from autoinstall.agents.rules.ecosystems.c.autotools import RESTORE
from autoinstall.agents.rules.ecosystems.c.programs import STAGE, question
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.evidence.makefile import MAKEFILES, make_targets
from autoinstall.agents.rules.system_packages import tools_step
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category

DRY_RUN_SECONDS = 60.0

_OTHER_SYSTEMS = ("configure.ac", "configure.in", "configure", "CMakeLists.txt", "meson.build")
_OTHER_MANAGERS = (
    "pyproject.toml",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "Gemfile",
    "composer.json",
)
_TEST = re.compile(r"^(?:check|tests?|testall|test-?all|runtests?|unit-?tests?|run-?tests?|test-\w+|check-\w+)$")
_WHOLE_TEST = ("check", "test", "tests", "testall", "test-all", "runtest", "runtests", "unittest", "unit-test")
_LINT = re.compile(r"^(?:lint|shellcheck|style|cppcheck|staticAnalyze|format-check|check-format)$")
_BUILD = re.compile(
    r"^(?:lib|library|shared|static|programs?|bin|tools?|examples?|build|compile|release|objects?|default)$"
)
_AVOID = re.compile(
    r"(?i)bench|fuzz|perf|valgrind|cover|docker|deploy|publish|upload|32|arm|mips|ppc|sanit|msan|tsan|asan|usan|clean|windows|mingw"
)
_OUTPUT = re.compile(r"\s-o\s+['\"]?([\w./+-]+)")
_ENTERING = re.compile(r"Entering directory [`']([^']+)'")
_NOT_PROGRAM = re.compile(r"\.(?:o|so|a|lo|la|d|obj|dylib|gch|pic|os|c|h|s|js|wasm|bc)(?:\.|$)")
_ROOT = "/workspace"


class MakeEcosystem:
    name = "make"
    tools = frozenset({"make", "gmake", "gcc", "cc", "g++"})
    suffixes = frozenset({".c", ".h", ".cc", ".cpp", ".cxx", ".hpp"})

    def detect(self, tree: Tree) -> bool:
        return bool(_makefile(tree)) and tree.first(*_OTHER_SYSTEMS, *_OTHER_MANAGERS) is None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        tree = context.tree
        path = _makefile(tree)
        targets = dict(make_targets(tree, path))
        first = evidence_at(tree, path, "all:")
        yield candidate(
            "make",
            "builds the default target, make stops at no error",
            Category.BUILD,
            85,
            first,
            timeout=SUITE_SECONDS,
        )
        yield from self._tests(tree, path, targets)
        for name in targets:
            where = evidence_at(tree, path, f"{name}:")
            if _LINT.match(name):
                yield candidate(
                    f"make {name}",
                    "checks the sources with the project's own lint target; what it finds is the sources' own",
                    Category.LINT,
                    40,
                    where,
                    exit_codes=(0, 2),
                )
            elif _BUILD.match(name):
                yield candidate(
                    f"make {name}", f"builds the part {name}, make stops at no error", Category.BUILD, 55, where
                )
        if "install" in targets and "DESTDIR" in "".join(tree.read(item) for item in tree.files if _is_makefile(item)):
            yield candidate(
                f"make install DESTDIR={STAGE} && find {STAGE} -type f",
                "installs the built files into a staging directory and lists at least 1 line of installed files",
                Category.BUILD,
                60,
                evidence_at(tree, path, "install:"),
            )
        yield from self._programs(tree, path, sandbox)
        yield candidate(
            "make --dry-run --always-make",
            "shows the commands of a whole build in at least 2 lines",
            Category.OTHER,
            20,
            first,
        )
        if "clean" in targets:
            yield candidate(
                "make clean && make",
                "removes what was built and builds it again, make stops at no error",
                Category.BUILD,
                38,
                first,
                timeout=SUITE_SECONDS,
            )

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        del sandbox
        path = _makefile(context.tree)
        return Plan(
            steps=(
                tools_step(("make", "cc", "c++", "pkg-config"), "make gcc g++ libc6-dev pkg-config"),
                SUBMODULES,
                Step(command="make -j4", why=f"Builds the default target ({path}).", fallback=("make",), timeout=1800),
                Step(
                    command=RESTORE, why="Tracked files that the build rewrote get their content back.", optional=True
                ),
            ),
            exhausted=context.attempt >= 2,
        )

    def _tests(self, tree: Tree, path: str, targets: dict[str, int]) -> Iterator[Candidate]:
        whole = next((name for name in _WHOLE_TEST if name in targets), "")
        for name in targets:
            if not _TEST.match(name) or _AVOID.search(name) or (name in _WHOLE_TEST and name != whole):
                continue
            yield candidate(
                f"make {name}",
                f"runs the tests of the target {name} to their end in at least 2 lines, make stops at no error",
                Category.TEST,
                92 if name == whole else 20,
                evidence_at(tree, path, f"{name}:"),
                timeout=SUITE_SECONDS,
            )

    def _programs(self, tree: Tree, path: str, sandbox: Sandbox) -> Iterator[Candidate]:
        """Programs that a dry run links, asked for their version or usage."""
        result = sandbox.run("make --dry-run --print-directory", timeout=DRY_RUN_SECONDS)
        directory = ""
        seen: set[str] = set()
        for line in result.output.splitlines():
            if match := _ENTERING.search(line):
                directory = match[1].removeprefix(_ROOT).strip("/")
                continue
            if "Leaving directory" in line:
                directory = ""
            for name in _OUTPUT.findall(line):
                inside = f"{directory}/{name}" if directory else name
                if _NOT_PROGRAM.search(name) or inside in seen or inside.startswith("/"):
                    continue
                seen.add(inside)
                place, _, base = inside.rpartition("/")
                asked = question(tree, place, base)
                if asked and not re.search(r"(?i)test|bench", base):
                    option, printed = asked
                    yield candidate(
                        f"./{inside} {option}",
                        f"the built program prints {printed} in at least 1 line",
                        Category.RUN,
                        74,
                        evidence_at(tree, path, base),
                        exit_codes=(0,) if "version" in printed else (0, 1),
                    )


def _makefile(tree: Tree) -> str:
    return tree.first(*MAKEFILES) or ""


def _is_makefile(path: str) -> bool:
    return path.rsplit("/", 1)[-1] in MAKEFILES and path.count("/") <= 2
