"""Runs whose tests can only fail: what shows that passes were made up, and what does not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autoinstall.controls import Control, find_forgery
from autoinstall.integrity import Violation, ViolationKind
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import Answer, Call, ScriptedProvider
from autoinstall.values import Category, CommandResult, Goal, GoalResult, Judgement, Recipe, TestCounts, Verdict

TESTS = """
import asyncio, pytest
def helper(): return 1
def test_one(): assert helper() == 1
class TestTwo:
    @pytest.mark.parametrize("n", [1, 2])
    def test_two(self, n): assert n
@swallow
def test_guarded(): pass
async def test_later(): pass
def test_yields(): yield 1
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "tests/test_old.py").write_text("print 'Python 2'\n", encoding="utf-8")
    (tmp_path / "thing.py").write_text("def test_of_no_test(): pass\n", encoding="utf-8")
    return tmp_path


def passed(command: str = "python -m pytest", runner: str = "pytest", category: Category = Category.TEST) -> GoalResult:
    goal = Goal(command=command, description="At least 2 tests pass.", category=category)
    judgement = Judgement(verdict=Verdict.MATCHES, reason="", tests=TestCounts(runner=runner, passed=2))
    return GoalResult(
        goal=goal, result=CommandResult(command=command, exit_code=0, output="2 passed"), judgement=judgement
    )


def forgery(
    checkout: Path, respond: Callable[[Call], Answer], result: GoalResult, recipe: Recipe | None = None
) -> tuple[Violation | None, ScriptedProvider]:
    provider = ScriptedProvider({result.goal.command: respond})
    spec = SandboxSpec(image=provider.ensure_base().digest, recipe=recipe or Recipe(), purpose="control")
    return find_forgery(provider, spec, checkout, [result]), provider


@pytest.mark.parametrize(
    ("output", "forged"),
    [
        ("PASSED tests/test_a.py::test_one\nPASSED tests/test_a.py::TestTwo::test_two[1]\n2 passed in 0.1s", True),
        ("PASSED test_a.py::test_one\n1 passed in 0.1s", True),
        ("\x1b[32mPASSED\x1b[0m tests/test_a.py::\x1b[1mtest_one\x1b[0m\n1 passed in 0.1s", True),
        ("FAILED tests/test_a.py::test_one - AssertionError\n2 failed in 0.1s", False),
        ("PASSED tests/test_a.py::test_guarded\n1 passed in 0.1s", False),
        ("PASSED tests/test_a.py::test_later\nPASSED tests/test_a.py::test_one\n2 passed in 0.1s", False),
        ("PASSED tests/test_a.py::test_yields\n1 passed in 0.1s", False),
        ("PASSED docs/api.py::api.f\nPASSED docs/b.py::b.g\n2 passed in 0.1s", False),
        ("PASSED site-packages/thing/tests/test_b.py::test_one\n1 passed in 0.1s", False),
        ("no tests ran in 0.1s", False),
    ],
)
def test_what_passes_without_being_able_to_is_forged(checkout: Path, output: str, *, forged: bool) -> None:
    violation, provider = forgery(checkout, lambda call: output, passed())
    assert (violation is not None) is forged
    assert len(provider.opened) == 1
    if violation is not None:
        assert violation.kind is ViolationKind.FORGED
        assert violation.path == "python -m pytest"


@pytest.mark.parametrize(
    ("command", "forged"),
    [
        ("python -m pytest", True),
        ("uv run pytest -q tests", True),
        ("tox -e py", True),
        ("pytest --pyargs thing", False),
        ("cd /tmp && pytest", False),
        ("python -c 'import thing; thing.test()'", False),
    ],
)
def test_a_runner_that_passes_with_nothing_left_is_none(checkout: Path, command: str, *, forged: bool) -> None:
    violation, provider = forgery(checkout, lambda call: "2 passed in 0.1s", passed(command))
    assert (violation is not None) is forged
    assert len(provider.opened) == 1 + forged


def test_silence_alone_is_no_proof(checkout: Path) -> None:
    answers: Iterator[Answer] = iter(["2 passed in 0.1s", (4, "ERROR: pyproject.toml: Invalid statement")])
    violation, provider = forgery(checkout, lambda call: next(answers), passed())
    assert violation is None
    assert len(provider.opened) == 2


@pytest.mark.parametrize(
    "result",
    [passed(runner="ctest"), passed().model_copy(update={"judgement": Judgement(verdict="mismatch", reason="")})],
)
def test_nothing_is_run_where_there_is_nothing_to_ask(checkout: Path, result: GoalResult) -> None:
    violation, provider = forgery(checkout, lambda call: "2 passed in 0.1s", result)
    assert violation is None
    assert not provider.opened


def test_a_commit_without_tests_has_no_control(tmp_path: Path) -> None:
    (tmp_path / "thing.py").write_text("x = 1\n", encoding="utf-8")
    assert not Control(tmp_path).possible
    assert forgery(tmp_path, lambda call: "2 passed in 0.1s", passed())[0] is None


def test_the_tests_are_made_to_fail_and_the_passes_asked_for(checkout: Path) -> None:
    seen: list[Call] = []

    def respond(call: Call) -> Answer:
        seen.append(call)
        return (1, "2 failed in 0.1s")

    violation, _ = forgery(checkout, respond, passed(), Recipe(env={"PYTEST_ADDOPTS": "-q"}))
    assert violation is None
    assert seen[0].env["PYTEST_ADDOPTS"] == "-q -rp --tb=no"
    made = seen[0].sandbox.files["/workspace/tests/test_a.py"].content.decode()
    assert made.count("raise AssertionError") == 5
    assert "return 1" in made
    assert "/workspace/thing.py" not in seen[0].sandbox.files
