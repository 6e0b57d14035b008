"""Keeping what the model is shown within bounds, and the rest of it within its reach."""

import contextlib
import shlex

from autoinstall.agents.llm.contract import Desk
from autoinstall.agents.llm.notices import notices
from autoinstall.errors import Infrastructure

KEPT = "/tmp/autoinstall-outputs"  # noqa: S108  (in the sandbox)
"""Directory of the sandbox where long outputs lie whole; removed when the agent is done."""

_HEAD_SHARE = 1 / 3
_CLEANUP_SECONDS = 60.0


def bounded(text: str, desk: Desk) -> str:
    """`text`, or where it is longer than an observation may be, its beginning and its end with a notice that names the
    file with all of it."""
    if len(text) <= desk.observation_characters:
        return text
    path = keep(text, desk)
    return excerpt(text, desk.observation_characters, path=path)


def next_path(desk: Desk) -> str:
    """A path of the sandbox for one more output."""
    desk.outputs += 1
    return f"{KEPT}/{desk.outputs}.txt"


def keep(text: str, desk: Desk) -> str:
    """Write `text` to a file of the sandbox; its path, empty where it cannot be written there."""
    path = next_path(desk)
    try:
        desk.sandbox.write_file(path, text.encode("utf-8", "replace"))
    except OSError:
        return ""
    return path


def excerpt(text: str, limit: int, *, path: str, dropped: int = 0) -> str:
    """The beginning and the end of `text`, about `limit` characters together with a notice.

    Args:
        path: where all of it is; empty where it is nowhere.
        dropped: what is missing of `text` itself already, in its middle.
    """
    words = notices().middle_left_out if path else notices().middle_left_out_unkept
    room = max(limit - len(words) - 2 * len(path) - 40, limit // 2)
    head = text[: int(room * _HEAD_SHARE)]
    tail = text[-(room - len(head)) :]
    total = len(text) + dropped
    notice = words.format(count=total - len(head) - len(tail), total=total, path=path)
    return f"{head}\n{notice}\n{tail}"


def remove_kept(desk: Desk) -> None:
    """Remove what was kept: no environment should carry it."""
    if desk.outputs:
        # What the agent did stands without this; whether the sandbox still serves is found out by whoever uses it.
        with contextlib.suppress(Infrastructure):
            desk.sandbox.run(f"rm -rf {shlex.quote(KEPT)}", timeout=_CLEANUP_SECONDS)
