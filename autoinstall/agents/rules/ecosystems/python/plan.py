"""The set-up of a Python project: interpreter, virtual environment, one resolution of all that its tests need."""

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.ecosystems.python.checkers import configured_checkers
from autoinstall.agents.rules.ecosystems.python.interpreter import Choice, allows, available, newest_before, ranked
from autoinstall.agents.rules.ecosystems.python.knowledge import breaks, floors, interpreter_dates, tool_distribution
from autoinstall.agents.rules.ecosystems.python.model import SetRole, requirement_name
from autoinstall.agents.rules.ecosystems.python.sources import Sources, relaxed, tidy
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

VENV = "/opt/venv"
CONFIG = f"{VENV}/uv.toml"
BUILD = f"{VENV}/build.txt"
REQUIREMENTS = f"{VENV}/requirements.txt"
CONSTRAINTS = f"{VENV}/constraints.txt"
INSTALL = "uv pip install --no-sources"
"""Sources of the project's own (repositories, private indexes) are out of reach: the index's releases stand in."""

_MARGIN = timedelta(days=1)
_AFTER_INTERPRETER = timedelta(days=270)
"""How long after an interpreter's release the last of the common distributions have wheels for it."""

_OPTIONAL_SECONDS = 240.0
"""Limit of a step that targets may do without; it must not eat up the attempt by building a large library."""

_LIBRARIES = frozenset(("numpy", "scipy", "oldest-supported-numpy", "torch", "pyarrow", "pandas"))
"""Required by builds and by the code alike: what the code was installed with stays."""

_FIRST = frozenset(("pip", "setuptools", "wheel"))
"""In every environment from its start; they ask for nothing besides."""

_ASK_BACK_END = f"""python -c "
from build import ProjectBuilder
from pyproject_hooks import quiet_subprocess_runner
ask = ProjectBuilder('.', runner=quiet_subprocess_runner).get_requires_for_build
print(*ask('wheel'), *ask('editable'), sep='\\n')
" > {VENV}/back-end.txt && {INSTALL} -r {VENV}/back-end.txt"""


class Variant(Value):
    """What is different from attempt to attempt.

    Attributes:
        dated: releases newer than the commit are left out.
        locked: the lock file's versions are kept to.
        editable: the project is installed in place.
        contemporary: the interpreter was out when the commit was made, so pins of its time can be kept to.
        exhausted: there is no further variant.
    """

    choice: Choice
    dated: bool = True
    locked: bool = False
    editable: bool = True
    contemporary: bool = True
    exhausted: bool = False


def variant_of(context: Context, choices: tuple[Choice, ...], requires: str) -> Variant:
    """The variant of `context.attempt`: what most likely works first, then what differs from it in one thing."""
    first, *rest = choices
    second = next((choice for choice in rest if allows(requires, choice.interpreter.minor)), None)
    variants = [Variant(choice=first, locked=True)]
    if any("python<=" in lesson for lesson in context.lessons):
        # The lesson has put another interpreter first than in the attempt that it comes from.
        variants.append(Variant(choice=first))
    elif second is not None:
        variants.append(Variant(choice=second))
    variants.append(Variant(choice=first, dated=False))
    variants.append(Variant(choice=first, editable=False))
    chosen = variants[min(context.attempt, len(variants)) - 1]
    return chosen.model_copy(
        update={
            "contemporary": newest_before(chosen.choice.interpreter.minor, context.repository.commit_date),
            "exhausted": context.attempt >= len(variants),
        }
    )


def build_plan(context: Context, sources: Sources, sandbox: Sandbox) -> Plan:
    """The plan of `context.attempt`."""
    choices = ranked(context, sources.main, sources.lock, available(sandbox))
    if not choices:
        return Plan(
            steps=(Step(command="command -v python3", why="No Python 3 interpreter is in the base image"),),
            exhausted=True,
        )
    variant = variant_of(context, choices, sources.main.requires_python)
    return Plan(
        steps=tuple(_steps(context, sources, variant)),
        env=_env(sources, sandbox),
        exhausted=variant.exhausted,
    )


def cut_off(commit_date: datetime, minor: str) -> datetime:
    """The day behind which no release is taken: the commit's, or the later one when the interpreter had its wheels."""
    released = interpreter_dates().get(minor)
    moments = [commit_date.astimezone(UTC) + _MARGIN]
    if released is not None:
        moments.append(released + _AFTER_INTERPRETER)
    return max(moments)


