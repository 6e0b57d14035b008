"""Test files that make good single goals: the project's own unit tests, without browsers and networks."""

import re
import shlex

from autoinstall.agents.rules.ecosystems.node.knowledge import Runner, knowledge
from autoinstall.agents.rules.ecosystems.node.manifest import Package
from autoinstall.agents.rules.ecosystems.node.scripts import Part
from autoinstall.agents.rules.evidence.script import words
from autoinstall.tree import Tree
from autoinstall.values import Evidence

_NAMED = re.compile(r"(?:^|[._-])(?:test|spec|tests)\.(?:[cm]?[jt]sx?|coffee)$|(?:^|[/])test[-_][^/]*\.[cm]?[jt]s$")
_SOURCE = re.compile(r"\.(?:[cm]?[jt]sx?)$")
_CALLERS = re.compile(
    r"(?:[Mm]akefile|GNUmakefile|\.travis\.yml|(?:scripts?|tools|bin|ci)/[^/]+\.sh|[^/]+\.sh|\.github/workflows/[^/]+)$"
)
_WATCHES = re.compile(r"(?:^|\s)(?:-w|--watch\w*|--inspect\S*|--version|--help)\b")
_MOCHA_CONFIGS = (
    *(".mocharc.js", ".mocharc.cjs", ".mocharc.json", ".mocharc.jsonc", ".mocharc.yml", ".mocharc.yaml"),
    *("test/mocha.opts", ".mocharc"),
)
_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__"})
_TEST_CALL = re.compile(r"\b(?:it|test|describe|suite|t\.(?:is|ok|equal|same)|assert|expect|tap)\b")
_REMOTE = re.compile(r"https?://(?!localhost|127\.|example\.|www\.example|\[)[a-z0-9.-]+\.(?:com|org|io|net)", re.I)
_ELSEWHERE = re.compile(
    r"puppeteer|playwright|selenium|webdriver|child_process|testcontainers|\bspawn\(|\btypeof (?:document|window)\b"
)
"""What works in a browser or another process."""


def test_files(package: Package, runner: Runner) -> tuple[str, ...]:
    """Files of `package` that `runner` would run, the best samples first; paths relative to the package."""
    prefix = f"{package.directory}/" if package.directory else ""
    inner = tuple(member.directory + "/" for member in package.members)
    found = [
        path.removeprefix(prefix)
        for path in package.tree.files
        if path.startswith(prefix)
        and not path.startswith(inner or ("\0",))
        and _is_test(path.removeprefix(prefix), runner)
    ]
    return tuple(sorted(found, key=lambda path: _rank(package.tree, prefix + path))[:40])


def runner_call(package: Package, runner: Runner) -> tuple[str, Evidence] | None:
    """How a Makefile, a workflow or a script calls the runner, for packages whose own scripts do not."""
    program = runner.single.split()[0]
    before = r"(?:(?:^|[\s@\"'(])(?:\./)?node_modules/\.bin/|\bnpx (?:--no-install )?)"
    call = re.compile(rf"{before}{re.escape(program)}\b(?P<rest>[^&|;#$`\n\\]*)(?P<end>.?)")
    prefix = f"{package.directory}/" if package.directory else ""
    for path in (
        path for path in package.tree.files if path.startswith(prefix) and _CALLERS.match(path[len(prefix) :])
    ):
        for number, line in enumerate(package.tree.read(path).splitlines(), start=1):
            found = call.search(line)
            if found and found["end"] not in ("$", "`") and not _WATCHES.search(found["rest"]):
                evidence = Evidence(path=path, line=number, text=line.strip()[:200])
                return f"{program}{found['rest'].rstrip(' )')}", evidence
    return None


def finds_tests(package: Package, runner: Runner) -> bool:
    """Whether the runner, called without arguments, has anything to run: mocha looks into one directory only."""
    if runner.name != "mocha" or any(package.tree.has(package.path(name)) for name in _MOCHA_CONFIGS):
        return True
    start = f"{package.path('test')}/"
    direct = (path for path in package.tree.files if path.startswith(start) and "/" not in path[len(start) :])
    return any(path.endswith((".js", ".cjs", ".mjs")) and _TEST_CALL.search(package.tree.read(path)) for path in direct)


