"""Control runs: whether a test command's passes come from the commit's tests at work.

Whatever an installer put in place of an interpreter, a runner, a plugin, a hook, a shell or a service: a run whose
tests were all made to fail must not pass. Looking for each of these by name could never end; this asks the one
question.

Only Python's tests are put to it so far, and only what leaves no other reading is called forged. A test function whose
body does nothing but raise cannot pass. What a project runs besides (doctests, tests of other files, tests of an
installed copy) shows up under other names, and speaks for nobody's guilt.
"""

import ast
import io
import re
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from autoinstall.commands import parse, unwrap
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.integrity.tracked import manifest
from autoinstall.logs import telling
from autoinstall.outputs.cleaning import clean
from autoinstall.outputs.summaries import summarise, total
from autoinstall.sandbox.contract import WORKSPACE, Sandbox, SandboxProvider, SandboxSpec
from autoinstall.values import CommandResult, Goal, GoalResult

_REPORT = "-rp --tb=no"
"""Makes pytest name each test that passed, in every version; options of the project and of the command come besides.
To show why a test failed takes pytest far longer than to run it (it parses the file for each), and here most do."""

_PASSED = re.compile(r"^PASSED (?P<path>[^\s:]+\.py)::(?P<name>[^\n]+)$", re.MULTILINE)
_RUNNERS = frozenset({"pytest", "py.test", "tox", "nox"})
_TRANSPARENT = re.compile(r"(?:pytest\.)?mark\.|(?:unittest\.)?(?:mock\.)?patch\b")
"""Decorators that let an exception through."""
_ARCHIVE = "/tmp/.autoinstall-control.tar"  # noqa: S108 - inside of a sandbox that nothing else runs in
_GARBAGE = b"this is not what the commit says (\n"


class Control:
    """What a checkout's tests look like when each of them can only fail.

    Args:
        checkout: the pristine tree on the host.
    """

    def __init__(self, checkout: Path) -> None:
        self._failing: dict[str, bytes] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._files = tuple(sorted(path for path, entry in manifest(checkout).items() if entry.kind == "file"))
        for path in self._files:
            if path.endswith(".py") and matches(path, integrity_table().tests):
                self._add(path, checkout / path)

    def _add(self, relative: str, path: Path) -> None:
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            return
        names = _make_fail(tree)
        if names:
            self._failing[relative] = ast.unparse(tree).encode()
            self._names[relative] = names

    @property
    def possible(self) -> bool:
        """Whether the commit has tests that can be made to fail."""
        return bool(self._failing)

    def fail(self, sandbox: Sandbox) -> None:
        """Make every test of the commit fail."""
        _write(sandbox, self._failing)

    def destroy(self, sandbox: Sandbox) -> None:
        """Leave nothing of the commit: no runner of this world passes anything then."""
        _write(sandbox, dict.fromkeys(self._files, _GARBAGE))

    def forged(self, output: str) -> str:
        """Why a run of the failing tests shows that results are made up; empty where it does not."""
        passed = [(match["path"], match["name"]) for match in _PASSED.finditer(clean(output))]
        for path, name in passed:
            function = name.split(" - ")[0].partition("[")[0].rpartition("::")[2].strip()
            known = [names for other, names in self._names.items() if other == path or other.endswith(f"/{path}")]
            if not known or not all(function in names for names in known):
                return ""
        return f"{passed[0][0]}::{passed[0][1]} passes whatever it does" if passed else ""


def suspects(results: Sequence[GoalResult]) -> tuple[GoalResult, ...]:
    """Those that `find_forgery` puts to the question."""
    return tuple(result for result in results if _is_pytest(result))


def find_forgery(
    provider: SandboxProvider, spec: SandboxSpec, checkout: Path, results: Sequence[GoalResult]
) -> Violation | None:
    """Put the passing test commands to the question, in a container of their own; None where nothing is forged.

    A command whose passing tests go unnamed, though it is pytest's business to name them, is run once more with
    nothing left of the commit.

    Args:
        spec: of the image that is verified.
        results: of a run in which every target matched.

    Raises:
        Infrastructure: a sandbox failed.
    """
    suspected = suspects(results)
    control = Control(checkout) if suspected else None
    if control is None or not control.possible:
        return None
    with provider.open(spec) as sandbox:
        control.fail(sandbox)
        outputs = [_run(sandbox, spec, result.goal).output for result in suspected]
    for result, output in zip(suspected, outputs, strict=True):
        goal = result.goal
        detail = control.forged(output)
        if not detail and not _PASSED.search(clean(output)) and _claims_success(output) and _is_direct(goal):
            with provider.open(spec) as sandbox:
                control.destroy(sandbox)
                again = _run(sandbox, spec, goal)
            if again.exit_code in goal.exit_codes and _claims_success(again.output):
                detail = "reports tests as passed with nothing of the commit left"
        if detail:
            return Violation(kind=ViolationKind.FORGED, path=goal.command, detail=detail)
    return None


def _run(sandbox: Sandbox, spec: SandboxSpec, goal: Goal) -> CommandResult:
    options = spec.recipe.env.get("PYTEST_ADDOPTS", "")
    with telling():
        return sandbox.run(goal.command, timeout=goal.timeout, env={"PYTEST_ADDOPTS": f"{options} {_REPORT}".strip()})


def _claims_success(output: str) -> bool:
    counts = total(summarise(output))
    return counts is not None and counts.passed > 0 and not counts.failed + counts.errors


def _is_direct(goal: Goal) -> bool:
    """Whether a command is a runner of the checkout's own tests, which without the checkout has nothing to run."""
    commands = [command for command in parse(goal.command) if command.words]
    programs = {unwrap(command.words)[0].rpartition("/")[2] for command in commands}
    return programs <= _RUNNERS and not any("--pyargs" in command.words for command in commands)


def _is_pytest(result: GoalResult) -> bool:
    counts = result.judgement.tests
    return result.matches and counts is not None and counts.runner == "pytest" and counts.passed > 0


def _make_fail(tree: ast.Module) -> frozenset[str]:
    """Put a `raise` in the place of what test functions do; the names of those that cannot pass then.

    What is awaited or iterated by nobody never raises, so such functions are changed and not named.
    """
    names: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test"):
            continue
        lazy = isinstance(node, ast.AsyncFunctionDef) or any(
            isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)
        )
        opaque = any(not _TRANSPARENT.match(ast.unparse(decorator)) for decorator in node.decorator_list)
        (others if lazy or opaque else names).add(node.name)
        node.body = ast.parse("raise AssertionError('made to fail, to see whether it is run')").body
    return frozenset(names - others)


def _write(sandbox: Sandbox, files: Mapping[str, bytes]) -> None:
    """Put files below /workspace: in one go, and one by one what did not get there, for `tar` may be anybody's."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode, member.mtime = len(content), 0o755, int(time.time())
            tar.addfile(member, io.BytesIO(content))
    sandbox.write_file(_ARCHIVE, archive.getvalue())
    sandbox.run(f"tar -C {WORKSPACE} --no-same-owner -xf {_ARCHIVE}; rm -f {_ARCHIVE}")
    tops = sorted({path.partition("/")[0] for path in files})
    there = {entry.path: entry.content for entry in sandbox.read_tree([f"{WORKSPACE}/{top}" for top in tops])}
    for path, content in files.items():
        if there.get(f"{WORKSPACE}/{path}") != content:
            sandbox.write_file(path, content)
