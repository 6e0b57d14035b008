"""Where errors end: a message and a hint for people, an exit code for scripts, a log file for what nobody expected."""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from autoinstall.errors import AutoinstallError, BadInput, Cancelled, Infrastructure, RepositoryError
from autoinstall.redaction import redact
from autoinstall.values import Outcome
from cli.fitting import Output


class Exit(IntEnum):
    """What an exit code means."""

    OK = 0
    UNEXPECTED = 1
    BAD_INPUT = 2
    DISCARDED = 3
    INFRASTRUCTURE = 4
    INTERRUPTED = 130


out = Output(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def exit_of(outcome: Outcome | None) -> Exit:
    """The exit code of a repository's outcome. An undecided one is no discard: it says that something of ours broke."""
    match outcome:
        case Outcome.VERIFIED | None:
            return Exit.OK
        case Outcome.INVALID_URL:
            return Exit.BAD_INPUT
        case Outcome.INFRASTRUCTURE | Outcome.UNKNOWN:
            return Exit.INFRASTRUCTURE
        case Outcome.CANCELLED:
            return Exit.INTERRUPTED
        case _:
            return Exit.DISCARDED


def exit_of_error(error: AutoinstallError) -> Exit:
    """The exit code of an error that ended a command."""
    match error:
        case BadInput():
            return Exit.BAD_INPUT
        case RepositoryError():
            return Exit.DISCARDED
        case Infrastructure():
            return Exit.INFRASTRUCTURE
        case Cancelled():
            return Exit.INTERRUPTED
        case _:
            return Exit.UNEXPECTED


@contextmanager
def boundary(*, as_json: bool = False) -> Iterator[None]:
    """Turns every error inside into a message on stderr and an exit code; with `as_json` stdout has an object too."""
    try:
        yield
    except AutoinstallError as error:
        _report(error.code, error.message, error.hint, as_json=as_json, outcome=_outcome_of(error))
        raise typer.Exit(exit_of_error(error)) from None
    except KeyboardInterrupt:
        _report("cancelled", "Interrupted.", "", as_json=as_json, outcome=Outcome.CANCELLED)
        raise typer.Exit(Exit.INTERRUPTED) from None
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - the outermost boundary: people get a message, the log the traceback
        log = _write_log(error)
        message = f"Something unexpected went wrong: {type(error).__name__}: {error}"
        _report("internal_error", redact(message), f"The traceback is in {log}." if log else "", as_json=as_json)
        raise typer.Exit(Exit.UNEXPECTED) from None


def print_json(value: object) -> None:
    """One JSON document on stdout, and nothing else."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def _outcome_of(error: AutoinstallError) -> Outcome | None:
    if isinstance(error, Infrastructure):
        return Outcome.INFRASTRUCTURE
    return next((outcome for outcome in Outcome if outcome.value == error.code), None)


def _report(code: str, message: str, hint: str, *, as_json: bool, outcome: Outcome | None = None) -> None:
    message, hint = redact(message), redact(hint)
    err.print(f"[bold red]error:[/] {escape(message)}")
    if hint:
        err.print(f"[yellow]hint:[/] {escape(hint)}")
    if as_json:
        print_json({"outcome": outcome, "code": code, "reason": message, "hint": hint})


def _write_log(error: Exception) -> Path | None:
    """The traceback, in a file of its own below the cache directory; not through the settings, which may be broken."""
    cache = Path(
        os.environ.get("AUTOINSTALL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "autoinstall")
    )
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
    text = redact("".join(traceback.format_exception(error)))
    for directory in (cache.expanduser() / "logs", Path(tempfile.gettempdir())):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / name
            path.write_text(text, encoding="utf-8")
        except OSError:
            continue
        return path
    return None
