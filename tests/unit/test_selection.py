# ruff: noqa: E501 - tables of cases are easier to read in one line each
import pytest

from autoinstall.selection import breadth, select, select_all
from autoinstall.values import Category, CommandResult, Goal, GoalResult, Judgement, Verdict

COMMIT = "a" * 40


def observed(command: str, category: Category, verdict: Verdict = Verdict.MISMATCH) -> GoalResult:
    goal = Goal(command=command, description="shows what it should show", category=category)
    result = CommandResult(command=command, exit_code=1, output="")
    return GoalResult(goal=goal, result=result, judgement=Judgement(verdict=verdict, reason="baseline"))


TEN = [
    observed("pip install -e .", Category.SETUP, Verdict.UNKNOWN),
    observed("pytest", Category.TEST),
    observed("pytest tests/test_a.py", Category.TEST),
    observed("pytest --collect-only", Category.TEST),
    observed("python -m build", Category.BUILD),
    observed("tool --help", Category.RUN),
    observed("tool run", Category.RUN),
    observed("ruff check .", Category.LINT),
    observed("python -c 'import tool'", Category.OTHER),
    observed("python --version", Category.OTHER, Verdict.MATCHES),
]


def test_the_choice_is_spread_and_takes_the_goal_that_says_most() -> None:
    selection = select(TEN, "https://x/y", COMMIT, 0, 3)
    chosen = [TEN[index].goal for index in selection.targets]
    assert len({goal.category for goal in chosen}) == 3
    assert "pytest" in {goal.command for goal in chosen}
    assert "tool --help" not in {goal.command for goal in chosen}
    assert selection.trivial == (9,)
    assert selection.enough
    assert selection.needs_setup


def test_the_choice_is_pinned_by_the_seed_and_not_by_the_process() -> None:
    assert select(TEN, "https://x/y", COMMIT, 0, 3) == select(TEN, "https://x/y", COMMIT, 0, 3)
    choices = {select(TEN, "https://x/y", COMMIT, seed, 3).targets for seed in range(20)}
    assert len(choices) > 1
    # A fixed value: another hash or order would silently change every recorded choice.
    assert select(TEN, "https://x/y", COMMIT, 0, 3).targets == PINNED


PINNED = (1, 6, 7)


def test_set_up_goals_fill_up_when_asked_for_more_than_there_is() -> None:
    goals = [TEN[0], observed("npm ci", Category.SETUP, Verdict.UNKNOWN), TEN[1], TEN[9]]
    selection = select(goals, "r", COMMIT, 0, 3)
    assert 2 in selection.targets
    assert sum(goals[index].goal.category is Category.SETUP for index in selection.targets) == 1
    assert 3 in selection.targets
    assert not selection.enough


def test_a_repository_that_needs_no_set_up() -> None:
    goals = [
        observed("shellcheck x.sh", Category.LINT, Verdict.MATCHES),
        observed("./x.sh --help", Category.RUN, Verdict.MATCHES),
        observed("bats tests", Category.TEST, Verdict.MATCHES),
        observed("make", Category.BUILD, Verdict.MATCHES),
    ]
    selection = select(goals, "r", COMMIT, 0, 3)
    assert selection.targets == (1, 2, 3)
    assert not selection.needs_setup
    assert not selection.enough


def test_undecided_goals_are_not_trivial() -> None:
    selection = select([observed("make test", Category.TEST, Verdict.UNKNOWN)] * 3, "r", COMMIT, 0, 3)
    assert selection.enough
    assert selection.needs_setup


def test_fewer_goals_than_targets() -> None:
    assert select([TEN[1]], "r", COMMIT, 0, 3).targets == (0,)
    assert select([], "r", COMMIT, 0, 3).targets == ()


def test_given_goals_are_all_targets() -> None:
    selection = select_all(TEN[1:3])
    assert selection.targets == (0, 1)
    assert selection.enough
    assert not select_all([TEN[9]]).needs_setup


@pytest.mark.parametrize(
    ("command", "expected"),
    [("pytest", 2), ("pytest tests/", 2), ("python -m pytest -x", 2), ("pytest tests/test_a.py", 1), ("pytest -k name", 1), ("ctest -R unit", 1),
     ("go test ./...", 2), ("go test ./lib", 1), ("go test -run '^TestA$' .", 1), ("cargo test --workspace", 2), ("cargo test --doc", 1),
     ("cargo test --package a", 1), ("mvn -B test", 2), ("mvn -B test -Dtest=ATest", 1),
     ("pytest --collect-only", 0), ("npm test", 2), ("npx jest src/a", 1), ("pytest --version", 0)],
)  # fmt: skip
def test_breadth(command: str, expected: int) -> None:
    assert breadth(Goal(command=command, description="", category=Category.TEST)) == expected
