"""Goals and plans of C, make and shell projects; the tables of the rules."""

import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules import knowledge
from autoinstall.agents.rules.contract import Context, Ecosystem
from autoinstall.agents.rules.ecosystems import all_ecosystems
from autoinstall.agents.rules.ecosystems.c import CEcosystem
from autoinstall.agents.rules.ecosystems.c.cmake import configure_command
from autoinstall.agents.rules.ecosystems.c.programs import question
from autoinstall.agents.rules.ecosystems.make import MakeEcosystem
from autoinstall.agents.rules.ecosystems.shell import ShellEcosystem
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.evidence.classify import CommandTable
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.repairs.generic import SymptomTable
from autoinstall.agents.rules.repairs.missing import MessageTable
from autoinstall.agents.rules.repairs.services import ServiceTable
from autoinstall.agents.rules.scope import Scope
from autoinstall.agents.rules.system_packages import SkipTable
from autoinstall.outputs.expectations import read_requirements
from autoinstall.proposals import check_goal
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.tree import Tree
from autoinstall.values import Category, Goal

MAIN = 'int main(int c, char **v) { getopt_long(c, v, "hV"); puts("--version"); }\n'


def _context(root: Path, files: Mapping[str, str], *targets: str) -> Context:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tree = Tree(root)
    repository = Repository(
        url="https://example.com/o/n", commit="0" * 40, commit_date=datetime(2024, 1, 1, tzinfo=UTC)
    )
    goals = tuple(Goal(command=command, description="prints at least 1 line") for command in targets)
    return Context(repository=repository, tree=tree, targets=goals, findings=collect(tree))


def _goals(ecosystem: Ecosystem, context: Context, dry_run: str = "") -> dict[str, Goal]:
    provider = ScriptedProvider({re.compile("--dry-run"): dry_run})
    with provider.open(SandboxSpec(image=provider.ensure_base().reference)) as sandbox:
        return {item.goal.command: item.goal for item in ecosystem.candidates(context, sandbox)}


def _steps(ecosystem: Ecosystem, context: Context) -> str:
    provider = ScriptedProvider()
    with provider.open(SandboxSpec(image=provider.ensure_base().reference)) as sandbox:
        return "\n".join(step.command for step in ecosystem.plan(context, sandbox).steps)


AUTOTOOLS = {
    "configure.ac": "AC_INIT([x],[1])\n",
    "autogen.sh": "#!/bin/sh\nautoreconf -i\n",
    "Makefile.am": "bin_PROGRAMS = tool\ntool_SOURCES = tool.c\nTESTS = tests/one \\\n  tests/two $(EXTRA)\n",
    "tool.c": MAIN,
}


def test_autotools_goals(tmp_path: Path) -> None:
    goals = _goals(CEcosystem(), _context(tmp_path, AUTOTOOLS))
    assert {"make check", "make", "./configure", "./tool --version", "make check-TESTS TESTS=tests/two"} <= set(goals)
    assert goals["make check"].min_pass_rate == 0.9
    assert not any("EXTRA" in command for command in goals)


def test_autotools_plan_makes_configure_and_restores_tracked_files(tmp_path: Path) -> None:
    steps = _steps(CEcosystem(), _context(tmp_path, AUTOTOOLS))
    assert "./autogen.sh" in steps
    assert steps.rstrip().endswith("git checkout --")


def test_tracked_configure_is_not_made_again(tmp_path: Path) -> None:
    steps = _steps(CEcosystem(), _context(tmp_path, {**AUTOTOOLS, "configure": "#!/bin/sh\n"}))
    assert "autogen" not in steps
    assert "xargs -r touch" in steps


MESON = {
    "meson.build": "project('x', 'c')\nt = executable('tool', 'tool.c', install: true)\ntest('first', t)\n",
    "meson_options.txt": "option('build_tests', type: 'boolean', value: false)\noption('docs', type: 'boolean')\n",
    "tool.c": MAIN,
}


def test_meson_goals_and_plan(tmp_path: Path) -> None:
    context = _context(tmp_path, MESON)
    goals = _goals(CEcosystem(), context)
    assert {"meson test -C build --print-errorlogs", "meson test -C build first", "./build/tool --version"} <= set(
        goals
    )
    assert "meson setup -Dbuild_tests=true build" in _steps(CEcosystem(), context)


