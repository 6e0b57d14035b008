"""What is wrong with a request, by the openai package's own types and by what servers insist on."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParams
from pydantic import TypeAdapter, ValidationError

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(CompletionCreateParams)


def problems(body: Any, extras: Iterable[str] = ()) -> list[str]:
    """All that is wrong with a request's body; empty for a good one. `extras` are further fields that are allowed."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    known = {name: value for name, value in body.items() if name not in set(extras)}
    try:
        validated = _drained(_adapter().validate_python(known))
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
    found = list(_unknown(known, validated))
    found += _conversation(body["messages"])
    for tool in body.get("tools", ()):
        if not _NAME.fullmatch(tool["function"]["name"]):
            found.append(f"the tool name {tool['function']['name']!r}")
    return found


def _drained(value: Any) -> Any:
    """The types have iterables, which are validated as they are read."""
    if isinstance(value, Mapping):
        return {name: _drained(part) for name, part in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_drained(part) for part in value]
    return value


def _unknown(given: Any, validated: Any, where: str = "body") -> Iterable[str]:
    """What the types do not have is dropped by validation: the difference is what is unknown to them."""
    if isinstance(given, dict) and isinstance(validated, dict):
        for name, value in given.items():
            if name in validated:
                yield from _unknown(value, validated[name], f"{where}.{name}")
            else:
                yield f"{where}.{name} is unknown"
    elif isinstance(given, list) and isinstance(validated, list):
        for index, (one, other) in enumerate(zip(given, validated, strict=True)):
            yield from _unknown(one, other, f"{where}[{index}]")


def _conversation(messages: list[dict[str, Any]]) -> list[str]:
    """Every call is answered exactly once, in order, with nothing said in between."""
    found: list[str] = []
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                found.append(f"messages[{index}] answers {message['tool_call_id']!r}, which is not the next call")
            if not isinstance(message["content"], str):
                found.append(f"messages[{index}] is no text")
        elif waiting:
            found.append(f"messages[{index}]: the calls {waiting} are not answered")
            waiting = []
        if message["role"] in ("system", "developer") and index:
            found.append(f"messages[{index}]: a system message that is not the first")
        if message["role"] == "assistant" and message.get("content") is None and not message.get("tool_calls"):
            found.append(f"messages[{index}] says nothing and calls nothing")
        if "\0" in json.dumps(message.get("content"), ensure_ascii=False):
            found.append(f"messages[{index}] has a NUL")
        for call in message.get("tool_calls", ()):
            found += [f"messages[{index}]: {wrong}" for wrong in _call(call, seen)]
            seen.add(call["id"])
            waiting.append(call["id"])
    if waiting:
        found.append(f"the calls {waiting} are not answered")
    return found


def _call(call: dict[str, Any], seen: set[str]) -> Iterable[str]:
    if call["id"] in seen or not _CALL_ID.fullmatch(call["id"]):
        yield f"the call id {call['id']!r}"
    try:
        if not isinstance(json.loads(call["function"]["arguments"]), dict):
            yield "arguments that are no object"
    except ValueError:
        yield "arguments that are no JSON"
