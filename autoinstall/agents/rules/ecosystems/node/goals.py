"""Goals of a Node project, each with the line that it comes from."""

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from autoinstall.agents.rules.contract import Candidate
from autoinstall.agents.rules.ecosystems.node.knowledge import Linter, Runner, knowledge
from autoinstall.agents.rules.ecosystems.node.managers import PackageManager, inside
from autoinstall.agents.rules.ecosystems.node.manifest import BUILD_OUTPUT, Package
from autoinstall.agents.rules.ecosystems.node.samples import finds_tests, runner_call, single_file_command, test_files
from autoinstall.agents.rules.ecosystems.node.scripts import Part, once, parts
from autoinstall.agents.rules.evidence.script import words
from autoinstall.values import Category, Evidence, Goal

PASS_RATE = 0.9
_TEST_SCRIPT = re.compile(
    r"^(?:test|tests|unit|spec|jest|mocha|vitest|tap|ava)(?:$|[:_.-](?:unit|only|node|js|ts|types?|ci|run|jest|mocha|all|main|src|lib|spec|coverage|cov|dev))$",
    re.I,
)
_RISKY_SCRIPT = re.compile(
    r"e2e|browser|integration|karma|watch|debug|perf|bench|update|saucelabs|cypress|playwright|deno|bun\b|snapshot|coveralls|codecov|smoke|publish|deploy|release|docs|server|prod",
    re.I,
)
_BUILD_SCRIPT = re.compile(
    r"^(?:build|compile|dist|bundle|transpile|package|prepare|prepublish|prepublishOnly|build[:_-](?:lib|node|cjs|esm|src|main|js|ts|all|types|prod|dist))$"
)
_LINT_SCRIPT = re.compile(
    r"^(?:lint|eslint|xo|standard|check|format:check|check:format|check-format|prettier|lint[:_-](?:js|ts|check|src|code|es|eslint|all|types?|format)|fmt:check|prettier:check|check[:_-](?:lint|types|format)|style)$",
    re.I,
)
_TYPES_SCRIPT = re.compile(
    r"^(?:typecheck|type-check|types|check-types|tsc|check:types|lint:types|lint:tsc|types:check|test:types|test:typescript|test:tsc|check:type|ts|ts:check)$",
    re.I,
)
_COMPILED = (".ts", ".tsx", ".mts", ".cts", ".coffee", ".mjs")
_LISTENS = re.compile(r"\.listen\s*\(")
_REWRITES = re.compile(r"--(?:fix|write)\b|\bgit\b|npm publish|\blerna publish")


def candidates(package: Package, manager: PackageManager) -> Iterator[Candidate]:
    """All goals of one package and of its workspace's members; the best have the greatest weight."""
    yield from _tests(package, manager, weight=95)
    yield from _samples(package, manager, weight=62, limit=4)
    yield from _builds(package, manager, weight=74)
    yield from _lints(package, manager, weight=64)
    yield from _types(package, manager, weight=60)
    yield from _entries(package, manager, weight=50)
    yield from _programs(package, manager, weight=56)
    for index, member in enumerate(_interesting(package)):
        lighter = 2 * index
        yield from _tests(member, manager, weight=80 - lighter)
        yield from _samples(member, manager, weight=54 - lighter, limit=1 if index else 2)
        yield from _entries(member, manager, weight=44 - lighter)
        yield from _builds(member, manager, weight=48 - lighter)
    yield from _tools(package, manager, weight=26)
    yield from _dependencies(package, manager, weight=22)


def _interesting(package: Package) -> list[Package]:
    """Members with tests of their own, at most six, the ones with most source first."""
    tested = [member for member in package.members if "test" in member.scripts or _runner(member)]
    return sorted(tested, key=lambda member: (-_size(member), member.directory))[:6]


def _size(package: Package) -> int:
    return sum(path.startswith(package.directory + "/") for path in package.tree.files)


