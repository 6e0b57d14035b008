"""Remedies for what Python, pip, uv and pytest report."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from packaging.requirements import Requirement

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.ecosystems.python.knowledge import (
    Symptom,
    fixture_plugin,
    is_never_from_index,
    module_distribution,
    option_plugin,
    symptoms,
    tool_distribution,
)
from autoinstall.agents.rules.ecosystems.python.model import requirement_name
from autoinstall.agents.rules.ecosystems.python.sources import Sources
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import CommandResult

_INSTALL = "uv pip install --no-sources"
_UNDATED = "uv pip install --no-config --no-sources"
_MISSING = re.compile(r"No module named ['\"]?([A-Za-z_][\w.]*)['\"]?(?:; '([\w.]+)' is not a package)?")
_MISSING_DISTRIBUTION = re.compile(
    r"(?:PackageNotFoundError: (?:No package metadata was found for )?|DistributionNotFound: The ')([A-Za-z0-9][\w.-]*)"
)
_MISSING_TOOL = re.compile(r"python[\d.]*: No module named ([\w.]+)|(?:line \d+|bash): ([\w.-]+): command not found")
_ARGUMENTS = re.compile(r"error: unrecognized arguments: (.+)")
_FIXTURE = re.compile(r"fixture '(\w+)' not found")
_INI = re.compile(r"Unknown config option: (\S+)|PytestConfigWarning: Unknown config option: (\S+)")
_PLUGIN = re.compile(r"Error importing plugin ['\"]([\w.]+)['\"]|ImportError: Error importing plugin \"([\w.]+)\"")
_MARKERS = re.compile(r"'(\w+)' not found in `markers` configuration option")
_CANNOT_IMPORT = re.compile(r"cannot import name '(\w+)' from '([\w.]+)' \((/\S+)\)")
_PYTHON = re.compile(
    r"(?:requires|require) (?:a different )?Python[: ]+(?:[\d.]+ not in )?'?(?P<spec>[<>=!~][^'\n\\]*)|"
    r"requires-python`? (?:of|value of|for the project)[^\n]*`?(?P<other>[<>=!~][^`\n]*)"
)
_ASYNC = re.compile(r"async def functions are not natively supported|PytestUnhandledCoroutineWarning")
_DJANGO = re.compile(r"settings are not configured|DJANGO_SETTINGS_MODULE is (?:undefined|not (?:set|defined))")
_WARNING_ERRORS = re.compile(r"(?m)^E\s+\w*(?:Deprecation|Future|Resource|User|Import|Syntax)Warning:")
_EXTRA_HINT = re.compile(r"(?:pip install|install with|install) ['\"`]?([A-Za-z0-9][\w.-]*\[[\w, -]+\])['\"`]?")
_FILTERED = re.compile(r"`([a-z0-9][a-z0-9-]*)` was filtered by `exclude-newer`[^\n]*uploaded before (\S+?)\.?\s")
_PYTEST = re.compile(r"\bpytest\b|test session starts")
_PYTEST_VERSION = "python -c 'import pytest; print(pytest.__version__)'"
_OPTIONS = "PYTEST_ADDOPTS"
_TEST_SECONDS = 120
"""Of one test at most, where the whole suite hung: more than any takes that waits for something that comes."""

_GRACE = timedelta(days=180)
_MAX_MODULES = 12


class PythonRepairer:
    """The `Repairer` of Python."""

    name = "python"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        """Remedies for what `failure` shows; modules that are missing come first, in one installation."""
        output = failure.output
        if failure.idle and _PYTEST.search(f"{failure.command}\n{output}"):
            return (_time_limit(sandbox.recipe.env.get(_OPTIONS, ""), failure.duration),)
        if not re.search(r"Traceback|[Ee]rror|[Ww]arn|No module named|not found", output):
            return ()
        found = [
            *_hints(context, output),
            *_missing_tools(output),
            *_missing_modules(context, output, sandbox),
            *_missing_distributions(context, output),
            *_pytest(output),
            *_by_symptom(output),
            *_django(context.tree, output),
            *_stale_names(output),
            *_interpreter(output),
            *_dates(output),
            *_filtered(output),
        ]
        return tuple(found)


def _time_limit(options: str, waited: float) -> Repair:
    """A test that waits for ever fails by itself, is counted as failed, and the others are run.

    Args:
        waited: seconds after which the suite was ended; a test has to be ended well before that.
    """
    limit = min(_TEST_SECONDS, round(waited / 3))
    return Repair(
        key="python-test-limit",
        why="A test waits for something that never comes, and keeps the others from running",
        commands=(f'{_UNDATED} pytest-timeout "pytest==$({_PYTEST_VERSION})"',),
        env={_OPTIONS: f"{options} --timeout={limit}".strip()},
        lesson=f"a test hangs; each gets {limit} s",
    )


def _missing_tools(output: str) -> Iterator[Repair]:
    """`python -m tool` and `tool` themselves, which no directory of the checkout stands in for."""
    for match in _MISSING_TOOL.finditer(output):
        name = match[1] or match[2]
        distribution = tool_distribution(name)
        if distribution:
            yield _installation([distribution], f"{name} is not there")
            yield _installation([distribution], f"{name} is not there", undated=True)


def _missing_modules(context: Context, output: str, sandbox: Sandbox) -> Iterator[Repair]:
    modules = list(dict.fromkeys(match[1] for match in _MISSING.finditer(output)))[:_MAX_MODULES]
    local = [module for module in modules if _local_directory(context.tree, module) is not None]
    for module in local:
        directory = _local_directory(context.tree, module) or ""
        place = f"/workspace/{directory}".rstrip("/")
        path = sandbox.recipe.env.get("PYTHONPATH", "")
        if place not in path.split(":"):
            yield Repair(
                key=f"python-path:{place}",
                why=f"{module} lies in {place}",
                env={"PYTHONPATH": ":".join(part for part in (path, place) if part)},
                lesson=f"PYTHONPATH needs {place}",
            )
    sources = Sources(context)
    itself = {name.split(".")[0] for project in sources.projects for name in project.packages}
    if any(module.split(".")[0] in itself for module in modules if module not in local):
        yield from _rebuild(sources)
    foreign = [
        module
        for module in modules
        if module not in local and module.split(".")[0] not in itself and not is_never_from_index(module.split(".")[0])
    ]
    if not foreign:
        return
    wanted = list(dict.fromkeys(_requirement(sources, module) for module in foreign))
    if len(wanted) > 1:
        yield _installation(wanted, f"missing modules: {', '.join(foreign)}")
    for module, requirement in zip(foreign, wanted, strict=False):
        yield _installation([requirement], f"missing module: {module}")
    for requirement in wanted:
        yield _installation([requirement], "not to be had as of the commit's date", undated=True)
    for requirement in wanted:
        for near in _nearest(requirement):
            yield _installation([near], f"{requirement} is not to be had")


def _nearest(line: str) -> Iterator[str]:
    """What comes closest to a release that is not there: its series, then any."""
    requirement = Requirement(line)
    name = requirement.name + (f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else "")
    for pin in requirement.specifier:
        series = ".".join(pin.version.split(".")[:2])
        if pin.operator == "==" and series != pin.version:
            yield f"{name}=={series}.*"
    if requirement.specifier:
        yield name


def _rebuild(sources: Sources) -> Iterator[Repair]:
    """A module of the project's own that is not in the tree is one that its build makes."""
    place = f"./{sources.main.root}" if sources.main.root else "."
    if sources.tree.has(sources.main.path("setup.py")):
        yield Repair(
            key="python-build-ext",
            why="A module of the project itself is made by its build",
            commands=(f"cd {place} && python setup.py build_ext --inplace",),
        )
    yield Repair(
        key="python-build-in-place",
        why="A module of the project itself is made by its build",
        commands=(f"{_INSTALL} --no-deps --no-build-isolation --reinstall -e {place}",),
    )
    yield Repair(
        key="python-install-built",
        why="A module of the project itself is made by its build",
        commands=(f"{_INSTALL} --no-deps --reinstall {place}",),
        lesson="the project has to be built rather than used in place",
    )