def _is_test(path: str, runner: Runner) -> bool:
    if not _SOURCE.search(path) or path.endswith(("-d.ts", ".d.ts")):
        return False
    if runner.single == "node" and not path.endswith((".js", ".mjs", ".cjs")):
        return False
    folders = path.lower().split("/")[:-1]
    if "node_modules" in folders:
        return False
    if _NAMED.search(path):
        return True
    plain = runner.name not in ("jest", "vitest", "react-scripts", "node:test", "borp", "jasmine")
    return plain and bool(_FOLDERS & set(folders)) and not path.rsplit("/", 1)[-1].startswith(("_", "."))


def _rank(tree: Tree, path: str) -> tuple[int, int, str]:
    """Less is better: bad signs in the path or the text count, then a size near 4 kB."""
    lowered = path.lower()
    avoid = knowledge().samples["avoid"]
    points = sum(4 for part in lowered.split("/")[:-1] if part in avoid)
    points += sum(3 for part in re.split(r"[._-]", lowered.rsplit("/", 1)[-1]) if part in avoid)
    text = tree.read(path) if points < 4 else ""
    if text:
        points += 2 * bool(_REMOTE.search(text)) + 3 * bool(_ELSEWHERE.search(text))
        points += 0 if _TEST_CALL.search(text) else 5
    size = len(text)
    return points + (2 if size < 600 else 1 if size > 20_000 else 0), abs(size - 4000), path


def single_file_command(part: Part | None, runner: Runner, path: str) -> str:
    """How `runner` is given one file: with the options of the project's own command, without its files."""
    quoted = shlex.quote(path)
    if part is None or part.tool != runner.name:
        return f"{runner.single} {quoted}"
    split = words(part.command)
    at = next(
        (
            index
            for index, word in enumerate(split)
            if word.rsplit("/", 1)[-1] in (part.tool, f"{part.tool}.js", f"_{part.tool}")
        ),
        None,
    )
    if at is None:
        return f"{runner.single} {quoted}"
    env = [word for word in split[:at] if re.match(r"^[A-Za-z_]\w*=", word)]
    options = _options(split[at + 1 :], runner)
    before = f"env {' '.join(map(shlex.quote, env))} " if env else ""
    joined = " ".join(map(shlex.quote, options))
    return f"{before}{runner.single}{' ' + joined if joined else ''} {quoted}"


_KEPT_ELSEWHERE = frozenset(
    {
        "-r",
        "--require",
        "--import",
        "--loader",
        "--config",
        "-c",
        "--project",
        "--selectProjects",
        "--testEnvironment",
        "--environment",
        "--setupFiles",
        "--root",
        "--dir",
    }
)
_REPORTING = re.compile(r"-(?:R|-reporters?|-coverage|g|-grep|-spec|-testPathPattern|t)")
_DROPPED = frozenset(
    {
        "--coverage",
        "--watch",
        "--watchAll",
        "-w",
        "--ci",
        "--verbose",
        "--silent",
        "--bail",
        "--recursive",
        "--u",
        "-u",
        "--silent=false",
        "--check-leaks",
    }
)


def _says_how(word: str, runner: Runner) -> bool:
    if not word.startswith("-") or word in _DROPPED or _REPORTING.match(word):
        return False
    return (
        runner.name == "mocha" or word.split("=", maxsplit=1)[0] in _KEPT_ELSEWHERE or word.startswith("--experimental")
    )


def _options(split: list[str], runner: Runner) -> list[str]:
    """The options that say how tests are run; those that say which ones, and how it is reported, go."""
    kept: list[str] = []
    index = 0
    takes_value = set(runner.values) | _KEPT_ELSEWHERE
    while index < len(split):
        word = split[index]
        valued = word in takes_value and index + 1 < len(split)
        if _says_how(word, runner):
            kept += split[index : index + (2 if valued else 1)]
        index += 2 if valued else 1
    return kept
