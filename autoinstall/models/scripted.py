"""A model that says what it was told to: for tests of whatever talks to a model."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from autoinstall.models.contract import FinishReason, Message, Reply, TokenUsage, Tool, ToolCall
from autoinstall.models.conversation import check_conversation
from autoinstall.models.tokens import estimate_conversation, estimate_message
from autoinstall.values import Value


class ScriptExhausted(AssertionError):
    """More was asked than the script has replies for."""


class Recorded(Value):
    """What the model was asked."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema_tool: Tool | None = None
    deadline: float | None = None
    max_output_tokens: int | None = None


Line = Reply | Exception | Callable[[Recorded], Reply]
"""One reply of a script; an exception is raised; a callable answers what it is asked."""


class ScriptedModel:
    """`models.contract.Model` by a script. Shared by threads; an invalid conversation is an error at once.

    Args:
        lines: one for each request, in order. An iterator may be endless.
        repeat: say the last line again where there are no more.

    Attributes:
        requests: what was asked so far.
    """

    def __init__(
        self, lines: Iterable[Line], *, name: str = "scripted", context_tokens: int = 131_072, repeat: bool = False
    ) -> None:
        self.requests: list[Recorded] = []
        self._lines: Iterator[Line] = iter(lines)
        self._last: Line | None = None
        self._repeat = repeat
        self._name = name
        self._context_tokens = context_tokens
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """As given."""
        return self._context_tokens

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Tool | None = None,
        deadline: float | None = None,
        max_output_tokens: int | None = None,
    ) -> Reply:
        """The next line.

        Raises:
            InvalidConversation, ScriptExhausted: what was asked is a defect of the caller or of the script.
        """
        check_conversation(messages)
        request = Recorded(
            messages=tuple(messages),
            tools=tuple(tools),
            schema_tool=schema,
            deadline=deadline,
            max_output_tokens=max_output_tokens,
        )
        with self._lock:
            self.requests.append(request)
            line = next(self._lines, self._last if self._repeat else None)
            self._last = line
        if line is None:
            raise ScriptExhausted(f"The script has no reply to request {len(self.requests)}.")
        if isinstance(line, Exception):
            raise line
        reply = line if isinstance(line, Reply) else line(request)
        return _counted(_unique(reply, messages), request)


def says(
    content: str = "",
    *calls: tuple[str, dict[str, object]],
    finish: FinishReason | None = None,
    usage: TokenUsage | None = None,
) -> Reply:
    """A reply of text and calls, each a tool's name and its arguments. Ids are made up when it is given."""
    made = tuple(ToolCall(id=f"call_{index}", name=name, arguments=given) for index, (name, given) in enumerate(calls))
    return Reply(
        message=Message(role="assistant", content=content, tool_calls=tuple(_with_raw(call) for call in made)),
        finish=finish or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP),
        usage=usage or TokenUsage(),
        model="scripted",
    )


def _with_raw(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"raw": json.dumps(call.arguments)})


def _unique(reply: Reply, messages: Sequence[Message]) -> Reply:
    """Ids that a script repeats are told apart by the request's place, as an endpoint's would be."""
    taken = {call.id for message in messages for call in message.tool_calls}
    calls = tuple(
        call.model_copy(update={"id": f"{call.id}_{len(messages)}"}) if call.id in taken else call
        for call in reply.message.tool_calls
    )
    return reply.model_copy(update={"message": reply.message.model_copy(update={"tool_calls": calls})})


def _counted(reply: Reply, request: Recorded) -> Reply:
    """With estimated usage, where the script gives none: budgets of tokens are then tested by the same path."""
    if reply.usage != TokenUsage():
        return reply
    usage = TokenUsage(
        input_tokens=estimate_conversation(request.messages, request.tools),
        output_tokens=estimate_message(reply.message),
        estimated=True,
    )
    return reply.model_copy(update={"usage": usage})