def _requirement(sources: Sources, module: str) -> str:
    distribution = module_distribution(module)
    return sources.declared(requirement_name(distribution)) or distribution


def _local_directory(tree: Tree, module: str) -> str | None:
    """The directory of the checkout that `module`'s top-level name lies in; None where it does not lie there."""
    path = module.replace(".", "/")
    candidates = [name for name in tree.match(f"**/{path}.py") if "/site-packages/" not in name]
    candidates += tree.match(f"**/{path}/__init__.py")
    if not candidates and "." in module:
        return None
    candidates.sort(key=lambda name: name.count("/"))
    for name in candidates:
        directory = name.removesuffix("/__init__.py").removesuffix(".py")
        base = directory[: -len(path)].rstrip("/")
        # A directory that is itself a package does not go onto the path: its modules are imported through it.
        if not tree.has(f"{base}/__init__.py") or "." in module:
            return base
        if base.split("/")[-1] in ("tests", "test"):
            return base
    return None


def _missing_distributions(context: Context, output: str) -> Iterator[Repair]:
    for match in _MISSING_DISTRIBUTION.finditer(output):
        name = match[1].rstrip(".'")
        sources = Sources(context)
        if requirement_name(name) == requirement_name(sources.main.name or "-"):
            place = f"./{sources.main.root}" if sources.main.root else "."
            yield Repair(
                key=f"python-own:{name}",
                why="The project's own metadata is asked for",
                commands=(f"{_INSTALL} --no-deps -e {place} || {_INSTALL} --no-deps {place}",),
            )
        else:
            yield _installation([sources.declared(requirement_name(name)) or name], f"missing distribution: {name}")