def test_targets_decide_between_build_systems(tmp_path: Path) -> None:
    files = {**AUTOTOOLS, "CMakeLists.txt": "project(x C)\n"}
    assert "cmake -S" in _steps(CEcosystem(), _context(tmp_path, files, "ctest --test-dir build"))
    assert "./configure" in _steps(CEcosystem(), _context(tmp_path, files, "./config.status --version"))


def test_evidence_decides_where_targets_do_not(tmp_path: Path) -> None:
    files = {
        **AUTOTOOLS,
        "CMakeLists.txt": "project(x C)\n",
        "README.md": "```\n./autogen.sh\n./configure\nmake\n```\n",
    }
    assert "./configure" in _goals(CEcosystem(), _context(tmp_path, files))


def test_a_tracked_build_directory_is_left_alone(tmp_path: Path) -> None:
    goals = _goals(CEcosystem(), _context(tmp_path, {"CMakeLists.txt": "project(x C)\n", "build/notes.txt": "x"}))
    assert "cmake --build _build -j 2" in goals


@pytest.mark.parametrize(
    ("options", "switched_on"),
    [
        (
            'option(ENABLE_SSL "TLS" OFF)\noption(ENABLE_SSL_TESTS "With TLS" OFF)\noption(ENABLE_ASYNC_TESTS "" OFF)',
            [],
        ),
        ('option(ENABLE_SSL "TLS" ON)\noption(ENABLE_SSL_TESTS "With TLS" OFF)', ["ENABLE_SSL_TESTS"]),
        ('option(YAML_CPP_BUILD_TESTS "Tests" OFF)', ["YAML_CPP_BUILD_TESTS"]),
        ('option(YC_BuildTests "Tests" OFF)\noption(YC_Install "" ON)', ["YC_BuildTests"]),
        ('option(BUILD_UNIT_TESTS "Tests" OFF)\noption(BUILD_GPU_TESTS "" OFF)', ["BUILD_UNIT_TESTS"]),
    ],
)
def test_tests_are_switched_on_where_what_they_are_about_is_built(
    tmp_path: Path, options: str, switched_on: list[str]
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(f"project(yaml-cpp CXX)\n{options}\n")
    command = configure_command(Tree(tmp_path))
    assert re.findall(r"-D(\w+)=ON", command) == switched_on


def test_cmake_beside_a_makefile_is_not_the_main_build(tmp_path: Path) -> None:
    context = _context(tmp_path, {"Makefile": "all:\n", "contrib/cmake/CMakeLists.txt": "project(x C)\n"})
    assert not CEcosystem().detect(context.tree)
    assert MakeEcosystem().detect(context.tree)


MAKEFILE = "all: tool\ncheck:\n\t./t\ntest-32:\n\t./t\nlint:\n\tx\ninstall:\n\tcp tool $(DESTDIR)/bin\nclean:\n\trm\n"


def test_make_goals(tmp_path: Path) -> None:
    context = _context(tmp_path, {"Makefile": MAKEFILE, "src/tool.c": MAIN})
    dry_run = "make[1]: Entering directory '/workspace/src'\ncc -c tool.c -o tool.o\ncc -o tool tool.o\n"
    goals = _goals(MakeEcosystem(), context, dry_run)
    assert {"make", "make check", "make lint", "./src/tool --version"} <= set(goals)
    # Makefiles run tests by programs of their own, which print no summary that is known.
    assert read_requirements(goals["make check"]).positive
    assert any(command.startswith("make install DESTDIR=") for command in goals)
    assert "make test-32" not in goals
    assert goals["make lint"].exit_codes == (0, 2)


def test_make_leaves_other_managers_projects(tmp_path: Path) -> None:
    context = _context(tmp_path, {"Makefile": MAKEFILE, "package.json": "{}"})
    assert not MakeEcosystem().detect(context.tree)


def test_bats_suite(tmp_path: Path) -> None:
    files = {"test/a.bats": "@test 'x' { true; }\n", "tool.sh": "#!/bin/bash\n# --help\n", ".shellcheckrc": ""}
    context = _context(tmp_path, files, "bats --tap test", "shellcheck --version")
    goals = _goals(ShellEcosystem(), context)
    assert {"bats --tap test", "bats --tap test/a.bats", "./tool.sh --help"} <= set(goals)
    assert goals["bats --tap test"].min_pass_rate == 0.9
    assert "bats shellcheck" in _steps(ShellEcosystem(), context)


def test_shunit2_suites_have_a_tolerance(tmp_path: Path) -> None:
    files = {"test_runner": "#!/bin/sh\n", "a_test.sh": "#!/bin/sh\n. ./shunit2\n", "shunit2": "#!/bin/sh\n"}
    goals = _goals(ShellEcosystem(), _context(tmp_path, files))
    assert {"./test_runner", "./a_test.sh"} <= set(goals)
    assert (goals["./test_runner"].min_pass_rate, goals["./test_runner"].exit_codes) == (0.9, (0, 1))


def test_test_scripts_run_as_ci_runs_them(tmp_path: Path) -> None:
    workflow = "jobs:\n  a:\n    steps:\n      - run: sudo ./runtest --fast\n"
    context = _context(tmp_path, {"runtest": "#!/bin/sh\n", ".github/workflows/a.yml": workflow})
    goals = _goals(ShellEcosystem(), context)
    assert "./runtest --fast" in goals
    assert goals["./runtest --fast"].evidence is not None
    assert goals["./runtest --fast"].evidence.line == 4


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        (MAIN, ("--version", "its version")),
        ('int main(void) { static struct option o[] = {{"help", 0}}; }', ("--help", "its usage")),
        ('int main(c, v) { getopt(c, v, "f:V"); }', ("-V", "its version")),
        ('int main(void) { puts("  -v  show version information"); }', ("-v", "its version")),
        ('int main(c, v) { getopt(c, v, "h"); }', ("-h", "its usage")),
        ("int main(void) { return 0; }", None),
        ("int other(void) { }", None),
    ],
)
def test_programs_are_asked_what_they_answer(tmp_path: Path, source: str, asked: tuple[str, str] | None) -> None:
    context = _context(tmp_path, {"tool.c": source})
    assert question(context.tree, "", "tool") == asked


