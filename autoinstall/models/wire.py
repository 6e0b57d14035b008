"""Requests as they go out: our messages and tools in the form of Chat Completions, as far as an endpoint takes it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autoinstall.models.adaptation import Profile, Structured
from autoinstall.models.contract import Message, Tool, ToolCall
from autoinstall.settings import ModelSettings

_UNSENDABLE = re.compile("[\ud800-\udfff\0]")


@dataclass(frozen=True)
class Request:
    """What one answer is asked with, before it takes an endpoint's form."""

    messages: Sequence[Message]
    tools: Sequence[Tool]
    schema: Tool | None
    max_output_tokens: int


def clean(text: str) -> str:
    """`text` without what cannot be sent: lone surrogates (no UTF-8) and NUL (refused by several servers)."""
    if text.isascii() and "\0" not in text:  # nearly all of a conversation, and much cheaper to tell
        return text
    return _UNSENDABLE.sub("\ufffd", text)


def body_of(request: Request, settings: ModelSettings, profile: Profile) -> dict[str, Any]:
    """The fields of the request's body, `settings.extra` last: a field there wins over ours."""
    messages = [_message(message, profile) for message in request.messages]
    body: dict[str, Any] = {"model": settings.name}
    tools = list(request.tools)
    if request.schema is not None and profile.structured is Structured.TOOL:
        tools = [tool for tool in tools if tool.name != request.schema.name] + [request.schema]
        body["tool_choice"] = {"type": "function", "function": {"name": request.schema.name}}
    elif request.schema is not None:
        messages.append({"role": "user", "content": clean(_instruction(request.schema))})
        if profile.structured is Structured.JSON_SCHEMA:
            form = {"name": request.schema.name, "schema": request.schema.parameters}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
    body["messages"] = _placed_system(messages, profile)
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if profile.output_field:
        body[profile.output_field] = min(request.max_output_tokens, profile.output_cap or request.max_output_tokens)
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    body |= settings.extra
    return {name: value for name, value in body.items() if name not in profile.dropped}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _message(message: Message, profile: Profile) -> dict[str, Any]:
    content = clean(message.content)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
    if message.role != "assistant":
        return {"role": message.role, "content": content}
    sent: dict[str, Any] = {"role": "assistant", "content": content}
    if message.tool_calls:
        sent["tool_calls"] = [_call(call) for call in message.tool_calls]
        if not content and profile.null_content:
            sent["content"] = None
    if profile.send_reasoning and message.reasoning:
        sent["reasoning_content"] = clean(message.reasoning)
    return sent


def _call(call: ToolCall) -> dict[str, Any]:
    # Several servers decode the arguments of earlier calls for their template and fail on what is no object. A call
    # that was never carried out is shown as what it was, inside one.
    arguments = clean(call.raw) or "{}"
    if call.arguments is None:
        arguments = json.dumps({"unusable_arguments": arguments}, ensure_ascii=False)
    elif not arguments.lstrip().startswith("{"):
        arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _placed_system(messages: list[dict[str, Any]], profile: Profile) -> list[dict[str, Any]]:
    """The system message under the role that the endpoint takes, or within the first user message."""
    first, *rest = messages
    if first["role"] != "system":
        return messages
    if profile.system_role != "user":
        return [{**first, "role": profile.system_role}, *rest]
    if rest and rest[0]["role"] == "user":
        return [{"role": "user", "content": f"{first['content']}\n\n{rest[0]['content']}"}, *rest[1:]]
    return [{**first, "role": "user"}, *rest]


def _instruction(schema: Tool) -> str:
    form = json.dumps(schema.parameters, ensure_ascii=False)
    return f"{schema.description}\n\nAnswer with one JSON object of this JSON schema, and nothing else:\n{form}"
