"""What an agent did, short enough for a page in the UI; the whole is in the dataset `trajectories`."""

import json
from collections.abc import Mapping
from typing import Any

from autoinstall.datasets.records import TrajectoryRecord
from autoinstall.outputs.cleaning import clean
from autoinstall.redaction import one_line

STEPS = 12
"""The last so many calls of tools are shown."""

WIDTH = 160
"""Characters of a call, and of each line of what it gave."""

LINES = 2
"""The last so many lines of what a call gave."""


def excerpt(trajectory: TrajectoryRecord) -> str:
    """The last calls of an agent's run, each with the end of what it gave; empty where it called nothing."""
    results = {str(message.get("tool_call_id")): message for message in trajectory.messages if _is(message, "tool")}
    calls = [
        call for message in trajectory.messages if _is(message, "assistant") for call in message.get("tool_calls") or ()
    ]
    lines = [f"… {len(calls) - STEPS} earlier steps …"] if len(calls) > STEPS else []
    for call in calls[-STEPS:]:
        lines.append(_called(call.get("function") or {}))
        lines += [f"    {line}" for line in _end(results.get(str(call.get("id")), {}).get("content"))]
    return "\n".join(lines)


def _is(message: Mapping[str, Any], role: str) -> bool:
    return message.get("role") == role


def _called(function: Mapping[str, Any]) -> str:
    """`$ command` of a shell, else the tool with its arguments."""
    name, given = str(function.get("name", "")), function.get("arguments") or "{}"
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:  # a model's own text, kept as it came
        arguments = given
    if not isinstance(arguments, dict):
        return _short(f"{name} {arguments}")
    if name == "bash" and "command" in arguments:
        return _short(f"$ {arguments['command']}")
    return _short(f"{name} " + ", ".join(f"{key}={value}" for key, value in arguments.items()))


def _end(content: object) -> list[str]:
    text = content if isinstance(content, str) else json.dumps(content) if content else ""
    return [_short(line) for line in clean(text).splitlines() if line.strip()][-LINES:]


def _short(text: str) -> str:
    return one_line(text, WIDTH)
