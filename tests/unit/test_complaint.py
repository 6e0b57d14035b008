"""The telling line of failed commands."""

import pytest

from autoinstall.outputs.complaint import LIMIT, complaint

MAVEN = """[INFO] Scanning for projects...
[WARNING] Could not transfer metadata a:b:1-SNAPSHOT from/to snapshots: host: Name or service not known
[ERROR] [ERROR] Some problems were encountered while processing the POMs:
[FATAL] Non-resolvable parent POM for c:d:1: Could not transfer artifact a:b:pom:1-SNAPSHOT
[ERROR] The build could not read 1 project -> [Help 1]
"""
COMPILER = """[INFO] 1 error
[ERROR] Failed to execute goal compile on project x: Compilation failure
[ERROR] /workspace/A.java:[18,15] cannot access java.io.IOException
[ERROR] -> [Help 1]
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("", ""),
        ("all is well\nbye\n", "bye"),
        (MAVEN, "[FATAL] Non-resolvable parent POM for c:d:1: Could not transfer artifact a:b:pom:1-SNAPSHOT"),
        (COMPILER, "[ERROR] /workspace/A.java:[18,15] cannot access java.io.IOException"),
        ("npm ERR! code E404\nnpm ERR! 404 Not Found - x\n", "npm ERR! 404 Not Found - x"),
        ("make: *** [all] Error 2\nDone.", "make: *** [all] Error 2"),
        ("\x1b[31merror\x1b[0m: \x1b[1munknown flag\x1b[0m", "error: unknown flag"),
    ],
)
def test_the_line_that_says_most(output: str, expected: str) -> None:
    assert complaint(output) == expected


def test_it_is_bounded() -> None:
    assert len(complaint("error: " + "x" * 10_000)) == LIMIT
