"""The test command that a project names, brought to what runs in a plain environment."""

import posixpath
import re
import shlex

from autoinstall.tree import Tree

# Options of the project's own test command that choose what is run; all others only choose how it is shown or measured.
_KEPT_WITH_VALUE = (
    "-m",
    "-k",
    "--ignore",
    "--ignore-glob",
    "--deselect",
    "-p",
    "-c",
    "--ds",
    "--import-mode",
    "-o",
    "--rootdir",
    "--confcutdir",
    "-W",
    "--override-ini",
    "--asyncio-mode",
    "--doctest-glob",
)
_KEPT = ("--pyargs", "--doctest-modules", "--strict-markers", "--no-cov", "--forked", "--disable-socket")
_DROPPED_WITH_VALUE = (
    "-n",
    "--numprocesses",
    "--maxfail",
    "--durations",
    "--junitxml",
    "--junit-xml",
    "--timeout",
    "--cov-report",
    "--cov-config",
    "--color",
    "--tb",
    "-r",
    "--log-level",
    "--html",
    "--dist",
    "--basetemp",
    "--reruns",
    "--splits",
    "--group",
    "--cov-fail-under",
    "--verbosity",
)


def plain_test_command(command: str, tree: Tree, directory: str = "") -> str | None:
    """A tox or CI test command without its wrappers, coverage, reports and parallelism; None where it is no test
    command, or one that cannot be told statically."""
    command = re.sub(r"\s*(?:2>&1\s*)?(?:\|\s*tee\s+\S+|\|\|\s*true|>\s*\S+)\s*$", "", command)
    if re.search(r"[|;&<>$`*]|\$\{\{", command):
        return None
    words = split(re.sub(r"\{[^}]*\}", "", command))
    words = _without_wrappers(words)
    if not words:
        return None
    prefix = f"cd {shlex.quote(directory)} && " if directory and directory != "." else ""
    joined = " ".join(words[:3])
    if words[0] in ("pytest", "py.test"):
        return prefix + _pytest(words[1:], tree, directory)
    if joined.startswith(("python -m pytest", "python3 -m pytest")):
        return prefix + _pytest(words[3:], tree, directory)
    if words[0] in ("nosetests", "nose2"):
        return prefix + "python -m pytest"
    if re.match(r"python3? setup\.py test", joined):
        return None
    if re.match(r"python3? (?:\S*/)?(?:manage|runtests|run_tests|runtest)\.py", joined):
        script = posixpath.normpath(posixpath.join(directory, words[1]))
        if tree.has(script) and (not script.endswith("manage.py") or "test" in words[2:]):
            return prefix + shlex.join(["python", *words[1:]])
    if joined.startswith(("python -m unittest", "python3 -m unittest", "python -m django test")):
        return prefix + shlex.join(["python", *words[1:]])
    if words[0] in ("django-admin", "django-admin.py") and "test" in words[1:3]:
        return prefix + shlex.join(["django-admin", *words[1:]])
    return None


def _without_wrappers(words: list[str]) -> list[str]:
    while words:
        if words[0] == "-":
            words = words[1:]
        elif words[0] == "coverage" and "run" in words[:2]:
            rest = words[2:]
            while rest and rest[0].startswith("-") and rest[0] != "-m":
                takes_value = rest[0] in ("--source", "--rcfile", "--omit", "--include", "--concurrency", "--context")
                rest = rest[2:] if takes_value else rest[1:]
            words = ["python", *rest]
        elif re.fullmatch(r"(?:\w+)=\S*", words[0]):
            words = words[1:]
        elif words[0] == "python" and len(words) > 1 and words[1] in ("-b", "-bb", "-u", "-Wd", "-Werror", "-I", "-v"):
            words = ["python", *words[2:]]
        elif words[0] == "python" and len(words) > 2 and words[1] in ("-W", "-X"):
            words = ["python", *words[3:]]
        elif words[0] == "python" and words[1:3] == ["-m", "coverage"]:
            words = words[2:]
        elif words[0] in ("slipcover", "xvfb-run", "time"):
            words = words[1:]
        else:
            return words
    return words


def _pytest(words: list[str], tree: Tree, directory: str) -> str:
    kept: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        name = word.split("=", 1)[0]
        has_value = "=" not in word and index + 1 < len(words)
        if name in _KEPT_WITH_VALUE:
            kept += [word, words[index + 1]] if has_value else [word]
            index += has_value
        elif name in _KEPT:
            kept.append(word)
        elif name in _DROPPED_WITH_VALUE:
            index += has_value
        elif name == "--cov" and has_value and not words[index + 1].startswith("-"):
            index += 1
        elif not word.startswith("-") and (_exists(tree, directory, word) or "--pyargs" in words):
            kept.append(word)
        index += 1
    return shlex.join(["python", "-m", "pytest", *kept])


def _exists(tree: Tree, directory: str, word: str) -> bool:
    path = posixpath.normpath(posixpath.join(directory, word.split("::", maxsplit=1)[0]))
    return path == "." or tree.has(path) or tree.has_directory(path)


def split(text: str) -> list[str]:
    """The words of a command line; at blanks where its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
