"""Unset variables → their values of sample env files and CI, or a harmless placeholder, declared as a mock."""

import re
from collections.abc import Iterator, Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Mock, MockKind

_NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{4,}"
_UNSET = (
    re.compile(rf"KeyError: ['\"]({_NAME})['\"]"),
    re.compile(rf"(?i:environment variable|env var|env variable|variable)s?:? ['\"`]?({_NAME})['\"`]?"),
    re.compile(rf"['\"`]?({_NAME})['\"`]? (?i:environment variable|env var)"),
    re.compile(
        rf"['\"`$]?\{{?({_NAME})\}}?['\"`]?:? (?i:is not set|not set|must be set|is required|is undefined|not found"
        r"|parameter not set|unbound variable|is missing|not defined|must not be empty)"
    ),
    re.compile(
        rf"(?i:please set|set the|missing|you must set|must define|undefined)(?: required)?(?: environment)?"
        rf"(?: variable)? ['\"`]?({_NAME})\b"
    ),
    re.compile(rf"ImproperlyConfigured: (?:Set the )?({_NAME})"),
    re.compile(rf"UndefinedValueError: ({_NAME}) not found"),
    re.compile(r"(?m)^(?:E +)?(\w+)\n(?:E)?\s+[Ff]ield required \[?\(?type=(?:missing|value_error\.missing)"),
)
_SECRET = re.compile(r"(?i)key|token|secret|password|passwd|credential|auth")
_SAMPLE = re.compile(r"(?i)(?:^|/)(?:\.env[\w.-]*|[\w.-]*\.env(?:[\w.-]*)?|env[.-](?:example|sample|template|dist))$")
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")
_ASKS = re.compile(r"\s(?:--?help|-h|--version)\b")
_NOT_TO_SET = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "SHELL",
        "PWD",
        "ERROR",
        "FAILED",
        "WARNING",
        "INFO",
        "DEBUG",
        "NULL",
        "NONE",
        "TRUE",
        "FALSE",
        "ENOENT",
        "HTTP",
        "JSON",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
    }
)


class EnvironmentRepairer:
    """Sets what the output says is not set."""

    name = "environment"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        del sandbox
        if failure.exit_code == 0 and _ASKS.search(failure.command):
            return []  # a help text names the variables that a program knows
        known = {**sample_values(context.tree), **context.findings.env}
        return [_repair(name, known) for name in unset_variables(failure.output)]


def unset_variables(output: str) -> Iterator[str]:
    """Variables that the output says are missing, each once, at most a dozen."""
    seen: set[str] = set()
    for pattern in _UNSET:
        for match in pattern.finditer(output):
            name = match[1].upper()
            if name not in seen and name not in _NOT_TO_SET and len(seen) < 12:
                seen.add(name)
                yield name


def sample_values(tree: Tree) -> dict[str, str]:
    """Values of the sample env files of the root and of one level below; those without a value are left out."""
    values: dict[str, str] = {}
    for path in tree.files:
        if path.count("/") > 2 or not _SAMPLE.search(path):
            continue
        for _, line in tree.lines(path):
            match = _LINE.match(line)
            if match and not line.lstrip().startswith("#"):
                value = re.sub(r"\s+#.*$", "", match[2]).strip("'\"")
                if value:
                    values.setdefault(match[1], value)
    return values


def placeholder(name: str) -> str:
    """A value that has the form which the name asks for and gives access to nothing."""
    forms = (
        (r"PORT$", "8000"),
        (r"(?:DATABASE|DB)_UR[IL]$", "sqlite:////tmp/database.sqlite3"),
        (r"REDIS_UR[IL]$", "redis://localhost:6379/0"),
        (r"UR[IL]$|ENDPOINT$", "http://localhost"),
        (r"HOST(?:NAME)?$", "localhost"),
        (r"EMAIL|MAIL", "user@example.com"),
        (r"DEBUG|ENABLE|DISABLE|USE_", "0"),
        (r"TIMEOUT|COUNT|SIZE|LIMIT|NUM_", "10"),
        (r"REGION", "us-east-1"),
        (r"DIR(?:ECTORY)?$|PATH$", "/opt"),
    )
    return next((value for pattern, value in forms if re.search(pattern, name)), "placeholder")


def _repair(name: str, known: dict[str, str]) -> Repair:
    value = known.get(name, "")
    origin = "its value of the repository's sample or CI settings" if value else "a placeholder"
    kind = MockKind.CREDENTIAL if _SECRET.search(name) else MockKind.OTHER
    return Repair(
        key=f"env:{name}",
        why=f"The variable {name} is not set; it gets {origin}.",
        env={name: value or placeholder(name)},
        mocks=(Mock(kind=kind, path=name, reason=f"The environment variable has {origin}."),),
        lesson=f"needs the variable {name}",
    )
