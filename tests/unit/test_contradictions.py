import pytest

from autoinstall.outputs.contradictions import contradictions, signs
from autoinstall.outputs.summaries import summarise
from autoinstall.values import Category, CommandResult, Goal

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    main()\nValueError: bad value'


def against(
    output: str, command: str = "tool run", category: Category = Category.RUN, code: int = 0, rate: float = 1.0
) -> tuple[str, ...]:
    goal = Goal(command=command, description="The tool shows its table", category=category, exit_codes=(0, 1))
    result = CommandResult(command=command, exit_code=code, output=output)
    return contradictions(goal, result, summarise(output), rate)


@pytest.mark.parametrize(
    ("output", "category"),
    [
        (TRACEBACK, Category.RUN),
        (f"starting\n{TRACEBACK}\nwith a second line", Category.RUN),
        ("bash: line 1: tool: command not found\n" + "other output\n" * 20, Category.RUN),
        ("sh: 1: helper: not found", Category.RUN),
        ("bash: ./tool: No such file or directory", Category.RUN),
        ("/usr/bin/python3: No module named pytest", Category.TEST),
        ("python: can't open file '/workspace/x.py': [Errno 2] No such file or directory", Category.RUN),
        ("ModuleNotFoundError: No module named 'yaml'", Category.RUN),
        ("Error: Cannot find module 'express'\nRequire stack:\n- /workspace/a.js", Category.RUN),
        ('npm ERR! Missing script: "test"', Category.TEST),
        ("npm ERR! code ENOENT\nnpm ERR! errno -2", Category.BUILD),
        ("make: *** [Makefile:3: all] Error 2", Category.BUILD),
        ("ninja: build stopped: subcommand failed.", Category.BUILD),
        ("Segmentation fault (core dumped)", Category.RUN),
        ("error: externally-managed-environment", Category.BUILD),
        ("./tool: error while loading shared libraries: libx.so.1: cannot open shared object file", Category.RUN),
        ("1 failed, 3 passed in 0.1s", Category.RUN),
        ("no tests ran in 0.01s", Category.TEST),
        ("Ran 0 tests in 0.000s\n\nOK", Category.TEST),
        ("3 skipped in 0.01s", Category.TEST),
        ("no tests collected in 0.01s", Category.TEST),
        ("1 test collected in 0.01s\n4 passed in 0.1s\nINTERNALERROR> KeyError", Category.TEST),
        ("  py311: FAIL code 1 (0.01 seconds)\n  evaluation failed :( (0.05 seconds)", Category.TEST),
        ("ERROR: file or directory not found: tests/x.py", Category.TEST),
        ("Error: no test specified", Category.TEST),
        ("error: failed to run custom build command for `openssl-sys v0.9.1`", Category.LINT),
        (
            (
                "test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\nCaused by:\n"
                "  process didn't exit successfully: `/workspace/target/debug/deps/a-1` (signal: 6, SIGABRT)"
            ),
            Category.TEST,
        ),
        ("error: no such command: `clippy`", Category.LINT),
        ("Error: Could not find or load main class com.example.Main\nCaused by: x", Category.RUN),
        ('Exception in thread "main" java.lang.NoClassDefFoundError: a/B\n\tat a.C.main(C.java:1)', Category.RUN),
        ("# example.com/a\nvet: ./a.go:3:2: could not import example.com/b (x)", Category.LINT),
        ("a.go:3:2: no required module provides package example.com/b; to add it:", Category.LINT),
    ],
)
def test_signs_of_failure_at_exit_code_zero(output: str, category: Category) -> None:
    assert against(output, category=category)


@pytest.mark.parametrize(
    ("output", "category"),
    [
        ("error: expected failure is handled\nERROR root:log.py:3 boom\nall fine", Category.RUN),
        (f"{TRACEBACK}\n" + "\n".join(f"line {number}" for number in range(12)), Category.RUN),
        (f"{TRACEBACK}\n\n12 passed in 0.3s", Category.TEST),
        ("12 passed in 0.3s\nException ignored in: <function x>\n" + TRACEBACK, Category.TEST),
        ("sh: 1: dot: not found\n" + "compiled\n" * 10, Category.BUILD),
        ("ModuleNotFoundError: No module named 'optional'\n5 passed in 0.1s", Category.TEST),
        ("make[1]: *** [x] Error 1 (ignored)", Category.BUILD),
        ("a.js 3:1 x is not defined\n1 error\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno 1", Category.LINT),
        ("a.js 3:1 x is not defined\n ELIFECYCLE  Command failed with exit code 1.", Category.LINT),
        ("npm warn deprecated x@1\nnpm notice", Category.BUILD),
        ("3 tests collected in 0.01s", Category.TEST),
        ("panic: in a test\nok  \texample.com/a\t0.1s", Category.TEST),
        ("Found 0 vulnerabilities", Category.RUN),
        ("ValueError: is what this tool explains", Category.RUN),
    ],
)
def test_what_only_looks_like_failure(output: str, category: Category) -> None:
    assert against(output, category=category) == ()


def test_a_linter_may_find_things() -> None:
    output = "src/a.py:1:1: F401 'os' imported but unused\nFound 1 error."
    assert against(output, "ruff check .", Category.LINT, code=1) == ()


def test_a_linter_that_is_not_there_is_a_failure_at_any_allowed_exit_code() -> None:
    assert against("/opt/venv/bin/python: No module named flake8", "python -m flake8", Category.LINT, code=1)


def test_failures_within_the_tolerance_do_not_contradict() -> None:
    output = "1 failed, 19 passed in 0.1s"
    assert against(output, category=Category.TEST, code=1, rate=0.95) == ()
    assert against(output, category=Category.TEST, code=1, rate=0.96)


def test_the_table_is_sound() -> None:
    assert all(sign.reason and sign.tail >= 0 for sign in signs())
    assert len({sign.pattern.pattern for sign in signs()}) == len(signs())
