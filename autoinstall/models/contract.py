"""What a model is: messages and tools in, one assistant message out, with what it cost.

Two implementations: `client` (the openai package against any Chat Completions endpoint) and `scripted` (a fake that
ships). Words follow the Chat Completions API; every quirk of an endpoint is dealt with below this line.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, Protocol

from autoinstall.values import Value


class ToolCall(Value):
    """One call that a model asks for.

    Attributes:
        id: never empty and unique within a conversation; made up where the endpoint gave none or repeated one.
        arguments: the decoded JSON object; empty where there were none. None where they cannot be used, and then
            `error` says why and the call must not be carried out.
        raw: the arguments as they came, for the record.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str = "{}"
    error: str = ""


class Message(Value):
    """One message of a conversation.

    Attributes:
        tool_calls: of an assistant; each is answered by exactly one later message of role `tool` with its id.
        tool_call_id: of a tool's answer; empty otherwise.
        reasoning: what a reasoning model showed of its thoughts; kept in the record.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: str = ""


class Tool(Value):
    """A function that a model may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class FinishReason(StrEnum):
    """Why a model stopped. `LENGTH` covers an answer that was cut off whatever the endpoint called it."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


class TokenUsage(Value):
    """Tokens of one call. Cached ones are part of the input, reasoning ones part of the output.

    `estimated` is set where the endpoint said nothing and they were counted from the texts.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


class Reply(Value):
    """An assistant message, with what it took to get it.

    Attributes:
        message: ready to be appended to the conversation. Where `finish` is `LENGTH` none of its calls may be
            carried out: the last of them is incomplete, and the ones before it were part of the same plan.
        model: as the endpoint names it.
        seconds: wall time, retries included.
        cost_usd: by the settings' price table; 0 where it has no price.
        retries: failed tries before this one.
    """

    message: Message
    finish: FinishReason
    usage: TokenUsage
    model: str
    seconds: float = 0.0
    cost_usd: float = 0.0
    retries: int = 0


class Model(Protocol):
    """A language model; one a role and process, shared by threads."""

    @property
    def name(self) -> str:
        """The model's name as records keep it."""
        ...

    @property
    def context_tokens(self) -> int:
        """How many tokens a conversation and its answer may have together."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Tool | None = None,
        deadline: float | None = None,
        max_output_tokens: int | None = None,
    ) -> Reply:
        """One assistant message.

        Args:
            messages: a valid conversation: every tool call in it has its answer.
            schema: the answer must be an object of this form; it comes back as the arguments of one call of that name,
                whether the endpoint has structured output, tools alone, or neither.
            deadline: by `time.monotonic()`; retries and waits end there. None means the settings' total alone.
            max_output_tokens: None means the settings'.

        Raises:
            ContextExhausted: the endpoint says that the conversation is too long.
            QuotaExhausted: no money or quota is left there; trying again does not help.
            EndpointUnsuitable: it cannot do what agents need (tools, the model's name, a usable answer).
            ModelUnavailable: no answer in the time there was, after retries.
        """
        ...
