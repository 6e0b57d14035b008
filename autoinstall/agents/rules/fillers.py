"""Weak goals that nearly every repository can give, for those that name few commands of their own.

Most of them already hold in the initial state; they then are marked trivial and never become targets.
"""

import ast
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

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


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# What no set-up can mend is no goal: editors' JSON with comments, templates, Python 2.
_HOLDS: Mapping[str, Callable[[str], bool]] = {".json": _is_json, ".py": _is_python}
_ALWAYS = (
    ("git ls-files", "lists the tracked files in at least 1 line"),
    ("git log --oneline --max-count=5", "shows the latest commits in at least 1 line"),
    ("git show --stat HEAD", "shows the latest commit and its files in at least 3 lines"),
    ("git ls-tree HEAD", "lists the entries of the root directory in at least 1 line"),
    ("git rev-parse HEAD", "prints the full name of the commit in at least 1 line"),
    ("git cat-file -p HEAD", "prints the commit with its tree, author and message in at least 3 lines"),
    ("git count-objects -v", "counts the stored objects in at least 3 lines"),
    ("git fsck --no-dangling", "checks the stored objects and finds none of them broken"),
    ("git status --short --untracked-files=no", "reads the work tree against the index"),
    ("git diff --stat HEAD", "compares the work tree with the commit"),
)


def fillers(tree: Tree) -> Iterator[Candidate]:
    """Syntax checks of single files, at most a handful of each kind, the shallowest files first."""
    for suffix, command, description, category in _CHECKS:
        if suffix == ".js" and tree.has("package.json"):
            continue  # a bundler may take as a module what node takes for a script
        paths = sorted((path for path in tree.files if path.endswith(suffix)), key=lambda path: (path.count("/"), path))
        sound = (path for path in paths if suffix not in _HOLDS or _HOLDS[suffix](tree.read(path)))
        for path in islice(sound, _PER_CHECK):
            yield Candidate(
                goal=Goal(
                    command=command.format(shlex.quote(path)),
                    description=description,
                    category=category,
                    evidence=Evidence(path=path, text="source file"),
                ),
                weight=3,
            )
    first = tree.files[0] if tree.files else ""
    for command, description in _ALWAYS:
        goal = Goal(command=command, description=description, evidence=Evidence(path=first, text="tracked file"))
        yield Candidate(goal=goal, weight=1)
