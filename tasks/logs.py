"""What the domain logs, in the log of the flow or task run that it happens in: there the UI shows it."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from prefect import get_run_logger
from prefect.exceptions import MissingContextError

from autoinstall.logs import LINE_CHARACTERS, fields_of
from autoinstall.redaction import one_line

DOMAIN = "autoinstall"

_lock = threading.Lock()
_users = 0


class _ToRun(logging.Handler):
    """Hands a record on to the run's own logger, with the fields that a JSON formatter prints."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            logger = get_run_logger()
            message = one_line(record.getMessage(), LINE_CHARACTERS)
        except MissingContextError:  # of a thread that serves several runs
            root = logging.getLogger()
            if root.isEnabledFor(record.levelno):
                root.handle(record)
            return
        logger.log(record.levelno, "%s", message, exc_info=record.exc_info, extra=fields_of(record))


_handler = _ToRun()


@contextmanager
def logs_in_runs() -> Iterator[None]:
    """While any thread is in here, what the domain logs goes to the run that it belongs to, from INFO on; each record
    as one line of bounded length."""
    global _users  # noqa: PLW0603 - logging is one a process
    domain = logging.getLogger(DOMAIN)
    with _lock:
        _users += 1
        if _users == 1:
            domain.addHandler(_handler)
            domain.setLevel(logging.INFO)
            domain.propagate = False
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                domain.removeHandler(_handler)
                domain.setLevel(logging.NOTSET)
                domain.propagate = True
