import pytest

from autoinstall.agents.rules.judge import RulesJudge, combine
from autoinstall.values import Category, CommandResult, Goal, Judgement, Verdict

MATCHES, MISMATCH, UNKNOWN = Verdict.MATCHES, Verdict.MISMATCH, Verdict.UNKNOWN


def judge(
    description: str,
    output: str,
    *,
    category: Category = Category.TEST,
    code: int = 0,
    rate: float = 1.0,
    codes: tuple[int, ...] = (0,),
    **result: object,
) -> Judgement:
    goal = Goal(command="make check", description=description, category=category, exit_codes=codes, min_pass_rate=rate)
    observed = CommandResult.model_validate({"command": goal.command, "exit_code": code, "output": output, **result})
    return RulesJudge().judge(goal, observed)


@pytest.mark.parametrize(
    ("description", "output", "code", "verdict"),
    [
        ("All tests pass", "12 passed in 0.1s", 0, MATCHES),
        ("All tests pass", "12 passed in 0.1s", 1, MISMATCH),
        ("All tests pass", "1 failed, 11 passed in 0.1s", 0, MISMATCH),
        ("All tests pass", "no tests ran in 0.1s", 0, MISMATCH),
        ("All tests pass", "everything is well", 0, UNKNOWN),
        ("All tests pass", "", 0, UNKNOWN),
        ('The suite ends with "all is well"', "all is well", 0, MATCHES),
        ("The suite prints nothing when all is well", "", 0, MATCHES),
        ("At least 95% of the tests pass", "1 failed, 99 passed in 0.1s", 1, MATCHES),
        ("At least 95% of the tests pass", "10 failed, 90 passed in 0.1s", 1, MISMATCH),
        ("At least 95% of the tests pass", "99 passed in 0.1s\nSegmentation fault", 139, MISMATCH),
        ("At least 95% of the tests pass", "99 passed in 0.1s", 1, MISMATCH),
        ("The tests are collected", "12 tests collected in 0.1s", 0, MATCHES),
        ("The tests are collected", "no tests collected in 0.1s", 5, MISMATCH),
        ("works", "12 passed in 0.1s", 0, MISMATCH),
        ("", "12 passed in 0.1s", 0, MISMATCH),
    ],
)
def test_test_goals(description: str, output: str, code: int, verdict: Verdict) -> None:
    judgement = judge(description, output, code=code)
    assert judgement.verdict is verdict, judgement.reason
    assert judgement.reason.endswith((".", "…")) or "\n" not in judgement.reason


@pytest.mark.parametrize(
    ("description", "output", "verdict"),
    [
        ("The library is compiled and linked", "cc -c a.c", MATCHES),
        ("Shows version 1.2.3 of the tool", "tool 1.2.3", MATCHES),
        ("Shows version 1.2.3 of the tool", "tool 1.2.2", MISMATCH),
        ("Shows the usage of the tool", "bash: line 1: tool: command not found", MISMATCH),
    ],
)
def test_other_goals(description: str, output: str, verdict: Verdict) -> None:
    assert judge(description, output, category=Category.RUN).verdict is verdict


def test_time_and_memory_come_before_the_output() -> None:
    slow = judge("All tests pass", "12 passed in 0.1s", timed_out=True, duration=900.0)
    full = judge("All tests pass", "12 passed in 0.1s", out_of_memory=True)
    assert (slow.verdict, full.verdict) == (MISMATCH, MISMATCH)
    assert "limit" in slow.reason
    assert "memory" in full.reason


def test_a_linter_may_exit_with_what_it_found() -> None:
    output = "a.py:1:1: F401 unused import\nFound 1 error."
    assert judge("Lists the style violations", output, category=Category.LINT, code=1, codes=(0, 1)).verdict is MATCHES


def test_a_part_of_the_tests_is_counted_whatever_the_goal_is_about() -> None:
    description = "Runs the examples; at least 50% of the tests pass"
    assert judge(description, "", category=Category.RUN, rate=0.5).verdict is UNKNOWN
    assert judge(description, "7 passed and 1 failed.", category=Category.RUN, rate=0.5).verdict is MATCHES
    assert judge(description, "1 passed and 7 failed.", category=Category.RUN, rate=0.5).verdict is MISMATCH


def test_what_may_be_in_the_dropped_part_is_unknown() -> None:
    assert judge('Prints "ready"', "head … tail", category=Category.RUN, dropped_bytes=10_000_000).verdict is UNKNOWN


def test_counts_and_failed_names_are_recorded() -> None:
    output = "FAILED tests/a.py::test_x - ValueError\n1 failed, 99 passed in 0.1s"
    judgement = judge("All tests pass", output, code=1, rate=0.95)
    assert judgement.verdict is MATCHES
    assert judgement.tests is not None
    assert judgement.tests.failed_names == ("tests/a.py::test_x",)


@pytest.mark.parametrize(
    ("rules", "model", "expected"),
    [
        (MATCHES, MATCHES, MATCHES),
        (MATCHES, MISMATCH, MISMATCH),
        (MATCHES, UNKNOWN, UNKNOWN),
        (MISMATCH, MATCHES, MISMATCH),
        (UNKNOWN, MATCHES, UNKNOWN),
    ],
)
def test_a_model_never_accepts_alone(rules: Verdict, model: Verdict, expected: Verdict) -> None:
    combined = combine(Judgement(verdict=rules, reason="rules"), Judgement(verdict=model, reason="model"))
    assert combined.verdict is expected
