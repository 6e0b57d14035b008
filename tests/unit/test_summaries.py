# ruff: noqa: E501 - tables of cases are easier to read in one line each
import re

import pytest

from autoinstall.outputs.summaries import PLAIN, runner_table, summarise, total

STARTS = "============================= test session starts =============================="
PYTEST = """\
============================= test session starts ==============================
platform linux -- Python 3.11.2, pytest-8.3.3, pluggy-1.5.0
rootdir: /workspace
collected 12 items

tests/test_a.py .......F..s                                              [ 91%]
tests/test_b.py E                                                        [100%]

=================================== FAILURES ===================================
_________________________________ test_divide __________________________________
E       ZeroDivisionError: division by zero
=========================== short test summary info ============================
FAILED tests/test_a.py::test_divide[1 - 0] - ZeroDivisionError: division by zero
ERROR tests/test_b.py::test_db - OSError: [Errno 111] Connection refused
======= 1 failed, 9 passed, 1 skipped, 2 warnings, 1 error in 0.34s ============
"""
UNITTEST = """\
test_add (tests.test_calc.CalcTest) ... ok
======================================================================
FAIL: test_sub (tests.test_calc.CalcTest)
----------------------------------------------------------------------
Traceback (most recent call last):
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 10 tests in 0.012s

FAILED (failures=1, errors=2, skipped=3)
"""
JEST = """\
PASS src/a.test.js
FAIL src/b.test.js
  ● math › divides

    expect(received).toBe(expected)

FAIL src/c.test.js
  ● Test suite failed to run

    Cannot find module 'x' from 'src/c.test.js'

Test Suites: 2 failed, 1 passed, 3 total
Tests:       1 failed, 2 skipped, 5 passed, 8 total
Snapshots:   0 total
Time:        1.2 s
Ran all test suites.
"""
VITEST = """\
 ✓ src/a.test.ts (3 tests) 4ms
 FAIL  src/b.test.ts > math > divides
AssertionError: expected 1 to be 2

 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 5 passed | 1 skipped (7)
   Start at  10:00:00
   Duration  512ms
"""
MOCHA = """\

> thing@1.0.0 test
> mocha

  Array
    ✔ works
    1) fails

  5 passing (12ms)
  1 pending
  1 failing

  1) Array
       fails:
     AssertionError
"""
NODE_SPEC = """\
✔ adds (0.5ms)
✖ subtracts (0.3ms)
ℹ tests 5
ℹ suites 1
ℹ pass 4
ℹ fail 1
ℹ cancelled 0
ℹ skipped 0
ℹ todo 0
ℹ duration_ms 60.7
"""
NODE_TAP = """\
TAP version 13
# Subtest: adds
ok 1 - adds
  ---
  duration_ms: 0.5
  ...
# Subtest: subtracts
not ok 2 - subtracts
1..2
# tests 2
# suites 0
# pass 1
# fail 1
# cancelled 0
# skipped 0
# todo 0
# duration_ms 60.7
"""
CTEST = """\
Test project /workspace/build
    Start 1: unit
1/3 Test #1: unit .............................   Passed    0.01 sec
2/3 Test #2: io ...............................***Failed    0.01 sec
67% tests passed, 1 tests failed out of 3

Total Test time (real) =   0.03 sec

The following tests FAILED:
\t  2 - io (Failed)
Errors while running CTest
"""
CTEST_VERBOSE = """\
1: Test command: /workspace/build/unit
1: [==========] Running 4 tests from 1 test suite.
1: [==========] 4 tests from 1 test suite ran. (0 ms total)
1: [  PASSED  ] 4 tests.
1/1 Test #1: unit .............................   Passed    0.01 sec

100% tests passed, 0 tests failed out of 1
"""
AUTOMAKE = """\
PASS: test-a
FAIL: test-b
============================================================================
Testsuite summary for thing 1.0
============================================================================
# TOTAL: 5
# PASS:  3
# SKIP:  1
# XFAIL: 0
# FAIL:  1
# XPASS: 0
# ERROR: 0
============================================================================
"""
MESON = """\
 1/3 unit      OK              0.01s
 2/3 io        FAIL            0.02s   exit status 1

Ok:                 2
Expected Fail:      0
Fail:               1
Unexpected Pass:    0
Skipped:            0
Timeout:            0
"""
GTEST = """\
[==========] Running 4 tests from 2 test suites.
[ RUN      ] A.x
[  FAILED  ] A.x (0 ms)
[==========] 4 tests from 2 test suites ran. (1 ms total)
[  PASSED  ] 3 tests.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.x

 1 FAILED TEST
"""
CMOCKA = """\
[==========] tests: Running 3 test(s).
[ RUN      ] test_one
[       OK ] test_one
[==========] tests: 3 test(s) run.
[  PASSED  ] 2 test(s).
[  FAILED  ] tests: 1 test(s), listed below:
[  FAILED  ] test_two
"""
GO_VERBOSE = """\
=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
--- FAIL: TestB (0.00s)
FAIL
FAIL\texample.com/a\t0.004s
?   \texample.com/b\t[no test files]
FAIL
"""
GO_PLAIN = "ok  \texample.com/a\t0.004s\nok  \texample.com/b\t(cached)\n?   \texample.com/c\t[no test files]\n"
CARGO = """\
running 3 tests
test a ... ok
test b ... FAILED
test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
MAVEN = """\
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in a.ATest
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! -- in a.BTest
[INFO] Results:
[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0
"""
PROVE = """\
t/a.t .. ok
t/b.t .. 1/3
Test Summary Report
-------------------
t/b.t (Wstat: 256 (exited 1) Tests: 3 Failed: 1)
  Failed test:  2
Files=2, Tests=12,  0 wallclock secs ( 0.01 usr +  0.00 sys =  0.01 CPU)
Result: FAIL
"""
REDIS = "[ok]: SET works (1 ms)\n[err]: GET fails in tests/unit/a.tcl\n[ok]: DEL (0 ms)\n!!! WARNING The following tests failed:\n"
PLAYWRIGHT = """\
Running 4 tests using 1 worker
  1 failed
    [chromium] › a.spec.ts:3:1 › logs in ─────────────
  1 skipped
  2 passed (3.2s)
"""
BATS = "1..3\nok 1 a\nnot ok 2 b\nok 3 c # skip no network\n"
STESTR = """\
======
Totals
======
Ran: 13 tests in 0.5 sec.
 - Passed: 11
 - Skipped: 1
 - Expected Fail: 0
 - Unexpected Success: 0
 - Failed: 1
Sum of execute time for each test: 0.5 sec.
"""


@pytest.mark.parametrize(
    ("output", "runner", "passed", "failed", "errors", "skipped"),
    [
        (PYTEST, "pytest", 9, 1, 1, 1),
        ("....F\n1 failed, 4 passed in 1.02s", "pytest", 4, 1, 0, 0),
        (
            f"{STARTS}\n= FAILURES =\n{STARTS}\n== 3 failed in 0.1s ==\n== 1 failed, 9 passed in 2s ==",
            "pytest",
            9,
            1,
            0,
            0,
        ),
        (f"{STARTS}\n== 3 passed in 0.1s ==\n{STARTS}\n== 1 failed in 2s ==", "pytest", 3, 1, 0, 0),
        (f"{STARTS}\nFatal Python error: Aborted\n{STARTS}\n== 2 passed in 2s ==", "pytest", 2, 0, 0, 0),
        ("..s.                                                 [100%]", "pytest", 3, 0, 0, 1),
        ("====== 2 passed, 1 xfailed, 1 xpassed, 3 rerun in 62.01s (0:01:02) ======", "pytest", 3, 0, 0, 1),
        ("============ no tests ran in 0.01s ============", "pytest", 0, 0, 0, 0),
        ("========== 3 skipped in 0.01s ==========", "pytest", 0, 0, 0, 3),
        ("!!!! Interrupted: 2 errors during collection !!!!\n====== 2 errors in 0.52s ======", "pytest", 0, 0, 2, 0),
        (
            "8 workers [52 items]\n\x1b[32m\x1b[32m\x1b[1m52 passed\x1b[0m\x1b[32m in 3.20s\x1b[0m",
            "pytest",
            52,
            0,
            0,
            0,
        ),
        (
            "Results (0.25s):\n       3 passed\n       1 failed\n         - tests/test_x.py:3 test_name",
            "pytest",
            3,
            1,
            0,
            0,
        ),
        ("tests/a.py::x\n\n========= 7 tests collected in 0.01s =========", "pytest --collect-only", 7, 0, 0, 0),
        ("5/7 tests collected (2 deselected) in 0.01s", "pytest --collect-only", 5, 0, 0, 0),
        ("test_a.py::T::test_x[1]\ntest_a.py::y\n\nno tests ran in 0.19 seconds", "pytest --collect-only", 2, 0, 0, 0),
        (
            "<Module 'test_a.py'>\n  <Function 'x'>\n\n=== no tests ran in 0.1 seconds ===",
            "pytest --collect-only",
            1,
            0,
            0,
            0,
        ),
        ("ERROR: not found: a.py::x\n\n=== no tests ran in 0.01s ===", "pytest", 0, 0, 0, 0),
        ("======= 5 tests collected, 1 error in 0.6s =======", "pytest --collect-only", 5, 0, 1, 0),
        (UNITTEST, "unittest", 4, 1, 2, 3),
        ("Ran 3 tests in 0.1s\n\nOK (skipped=1, expected failures=1)", "unittest", 1, 0, 0, 2),
        (
            "Found 4 test(s).\n....\n----------\nRan 4 tests in 0.1s\n\nOK\nDestroying test database",
            "unittest",
            4,
            0,
            0,
            0,
        ),
        ("Ran 12 tests in 0.3s\n\nPASSED (skips=2, successes=10)", "unittest", 10, 0, 0, 2),
        ("Ran 12 tests in 0.3s\n\nFAILED (failures=1, successes=11)", "unittest", 11, 1, 0, 0),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", "unittest", 0, 0, 0, 0),
        ("Ran 5 tests.\n\nOK", "unittest", 5, 0, 0, 0),
        (STESTR, "stestr", 11, 1, 0, 1),
        ("  Ran 9 tests with 1 failures, 0 errors and 2 skipped in 0.1 seconds.", "zope.testrunner", 6, 1, 0, 2),
        (JEST, "jest", 5, 1, 1, 2),
        ("Test Suites: 1 failed, 1 total\nTests:       0 total", "jest", 0, 0, 1, 0),
        (VITEST, "vitest", 5, 1, 0, 1),
        (" Test Files  1 failed (1)\n      Tests  no tests\n", "vitest", 0, 0, 1, 0),
        (MOCHA, "mocha", 5, 1, 0, 1),
        (NODE_SPEC, "node:test", 4, 1, 0, 0),
        (NODE_TAP, "node:test", 1, 1, 0, 0),
        ("1..3\nok 1 a\nok 2 b\nnot ok 3 c\n", "tap", 2, 1, 0, 0),
        ("1..3\nok 1 a\n", "tap", 1, 0, 2, 0),
        ("1..3\nok 1 a\nBail out! no database\n", "tap", 1, 0, 3, 0),
        (BATS, "tap", 1, 1, 0, 1),
        ("ok 1 should be equal\nnot ok 2 b\n\n1..2\n# tests 2\n# pass  1\n# fail  1\n", "tap summary", 1, 1, 0, 0),
        ("1..2\nok 1 a\nok 2 b\n# pass 2\n# skip 0\n# todo 0\n# fail 0\n", "tap summary", 2, 0, 0, 0),
        ("Suites:   1 passed, 1 of 1 completed\nAsserts:  5 passed, of 5\n", "node-tap", 5, 0, 0, 0),
        ("  ✔ a\n  ─\n\n  5 tests passed\n  1 test skipped\n", "ava", 5, 0, 0, 1),
        ("  ✘ [fail]: b\n  ─\n\n  1 test failed\n  1 uncaught exception\n", "ava", 0, 1, 1, 0),
        ("7 specs, 1 failure, 1 pending spec\nFinished in 0.01 seconds", "jasmine", 5, 1, 0, 1),
        (
            "Chrome 90 (Linux): Executed 3 of 5 SUCCESS\nChrome 90 (Linux): Executed 5 of 5 (1 FAILED) (0.1 secs)",
            "karma",
            4,
            1,
            0,
            0,
        ),
        ("  Total:     5\n  Passed:    4\n  Skipped:   0\n  Duration:  0.1ms", "uvu", 4, 1, 0, 0),
        (PLAYWRIGHT, "playwright", 2, 1, 0, 1),
        ("ok | 5 passed | 1 failed (12ms)", "deno", 5, 1, 0, 0),
        (" 5 pass\n 1 fail\n 10 expect() calls", "bun", 5, 1, 0, 0),
        (CTEST, "ctest", 2, 1, 0, 0),
        ("No tests were found!!!", "ctest", 0, 0, 0, 0),
        (AUTOMAKE, "automake", 3, 1, 0, 1),
        ("==================\nAll 5 tests passed\n==================", "automake", 5, 0, 0, 0),
        ("=====================\n1 of 5 tests failed\n=====================", "automake", 4, 1, 0, 0),
        (MESON, "meson", 2, 1, 0, 0),
        (GTEST, "googletest", 3, 1, 0, 0),
        (CMOCKA, "cmocka", 2, 1, 0, 0),
        ("===============\nAll tests passed (12 assertions in 3 test cases)", "catch2", 3, 0, 0, 0),
        ("test cases: 3 | 2 passed | 1 failed\nassertions: 4 | 3 passed | 1 failed", "catch2", 2, 1, 0, 0),
        ("[doctest] test cases:  3 |  2 passed | 1 failed | 0 skipped\n[doctest] assertions: 9", "doctest", 2, 1, 0, 0),
        ("80%: Checks: 5, Failures: 1, Errors: 0\na.c:3:F:x", "check", 4, 1, 0, 0),
        ("Running 5 test cases...\n\n*** No errors detected", "boost", 5, 0, 0, 0),
        ("5 Tests 1 Failures 1 Ignored \nFAIL", "unity", 3, 1, 0, 1),
        ("Totals: 5 passed, 1 failed, 0 skipped, 0 blacklisted, 12ms", "qtest", 5, 1, 0, 0),
        ("[====] Synthesis: Tested: 5 | Passing: 4 | Failing: 1 | Crashing: 0 ", "criterion", 4, 1, 0, 0),
        (REDIS, "redis tcl", 2, 1, 0, 0),
        ("[ok]: a (1 ms)\n[ok]: b (1 ms)\n\\o/ All tests passed without errors!", "redis tcl", 2, 0, 0, 0),
        ("all.tcl:\tTotal\t12\tPassed\t10\tSkipped\t1\tFailed\t1", "tcltest", 10, 1, 0, 1),
        (GO_VERBOSE, "go test", 1, 1, 0, 0),
        (GO_PLAIN, "go test", 2, 0, 0, 0),
        (
            f"--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\texample.com/z\t0.1s\n{GO_PLAIN}",
            "go test",
            2,
            1,
            0,
            0,
        ),
        ("FAIL\texample.com/a [build failed]\nFAIL", "go test", 0, 0, 1, 0),
        (CARGO, "cargo test", 6, 1, 0, 1),
        (MAVEN, "maven", 4, 1, 0, 0),
        ("OK (12 tests, 30 assertions)", "phpunit", 12, 0, 0, 0),
        ("FAILURES!\nTests: 12, Assertions: 30, Failures: 1, Skipped: 2.", "phpunit", 9, 1, 0, 2),
        ("  Tests:    1 failed, 5 passed (12 assertions)\n  Duration: 0.1s", "pest", 5, 1, 0, 0),
        ("Finished in 0.1 seconds\n5 examples, 1 failure, 1 pending\n\nrspec ./a_spec.rb:3 # A b", "rspec", 3, 1, 0, 1),
        ("5 runs, 10 assertions, 1 failures, 1 errors, 1 skips", "minitest", 2, 1, 1, 1),
        (PROVE, "prove", 11, 1, 0, 0),
        ("t/a.t .. ok\nAll tests successful.\nFiles=1, Tests=4, 0 secs\nResult: PASS", "prove", 4, 0, 0, 0),
        ("Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6", "dotnet", 5, 0, 0, 1),
        ("Finished in 0.1 seconds\n2 doctests, 12 tests, 1 failure", "exunit", 11, 1, 0, 0),
        ("Ran 6 tests in 0.001 seconds, 5 successes, 1 failure", "luaunit", 5, 1, 0, 0),
        ("Ran 7 tests in 0.2 seconds, 5 successes, 1 failure, 1 error, 2 skipped", "luaunit", 5, 1, 1, 2),
        ("1 of 2 test suites (1 of 2 test cases) passed.", "cabal", 1, 1, 0, 0),
        ("12 successes / 1 failure / 0 errors / 2 pending : 0.1 seconds", "busted", 12, 1, 0, 2),
        ("All 12 tests passed!", PLAIN, 12, 0, 0, 0),
        ("Results: 12 passed, 1 failed", PLAIN, 12, 1, 0, 0),
        ("10/12 tests passed", PLAIN, 10, 2, 0, 0),
    ],
)
def test_each_runner(output: str, runner: str, passed: int, failed: int, errors: int, skipped: int) -> None:  # noqa: PLR0917
    summaries = {counts.runner: counts for counts in summarise(output)}
    assert runner in summaries, summaries
    counts = summaries[runner]
    assert (counts.passed, counts.failed, counts.errors, counts.skipped) == (passed, failed, errors, skipped)
    assert total(summarise(output)) == counts


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (PYTEST, ("tests/test_a.py::test_divide[1", "tests/test_b.py::test_db")),
        (UNITTEST, ("test_sub (tests.test_calc.CalcTest)",)),
        (JEST, ("math › divides",)),
        (VITEST, ("src/b.test.ts > math > divides",)),
        (CTEST, ("io",)),
        (AUTOMAKE, ("test-b",)),
        (GTEST, ("A.x",)),
        (GO_VERBOSE, ("TestB",)),
        (CARGO, ("b",)),
        (NODE_TAP, ("subtracts",)),
        (PROVE, ("t/b.t",)),
        (PLAYWRIGHT, ("[chromium] › a.spec.ts:3:1 › logs in",)),
    ],
)
def test_names_of_failed_tests(output: str, names: tuple[str, ...]) -> None:
    (counts,) = summarise(output)
    assert counts.failed_names == names


def test_a_workspace_is_added_up() -> None:
    one = "Tests:       1 failed, 2 passed, 3 total\n"
    (counts,) = summarise(f"> a@1 test\n{one}> b@1 test\n{one}")
    assert (counts.passed, counts.failed) == (4, 2)


def test_interleaved_packages_are_told_apart_by_their_prefix() -> None:
    output = "\n".join(
        [
            "packages/a test:  Test Files  1 passed (1)",
            "packages/b test:  Test Files  1 failed (1)",
            "packages/a test:       Tests  3 passed (3)",
            "packages/b test:       Tests  1 failed | 1 passed (2)",
        ]
    )
    (counts,) = summarise(output)
    assert (counts.passed, counts.failed, counts.errors) == (4, 1, 0)


def test_an_outer_runner_speaks_for_the_inner_ones() -> None:
    summaries = summarise(CTEST_VERBOSE)
    assert {counts.runner: counts.passed for counts in summaries} == {"ctest": 1, "googletest": 4}
    counts = total(summaries)
    assert counts is not None
    assert (counts.runner, counts.passed) == ("ctest", 1)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "hello world",
        "added 120 packages in 3s",
        "Requirement already satisfied: pytest in /opt/venv",
        "12 files changed, 3 insertions",
        "Compiling 5 files in 0.1s",
        "tests are in tests/",
        "3 warnings in 2 files",
        "Found 3 errors in 1 file (checked 12 source files)",
        "ok",
        "Listening on port 8080",
    ],
)
def test_other_outputs_have_no_summary(output: str) -> None:
    assert summarise(output) == ()
    assert total(()) is None


def test_the_table_is_sound() -> None:
    table = runner_table()
    allowed = {"passed", "failed", "errors", "skipped", "total"}
    for rule in (*table.line, *table.plain):
        assert {re.sub(r"\d+$", "", name) for name in rule.pattern.groupindex} <= allowed, rule
    for block in table.block:
        assert max(block.need) < len(block.keys)
        assert all(key.groups == 1 for key, _ in block.keys)
    assert all("name" in rule.pattern.groupindex for rule in table.names)
