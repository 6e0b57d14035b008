"""What one agent run by a model leaves: its trajectory and what it consumed, also where it fails half-way."""

import time
from collections.abc import Sequence
from typing import Any

from autoinstall.agents.contract import Journal
from autoinstall.models.contract import Message, Model, Reply, Tool
from autoinstall.values import Role, Trajectory, Usage

FAMILY = "llm"


def start(journal: Journal, role: Role, model: Model, tools: Sequence[Tool]) -> None:
    """Tell the journal who is at work, and with which tools."""
    journal.begin(Trajectory(role=role, agent=FAMILY, model=model.name, tools=tuple(map(chat_tool, tools))))


def trajectory_of(
    role: Role, model: str, messages: Sequence[Message], tools: Sequence[Tool], stop: str = ""
) -> Trajectory:
    """The conversation as records keep it."""
    return Trajectory(
        role=role,
        agent=FAMILY,
        model=model,
        messages=tuple(map(chat_message, messages)),
        tools=tuple(map(chat_tool, tools)),
        stop=stop,
    )


def chat_message(message: Message) -> dict[str, Any]:
    """A message in the OpenAI chat format, with the reasoning that the model showed beside it."""
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        found["reasoning_content"] = message.reasoning
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        found["tool_call_id"] = message.tool_call_id
    return found


def chat_tool(tool: Tool) -> dict[str, Any]:
    """A tool in the OpenAI chat format."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def usage_of(reply: Reply) -> Usage:
    """What one answer consumed."""
    return Usage(
        seconds=reply.seconds,
        model_seconds=reply.seconds,
        steps=1,
        input_tokens=reply.usage.input_tokens,
        cached_tokens=reply.usage.cached_tokens,
        output_tokens=reply.usage.output_tokens,
        reasoning_tokens=reply.usage.reasoning_tokens,
        cost_usd=reply.cost_usd,
    )


class MeteredModel:
    """A model whose answers are counted in a journal as they come: what a run that fails has consumed is not lost."""

    def __init__(self, model: Model, journal: Journal) -> None:
        self._model = model
        self._journal = journal
        self._last = time.monotonic()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Tool | None = None,
        deadline: float | None = None,
        max_output_tokens: int | None = None,
    ) -> Reply:
        reply = self._model.complete(
            messages, tools=tools, schema=schema, deadline=deadline, max_output_tokens=max_output_tokens
        )
        now = time.monotonic()
        # All the time since the last answer, the tools' included: as a finished run counts it.
        self._journal.spend(usage_of(reply).model_copy(update={"seconds": now - self._last}))
        self._last = now
        return reply
