"""What log lines say beside their text: which repository, which attempt, which command.

The domain writes to the loggers below `autoinstall`, and configures none; whoever runs it decides where they go.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from autoinstall.redaction import one_line
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.values import CommandResult

COMMAND_CHARACTERS = 300
"""Of a command's first line in a log line; trajectories and rows have the whole of it."""

NAME_CHARACTERS = 120
"""Of a repository's name in a log line."""

LINE_CHARACTERS = 1000
"""Of a log line in a run."""

_logger = logging.getLogger("autoinstall.commands")

_fields: ContextVar[Mapping[str, object]] = ContextVar("log fields", default=MappingProxyType({}))
_level: ContextVar[int] = ContextVar("level of commands", default=logging.DEBUG)


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Have what is logged in this context carry further fields, such as repository and attempt."""
    token = _fields.set({**_fields.get(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


@contextmanager
def telling() -> Iterator[None]:
    """Around a command that somebody wants to read about, a goal's or an agent's: it is logged as INFO. All
    others, with which the product itself looks at a sandbox, are for debugging."""
    token = _level.set(logging.INFO)
    try:
        yield
    finally:
        _level.reset(token)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The fields that a record of the domain carries, for handlers that write structured logs. To be called in the
    context in which it was logged."""
    return {**_fields.get(), **getattr(record, "fields", {})}


def log_command(spec: SandboxSpec, result: CommandResult) -> None:
    """One line about a command that has ended."""
    level = _level.get()
    if not _logger.isEnabledFor(level):
        return
    first, *more = result.command.strip().splitlines() or [""]
    command = one_line(f"{first} …" if more else first, COMMAND_CHARACTERS)
    known = _fields.get()
    where = ", ".join(
        part
        for part in (
            one_line(str(known.get("repository", "")), NAME_CHARACTERS),
            f"attempt {known['attempt']}" if "attempt" in known else "",
            spec.purpose if spec.purpose != f"attempt-{known.get('attempt')}" else "",
        )
        if part
    )
    how = f" ({result.ending})" if result.ending else ""
    fields = {
        "purpose": spec.purpose,
        "command": command,
        "exit_code": result.exit_code,
        "seconds": round(result.duration, 1),
    }
    text = "%s: exit code %d%s after %.1f s: %s"
    _logger.log(level, text, where, result.exit_code, how, result.duration, command, extra={"fields": fields})