def _pytest(output: str) -> Iterator[Repair]:
    plugins: dict[str, str] = {}
    for match in _ARGUMENTS.finditer(output):
        for word in match[1].split():
            plugin = option_plugin(word) if word.startswith("-") else None
            if plugin:
                plugins.setdefault(plugin, f"pytest does not know {word}")
    for match in _FIXTURE.finditer(output):
        plugin = fixture_plugin(match[1])
        if plugin:
            plugins.setdefault(plugin, f"no fixture {match[1]}")
    for match in _INI.finditer(output):
        name = match[1] or match[2]
        plugin = option_plugin(name)
        if plugin:
            plugins.setdefault(plugin, f"pytest does not know the setting {name}")
    if _ASYNC.search(output):
        plugins.setdefault("pytest-asyncio" if "trio" not in output else "pytest-trio", "tests are coroutines")
    for plugin, why in plugins.items():
        yield _installation([plugin], why)
    for plugin, why in plugins.items():
        yield _installation([plugin], why, undated=True)
    for match in _PLUGIN.finditer(output):
        name = match[1] or match[2]
        if not is_never_from_index(name):
            yield _installation([module_distribution(name)], f"pytest is told to load {name}")


def _by_symptom(output: str) -> Iterator[Repair]:
    for symptom in symptoms():
        match = re.search(symptom.pattern, output, re.MULTILINE)
        if match:
            yield _of_symptom(symptom, match)


def _of_symptom(symptom: Symptom, match: re.Match[str]) -> Repair:
    groups = [group or "" for group in match.groups()]
    install = [text.format("", *groups) for text in symptom.install]
    lesson = symptom.lesson
    if symptom.python_max:
        lesson = f"python<={symptom.python_max}: {symptom.why}"
    if install:
        return _installation(install, symptom.why, undated=symptom.undated, lesson=lesson)
    return Repair(
        key=f"python-symptom:{symptom.why}",
        why=symptom.why,
        commands=symptom.commands,
        env=symptom.env,
        lesson=lesson,
    )


def _django(tree: Tree, output: str) -> Iterator[Repair]:
    if not _DJANGO.search(output):
        return
    named: list[str] = []
    for path in (*tree.match("**/manage.py"), *tree.match("**/runtests.py"), *tree.match("**/tox.ini")):
        named += re.findall(r"DJANGO_SETTINGS_MODULE['\"]?\s*[,=\]]+\s*['\"]?([\w.]+)", tree.read(path))
    for pattern in ("**/test_settings.py", "**/tests/settings.py", "**/settings/test*.py", "**/settings.py"):
        named += [path.removesuffix(".py").replace("/", ".").removeprefix("src.") for path in tree.match(pattern)]
    for module in list(dict.fromkeys(named))[:3]:
        yield Repair(
            key=f"python-django:{module}",
            why="Django is not told which settings to use",
            env={"DJANGO_SETTINGS_MODULE": module},
        )


