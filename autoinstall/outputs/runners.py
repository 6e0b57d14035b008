"""Readers of the summaries that take more than one line or block: pytest, unittest, jest, vitest, GoogleTest, go,
TAP, …

A reader takes the lines of one stream, cleaned, and gives what its runner reports there: nothing, one or several
counts.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from autoinstall.values import TestCounts

Reader = Callable[[Sequence[str]], list[TestCounts]]

_PYTEST_LAST = re.compile(
    r"^(?:=+ )?(?P<items>(?:\d+ [a-z][a-z -]*?(?:, )?)+|no tests ran) in \d[\d.]* ?(?:s|seconds)(?: \(.*\))?(?: =+)?$"
)
_PYTEST_STARTS = re.compile(r"^=+ test session starts\b.* =+$")
_PYTEST_ITEM = re.compile(r"(\d+) ([a-z][a-z -]*[a-z])")
_PYTEST_WORDS = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "errors",
    "errors": "errors",
    "skipped": "skipped",
    "xfailed": "skipped",
}
_PYTEST_OTHER = frozenset({"deselected", "warning", "warnings", "rerun", "pytest-warnings", "subtests passed"})
_PYTEST_COLLECTED = re.compile(
    r"^(?:=+ )?(?:(?P<some>\d+)/\d+ tests? collected|(?P<all>\d+) tests? collected|no tests collected)"
    r"(?: \(\d+ deselected\))?(?:[,/] (?P<errors>\d+) errors?)? in "
)
_PYTEST_LISTED = re.compile(r"^\s*(?:\S+\.py::\S.*|<(?:Function|TestCaseFunction|DoctestItem)\b.*>)$")
_PYTEST_PROGRESS = re.compile(r"^(?:\S+\.py )?(?P<marks>[.FEsxXR]+)\s+\[\s*\d+%\]$")


def read_pytest(lines: Sequence[str]) -> list[TestCounts]:
    """The last line of each session, with or without rulers; dots alone (`-qq`) where there is none.

    Sessions within another's, which tests of plugins run and a report of one of them shows, are not counted. Before
    pytest 6.2 a session that only listed tests ended as if there were none.
    """
    ended: list[tuple[int, TestCounts]] = []
    marks = ""
    listed = depth = 0

    def end(counts: TestCounts) -> None:
        nonlocal depth
        ended.append((depth, counts))
        depth = max(0, depth - 1)

    for line in lines:
        depth += bool(_PYTEST_STARTS.match(line))
        listed += bool(_PYTEST_LISTED.match(line))
        if match := _PYTEST_COLLECTED.match(line):
            count = int(match["some"] or match["all"] or 0)
            end(TestCounts(runner="pytest --collect-only", passed=count, errors=int(match["errors"] or 0)))
        elif match := _PYTEST_LAST.match(line):
            items = {word: int(number) for number, word in _PYTEST_ITEM.findall(match["items"])}
            if match["items"] != "no tests ran" and not items.keys() & (_PYTEST_WORDS.keys() | _PYTEST_OTHER):
                continue
            if match["items"] == "no tests ran" and listed:
                end(TestCounts(runner="pytest --collect-only", passed=listed))
            else:
                end(_pytest_counts(items))
            listed = 0
        elif match := _PYTEST_PROGRESS.match(line):
            marks += match["marks"]
    # What is left open has crashed, and says nothing of what came after it.
    found = [counts for level, counts in ended if level - depth <= 1]
    if not found and marks:
        items = {"passed": marks.count("."), "failed": marks.count("F"), "errors": marks.count("E")}
        found.append(_pytest_counts(items | {"skipped": marks.count("s") + marks.count("x")}))
    return found


def _pytest_counts(items: dict[str, int]) -> TestCounts:
    fields = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
    for word, number in items.items():
        if word in _PYTEST_WORDS:
            fields[_PYTEST_WORDS[word]] += number
    return TestCounts(runner="pytest", **fields)


_UNITTEST_RAN = re.compile(r"^Ran (?P<total>\d+) tests?(?: in [\d.]+ ?s\w*)?\.?$")
_UNITTEST_END = re.compile(r"^(?P<word>OK|PASSED|FAILED|NO TESTS RAN)(?: \((?P<items>[^)]*)\))?$")


def read_unittest(lines: Sequence[str]) -> list[TestCounts]:
    """`Ran N tests` with the verdict that follows: unittest, nose, Django, trial, testtools, shunit2."""
    found: list[TestCounts] = []
    total: int | None = None
    for line in lines:
        if match := _UNITTEST_RAN.match(line):
            total = int(match["total"])
        elif total is not None and (match := _UNITTEST_END.match(line)):
            items = {
                key.strip().lower(): int(value)
                for key, _, value in (item.partition("=") for item in (match["items"] or "").split(","))
                if value.strip().isdigit()
            }
            failed = (
                items.get("failures", 0) + items.get("unexpected successes", 0) + items.get("unexpectedsuccesses", 0)
            )
            errors = items.get("errors", 0)
            if match["word"] == "FAILED" and not failed + errors:
                failed = 1
            skipped = (
                items.get("skipped", 0)
                + items.get("skips", 0)
                + items.get("skip", 0)
                + items.get("expected failures", 0)
                + items.get("expectedfailures", 0)
                + items.get("todos", 0)
            )
            passed = items.get("successes", max(0, total - failed - errors - skipped))
            found.append(TestCounts(runner="unittest", passed=passed, failed=failed, errors=errors, skipped=skipped))
            total = None
    if total is not None:
        # The runner died between its count and its verdict.
        found.append(TestCounts(runner="unittest", errors=1, passed=max(0, total - 1)))
    return found


_JEST_TESTS = re.compile(r"^Tests:\s+(?P<items>(?:\d+ \w+, )*\d+ total)$")
_JEST_SUITES = re.compile(r"^Test Suites:\s+(?P<items>(?:\d+ \w+, )*\d+ (?:of \d+ )?total)")
_JEST_ITEM = re.compile(r"(\d+) (\w+)")
_JEST_FILE = re.compile(r"^\s*FAIL\s+(?P<path>\S.*?)(?: \([\d.]+ m?s\))?$")


def read_jest(lines: Sequence[str]) -> list[TestCounts]:
    """Jest's `Tests:` line; a suite that could not be loaded is an error, since none of its tests is counted."""
    found: list[TestCounts] = []
    broken: set[str] = set()
    suites: dict[str, int] = {}
    path = ""
    for line in lines:
        if match := _JEST_FILE.match(line):
            path = match["path"]
        elif line.strip() == "● Test suite failed to run":
            broken.add(path)
        elif match := _JEST_SUITES.match(line):
            suites = {word: int(number) for number, word in _JEST_ITEM.findall(match["items"])}
        elif match := _JEST_TESTS.match(line):
            items = {word: int(number) for number, word in _JEST_ITEM.findall(match["items"])}
            failed = items.get("failed", 0)
            errors = len(broken) if failed else max(len(broken), suites.get("failed", 0))
            found.append(
                TestCounts(
                    runner="jest",
                    passed=items.get("passed", 0),
                    failed=failed,
                    errors=errors,
                    skipped=items.get("skipped", 0) + items.get("todo", 0) + items.get("pending", 0),
                )
            )
            broken, suites = set(), {}
        elif line.startswith("No tests found, exiting with code"):
            found.append(TestCounts(runner="jest"))
    return found


