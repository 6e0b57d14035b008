"""What the endpoint does with one request."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


def tool_call(name: str, arguments: Any = "{}", id_: Any = "call_0") -> dict[str, Any]:
    """A tool call exactly as given: arguments that are not text go out as they are."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def call(name: str, id_: str = "call_0", **arguments: Any) -> dict[str, Any]:
    """A well-formed tool call."""
    return tool_call(name, json.dumps(arguments), id_)


@dataclass(frozen=True)
class Says:
    """An answer. `message` adds to or replaces fields of the message, `body` of the whole; None leaves usage out.

    The finish reason follows from the calls unless it is given.
    """

    content: Any = None
    calls: tuple[dict[str, Any], ...] = ()
    finish: Any = "by the calls"
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
    message: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    delay: float = 0.0

    def payload(self, model: str) -> dict[str, Any]:
        """As a Chat Completion."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.calls:
            message["tool_calls"] = list(self.calls)
        finish = self.finish if self.finish != "by the calls" else "tool_calls" if self.calls else "stop"
        full = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "message": message | self.message, "finish_reason": finish}],
        }
        if self.usage is not None:
            full["usage"] = self.usage
        return full | self.body


@dataclass(frozen=True)
class Failed:
    """An HTTP error; the error object is OpenAI's unless a whole `body` is given."""

    status: int
    message: str = "failed"
    code: Any = None
    type: Any = None
    param: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None

    def payload(self) -> Any:
        """The body."""
        if self.body is not None:
            return self.body
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


@dataclass(frozen=True)
class Raw:
    """Bytes that need not be JSON."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Hang:
    """Nothing, until the client leaves or the endpoint ends."""


@dataclass(frozen=True)
class Trickle:
    """A byte now and then, of the headers or of the body, without an end."""

    part: Literal["headers", "body"]
    interval: float = 0.05


@dataclass(frozen=True)
class Drop:
    """The connection is closed without an answer."""


@dataclass(frozen=True)
class Cut:
    """The connection is closed within the body."""


Act = Says | Failed | Raw | Hang | Trickle | Drop | Cut
Line = Act | Callable[[dict[str, Any]], Act]
"""One line of a script; a callable answers the request's body."""