def _env(sources: Sources, sandbox: Sandbox) -> dict[str, str]:
    path = sandbox.run('printf %s "$PATH"', timeout=30).output.strip()
    entries = [entry for entry in path.split(":") if entry and entry != f"{VENV}/bin"]
    env = {
        "VIRTUAL_ENV": VENV,
        "UV_PROJECT_ENVIRONMENT": VENV,
        "UV_CONFIG_FILE": CONFIG,
        "UV_BUILD_CONSTRAINT": BUILD,
        "PATH": ":".join([f"{VENV}/bin", *entries]),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    if sources.suite:
        env |= sources.suite.env
    if not sources.main.installable:
        places = ["/workspace", f"/workspace/{sources.main.source_dir}".rstrip("/")]
        places += env.get("PYTHONPATH", "").split(":")
        env["PYTHONPATH"] = ":".join(dict.fromkeys(place for place in places if place))
    return env


def _steps(context: Context, sources: Sources, variant: Variant) -> Iterator[Step]:
    choice = variant.choice
    interpreter = choice.interpreter
    yield Step(
        command=f"env -u UV_CONFIG_FILE uv venv --clear --python {interpreter.path} {VENV}",
        why=f"Python {interpreter.minor}: {choice.reason}",
        fallback=(f"{interpreter.path} -m venv --clear {VENV}",),
    )
    lock = sources.lock if variant.locked and variant.contemporary else None
    yield Step(command=_configuration(context, variant), why="As of the commit's date: later releases may break it")
    yield Step(
        command="uv pip install pip 'setuptools<81' wheel",
        why="Old code expects pkg_resources and distutils beside it",
        fallback=(f"sed -i '/exclude-newer/,$d' {CONFIG}; uv pip install pip 'setuptools<81' wheel",),
    )
    wanted = _requirements(sources)
    if not variant.contemporary:
        wanted = map(relaxed, wanted)
    requirements = tidy(wanted, requirement_name(sources.main.name))
    evidence = ", ".join(dict.fromkeys(f"{item.evidence.path}:{item.evidence.line}" for item in sources.test_sets()))
    if requirements:
        yield Step(command=_heredoc(REQUIREMENTS, requirements), why=f"What the tests need: {evidence}")
    if lock:
        yield Step(command=_heredoc(CONSTRAINTS, lock.constraints), why=f"Versions of {lock.evidence.path}")
    yield from _installation(sources, variant, bool(requirements), bool(lock))
    back_ends = [line for line in sources.main.build_requires if requirement_name(line) not in _LIBRARIES]
    if sources.main.installable and back_ends:
        yield Step(
            command=_join(INSTALL, "build", *map(shlex.quote, back_ends)),
            why="What a build without isolation takes",
            optional=True,
        )
    if any(requirement_name(line) not in _FIRST for line in back_ends):
        yield Step(command=_ASK_BACK_END, why="What the build's back end asks for besides", optional=True)
    yield from _tools(context, sources, variant)
    yield from _optional(sources, variant, bool(lock))


def _configuration(context: Context, variant: Variant) -> str:
    """uv's settings file, and the constraints of builds: both are read by every later call of uv."""
    committed = context.repository.commit_date.astimezone(UTC)
    newest = cut_off(committed, variant.choice.interpreter.minor)
    days = {name: day for name, day in floors().items() if day > newest}
    days |= {name: day - _MARGIN for name, day in breaks().items() if committed < day <= newest}
    builds = ["setuptools<81", *(["cython<3"] if committed < breaks()["cython"] else [])]
    lines = ['link-mode = "copy"']
    if variant.dated:
        lines.append(f'exclude-newer = "{_stamp(newest)}"')
        # The table comes last, so that a repair can add a line to it; without need it is left out, since an older uv
        # that a project brings along does not know it.
        if days:
            lines.append("[exclude-newer-package]")
        lines += [f'{name} = "{_stamp(day)}"' for name, day in sorted(days.items())]
    return f"{_heredoc(CONFIG, lines)}\n{_heredoc(BUILD, builds)}"


def _requirements(sources: Sources) -> Iterator[str]:
    if not sources.main.installable:
        for item in sources.main.sets:
            if item.role in (SetRole.RUNTIME, SetRole.TEST, SetRole.DEV):
                yield from item.requirements
    for item in sources.test_sets():
        yield from item.requirements
    if sources.suite:
        for name in sources.suite.needs:
            yield sources.declared(name) or name


def _installation(sources: Sources, variant: Variant, with_file: bool, locked: bool) -> Iterator[Step]:
    main = sources.main
    extras = sources.test_extras()
    option = "-e " if variant.editable else ""
    place = f"./{main.root}" if main.root else "."
    targets: list[str] = []
    if main.installable:
        targets.append(option + shlex.quote(place + (f"[{','.join(extras)}]" if extras else "")))
    targets += [f"{option}./{path}" if path else f"{option}." for path in sources.local_paths()]
    file = f"-r {REQUIREMENTS}" if with_file else ""
    constraints = f"-c {CONSTRAINTS}" if locked else ""
    if not targets and not file:
        return
    whole = _join(INSTALL, constraints, *targets, file)
    singly = _each(locked) if with_file else "true"
    fallback = [_join(INSTALL, *targets, file)] if locked else []
    if targets:
        fallback.append(f"{{ {_project_ladder(sources, option, extras)}; }} && {singly}")
    elif with_file:
        fallback.append(singly)
    yield Step(command=whole, why="The project with what its tests need, in one resolution", fallback=tuple(fallback))


def _project_ladder(sources: Sources, option: str, extras: tuple[str, ...]) -> str:
    """Ways to install the project, each tried where the one before it fails; at last its requirements and a path."""
    main = sources.main
    place = f"./{main.root}" if main.root else "."
    listed = ",".join(extras)
    rungs: list[str] = []
    if main.installable:
        singly = "".join(
            f"; {INSTALL} {option}{shlex.quote(f'{place}[{extra}]')} || echo left out: {extra}" for extra in extras
        )
        if extras:
            rungs.append(f"{INSTALL} {option}{shlex.quote(f'{place}[{listed}]')}")
        rungs.append(f"{INSTALL} {option}{place} && {{ true{singly}; }}")
        older = ["setuptools<66", "wheel"] if main.legacy_setup else []
        tools = "; ".join(
            f"{INSTALL} {shlex.quote(line)} || true" for line in [*older, *main.build_requires] if line != "setuptools"
        )
        rungs.append(f"{{ {tools}; }} && {INSTALL} --no-build-isolation {option}{place}")
    runtime = [line for item in main.sets if item.role is SetRole.RUNTIME for line in item.requirements]
    source = f"/workspace/{main.source_dir}".rstrip("/")
    each = "; ".join(f"{INSTALL} {shlex.quote(line)} || echo left out: {shlex.quote(line)}" for line in runtime)
    path = f'echo {source} > "$(python -c "import sysconfig; print(sysconfig.get_path(\'purelib\'))")/workspace.pth"'
    rungs.append(f"{{ {f'{each}; ' if each else ''}{path}; }}")
    others = "".join(
        f"; {INSTALL} {option}./{path} || echo left out: ./{path}" for path in sources.local_paths() if path
    )
    return " || ".join(f"{{ {rung}; }}" if "&&" in rung else rung for rung in rungs) + others


def _each(locked: bool) -> str:
    """Installs the requirements by halves: what cannot be had is left out, and the rest still comes in a few calls."""
    constraint = f"-c {CONSTRAINTS} " if locked else ""
    return (
        f'some() {{ {INSTALL} {constraint}"$@" && return; '
        '[ $# -le 1 ] && { echo "left out: $*"; return; }; local half=$(($# / 2)); '
        'some "${@:1:half}"; some "${@:half+1}"; }; '
        f'mapfile -t lines < {REQUIREMENTS}; some "${{lines[@]}}"'
    )


def _tools(context: Context, sources: Sources, variant: Variant) -> Iterator[Step]:
    """What the targets run, and the checkers that the project configures, where nothing else brings them."""
    named = [name for target in context.targets for name in _commands(target.command)]
    for name in dict.fromkeys([*named, *configured_checkers(context.tree)]):
        distribution = tool_distribution(name)
        if not distribution or (sources.suite and distribution in sources.suite.needs):
            continue
        wanted = sources.declared(distribution) or distribution
        # A linter reads its plugins' options from the configuration: what is listed beside it comes along.
        beside = [
            line
            for item in sources.sets
            if item.role is SetRole.LINT and any(requirement_name(text) == distribution for text in item.requirements)
            for line in item.requirements
            if _is_plugin(distribution, requirement_name(line))
        ]
        lines = tidy([wanted, *beside], requirement_name(sources.main.name))
        if not variant.contemporary:
            lines = [relaxed(line) for line in lines]
        yield Step(
            command=_join(INSTALL, *map(shlex.quote, lines)),
            why=f"The project is worked on with {name}",
            fallback=(_join(INSTALL, shlex.quote(wanted)), _join(INSTALL, distribution)),
            optional=True,
            timeout=_OPTIONAL_SECONDS,
        )


def _is_plugin(tool: str, name: str) -> bool:
    return name.startswith((f"{tool}-", f"pytest-{tool}")) or (tool == "mypy" and name.startswith("types-"))


def _commands(command: str) -> tuple[str, ...]:
    modules = re.findall(r"python3? -m ([\w.-]+)", command)
    words = re.findall(r"(?:^|&&|\|\||;|\|)\s*(?:\w+=\S*\s+)*([\w./-]+)", command)
    return tuple(dict.fromkeys([*modules, *(word for word in words if not word.startswith("python"))]))


def _optional(sources: Sources, variant: Variant, locked: bool) -> Iterator[Step]:
    main = sources.main
    extras = sources.other_extras()
    option = "-e " if variant.editable else ""
    if not main.installable or not extras:
        return
    place = f"./{main.root}" if main.root else "."
    constraints = f"-c {CONSTRAINTS}" if locked else ""
    singly = "; ".join(
        f"{INSTALL} {option}{shlex.quote(f'{place}[{extra}]')} || echo left out: {extra}" for extra in extras
    )
    yield Step(
        command=_join(INSTALL, constraints, option.strip(), shlex.quote(f"{place}[{','.join(extras)}]")),
        why="Optional features that tests may exercise",
        optional=True,
        timeout=_OPTIONAL_SECONDS,
        fallback=(singly,),
    )


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _heredoc(path: str, lines: list[str] | tuple[str, ...]) -> str:
    body = "\n".join(lines)
    return f"cat > {path} <<'END'\n{body}\nEND"


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