_VITEST_FILES = re.compile(r"^\s*Test Files\s+(?P<items>.*\(\d+\)|no tests)$")
_VITEST_TESTS = re.compile(r"^\s*Tests\s+(?P<items>.*\(\d+\)|no tests)$")
_VITEST_ERRORS = re.compile(r"^\s*Errors\s+(\d+) errors?$")


def read_vitest(lines: Sequence[str]) -> list[TestCounts]:
    """Vitest's table at the end; files that could not be loaded and unhandled errors count as errors."""
    found: list[TestCounts] = []
    files_failed = 0
    for line in lines:
        if match := _VITEST_FILES.match(line):
            files_failed = dict(_items(match["items"])).get("failed", 0)
        elif match := _VITEST_TESTS.match(line):
            items = dict(_items(match["items"]))
            failed = items.get("failed", 0)
            found.append(
                TestCounts(
                    runner="vitest",
                    passed=items.get("passed", 0),
                    failed=failed,
                    errors=0 if failed else files_failed,
                    skipped=items.get("skipped", 0) + items.get("todo", 0),
                )
            )
        elif found and (match := _VITEST_ERRORS.match(line)):
            found[-1] = found[-1].model_copy(update={"errors": found[-1].errors + int(match[1])})
        elif line.startswith("No test files found"):
            found.append(TestCounts(runner="vitest"))
    return found


