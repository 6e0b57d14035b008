"""What the ecosystems of scripting languages have in common: where a project lies, its files, checks of all of them."""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from autoinstall.agents.rules.contract import Candidate
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUITE_SECONDS, candidate, evidence_at
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence

MOST_FILES = 0.9
"""Share of the sources that a check of their syntax must pass: some are broken on purpose, or for other versions."""

MAX_TESTS = 4
"""Test files that become goals of their own."""

_ASIDE = re.compile(
    r"(?i)(?:^|/)(?:vendor|third[_-]party|node_modules|fixtures?|testdata|examples?|samples?|benchmarks?|templates?)/"
)
_REMOTE = re.compile(
    r"https?://(?!localhost|127\.|(?:[\w-]+\.)*example\.)|LWP::|Net::HTTP|TCPSocket|curl_init|socket\."
)


def root_of(tree: Tree, manifests: Sequence[str], suffixes: Sequence[str]) -> str | None:
    """The directory of the main project, empty for the root of the checkout; None where there is none.

    Args:
        manifests: regular expressions of names that make a directory a project.
        suffixes: of sources: without any manifest, a root with sources and tests is a project too.
    """
    names = [re.compile(pattern) for pattern in manifests]
    found = {
        posixpath.dirname(path)
        for path in tree.files
        if path.count("/") <= 2
        and not _ASIDE.search(path)
        and any(name.fullmatch(posixpath.basename(path)) for name in names)
    }
    if found:
        return min(found, key=lambda item: (item.count("/") + bool(item), item))
    own = [path for path in tree.files if path.endswith(tuple(suffixes)) and not _ASIDE.search(path)]
    tested = any(re.match(r"(?:t|tests?|spec)/", path) for path in own)
    return "" if tested and any(path.count("/") <= 2 for path in own) else None


def files_of(tree: Tree, directory: str, *suffixes: str) -> list[str]:
    """The project's own files with one of the suffixes, relative to its directory."""
    prefix = f"{directory}/" if directory else ""
    inside = [path.removeprefix(prefix) for path in tree.files if path.startswith(prefix) and path.endswith(suffixes)]
    return [path for path in inside if not _ASIDE.search(path)]


def at(directory: str, path: str) -> str:
    return posixpath.join(directory, path)


def inside(directory: str, command: str) -> str:
    """The command as it is run from the root of the checkout."""
    return f"cd {directory} && {command}" if directory else command


def calm_first(tree: Tree, directory: str, paths: Sequence[str]) -> list[str]:
    """Test files, those first that reach for nothing outside, then the shallow ones, then by size, not too small."""

    def order(path: str) -> tuple[bool, int, int, str]:
        text = tree.read(at(directory, path))
        return bool(_REMOTE.search(text)), path.count("/"), -min(len(text), 4000), path

    return sorted(paths, key=order)


def suite(
    command: str, evidence: Evidence, *, fails: tuple[int, ...], weight: int = 96, says: str = "runs the tests"
) -> Candidate:
    """A goal that runs all tests; `fails` are the exit codes of a runner of which some tests failed, and 0."""
    return candidate(
        command,
        f"{says}; at least 90% of the tests pass",
        Category.TEST,
        weight,
        evidence,
        exit_codes=fails,
        rate=MOST_TESTS,
        timeout=SUITE_SECONDS,
    )


def single_tests(
    tree: Tree,
    directory: str,
    paths: Sequence[str],
    runs: Callable[[str], str],
    *,
    fails: tuple[int, ...],
    needle: str,
    says: str = "runs the tests of one file",
) -> Iterator[Candidate]:
    """Goals that run a test file each, the calm ones first: `runs` makes the command of a path, and `needle` is
    what the evidence's line has."""
    for index, path in enumerate(calm_first(tree, directory, paths)[:MAX_TESTS]):
        yield candidate(
            inside(directory, runs(path)),
            f"{says}; at least 90% of the tests pass",
            Category.TEST,
            66 - 3 * index,
            evidence_at(tree, at(directory, path), needle),
            exit_codes=fails,
            rate=MOST_TESTS,
        )


def syntax_check(
    directory: str, pattern: str, check: str, *, passed: str, count: int, evidence: Evidence, weight: int = 68
) -> Candidate:
    """A goal that counts the tracked files of `pattern` that `check` passes; `passed` is what it then prints."""
    least = max(int(count * MOST_FILES), 1)
    return candidate(
        inside(directory, f"git ls-files {pattern} | xargs -n 1 {check} 2>&1 | grep -c {passed}"),
        f"checks the syntax of every source file and prints the number of those without an error, at least {least}",
        Category.LINT,
        weight,
        evidence,
        timeout=900,
    )