@pytest.mark.parametrize("files", [AUTOTOOLS, MESON, {"CMakeLists.txt": "project(x C)\n"}, {"Makefile": MAKEFILE}])
def test_every_goal_can_be_proposed_and_has_evidence(tmp_path: Path, files: dict[str, str]) -> None:
    context = _context(tmp_path, files)
    for ecosystem in all_ecosystems():
        if ecosystem.detect(context.tree):
            for goal in _goals(ecosystem, context).values():
                assert check_goal(goal) == ""
                assert goal.evidence is not None
                assert context.tree.has(goal.evidence.path)


def test_nothing_is_detected_in_an_empty_tree(tmp_path: Path) -> None:
    assert [ecosystem.name for ecosystem in all_ecosystems() if ecosystem.detect(Tree(tmp_path))] == []


def test_tables_are_valid_and_their_patterns_compile() -> None:
    patterns = [rule.pattern for rule in load("commands", CommandTable).rules]
    patterns += [*load("commands", CommandTable).wrappers, *load("commands", CommandTable).refused]
    patterns += [symptom.pattern for symptom in load("symptoms", SymptomTable).symptoms]
    patterns += [message.pattern for message in load("missing", MessageTable).messages]
    patterns += [pattern for known in load("services", ServiceTable).services for pattern in known.messages]
    patterns += load("apt_skip", SkipTable).patterns
    for pattern in patterns:
        re.compile(pattern)
    assert load("scope", Scope).markup <= load("scope", Scope).code
    assert {rule.category for rule in load("commands", CommandTable).rules} == set(Category) - {Category.OTHER}


def test_every_table_is_toml() -> None:
    for entry in resources.files(knowledge).iterdir():
        if entry.name.endswith(".toml"):
            assert tomllib.loads(entry.read_text(encoding="utf-8"))