def _items(text: str) -> list[tuple[str, int]]:
    return [(word, int(number)) for number, word in _JEST_ITEM.findall(text)]


_GTEST_RAN = re.compile(
    r"^\[=+\] (?P<total>\d+) tests?(?:\(s\))? (?:from \d+ test (?:cases?|suites?) )?ran\."
    r"|^\[=+\] (?:\S+: )?(?P<run>\d+) test\(s\) run\."
)
_GTEST_COUNT = re.compile(
    r"^\[  (?P<kind>PASSED |FAILED |SKIPPED) ?\] (?:\S+: )?(?P<count>\d+) tests?(?P<cmocka>\(s\))?[.,]"
)


def read_googletest(lines: Sequence[str]) -> list[TestCounts]:
    """GoogleTest and cmocka, one count for each test program that ran to its end."""
    found: list[TestCounts] = []
    for line in lines:
        if match := _GTEST_RAN.match(line):
            found.append(TestCounts(runner="cmocka" if match["run"] else "googletest"))
        elif match := _GTEST_COUNT.match(line):
            runner = "cmocka" if match["cmocka"] else "googletest"
            if not found or found[-1].runner != runner:
                found.append(TestCounts(runner=runner))
            field = {"PASSED": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[match["kind"].strip()]
            found[-1] = found[-1].model_copy(update={field: int(match["count"])})
    return found


_GO_TEST = re.compile(r"^\s*--- (?P<word>PASS|FAIL|SKIP): \S+ \(")
_GO_PACKAGE = re.compile(
    r"^(?P<word>ok  |FAIL)\s+(?P<package>[\w./@~-]+)\s+(?:[\d.]+s|\(cached\)|\[[a-z ]+\])(?P<rest>.*)$"
)


def read_go(lines: Sequence[str]) -> list[TestCounts]:
    """`go test`: tests where they are listed (-v), else packages. A package that does not build is an error."""
    words = [match["word"] for line in lines if (match := _GO_TEST.match(line))]
    packages = [match for line in lines if (match := _GO_PACKAGE.match(line))]
    if not packages:
        return []
    unbuilt = sum("[build failed]" in match[0] or "[setup failed]" in match[0] for match in packages)
    failed = sum(match["word"] == "FAIL" for match in packages) - unbuilt
    passed = sum(match["word"] == "ok  " and "[no tests to run]" not in match[0] for match in packages)
    if "PASS" in words:
        # A package may fail without a test that did: it panicked, or its TestMain gave up.
        passed, failed = words.count("PASS"), max(failed, words.count("FAIL"))
    # Without -v only the tests that fail are listed: they are not to be held against packages.
    return [TestCounts(runner="go test", passed=passed, failed=failed, errors=unbuilt, skipped=words.count("SKIP"))]


_TAP_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#.*)?$")
_TAP_LINE = re.compile(r"^(?P<word>ok|not ok)\b(?:\s+\d+)?(?P<rest>.*)$")
_TAP_SKIP = re.compile(r"#\s*(?:skip|todo)", re.IGNORECASE)


def read_tap(lines: Sequence[str]) -> list[TestCounts]:
    """Plain TAP, top level only (subtests are indented); tests that the plan names and that never came are errors."""
    plans = [int(match[1]) for line in lines if (match := _TAP_PLAN.match(line))]
    if not plans:
        return []
    passed = failed = skipped = errors = 0
    for line in lines:
        if line.startswith("Bail out!"):
            errors += 1
        elif match := _TAP_LINE.match(line):
            if _TAP_SKIP.search(match["rest"]):
                skipped += 1
            elif match["word"] == "ok":
                passed += 1
            else:
                failed += 1
    errors += max(0, sum(plans) - passed - failed - skipped)
    return [TestCounts(runner="tap", passed=passed, failed=failed, errors=errors, skipped=skipped)]


_PROVE_FAILED = re.compile(r"\(Wstat: \d+.*?Tests: \d+ Failed: (\d+)\)")
_PROVE_TOTAL = re.compile(r"^Files=\d+, Tests=(\d+),")
_PROVE_RESULT = re.compile(r"^Result: (PASS|FAIL|NOTESTS)$")


def read_prove(lines: Sequence[str]) -> list[TestCounts]:
    """prove's totals less the failures that its report lists."""
    result = [match[1] for line in lines if (match := _PROVE_RESULT.match(line))]
    if not result:
        return []
    ran = [int(match[1]) for line in lines if (match := _PROVE_TOTAL.match(line))]
    if result[-1] != "FAIL":
        return [TestCounts(runner="prove", passed=sum(ran[-1:]))]
    failed = sum(int(match[1]) for line in lines if (match := _PROVE_FAILED.search(line)))
    broken = sum("Parse errors:" in line or "Non-zero exit status" in line for line in lines)
    passed = max(0, sum(ran[-1:]) - failed)
    return [TestCounts(runner="prove", passed=passed, failed=failed, errors=0 if failed else max(1, broken))]


_BOOST_RUNNING = re.compile(r"^Running (\d+) test cases?\.\.\.$")
_BOOST_FAILED = re.compile(r"^\*\*\* (\d+) failures? (?:is|are) detected")


def read_boost(lines: Sequence[str]) -> list[TestCounts]:
    """Boost.Test, which counts cases at the start and failures at the end."""
    found: list[TestCounts] = []
    cases = 0
    for line in lines:
        if match := _BOOST_RUNNING.match(line):
            cases = int(match[1])
        elif line.startswith("*** No errors detected"):
            found.append(TestCounts(runner="boost", passed=cases))
        elif match := _BOOST_FAILED.match(line):
            failed = int(match[1])
            found.append(TestCounts(runner="boost", passed=max(0, cases - failed), failed=failed))
    return found


_MARKED = re.compile(r"^\[(?P<word>ok|err|exception|skip)\]: \S")
_ACUTEST = re.compile(r"^Test .*\.\.\.\s*\[ (?P<word>OK|FAILED|SKIPPED) +\]")


def read_marked(lines: Sequence[str]) -> list[TestCounts]:
    """Runners that mark every test and only cheer at the end: the Tcl suites of servers, acutest."""
    text = "\n".join(lines[-60:])
    words = [match["word"] for line in lines if (match := _MARKED.match(line))]
    if words and ("All tests passed without errors" in text or set(words) - {"ok", "skip"}):
        errors = words.count("exception")
        return [
            TestCounts(
                runner="redis tcl",
                passed=words.count("ok"),
                failed=words.count("err"),
                errors=errors,
                skipped=words.count("skip"),
            )
        ]
    marks = [match["word"] for line in lines if (match := _ACUTEST.match(line))]
    if marks and "SUCCESS: All unit tests have passed." in text:
        return [TestCounts(runner="acutest", passed=marks.count("OK"), skipped=marks.count("SKIPPED"))]
    return []


def read_autotest(lines: Sequence[str]) -> list[TestCounts]:
    """GNU Autotest's two-line report of a failure."""
    found = []
    for first, second in pairwise(lines):
        ran = re.match(r"^ERROR: (?:All )?(\d+) tests? (?:was|were) run,$", first)
        failed = re.match(r"^(\d+) failed(?: unexpectedly| \(\d+ expected failures?\))?\.$", second)
        if ran and failed:
            total, bad = int(ran[1]), int(failed[1])
            found.append(TestCounts(runner="autotest", passed=max(0, total - bad), failed=bad))
    return found


READERS: tuple[Reader, ...] = (
    read_pytest,
    read_unittest,
    read_jest,
    read_vitest,
    read_googletest,
    read_go,
    read_tap,
    read_prove,
    read_boost,
    read_marked,
    read_autotest,
)