def _goal(
    package: Package,
    command: str,
    description: str,
    category: Category,
    evidence: Evidence,
    *,
    exit_codes: tuple[int, ...] = (0,),
    pass_rate: float = 1.0,
) -> Goal:
    return Goal(
        command=inside(package.directory, command),
        description=description,
        category=category,
        exit_codes=exit_codes,
        min_pass_rate=pass_rate,
        evidence=evidence,
    )


def _test_goal(package: Package, command: str, runner: str, evidence: Evidence, subject: str = "test suite") -> Goal:
    return _goal(
        package,
        command,
        f"The {subject} runs to its end under {runner} and reports its results; at least 90% of the tests pass.",
        Category.TEST,
        evidence,
        exit_codes=(0, 1),
        pass_rate=PASS_RATE,
    )


def _script_goal(package: Package, command: str, evidence: Evidence) -> Goal:
    """For tests that are plain programs: they print no summary, and an assertion that fails ends them."""
    text = "The project's own test program runs to its end; no assertion fails."
    return _goal(package, command, text, Category.OTHER, evidence)


def _tests(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    seen = 0
    covered: set[str] = set()
    names = sorted(
        (name for name in package.scripts if _TEST_SCRIPT.match(name) or name == "test"),
        key=lambda name: (name != "test", bool(_RISKY_SCRIPT.search(name)), len(name)),
    )
    for name in names[:6]:
        listed = parts(package, name)
        runs = [part for part in listed if part.kind == "test"]
        penalty = 30 * bool(_RISKY_SCRIPT.search(name)) + 6 * (seen > 0)
        penalty += 25 * bool(runs and covered.issuperset(part.command for part in runs))
        covered.update(part.command for part in runs)
        whole = manager.run_script(name)
        evidence = package.script_evidence(name)
        many = any(part.kind == "many" for part in listed)
        if not runs and not many:
            continue
        watches = any(once(part.command) != part.command for part in runs)
        if runs and not many and all(part.tool in _PLAIN for part in runs) and not _prints_tap(package):
            yield _candidate(_script_goal(package, whole, evidence), weight - penalty)
        elif many or (len(runs) == len(listed) and not watches) or (runs and _mixed_needs_script(listed, watches)):
            yield _candidate(_test_goal(package, whole, _called(runs), evidence), weight - penalty - _browser(runs))
        elif runs:
            for part in runs[:3]:
                command = _direct(manager, once(part.command))
                evidence = package.script_evidence(part.script)
                if part.tool in _PLAIN and not _prints_tap(package):
                    yield _candidate(_script_goal(package, command, evidence), weight - penalty - 12)
                    continue
                goal = _test_goal(package, command, _called([part]), evidence)
                yield _candidate(goal, weight - penalty - _browser([part]) - (1 if len(runs) > 1 else 0))
        seen += 1
    if not seen and (runner := _runner(package)):
        called = runner_call(package, runner)
        command, evidence = called or (
            runner.single,
            package.evidence(f'"{runner.packages[0]}":') if runner.packages else package.evidence('"name"'),
        )
        doubt = 15 if called or finds_tests(package, runner) else 60
        yield _candidate(_test_goal(package, manager.local(command), runner.name, evidence), weight - doubt)


def _candidate(goal: Goal, weight: int) -> Candidate:
    return Candidate(goal=goal, weight=max(weight, 1))


_PLAIN = frozenset({"node", "tsx", "ts-node", "babel-node", "make"})


def _prints_tap(package: Package) -> bool:
    """Whether test files that are run as plain programs print a summary that is read."""
    return any(
        name in package.direct for name in ("tape", "uvu", "zora", "brittle", "tap", "tape-catch", "@tapjs/test")
    )


def _mixed_needs_script(listed: tuple[Part, ...], watches: bool) -> bool:
    """Builds before the tests belong to them; linters do not."""
    return not watches and all(part.kind in ("test", "build", "") for part in listed)


def _called(runs: list[Part]) -> str:
    tools = list(dict.fromkeys(part.tool for part in runs))
    if not tools:
        return "the packages' own runners"
    return " and ".join("Node's test runner" if tool in ("node:test", "node") else tool for tool in tools[:3])


def _browser(runs: list[Part]) -> int:
    tools = {part.tool for part in runs}
    return 45 if tools & {"karma", "wtr", "web-test-runner", "ng", "electron-mocha", "intern", "testem"} else 0


def _direct(manager: PackageManager, command: str) -> str:
    """A script's command outside of its script: assignments are given to env, programs are found in node_modules."""
    split = words(command)
    assignments = [word for word in split if re.match(r"^[A-Za-z_]\w*=", word)]
    if assignments and split[: len(assignments)] == assignments:
        rest = command
        for word in assignments:
            rest = rest[rest.index(word.split("=")[0]) :]
            rest = rest[len(word) :] if rest.startswith(word) else rest.split(" ", 1)[1]
        return f"{' '.join(map(shlex.quote, assignments))} {manager.local(rest.strip())}"
    if split and split[0] in ("npx", "npm", "yarn", "pnpm", "make"):
        return command
    return manager.local(re.sub(r"^(?:\./)?node_modules/\.bin/", "", command))


def _runner(package: Package) -> Runner | None:
    """The runner of the test script, else the one among the dependencies."""
    known = {runner.name: runner for runner in knowledge().runner}
    for name in ("test", *(name for name in package.scripts if _TEST_SCRIPT.match(name))):
        for part in parts(package, name):
            if part.kind == "test" and part.tool in known:
                return known[part.tool]
    return next(
        (runner for runner in knowledge().runner if any(name in package.direct for name in runner.packages)), None
    )


def _samples(package: Package, manager: PackageManager, weight: int, limit: int) -> Iterator[Candidate]:
    runner = _runner(package)
    if runner is None:
        return
    scripts = [name for name in package.scripts if name == "test" or _TEST_SCRIPT.match(name)]
    part = next((item for name in scripts for item in parts(package, name) if item.tool == runner.name), None)
    for index, path in enumerate(test_files(package, runner)[:limit]):
        command = single_file_command(part, runner, path)
        local = f"{manager.local(command)}" if not command.startswith("env ") else _env(manager, command)
        evidence = Evidence(path=package.path(path), line=1, text=f"a test file for {runner.name}")
        goal = _test_goal(package, local, _called_runner(runner), evidence, "test file")
        yield _candidate(goal, weight - 3 * index)


def _env(manager: PackageManager, command: str) -> str:
    split = words(command)[1:]
    assignments = [word for word in split if re.match(r"^[A-Za-z_]\w*=", word)]
    rest = " ".join(map(shlex.quote, split[len(assignments) :]))
    return f"{' '.join(map(shlex.quote, assignments))} {manager.local(rest)}"


def _called_runner(runner: Runner) -> str:
    return "Node's test runner" if runner.name == "node:test" else runner.name


def _builds(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    seen = 0
    for name in sorted(
        (item for item in package.scripts if _BUILD_SCRIPT.match(item)), key=lambda item: (item != "build", len(item))
    ):
        listed = parts(package, name)
        if not listed or not any(
            part.kind in ("build", "many", "types") or part.tool in ("node", "make") for part in listed
        ):
            continue
        if _REWRITES.search(package.scripts[name]) or any(part.kind == "test" for part in listed):
            continue
        text = "The build runs through without an error."
        goal = _goal(package, manager.run_script(name), text, Category.BUILD, package.script_evidence(name))
        yield _candidate(goal, weight - 14 * seen)
        seen += 1
        if seen == 2:
            return


def _lints(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    linters = {item.name: item for item in knowledge().linter}
    seen: set[str] = set()
    for name in package.scripts:
        if not (_LINT_SCRIPT.match(name) or name in ("test", "pretest", "posttest")):
            continue
        for part in parts(package, name, hooks=False):
            if part.kind != "lint" or _REWRITES.search(part.command) or part.tool not in linters or part.tool in seen:
                continue
            seen.add(part.tool)
            command = (
                manager.run_script(name)
                if package.scripts[name].strip() == part.command
                else _direct(manager, part.command)
            )
            yield _lint(
                package, linters[part.tool], command, package.script_evidence(part.script), weight - 6 * (len(seen) - 1)
            )
    for linter in linters.values():
        if linter.package in package.direct and linter.name not in seen and _configured(package, linter):
            yield _lint(
                package, linter, manager.local(linter.command), package.evidence(f'"{linter.package}":'), weight - 20
            )


def _lint(package: Package, linter: Linter, command: str, evidence: Evidence, weight: int) -> Candidate:
    text = f"{linter.name} checks the sources: it reports nothing, or its findings file by file, and does not crash."
    goal = _goal(package, command, text, Category.LINT, evidence, exit_codes=(0, 1))
    return _candidate(goal, weight)


def _configured(package: Package, linter: Linter) -> bool:
    if linter.name == "eslint":
        configs = (
            ".eslintrc",
            ".eslintrc.js",
            ".eslintrc.cjs",
            ".eslintrc.json",
            ".eslintrc.yml",
            ".eslintrc.yaml",
            "eslint.config.js",
            "eslint.config.mjs",
            "eslint.config.cjs",
            "eslint.config.ts",
        )
        return (
            "eslintConfig" in package.data or package.tree.first(*(package.path(item) for item in configs)) is not None
        )
    return linter.name in ("xo", "standard")


def _types(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    for name in sorted(package.scripts):
        if _TYPES_SCRIPT.match(name) and any(
            part.kind == "types" or part.tool in ("tsd", "tsc") for part in parts(package, name)
        ):
            text = "The types are checked and no error is reported."
            goal = _goal(package, manager.run_script(name), text, Category.LINT, package.script_evidence(name))
            yield _candidate(goal, weight)
            return
    if "typescript" in package.direct and package.tree.has(package.path("tsconfig.json")):
        evidence = Evidence(path=package.path("tsconfig.json"), line=1, text="the TypeScript configuration")
        text = "TypeScript checks the project and reports no error."
        goal = _goal(package, manager.local("tsc --noEmit -p tsconfig.json"), text, Category.LINT, evidence)
        references = '"references"' in package.tree.read(package.path("tsconfig.json"))
        yield _candidate(goal, weight - (25 if references or package.workspaces else 8))


def _entries(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    """The package's main module can be loaded."""
    main = package.text("main")
    exports = package.data.get("exports")
    if not main and not exports and (package.data.get("private") is True or not _there(package, "index")):
        return
    entry = main or _first_target(exports) or "index.js"
    if not _there(package, entry) and not _is_built(package, entry):
        return
    starts = package.data.get("private") is True or PurePosixPath(entry).name in package.scripts.get("start", "")
    if starts and _LISTENS.search(package.tree.read(package.path(entry))):
        return  # an application: what loads it waits for requests
    path = _js("./" + entry.removeprefix("./"))
    if package.text("type") == "module" or entry.endswith(".mjs"):
        script = f'import({path}).then(m => console.log("loaded", Boolean(m)))'
    elif main or package.tree.has(package.path("index.js")):
        script = 'console.log("loaded", Boolean(require("./")))'
    else:
        script = f'console.log("loaded", Boolean(require({path})))'
    needle = '"main"' if main else '"exports"' if exports else '"name"'
    goal = _goal(
        package,
        manager.local(f"node -e {shlex.quote(script)}"),
        'The main module of the package loads, and the output says "loaded true".',
        Category.RUN,
        package.evidence(needle, f"the package's entry: {main or 'exports'}"),
    )
    yield _candidate(goal, weight)


def _there(package: Package, entry: str) -> bool:
    """Whether the checkout has what `entry` names, by the rules of `require`."""
    return any(package.tree.has(package.path(f"{entry}{end}")) for end in ("", ".js", ".json", ".cjs", "/index.js"))


def _is_built(package: Package, entry: str) -> bool:
    """Whether a build is there that may make it: `npm init` names an index.js that many projects never have."""
    stem = re.sub(r"\.[cm]?js$", "", entry)
    sources = any(package.tree.has(package.path(f"{stem}{end}")) for end in _COMPILED)
    return any(map(_BUILD_SCRIPT.match, package.scripts)) and (sources or BUILD_OUTPUT.search(entry) is not None)


def _js(text: str) -> str:
    return '"' + re.sub(r"[\"\\\\]", "", text) + '"'


def _first_target(exports: object) -> str:
    """The file that `exports` gives for the package itself."""
    for _ in range(6):
        if isinstance(exports, str):
            return exports
        if isinstance(exports, list):
            exports = exports[0] if exports else None
        elif isinstance(exports, dict):
            keys = (".", "import", "node", "default", "require")
            exports = next((exports[key] for key in keys if key in exports), None)
        else:
            return ""
    return ""


def _programs(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    """Executables of the package answer to --help or --version."""
    bins = package.data.get("bin")
    if isinstance(bins, str):
        bins = {package.name.rsplit("/", 1)[-1]: bins}
    if not isinstance(bins, dict):
        return
    version = package.text("version")
    for index, (name, path) in enumerate(sorted(bins.items())[:2]):
        if not isinstance(path, str):
            continue
        source = package.tree.read(package.path(path))
        shows_version = bool(re.search(r"version", source, re.I)) and bool(version)
        flag = "--help"
        text = "The program explains how it is used."
        if shows_version and not re.search(r"help", source, re.I):
            flag, text = "--version", f'The program prints its version, "{version}".'
        goal = _goal(
            package,
            manager.local(f"node {shlex.quote(path.removeprefix('./'))} {flag}"),
            text,
            Category.RUN,
            package.evidence('"bin"', f"the executable {name}"),
        )
        yield _candidate(goal, weight - 8 * index - (0 if source else 6))


def _tools(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    """The project's own tools are installed: weak, for packages that have little else."""
    named = [(runner.name, runner.packages) for runner in knowledge().runner if runner.shows_version]
    named += [(linter.name, (linter.package,)) for linter in knowledge().linter]
    named += [
        (name, (name,))
        for name in ("typescript", "nyc", "c8", "rollup", "webpack", "esbuild", "webpack-cli")
        if name != "webpack"
    ]
    for index, (name, packages) in enumerate(
        (name, packages) for name, packages in named if any(item in package.direct for item in packages)
    ):
        tool = "tsc" if name == "typescript" else name.removesuffix("-cli")
        installed = next(item for item in packages if item in package.direct)
        goal = _goal(
            package,
            manager.local(f"{tool} --version"),
            f"{tool} is installed for the project and prints its version.",
            Category.OTHER,
            package.evidence(f'"{installed}":'),
        )
        yield _candidate(goal, max(weight - 2 * index, 8))


def _dependencies(package: Package, manager: PackageManager, weight: int) -> Iterator[Candidate]:
    """Dependencies are there, by their own package.json: weak, and always possible where there are any."""
    if manager.pnp:
        return
    ordered = [name for name in (*package.runtime, *package.direct) if re.fullmatch(r"(@[\w.-]+/)?[\w.-]+", name)]
    for index, name in enumerate(list(dict.fromkeys(ordered))[:8]):
        if name.startswith("@types/"):
            continue
        script = f'console.log("{name}", require("./node_modules/{name}/package.json").version)'
        goal = _goal(
            package,
            f"node -e {shlex.quote(script)}",
            f'The dependency "{name}" is installed and its version is printed.',
            Category.OTHER,
            package.evidence(f'"{name}":'),
        )
        yield _candidate(goal, max(weight - 2 * index, 4))
