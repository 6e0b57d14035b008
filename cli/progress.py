"""Running flows from the command line: what of Prefect is shown there, and where it keeps its runs."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.markup import escape

from cli.boundary import err
from cli.server import PREFECT_SETTINGS, prefect_api

_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")

_DEFAULTS = {
    # A slow machine takes longer than Prefect's 20 seconds to bring its own server up.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
    "PREFECT_CLI_PROMPT": "false",
    **PREFECT_SETTINGS,
}

_SKIPPED = ("Beginning ", "Created ", "View at", "Submitted ", "Executing ")
"""Beginnings of Prefect's own messages that say nothing to somebody who watches one night."""


@contextmanager
def flow_session(*, verbose: bool, least: int = logging.INFO) -> Iterator[None]:
    """To be entered before Prefect is imported: it reads its settings then.

    Runs are kept in Prefect's own database as ever; only its console log is replaced by one line an event, or left as
    it is with `verbose`.

    Args:
        least: level from which on events are shown.
    """
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    # A scheduler's SIGTERM ends a night as ^C does: containers closed, rows written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not verbose:
        err.print("[dim]starting Prefect…[/]")
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    with prefect_api(), nullcontext() if verbose else _lines(least):
        yield


@contextmanager
def _lines(least: int) -> Iterator[None]:
    """Events of runs as lines on stderr in place of Prefect's console log."""
    from prefect.logging.configuration import setup_logging

    # Done here, since the first flow run would otherwise do it, and drop the handlers that are added below.
    setup_logging()
    handler = _Lines(least)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Lines(logging.Handler):
    """One line on stderr for each event of a flow or task run."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        if message.startswith(_SKIPPED) or hasattr(record, "command"):
            return
        run = getattr(record, "task_run_name", None) or getattr(record, "flow_run_name", "")
        first = message.splitlines()[0] if message else ""
        colour = "red" if record.levelno >= logging.ERROR else "yellow" if record.levelno >= logging.WARNING else "dim"
        err.print(f"[{colour}]{escape(str(run))}[/] {escape(first[:300])}")
