"""An object of a given form out of an answer, however the endpoint lets one be had."""

import json
import re
from typing import Any

from autoinstall.models.contract import FinishReason, Reply, Tool, ToolCall

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


def found_in(reply: Reply, schema: Tool, fresh_id: str) -> Reply | None:
    """The reply with the object as the arguments of its only call; None where it has no such object.

    Args:
        fresh_id: for a call that is made up.
    """
    for call in reply.message.tool_calls:
        if call.name == schema.name and call.arguments is not None and _fits(call.arguments, schema):
            return _with(reply, call, reply.message.content)
    for text in _candidates(reply.message.content):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and _fits(value, schema):
            return _with(reply, ToolCall(id=fresh_id, name=schema.name, arguments=value, raw=text), "")
    return None


def unusable(reply: Reply, schema: Tool, fresh_id: str) -> Reply:
    """The reply with a call that cannot be used, and says why: the model gave no object of this form."""
    error = "The answer has no JSON object of the form that was asked for."
    calls = [call for call in reply.message.tool_calls if call.name == schema.name]
    if calls and calls[0].error:
        error = calls[0].error
    raw = calls[0].raw if calls else reply.message.content
    return _with(reply, ToolCall(id=fresh_id, name=schema.name, arguments=None, raw=raw, error=error), "")


def _with(reply: Reply, call: ToolCall, content: str) -> Reply:
    message = reply.message.model_copy(update={"tool_calls": (call,), "content": content})
    return reply.model_copy(update={"message": message, "finish": FinishReason.TOOL_CALLS})


def _fits(value: dict[str, Any], schema: Tool) -> bool:
    return all(name in value for name in schema.parameters.get("required", ()))


def _candidates(content: str) -> list[str]:
    """Texts that may be the object: all of the content, a fenced block, or from a line's brace to the last one."""
    stripped = content.strip()
    found = [stripped, *reversed(_FENCED.findall(content))]
    start, end = re.search(r"^\{", content, re.MULTILINE), content.rfind("}")
    if start and end > start.start():
        found.append(content[start.start() : end + 1])
    return found
