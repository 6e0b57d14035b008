"""Shell projects: bats and shunit2 suites, test scripts, shellcheck, scripts that explain themselves."""

import re
import shlex
from collections.abc import Iterable, Iterator

from autoinstall.agents.rules.contract import Candidate, Context, Plan, Source, Step
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS, SUBMODULES, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.evidence.classify import is_refused, unwrap
from autoinstall.agents.rules.evidence.script import words
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence

_TEST_SCRIPT = re.compile(
    r"^(?:tests?/)?(?:run[-_]?(?:all[-_]?)?tests?|tests?|runtests?|test[-_]?runner|testall|run|all)(?:\.sh|\.bash)?$"
)
_RISKY = re.compile(r"(?i)e2e|integration|network|docker|install|benchmark|slow|deploy|remote")
_HELP = re.compile(r"--help\b")


class ShellEcosystem:
    name = "shell"
    tools = frozenset({"bats", "shunit2", "shellcheck", "bash", "sh", "zsh", "shfmt"})
    suffixes = frozenset({".sh", ".bash", ".bats", ".zsh"})

    def detect(self, tree: Tree) -> bool:
        return any(path.endswith((".sh", ".bash", ".bats")) and path.count("/") <= 3 for path in _own(tree)) or any(
            _is_shell(tree, path) for path in tree.files if path.count("/") <= 1 and "." not in path
        )

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        del sandbox
        tree = context.tree
        yield from _bats(tree)
        yield from _shunit2(tree)
        yield from _scripts(context)
        yield from _shellcheck(context)
        yield from _helpful(tree)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        del sandbox
        tree = context.tree
        text = "\n".join(goal.command for goal in context.targets)
        packages: list[str] = []
        if any(path.endswith(".bats") for path in tree.files) and not _own_bats(tree):
            packages.append("bats")
        if "shellcheck" in text:
            packages.append("shellcheck")
        if "shunit2" in text or (_shunit2_files(tree) and not tree.has("shunit2")):
            packages.append("shunit2")
        steps = [SUBMODULES]
        if packages:
            steps.append(
                Step(
                    command=apt_install(" ".join(packages)),
                    why="The tools that the tests are written for.",
                    timeout=600,
                )
            )
        return Plan(steps=tuple(steps), exhausted=context.attempt >= 2)


def _bats(tree: Tree) -> Iterator[Candidate]:
    files = [path for path in _own(tree) if path.endswith(".bats") and not re.search(r"(?:^|/)fixtures?/", path)]
    if not files:
        return
    bats = _own_bats(tree) or "bats"
    directories = sorted({path.rpartition("/")[0] or "." for path in files}, key=lambda item: (item.count("/"), item))
    main = max(directories, key=lambda item: sum(path.startswith(item) for path in files))
    where = evidence_at(tree, next(path for path in files if main == "." or path.startswith(main)), "@test")
    yield candidate(
        f"{bats} --tap {shlex.quote(main)}",
        "runs the project's bats tests; at least 90% of the tests pass",
        Category.TEST,
        92,
        where,
        exit_codes=(0, 1),
        rate=MOST_TESTS,
        timeout=SUITE_SECONDS,
    )
    yield candidate(
        f"{bats} --count {shlex.quote(main)}",
        "counts the tests and prints the number in at least 1 line",
        Category.OTHER,
        50,
        where,
    )
    for path in _calm(files)[:5]:
        yield candidate(
            f"{bats} --tap {shlex.quote(path)}",
            "runs the tests of one file; at least 90% of the tests pass",
            Category.TEST,
            62,
            evidence_at(tree, path, "@test"),
            exit_codes=(0, 1),
            rate=MOST_TESTS,
        )


def _shunit2(tree: Tree) -> Iterator[Candidate]:
    for path in _calm(_shunit2_files(tree))[:6]:
        directory, _, name = path.rpartition("/")
        run = f"./{name}" if tree.read(path).startswith("#!") else f"sh {name}"
        yield candidate(
            f"cd {shlex.quote(directory)} && {run}" if directory else run,
            "runs the shUnit2 tests of one file; at least 90% of the tests pass",
            Category.TEST,
            60,
            evidence_at(tree, path, "shunit2"),
            exit_codes=(0, 1),
            rate=MOST_TESTS,
        )


