"""Weak goals that nearly every repository can give, for those that name few commands of their own.

Most of them already hold in the initial state; they then are marked trivial and never become targets.
"""

import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence, Goal

_CHECKS = (
    (".sh", "bash -n {}", "parses the shell script without a syntax error", Category.LINT),
    (".py", "python3 -m py_compile {}", "compiles the Python file without a syntax error", Category.BUILD),
    (".js", "node --check {}", "parses the JavaScript file without a syntax error", Category.LINT),
    (".json", "python3 -m json.tool {} /dev/null", "reads the file as valid JSON without an error", Category.LINT),
)
_PER_CHECK = 6


def fillers(tree: Tree) -> Iterator[Candidate]:
    """Syntax checks of single files, at most a handful of each kind, the shallowest files first."""
    for suffix, command, description, category in _CHECKS:
        paths = sorted((path for path in tree.files if path.endswith(suffix)), key=lambda path: (path.count("/"), path))
        for path in paths[:_PER_CHECK]:
            yield Candidate(
                goal=Goal(
                    command=command.format(shlex.quote(path)),
                    description=description,
                    category=category,
                    evidence=Evidence(path=path, text="source file"),
                ),
                weight=3,
            )
    yield Candidate(
        goal=Goal(
            command="git ls-files",
            description="lists the tracked files",
            evidence=Evidence(path=tree.files[0] if tree.files else "", text="tracked file"),
        ),
        weight=1,
    )
    yield Candidate(
        goal=Goal(
            command="git log --oneline --max-count=5",
            description="shows the latest commits, one a line",
            evidence=Evidence(path=tree.files[0] if tree.files else "", text="tracked file"),
        ),
        weight=1,
    )
