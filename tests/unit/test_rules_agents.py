"""The goal-setter and the installer of the rules, with scripted sandboxes."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Assignment, Repository
from autoinstall.agents.rules.choice import choose
from autoinstall.agents.rules.contract import Candidate, Context, Plan, Repair, Step
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.fillers import fillers
from autoinstall.agents.rules.goal_setter import RulesGoalSetter, _of_evidence
from autoinstall.agents.rules.installer import RulesInstaller, _joined
from autoinstall.agents.scripted import ScriptedJudge
from autoinstall.errors import BadProposal, NothingToSetUp
from autoinstall.proposals import check_proposal
from autoinstall.sandbox.contract import Sandbox, SandboxSpec
from autoinstall.sandbox.scripted import Answer, Call, ScriptedProvider
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import (
    Category,
    CommandResult,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Mock,
    MockKind,
    SetupReport,
    StopReason,
    Verdict,
)

REPOSITORY = Repository(url="https://example.com/o/n", commit="0" * 40, commit_date=datetime(2024, 1, 1, tzinfo=UTC))
Responses = dict[str | re.Pattern[str], Answer | Callable[[Call], Answer]]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    provider = ScriptedProvider()
    with provider.open(SandboxSpec(image=provider.ensure_base().reference)) as opened:
        yield opened


def _tree(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(root)


CMAKE = {
    "CMakeLists.txt": (
        'project(thing C)\noption(THING_TESTS "build tests" OFF)\nenable_testing()\nadd_library(thing a.c)\n'
        "add_executable(tool tool.c)\nadd_test(NAME first COMMAND tool)\ninstall(TARGETS thing)\n"
    ),
    "tool.c": 'int main(int argc, char **argv) { return !strcmp(argv[1], "--version"); }\n',
    "a.c": "int a;\n",
}


LINTED = "jobs:\n  lint:\n    steps:\n      - run: ansible-lint playbook.yml\n"


class TestFillers:
    def test_what_no_set_up_can_mend_is_no_goal(self, tmp_path: Path) -> None:
        files = {
            ".vscode/launch.json": "{\n  // a comment\n}\n",
            "data.json": "{}",
            "old.py": "print 'hello'\n",
            "new.py": "print('hello')\n",
        }
        commands = [candidate.goal.command for candidate in fillers(_tree(tmp_path, files))]
        assert [command for command in commands if not command.startswith("git ")] == [
            "python3 -m py_compile new.py",
            "python3 -m json.tool data.json /dev/null",
        ]


class TestGoalSetter:
    def test_ten_usable_goals_with_evidence(self, tmp_path: Path, sandbox: Sandbox) -> None:
        proposal = RulesGoalSetter(Settings()).propose(REPOSITORY, _tree(tmp_path, CMAKE), sandbox)
        assert check_proposal(proposal.goals, 10) == ""
        commands = [goal.command for goal in proposal.goals]
        assert "ctest --test-dir build --output-on-failure" in commands
        assert "./build/tool --version" in commands
        assert "cmake -S . -B build -DTHING_TESTS=ON" in commands
        suite = next(goal for goal in proposal.goals if goal.command.startswith("ctest --test-dir build --out"))
        assert suite.min_pass_rate == 0.9
        assert suite.evidence is not None
        assert (suite.evidence.path, suite.evidence.line) == ("CMakeLists.txt", 2)
        assert len({goal.category for goal in proposal.goals}) >= 4

    def test_the_same_tree_gives_the_same_goals(self, tmp_path: Path, sandbox: Sandbox) -> None:
        tree = _tree(tmp_path, CMAKE)
        setter = RulesGoalSetter(Settings())
        assert setter.propose(REPOSITORY, tree, sandbox).goals == setter.propose(REPOSITORY, tree, sandbox).goals

    def test_rejected_and_complained_about_goals_are_replaced(self, tmp_path: Path, sandbox: Sandbox) -> None:
        tree = _tree(tmp_path, CMAKE)
        setter = RulesGoalSetter(Settings())
        first = setter.propose(REPOSITORY, tree, sandbox).goals
        trivial = GoalResult(
            goal=first[0],
            result=CommandResult(command=first[0].command, exit_code=0, output=""),
            judgement=Judgement(verdict=Verdict.MATCHES, reason=""),
        )
        second = setter.propose(
            REPOSITORY, tree, sandbox, rejected=[trivial], complaint=f"Goal 2 ({first[1].command}): bad"
        ).goals
        commands = {goal.command for goal in second}
        assert first[0].command not in commands
        assert first[1].command not in commands
        assert len(second) == 10

    def test_unvouched_commands_stay_behind_where_the_category_is_covered(
        self, tmp_path: Path, sandbox: Sandbox
    ) -> None:
        tree = _tree(tmp_path, {**CMAKE, "README.md": "```\nmake test\n```\n"})
        commands = [goal.command for goal in RulesGoalSetter(Settings()).propose(REPOSITORY, tree, sandbox).goals]
        assert "make test" not in commands

    def test_targets_that_do_everything_wait_behind_those_that_do_one_thing(self, tmp_path: Path) -> None:
        makefile = "ci: all\n\nall: assets\n\nassets:\n\t./assets.pl\n\nserve:\n\t./serve.pl\n"
        tree = _tree(tmp_path, {"Makefile": makefile, "assets.pl": "print 1;\n"})
        context = Context(repository=REPOSITORY, tree=tree, findings=collect(tree))
        weights = {item.goal.command: item.weight for item in _of_evidence(context, set())}
        assert "make serve" not in weights
        assert weights["make ci"] == weights["make all"] < weights["make assets"]

    def test_too_few_goals_is_an_error(self, tmp_path: Path, sandbox: Sandbox) -> None:
        tree = _tree(tmp_path, CMAKE)
        settings = Settings().model_copy(
            update={"verification": Settings().verification.model_copy(update={"goals": 200})}
        )
        with pytest.raises(BadProposal, match="of 200"):
            RulesGoalSetter(settings).propose(REPOSITORY, tree, sandbox)

    def test_git_and_syntax_alone_are_no_goals(self, tmp_path: Path, sandbox: Sandbox) -> None:
        for language, name in (("scala", "build.sbt"), ("c#", "App.csproj")):
            suffix = {"scala": "scala", "c#": "cs"}[language]
            files = {name: "", f"src/A.{suffix}": "A\n", f"src/B.{suffix}": "B\n", "x.json": "{}", "x.sh": "ls\n"}
            with pytest.raises(BadProposal, match=f"how {language} is built"):
                RulesGoalSetter(Settings()).propose(REPOSITORY, _tree(tmp_path / suffix, files), sandbox)

    @pytest.mark.parametrize(
        ("files", "reason"),
        [
            ({"README.md": "# List", "logo.svg": "<svg/>"}, "no code"),
            ({"Python.gitignore": "*.pyc", "C.gitignore": "*.o"}, "no code"),
            ({".bashrc": "", ".vimrc": "", ".gitconfig": "", ".aliases": "", "bootstrap.sh": "x"}, "personal settings"),
            ({"Makefile": "obj-m += x.o\n", "x.c": "int x;"}, "kernel module"),
            ({"App.sln": "", "App/App.vcxproj": "", "App/main.cpp": "int x;"}, "Windows only"),
            ({"App.xcodeproj/project.pbxproj": "", "App/main.swift": "x"}, "Apple's tools"),
            ({"blink.ino": "void setup() {}"}, "firmware"),
            ({"a.cu": "x", "b.cuh": "x", "main.cpp": "x", "CMakeLists.txt": "project(x CUDA)"}, "GPU"),
            ({"datapackage.json": "{}", "scripts/get.py": "x", "data/a.csv": "1"}, "data set"),
            ({**{f"doc{n}.md": "x" for n in range(9)}, "tools/build.sh": "x"}, "documents"),
        ],
    )
    def test_nothing_to_set_up(self, tmp_path: Path, sandbox: Sandbox, files: dict[str, str], reason: str) -> None:
        with pytest.raises(NothingToSetUp, match=reason):
            RulesGoalSetter(Settings()).propose(REPOSITORY, _tree(tmp_path, files), sandbox)

    @pytest.mark.parametrize(
        "files",
        [
            {"App.sln": "", "App.vcxproj": "", "CMakeLists.txt": "project(x C)\n", "main.c": "int x;"},
            {"deploy.sh": "#!/bin/sh\nls\n"},
            {"CMakeLists.txt": "project(x C)\n", "a.c": "int x;", "b.c": "int y;", "fast.cu": "x"},
            {"run": "#!/bin/bash\nls\n"},
            {".github/workflows/ci.yml": LINTED, "playbook.yml": "- hosts: all\n", "A.scala": "object A\n"},
        ],
    )
    def test_what_may_be_set_up_is_proposed_for(self, tmp_path: Path, sandbox: Sandbox, files: dict[str, str]) -> None:
        assert len(RulesGoalSetter(Settings()).propose(REPOSITORY, _tree(tmp_path, files), sandbox).goals) == 10


def _candidate(command: str, category: Category, weight: int, key: str = "") -> Candidate:
    return Candidate(goal=Goal(command=command, description="x", category=category), weight=weight, key=key)


class TestChoice:
    def test_equal_keys_and_commands_are_one_goal(self) -> None:
        chosen = choose(
            [
                _candidate("a  b", Category.BUILD, 10),
                _candidate("a b", Category.BUILD, 20),
                _candidate("c", Category.BUILD, 5, key="k"),
                _candidate("d", Category.BUILD, 6, key="k"),
            ],
            10,
        )
        assert [item.goal.command for item in chosen] == ["a b", "d"]

    def test_no_category_is_crowded_out(self) -> None:
        tests = [_candidate(f"pytest tests/test_{n}.py", Category.TEST, 90) for n in range(20)]
        chosen = choose([*tests, _candidate("tool --help", Category.RUN, 31)], 10)
        assert len(chosen) == 10
        assert "tool --help" in [item.goal.command for item in chosen]

    def test_a_doubtful_second_suite_comes_last(self) -> None:
        suites = [_candidate("pytest", Category.TEST, 95), _candidate("make check", Category.TEST, 40)]
        others = [_candidate(f"tool{n} x", Category.OTHER, 1) for n in range(9)]
        assert "make check" not in [item.goal.command for item in choose([*suites, *others], 10)]


class Language:
    """An ecosystem whose plan is given."""

    name = "language"
    tools = frozenset({"lang"})
    suffixes = frozenset({".lang"})

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def detect(self, tree: Tree) -> bool:
        return bool(tree.files)

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        return ()

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        return self._plan


class Fixes:
    """A repairer that answers outputs with given repairs."""

    name = "fixes"

    def __init__(self, repairs: dict[str, Sequence[Repair]]) -> None:
        self._repairs = repairs

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        return [repair for text, found in self._repairs.items() if text in failure.output for repair in found]


def _ran(call: Call, command: str) -> bool:
    return command in call.sandbox.commands


def _install(
    root: Path,
    plan: Plan,
    responses: Responses,
    repairs: dict[str, Sequence[Repair]] | None = None,
    *,
    limits: Limits | None = None,
    targets: Sequence[str] = ("lang test",),
) -> tuple[SetupReport, list[str]]:
    provider = ScriptedProvider(responses)
    goals = tuple(Goal(command=command, description="runs the tests; 3 tests pass") for command in targets)
    installer = RulesInstaller(
        Settings(), ScriptedJudge(), ecosystems=[Language(plan)], repairers=[Fixes(repairs or {})]
    )
    with provider.open(SandboxSpec(image=provider.ensure_base().reference)) as sandbox:
        report = installer.install(
            Assignment(repository=REPOSITORY, targets=goals, limits=limits or Limits()),
            _tree(root, {"a.lang": "x"}),
            sandbox,
        )
    commands = provider.opened[0].commands
    if report.stop is StopReason.DONE:  # what the targets rewrote is put back before the end
        assert "git checkout" in commands.pop()
    return report, commands


class TestInstaller:
    def test_plan_then_targets(self, tmp_path: Path) -> None:
        plan = Plan(steps=(Step(command="lang install"),), env={"LANG_HOME": "/opt/lang"})
        report, commands = _install(tmp_path, plan, {})
        assert report.stop is StopReason.DONE
        assert commands == ["lang install", "lang test"]
        assert report.recipe.env == {"LANG_HOME": "/opt/lang"}

    def test_search_paths_of_several_plans_are_joined(self) -> None:
        assert _joined("/opt/node/bin:/usr/bin:/bin", "/opt/venv/bin:/usr/bin:/bin") == (
            "/opt/node/bin:/opt/venv/bin:/usr/bin:/bin"
        )
        assert _joined("/opt/venv/bin:/usr/bin", "") == "/opt/venv/bin:/usr/bin"

    def test_failing_step_is_repaired_and_run_again(self, tmp_path: Path) -> None:
        responses: Responses = {
            "lang install": lambda call: 0 if _ran(call, "get header") else (1, "header is missing")
        }
        repair = Repair(
            key="header",
            why="It is missing.",
            commands=("get header",),
            mocks=(Mock(kind=MockKind.FILE, path="x", reason="made up"),),
            lesson="needs the header",
        )
        report, commands = _install(
            tmp_path, Plan(steps=(Step(command="lang install"),)), responses, {"header": [repair]}
        )
        assert commands == ["lang install", "get header", "lang install", "lang test"]
        assert report.stop is StopReason.DONE
        assert report.lessons == ("needs the header",)
        assert [mock.path for mock in report.mocks] == ["x"]

    def test_a_repair_is_never_applied_twice(self, tmp_path: Path) -> None:
        repair = Repair(key="k", why="w", commands=("fix",))
        report, commands = _install(tmp_path, Plan(steps=()), {"lang test": (1, "broken")}, {"broken": [repair]})
        assert report.stop is StopReason.GAVE_UP
        assert commands.count("fix") == 1
        assert "lang test" in report.summary

    def test_only_targets_from_before_a_repair_run_again(self, tmp_path: Path) -> None:
        responses: Responses = {"lang b": lambda call: 0 if _ran(call, "fix") else (1, "broken")}
        repair = Repair(key="k", why="w", commands=("fix",))
        report, commands = _install(
            tmp_path, Plan(steps=()), responses, {"broken": [repair]}, targets=("lang a", "lang b", "lang c")
        )
        assert report.stop is StopReason.DONE
        assert commands == ["lang a", "lang b", "fix", "lang b", "lang c", "lang a"]

    def test_repairs_that_change_nothing_end_as_a_loop(self, tmp_path: Path) -> None:
        repairs = [Repair(key=f"k{n}", why="w", commands=(f"fix {n}",)) for n in range(20)]
        report, commands = _install(tmp_path, Plan(steps=()), {"lang test": (1, "broken at 0x1f")}, {"broken": repairs})
        assert report.stop is StopReason.LOOP
        assert sum(command.startswith("fix") for command in commands) <= 20

    def test_replacement_serves_steps_only(self, tmp_path: Path) -> None:
        responses: Responses = {"lang install": (1, "old"), "lang test": (1, "old")}
        repairs = [Repair(key=f"r{n}", why="w", replacement="lang install --old") for n in range(2)]
        report, commands = _install(tmp_path, Plan(steps=(Step(command="lang install"),)), responses, {"old": repairs})
        assert commands[:2] == ["lang install", "lang install --old"]
        assert report.stop is StopReason.GAVE_UP
        assert commands.count("lang test") == 1

    def test_fallback_after_repairs_and_targets_after_a_failed_plan(self, tmp_path: Path) -> None:
        plan = Plan(
            steps=(
                Step(command="one", fallback=("one --simple",)),
                Step(command="two"),
                Step(command="three"),
            )
        )
        report, commands = _install(tmp_path, plan, {"one": 1, "two": 1})
        assert commands == ["one", "one --simple", "two", "lang test"]
        assert report.lessons == ("step failed: two",)

    def test_optional_steps_do_not_end_the_plan(self, tmp_path: Path) -> None:
        plan = Plan(steps=(Step(command="one", optional=True), Step(command="two")))
        _, commands = _install(tmp_path, plan, {"one": 1})
        assert commands == ["one", "two", "lang test"]

    @pytest.mark.parametrize("exhausted", [True, False])
    def test_exhausted_follows_the_plans(self, tmp_path: Path, exhausted: bool) -> None:
        report, _ = _install(tmp_path, Plan(steps=(), exhausted=exhausted), {"lang test": 1})
        assert (report.stop, report.exhausted) == (StopReason.GAVE_UP, exhausted)

    def test_time_is_bounded(self, tmp_path: Path) -> None:
        report, commands = _install(
            tmp_path, Plan(steps=(Step(command="one"),)), {}, limits=Limits(attempt_seconds=0.5)
        )
        assert report.stop is StopReason.BUDGET
        assert commands == []
        assert report.trajectory.messages

    def test_trajectory_pairs_every_call_with_its_bounded_result(self, tmp_path: Path) -> None:
        plan = Plan(steps=(Step(command="lang install", why="The manifest says so."),), env={"A": "1"})
        report, _ = _install(tmp_path, plan, {"lang install": (0, "x" * 100_000)})
        messages = report.trajectory.messages
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert [call["id"] for call in calls] == results
        assert {call["function"]["name"] for call in calls} == {"set_env", "bash", "submit"}
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
        assert max(len(message["content"] or "") for message in messages) < 10_000
        assert any(message["content"] == "The manifest says so." for message in messages)
        offered = {tool["function"]["name"] for tool in report.trajectory.tools}
        assert {call["function"]["name"] for call in calls} <= offered

    def test_system_packages_of_the_repository_come_first(self, tmp_path: Path) -> None:
        tree = {"Dockerfile": "FROM debian\nRUN apt-get install -y libfrob-dev git\n"}
        _tree(tmp_path, tree)
        _, commands = _install(tmp_path, Plan(steps=(Step(command="one"),)), {})
        assert "-e libfrob-dev" in commands[0]
        assert "-e git" not in commands[0]


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("npm ci", True),
        ("npm install --ignore-scripts", True),
        ("pip install -r requirements.txt", True),
        ("poetry install", False),
        ("npm install --save thing", False),
        ("pip install thing", False),
    ],
)
def test_only_set_up_of_the_project_itself_is_taken_from_documents(
    tmp_path: Path, sandbox: Sandbox, command: str, kept: bool
) -> None:
    files = {"README.md": f"```\n{command}\n```\n", "main.sh": "ls\n"}
    commands = [
        goal.command for goal in RulesGoalSetter(Settings()).propose(REPOSITORY, _tree(tmp_path, files), sandbox).goals
    ]
    assert (command in commands) is kept
