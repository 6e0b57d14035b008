"""The Python tables of `knowledge/`, typed, and how they are looked up."""

from datetime import UTC, date, datetime, time
from functools import cache

from packaging.utils import canonicalize_name
from pydantic import Field

from autoinstall.agents.rules.ecosystems.python.model import SetRole
from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class Heavy(Value):
    distributions: tuple[str, ...]


class PythonTable(Value):
    """The form of `python.toml`; what each table means is said there."""

    interpreters: dict[str, date]
    floors: dict[str, date]
    breaks: dict[str, date]
    roles: dict[SetRole, tuple[str, ...]]
    heavy: Heavy
    tools: dict[str, str]
    pytest_options: dict[str, str]
    fixtures: dict[str, str]
    markers: dict[str, str]


class Never(Value):
    modules: tuple[str, ...]
    python2: tuple[str, ...]


class ModuleTable(Value):
    """The form of `python_modules.toml`."""

    distributions: dict[str, str]
    never: Never


class Symptom(Value):
    """A message of a known incompatibility.

    Attributes:
        pattern: regular expression, searched in the output; its groups may be used in the remedies as {1}, {name}.
        install: requirements that end it, in one installation.
        undated: they are looked for without a cut-off date.
        env: variables that end it.
        commands: further commands that end it.
        python_max: highest minor version of the interpreter that does not show it; a matter for a later attempt.
        lesson: what a later attempt should know.
    """

    pattern: str
    why: str
    install: tuple[str, ...] = ()
    undated: bool = False
    env: dict[str, str] = Field(default_factory=dict)
    commands: tuple[str, ...] = ()
    python_max: str = ""
    lesson: str = ""


class SymptomTable(Value):
    """The form of `python_symptoms.toml`."""

    symptom: tuple[Symptom, ...]


def _python() -> PythonTable:
    table: PythonTable = load("python", PythonTable)
    return table


def _modules() -> ModuleTable:
    table: ModuleTable = load("python_modules", ModuleTable)
    return table


@cache
def interpreter_dates() -> dict[str, datetime]:
    """Minor version → day of its first stable release."""
    return {minor: _start(day) for minor, day in _python().interpreters.items()}


@cache
def floors() -> dict[str, datetime]:
    """Distribution → day behind which resolution never goes back for it."""
    return {name: _start(day) for name, day in _python().floors.items()}


@cache
def breaks() -> dict[str, datetime]:
    """Distribution → day of a release that broke much of what was written before."""
    return {name: _start(day) for name, day in _python().breaks.items()}


@cache
def role_words() -> dict[str, SetRole]:
    """Word in a name → what a set of requirements so named is for."""
    return {word: role for role, words in _python().roles.items() for word in words}


@cache
def heavy_distributions() -> frozenset[str]:
    return frozenset(_python().heavy.distributions)


def tool_distribution(tool: str) -> str | None:
    """The distribution that brings a command or `python -m` module."""
    return _python().tools.get(tool)


def tools() -> frozenset[str]:
    """Commands that Python distributions bring."""
    return frozenset(_python().tools)


def option_plugin(option: str) -> str | None:
    """The pytest plugin that knows a command-line option or an ini setting; for options by the longest known prefix."""
    table = _python().pytest_options
    name = option.split("=", 1)[0]
    if not name.startswith("--"):
        return table.get(name[:2] if name.startswith("-") else name)
    while len(name) > 2:
        if name in table:
            return table[name]
        name = name.rpartition("-")[0]
    return None


def fixture_plugin(fixture: str) -> str | None:
    return _python().fixtures.get(fixture)


def marker_plugin(marker: str) -> str | None:
    return _python().markers.get(marker)


def module_distribution(module: str) -> str:
    """The distribution that provides an import name: the longest dotted prefix that the table knows, else the name."""
    table = _modules().distributions
    name = module
    while name:
        if name in table:
            return table[name]
        name = name.rpartition(".")[0]
    return canonicalize_name(module.split(".", 1)[0])


def is_never_from_index(module: str) -> bool:
    """Whether an index release of an import name would be a wrong guess: that is almost surely local, or Python 2's."""
    never = _modules().never
    return module in never.modules or module in never.python2


def symptoms() -> tuple[Symptom, ...]:
    table: SymptomTable = load("python_symptoms", SymptomTable)
    return table.symptom


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