def _scripts(context: Context) -> Iterator[Candidate]:
    """Test scripts, called as CI calls them where it does: without its options some run for hours."""
    tree = context.tree
    is_counted = bool(_shunit2_files(tree))  # shUnit2 sums up, so a tolerance can be held against it
    for path in tree.files:
        if not _TEST_SCRIPT.match(path) or not _is_shell(tree, path) or _RISKY.search(path):
            continue
        called = next(
            (
                item
                for item in context.findings.by_category(Category.TEST)
                if item.source is Source.CI and words(unwrap(item.command))[:1] in ([f"./{path}"], [path])
                if not is_refused(item.command) and not re.search(r"[$*|<>]", item.command)
            ),
            None,
        )
        yield candidate(
            unwrap(called.command) if called else f"./{path}",
            "runs the project's test script; at least 90% of the tests pass"
            if is_counted
            else "runs the project's test script to its end, which prints at least 1 line",
            Category.TEST,
            80,
            called.evidence if called else evidence_at(tree, path),
            exit_codes=(0, 1) if is_counted else (0,),
            rate=MOST_TESTS if is_counted else 1.0,
            timeout=SUITE_SECONDS,
        )


def _shellcheck(context: Context) -> Iterator[Candidate]:
    tree = context.tree
    named = next((item.evidence for item in context.findings.commands if "shellcheck" in item.command), None)
    if named is None and not tree.has(".shellcheckrc"):
        return
    files = [path for path in _own(tree) if path.endswith((".sh", ".bash")) and not path.startswith(("test", "."))][:20]
    if files:
        yield candidate(
            f"shellcheck --severity=error {' '.join(shlex.quote(path) for path in files)}",
            "checks the scripts for grave errors; what it finds is the scripts' own",
            Category.LINT,
            60,
            named or Evidence(path=".shellcheckrc"),
            exit_codes=(0, 1),
        )
    yield candidate(
        "shellcheck --version",
        'prints what it is: "ShellCheck - shell script analysis tool"',
        Category.LINT,
        30,
        named or Evidence(path=".shellcheckrc"),
    )


def _helpful(tree: Tree) -> Iterator[Candidate]:
    scripts = [
        path for path in tree.files if path.count("/") <= 1 and _is_shell(tree, path) and not _RISKY.search(path)
    ]
    for path in [path for path in scripts if _HELP.search(tree.read(path))][:4]:
        yield candidate(
            f"./{path} --help",
            "prints the script's usage in at least 2 lines",
            Category.RUN,
            58,
            evidence_at(tree, path, "--help"),
            exit_codes=(0, 1, 2),
        )
    for path in scripts[:6]:
        shell = "bash" if "bash" in tree.read(path).partition("\n")[0] else "sh"
        yield candidate(
            f"{shell} -n {shlex.quote(path)}",
            "reads the script without a syntax error and prints nothing",
            Category.LINT,
            8,
            evidence_at(tree, path),
        )


def _own(tree: Tree) -> list[str]:
    """Files outside of what others wrote and of CI's own helpers."""
    aside = re.compile(
        r"(?:^|/)(?:\.github|\.circleci|vendor|third_party|node_modules|submodules|lib/bats-\w+|test_helper/bats-\w+)/"
    )
    return [path for path in tree.files if not aside.search(path)]


def _own_bats(tree: Tree) -> str:
    """The project's own runner, where it brings one as a tracked file."""
    path = tree.first("bin/bats", "bats", "test/bats/bin/bats", "tests/bats/bin/bats")
    return f"./{path}" if path else ""


def _shunit2_files(tree: Tree) -> list[str]:
    return [
        path
        for path in _own(tree)
        if re.search(r"(?i)test", path.rsplit("/", 1)[-1])
        and _is_shell(tree, path)
        and re.search(r"(?m)^\s*(?:\.|source)\s+.*shunit2|th_oneTimeSetUp|SHUNIT", tree.read(path))
        and not re.search(r"(?i)helpers?|runner", path)
    ]


def _is_shell(tree: Tree, path: str) -> bool:
    first = tree.read(path).partition("\n")[0]
    return bool(re.match(r"#!\s*\S*/(?:env\s+)?(?:ba|da|k|z)?sh\b", first)) or (
        not first.startswith("#!") and path.endswith((".sh", ".bash"))
    )


def _calm(paths: list[str]) -> list[str]:
    """Those least likely to need more than the environment first, and none that names the network or the like."""
    return sorted(
        (path for path in paths if not _RISKY.search(path)), key=lambda path: (path.count("/"), len(path), path)
    )
