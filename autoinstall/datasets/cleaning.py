"""What is done to every string before it is written: secrets masked, invalid text mended, huge cells shortened.

What is shown (messages, outputs, reasons) loses everything that looks like a credential. What is executed to bring an
environment back (env, services, commands) loses the known secrets alone: a made-up `postgres://user:password@db/` is
part of the environment there, and masking it would break what the row is for.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from autoinstall.datasets.schemas import Dataset
from autoinstall.redaction import MASK, redact

MAX_TEXT = 2**20
"""Characters of one string; longer ones lose their middle."""

MAX_OUTPUT = 16 * 2**10
"""Characters of a command's recorded output; only the end is kept."""

MAX_MESSAGES = 32 * 2**20
"""Characters of one trajectory's messages together; every message is cut harder until they fit."""

EXECUTED = frozenset(
    {"command", "env", "services", "sidecars", "start_script", "dockerfile", "image", "image_digest", "base_image"}
)
"""Columns and struct fields that are executed, or are addresses that must stay as they are."""

_OUTPUTS = frozenset({"output", "output_tail"})
_ADDRESSES = frozenset({"repository", "run_id", "flow_run_id", "night_id", "environment_id", "commit"})


class Cleaner:
    """Args: `secrets`: literals that are masked everywhere, in what is executed too."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = tuple(secret for secret in secrets if secret)

    def row(self, dataset: Dataset, row: dict[str, Any]) -> dict[str, Any]:
        """`row` with every string in it cleaned; a trajectory says whether it was shortened."""
        messages = row.get("messages", [])
        cleaned = {name: self._named(name, value) for name, value in row.items() if name != "messages"}
        if dataset is Dataset.TRAJECTORIES:
            fitting, shortened = _fit(_map_text(messages, self._redact))
            cleaned |= {"messages": fitting, "shortened": bool(row["shortened"]) or shortened}
        return cleaned

    def _named(self, name: str, value: Any, *, executed: bool = False) -> Any:
        executed = executed or name in EXECUTED
        if isinstance(value, str):
            text = _valid(value)
            if name in _OUTPUTS:
                text = _tail(text)
            verbatim = executed or name in _ADDRESSES
            return self._mask_known(text) if verbatim else shorten(self._redact(text), MAX_TEXT)
        if isinstance(value, dict):
            return {
                self._mask_known(str(key)): self._named(str(key), item, executed=executed)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._named(name, item, executed=executed) for item in value]
        return value

    def _redact(self, text: str) -> str:
        return redact(_valid(text), *self._secrets)

    def _mask_known(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


def shorten(text: str, limit: int) -> str:
    """`text`, or its first and last parts around a notice that says how many characters are missing."""
    if len(text) <= limit:
        return text
    keep = limit // 2
    return f"{text[:keep]}\n[… {len(text) - 2 * keep} characters left out …]\n{text[-keep:]}"


def _tail(text: str) -> str:
    if len(text) <= MAX_OUTPUT:
        return text
    return f"[… {len(text) - MAX_OUTPUT} characters left out …]\n{text[-MAX_OUTPUT:]}"


def _fit(messages: list[Any]) -> tuple[list[Any], bool]:
    """Messages under both caps, and whether anything was cut for it."""
    limit = MAX_TEXT
    total, longest = _measure(messages)
    if total <= MAX_MESSAGES and longest <= limit:
        return messages, False
    cut = _map_text(messages, lambda text: shorten(text, limit))
    while _measure(cut)[0] > MAX_MESSAGES and limit > 64:
        limit //= 2
        cut = _map_text(messages, lambda text, limit=limit: shorten(text, limit))  # type: ignore[misc]
    return cut, True


def _measure(value: Any) -> tuple[int, int]:
    """(characters in all, those of the longest string)."""
    if isinstance(value, str):
        return len(value), len(value)
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    sizes = [_measure(item) for item in items]
    return sum(total for total, _ in sizes), max((longest for _, longest in sizes), default=0)


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    """Every string below `value` changed. A tool call's arguments are JSON in a string, and stay valid JSON."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            key: _map_arguments(item, change)
            if key == "arguments" and isinstance(item, str)
            else _map_text(item, change)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_map_text(item, change) for item in value]
    return value


def _map_arguments(arguments: str, change: Callable[[str], str]) -> str:
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return change(arguments)
    return json.dumps(_map_text(parsed, change), ensure_ascii=False)


def _valid(text: str) -> str:
    """Text that Parquet can hold: what UTF-8 has no form for (lone surrogates) is replaced."""
    return text.encode("utf-8", "replace").decode()
