"""Chooses the interpreter by evidence, among those that the sandbox has."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from autoinstall.agents.rules.contract import Context
from autoinstall.agents.rules.ecosystems.python.environments import tox_pythons
from autoinstall.agents.rules.ecosystems.python.knowledge import interpreter_dates
from autoinstall.agents.rules.ecosystems.python.locks import Lock
from autoinstall.agents.rules.ecosystems.python.model import PythonProject
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

_SETTLED = timedelta(days=150)
"""How long after an interpreter's release the ecosystem has wheels for it."""

_LIST = (
    "for p in /opt/python/*/bin/python3 $(compgen -c python3. | grep -E '^python3\\.[0-9]+$' | sort -u) python3; do "
    'q=$(command -v "$p") || continue; '
    '"$q" -c \'import sys; print("%d.%d" % sys.version_info[:2], sys.argv[1])\' "$q" 2>/dev/null; done; true'
)


class Interpreter(Value):
    """One that the sandbox has: minor version, path of the executable there."""

    minor: str
    path: str


class Choice(Value):
    """The chosen interpreter and why."""

    interpreter: Interpreter
    reason: str


def available(sandbox: Sandbox) -> tuple[Interpreter, ...]:
    """Interpreters of the sandbox, oldest first; several of one minor version count once, /opt/python's first."""
    found: dict[str, Interpreter] = {}
    for line in sandbox.run(_LIST, timeout=60).output.splitlines():
        match = re.fullmatch(r"(3\.\d+) (/\S+)", line.strip())
        if match and "/opt/venv/" not in match[2]:
            found.setdefault(match[1], Interpreter(minor=match[1], path=match[2]))
    return tuple(found[minor] for minor in sorted(found, key=_key))


def ranked(
    context: Context, project: PythonProject, lock: Lock | None, interpreters: Iterable[Interpreter]
) -> tuple[Choice, ...]:
    """Interpreters, the likeliest first; every one stays in the list, those ruled out by requirement last."""
    ceiling = _ceilings(context)
    named = dict(_named(context, project))
    requires = [text for text in (project.requires_python, lock.requires_python if lock else "") if text]
    choices: list[tuple[tuple[float, ...], Choice]] = []
    for interpreter in interpreters:
        minor = interpreter.minor
        allowed = all(allows(text, minor) for text in requires)
        settled = _is_settled(minor, context.repository.commit_date)
        below = not ceiling or _key(minor) <= _key(ceiling)
        reason = named.get(minor) or (f"requires {', '.join(requires)}" if requires and allowed else "by commit date")
        rank = (
            not below,
            not allowed,
            bool(named) and minor not in named,
            not settled,
            # A pinned version outranks the newest of a list.
            not named.get(minor, "").startswith("pinned"),
            -_key(minor)[1] if settled else _key(minor)[1],
        )
        choices.append((rank, Choice(interpreter=interpreter, reason=reason)))
    return tuple(choice for _, choice in sorted(choices, key=lambda item: item[0]))


def allows(specifier: str, minor: str) -> bool:
    """Whether some patch release of the minor version satisfies a `requires-python`; True where it is no specifier."""
    try:
        parsed = SpecifierSet(specifier.replace(" ", ""))
    except InvalidSpecifier:
        return True
    return any(parsed.contains(f"{minor}.{patch}") for patch in (0, 1, 5, 12, 99))


def newest_before(minor: str, date: datetime) -> bool:
    """Whether the interpreter was out at `date`."""
    released = interpreter_dates().get(minor)
    return released is not None and released <= date


def _is_settled(minor: str, date: datetime) -> bool:
    released = interpreter_dates().get(minor)
    return released is not None and released + _SETTLED <= date


def _ceilings(context: Context) -> str:
    """The lowest of the highest versions that lessons of earlier attempts allow (`python<=3.X`)."""
    found = [match[1] for lesson in context.lessons for match in re.finditer(r"python<=(3\.\d+)", lesson)]
    return min(found, key=_key) if found else ""


def _named(context: Context, project: PythonProject) -> Iterable[tuple[str, str]]:
    """Minor version → where it is named, the weakest first."""
    tree = context.tree
    for text in project.classifiers:
        match = re.search(r"Python :: (3\.\d+)\s*$", text)
        if match:
            yield match[1], "in the classifiers"
    for minor in tox_pythons(tree):
        yield minor, "in tox's list of environments"
    for version in context.findings.versions.get("python", ()):
        match = re.match(r"^(3\.\d+)", version)
        if match:
            yield match[1], "in the CI configuration"
    for path in (".python-version", "runtime.txt"):
        match = re.search(r"(?m)^(?:python-|cpython-)?(3\.\d+)", tree.read(path))
        if match:
            yield match[1], f"pinned in {path}"


def _key(minor: str) -> tuple[int, int]:
    major, _, rest = minor.partition(".")
    return int(major), int(rest)
