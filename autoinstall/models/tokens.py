"""Counting tokens without a tokenizer: close enough to flag, to budget and to price by, on the high side for prose."""

import json
import math
from collections.abc import Iterable, Sequence

from autoinstall.models.contract import Message, TokenUsage, Tool
from autoinstall.settings import Price

BYTES_PER_TOKEN = 3.5
"""Code and logs have about 3.5 bytes a token in the common vocabularies, English prose somewhat more."""

MESSAGE_TOKENS = 4
"""What the frame of one message takes."""


def estimate(text: str) -> int:
    """Tokens of `text`."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def estimate_message(message: Message) -> int:
    """Tokens of one message with its calls."""
    calls = sum(estimate(call.name) + estimate(call.raw) + MESSAGE_TOKENS for call in message.tool_calls)
    return MESSAGE_TOKENS + estimate(message.content) + calls


def estimate_tools(tools: Iterable[Tool]) -> int:
    """Tokens of the tools' definitions."""
    return sum(estimate(tool.name + tool.description + json.dumps(tool.parameters)) for tool in tools)


def estimate_conversation(messages: Sequence[Message], tools: Iterable[Tool] = ()) -> int:
    """Tokens of a whole request."""
    return sum(map(estimate_message, messages)) + estimate_tools(tools)


def added(first: TokenUsage, second: TokenUsage) -> TokenUsage:
    """Both together."""
    return TokenUsage(
        input_tokens=first.input_tokens + second.input_tokens,
        cached_tokens=first.cached_tokens + second.cached_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        reasoning_tokens=first.reasoning_tokens + second.reasoning_tokens,
        estimated=first.estimated or second.estimated,
    )


def cost_usd(usage: TokenUsage, price: Price | None) -> float:
    """US dollars; 0 where there is no price."""
    if price is None:
        return 0.0
    cached = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input_tokens - usage.cached_tokens
    return (fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / 1e6
