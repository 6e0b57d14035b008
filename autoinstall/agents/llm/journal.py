"""Journals: the messages of an agent run in a file, one a line, written as they come.

A run that ends well has its trajectory in its result, and its journal goes. One that fails or is killed leaves it.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from autoinstall.errors import StorageFailed
from autoinstall.models.contract import Message


class NoJournal:
    """Keeps nothing."""

    def write(self, message: Message) -> None:
        del message


class FileJournal:
    """Writes to an open file, and sees to it that each message is out of this process at once."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, message: Message) -> None:
        """Add a message.

        Raises:
            StorageFailed: the file cannot be written; a run without its record is worth nothing.
        """
        try:
            self._stream.write(message.model_dump_json(exclude_defaults=True) + "\n")
            self._stream.flush()
        except OSError as error:
            raise StorageFailed(f"The journal of an agent run cannot be written: {error}.") from error


@contextlib.contextmanager
def open_journal(path: Path) -> Iterator[FileJournal]:
    """A journal at `path`, readable by its owner alone. It is removed where the block ends without an error, and stays
    otherwise. What an earlier run left at `path` is replaced: whoever wants it reads it first.

    Raises:
        StorageFailed: the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise StorageFailed(f"The journal of an agent run cannot be made: {error}.") from error
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
        yield FileJournal(stream)
    path.unlink(missing_ok=True)


def read_journal(path: Path) -> tuple[Message, ...]:
    """The messages of a journal, up to the first line that is not whole; none where there is no journal."""
    messages: list[Message] = []
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                messages.append(Message.model_validate_json(line))
            except ValidationError:
                break  # the writer was killed in the middle of it
    return tuple(messages)