def _stale_names(output: str) -> Iterator[Repair]:
    """`cannot import name` from an installed distribution: another release of it has the name."""
    for match in _CANNOT_IMPORT.finditer(output):
        name, module, path = match.groups()
        if "site-packages" not in path:
            continue
        distribution = requirement_name(module_distribution(module))
        if distribution:
            yield Repair(
                key=f"python-newer:{distribution}",
                why=f"{module} has no {name} in the release that is installed",
                commands=(f"{_UNDATED} --upgrade-package {distribution} {distribution}",),
                lesson=f"{distribution} of the commit's date has no {name}",
            )


def _interpreter(output: str) -> Iterator[Repair]:
    """What only another interpreter ends is a lesson for the next attempt; nothing is changed now."""
    lessons: list[str] = []
    if re.search(r"SyntaxError: (?:Missing parentheses in call to 'print'|invalid syntax)", output):
        lessons.append("a file is not in this interpreter's syntax")
    match = _PYTHON.search(output)
    if match:
        lessons.append(f"a requirement wants Python {(match['spec'] or match['other'] or '').strip()[:60]}")
    for lesson in lessons:
        yield Repair(key=f"python-lesson:{lesson}", why=lesson, commands=("true",), lesson=lesson)


def _dates(output: str) -> Iterator[Repair]:
    """An index without upload dates has nothing as of any date."""
    if re.search(r"is missing an upload date|lacks? (?:an )?upload", output):
        yield Repair(
            key="python-undated",
            why="The index does not say when its files were uploaded, so nothing can be had as of a date",
            commands=("sed -i '/exclude-newer/,$d' \"$UV_CONFIG_FILE\"",),
            lesson="the index has no upload dates; releases are newer than the commit",
        )


def _filtered(output: str) -> Iterator[Repair]:
    """What is required was published a little after the commit: its date alone is moved on by half a year."""
    table = "exclude-newer-package"
    for match in _FILTERED.finditer(output):
        name, date = match.groups()
        moved = (datetime.fromisoformat(date) + _GRACE).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield Repair(
            key=f"python-later:{name}",
            why=f"The releases of {name} that are required came after the cut-off date",
            commands=(
                f"sed -i '/^{name} = /d' \"$UV_CONFIG_FILE\"",
                f'grep -q "^.{table}" "$UV_CONFIG_FILE" || echo "[{table}]" >> "$UV_CONFIG_FILE"',
                f'echo \'{name} = "{moved}"\' >> "$UV_CONFIG_FILE"',
            ),
            lesson=f"{name} has to be newer than the commit",
        )


def _hints(context: Context, output: str) -> Iterator[Repair]:
    own = ""
    for match in _EXTRA_HINT.finditer(output):
        own = own or requirement_name(Sources(context).main.name) or "-"
        requirement = match[1].replace(" ", "")
        name = requirement_name(requirement)
        if name == own:
            extras = requirement[requirement.index("[") :]
            yield Repair(
                key=f"python-own-extra:{extras}",
                why="The message itself names what is missing",
                commands=(f"{_INSTALL} -e '.{extras}'",),
                lesson=f"needs its own extra {extras}",
            )
        elif name:
            yield _installation([requirement], "The message itself names what is missing")


def _installation(requirements: Iterable[str], why: str, *, undated: bool = False, lesson: str = "") -> Repair:
    words = list(requirements)
    command = _UNDATED if undated else _INSTALL
    quoted = " ".join(shlex.quote(word) for word in words)
    return Repair(
        key=f"python-install:{'undated:' if undated else ''}{' '.join(words)}",
        why=why,
        commands=(f"{command} {quoted}",),
        lesson=lesson or f"needs {' '.join(words)}",
    )
