"""Node projects whose test runner is called from outside of package.json."""

from pathlib import Path

import pytest
from test_rules_node import candidates, checkout

from autoinstall.agents.rules.contract import Candidate

PACKAGE = {"name": "p", "version": "1.0.0", "main": "index.js", "devDependencies": {"mocha": "9"}}
TEST = "describe('a', () => { it('b', () => {}); });\n"


def suites(root: Path, files: dict[str, object]) -> list[Candidate]:
    tree = checkout(root, {"package.json": PACKAGE, "index.js": "", **files})
    return [item for item in candidates(tree) if "The test suite" in item.goal.description]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("./node_modules/.bin/mocha --recursive js/test && \\", "npx --no-install mocha --recursive js/test"),
        ("@npx mocha lib/**/*.spec.js", "npx --no-install mocha lib/**/*.spec.js"),
        ("(node_modules/.bin/mocha test)", "npx --no-install mocha test"),
    ],
)
def test_the_call_of_a_makefile_is_taken(line: str, command: str, tmp_path: Path) -> None:
    (suite,) = suites(tmp_path, {"Makefile": f"test:\n\t{line}\n", "js/test/a.js": TEST})
    assert suite.goal.command == command
    assert suite.goal.evidence is not None
    assert (suite.goal.evidence.path, suite.goal.evidence.line) == ("Makefile", 2)


@pytest.mark.parametrize("line", ["npx mocha $(TESTS)", "npx mocha --watch test", "npx mochawesome test"])
def test_calls_that_say_too_little_are_not(line: str, tmp_path: Path) -> None:
    (suite,) = suites(tmp_path, {"Makefile": f"test:\n\t{line}\n", "js/test/a.js": TEST})
    assert suite.goal.command == "npx --no-install mocha"


def test_a_bare_mocha_weighs_little_where_it_finds_nothing(tmp_path: Path) -> None:
    (nothing,) = suites(tmp_path / "a", {"test/generate.js": "build();", "js/test/a.js": TEST})
    (something,) = suites(tmp_path / "b", {"test/a.js": TEST})
    (configured,) = suites(tmp_path / "c", {".mocharc.yml": "spec: js/test", "js/test/a.js": TEST})
    assert nothing.weight + 40 < something.weight == configured.weight
