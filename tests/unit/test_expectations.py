import pytest

from autoinstall.outputs.comparison import has_token, unmet
from autoinstall.outputs.expectations import is_trivial, read_requirements, required_pass_rate
from autoinstall.outputs.summaries import summarise
from autoinstall.values import Goal


def fulfils(description: str, output: str, command: str = "tool --run") -> bool:
    goal = Goal(command=command, description=description)
    requirements = read_requirements(goal)
    return not unmet(requirements, output, summarise(output), required_pass_rate(goal, requirements))


@pytest.mark.parametrize(
    ("description", "fitting", "other"),
    [
        ('Prints "hello world".', "\x1b[1mhello\x1b[0m\n   world", "Hello World"),
        ("The usage text starts with `usage: tool`", "usage:  tool [-h]", "error: no such option"),
        ("It shows “done … ok” at the end", "done in 3 s, ok", "ok, done"),
        ('Prints "ready" without a "Traceback"', "ready", "ready\nTraceback (most recent call last):"),
        ('Prints no "warning:" lines and shows "built"', "built", "warning: x\nbuilt"),
        ("Shows version 1.2.3 of the tool", "tool 1.2.3", "tool 1.2.4"),
        ("Shows version 3.11 of the language", "Python 3.11.4", "Python 3.1.14"),
        ("The answer that is printed is 42", "answer: 42", "answer: 420"),
        ("It writes 1,234 rows into the table", "wrote 1234 rows", "wrote 234 rows"),
        ("At least 5 tests pass", "7 passed in 0.1s", "4 passed in 0.1s"),
        ("More than 5 tests pass", "6 passed in 0.1s", "5 passed in 0.1s"),
        ("About 100 tests pass", "91 passed in 0.1s", "50 passed in 0.1s"),
        ("All 12 tests pass", "12 passed in 0.1s", "11 passed in 0.1s"),
        ("pytest reports 12 passed", "12 passed in 0.1s", "120 passed in 0.1s"),
        ("pytest reports 12 passed", "12 passed, 1 xpassed in 0.1s", "11 passed, 2 xpassed in 0.1s"),
        ("pytest reports 13 passed", "12 passed, 1 xpassed in 0.1s", "12 passed, 2 xpassed in 0.1s"),
        (
            "pytest reports 2 skipped",
            "9 passed, 2 skipped, 1 xfailed in 0.1s",
            "9 passed, 1 skipped, 2 xfailed in 0.1s",
        ),
        ("Runs 4 tests and none of them breaks", "Ran 4 tests in 0.1s\n\nOK", "Ran 5 tests in 0.1s\n\nOK"),
        ("The linter reports 0 errors in the sources", "All checks passed", "Found 3 errors."),
        ("The checker prints the count 0 and names no file", "0", "17"),
        ("The checker prints 0 when all words are right", "0", ""),
        ("Lists at least 3 lines of commands", "a\nb\nc", "a\nb"),
        ("Counts at least 10 files in the index", "indexed 11 files", "indexed 9 files"),
        ("The script prints nothing when all is well", "", "warning"),
        ("Coverage is shown as 85%", "TOTAL 85%", "TOTAL 84%"),
        ("8 tests pass, as counted by the script", "checked 8 things", "checked 9 things"),
    ],
)
def test_requirements_of_a_description(description: str, fitting: str, other: str) -> None:
    assert fulfils(description, fitting)
    assert not fulfils(description, other)


@pytest.mark.parametrize(
    "description",
    [
        "The library is built and exits with code 0",
        "Ends with exit status 0 or 1 after linting the sources",
        "The build of the library takes about 30 seconds",
        "A server answers on port 8080 for the request",
        "1. the sources are compiled",
        "Compiles the sources as C++17 for x86_64 with utf-8",
        "Checks the sources on Python 3",
        "`tool --run` compiles the sources",
        "`tool` compiles all the sources",
        "Compiles the sources for the 2nd stage",
    ],
)
def test_what_is_no_requirement(description: str) -> None:
    assert fulfils(description, "compiled")


@pytest.mark.parametrize(
    "description",
    ["", "works", "ok", "It works fine.", "Exits successfully without errors", "exit code 0", "success!", "it runs"],
)
def test_a_trivial_description_matches_nothing(description: str) -> None:
    assert is_trivial(description)
    assert not fulfils(description, "12 passed in 0.1s")


@pytest.mark.parametrize(("passed", "fits"), [(990, True), (1000, True), (1005, True), (985, False), (1020, False)])
def test_a_tolerance_leaves_room_on_both_sides_of_an_exact_count(passed: int, fits: bool) -> None:
    goal = Goal(command="pytest", description="1000 tests pass", min_pass_rate=0.99)
    output = f"==== {passed} passed in 3s ===="
    assert (not unmet(read_requirements(goal), output, summarise(output), 0.99)) is fits
    exact = read_requirements(goal.model_copy(update={"min_pass_rate": 1.0}))
    assert (not unmet(exact, output, summarise(output))) is (passed == 1000)


@pytest.mark.parametrize("description", ["All tests pass", "The package is built", 'Prints "ok"', "prints 42"])
def test_a_short_description_may_still_say_something(description: str) -> None:
    assert not read_requirements(Goal(command="x", description=description)).trivial


@pytest.mark.parametrize(
    ("description", "given", "rate"),
    [
        ("At least 95% of the tests pass", 1.0, 0.95),
        ("At least 95% of the tests pass", 0.9, 0.95),
        ("At least 80 percent of tests pass", 0.9, 0.9),
        ("100% of the tests pass", 0.9, 1.0),
        ("All tests pass", 0.9, 0.9),
        ("All tests pass with 80% coverage", 1.0, 1.0),
    ],
)
def test_the_stricter_tolerance_applies(description: str, given: float, rate: float) -> None:
    goal = Goal(command="pytest", description=description, min_pass_rate=given)
    assert required_pass_rate(goal, read_requirements(goal)) == rate


@pytest.mark.parametrize(
    ("text", "token", "there"),
    [
        ("5", "5", True),
        ("15", "5", False),
        ("5.2", "5", False),
        ("v5", "5", True),
        ("x5", "5", False),
        ("5.", "5", True),
    ],
)
def test_tokens(text: str, token: str, there: bool) -> None:
    assert has_token(text, token) is there


def test_a_quotation_that_is_in_the_command_as_an_argument_is_required() -> None:
    assert not fulfils('Prints "hello"', "", command="python -c 'print(\"hello\")'")
