"""An endpoint's answer as one of our messages. Nothing in it is repaired: what cannot be used says so."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic_core import from_json

from autoinstall.models.contract import FinishReason, Message, Reply, TokenUsage, ToolCall
from autoinstall.models.failures import Failure
from autoinstall.models.quirks import quirks, said
from autoinstall.models.tokens import estimate
from autoinstall.models.wire import clean

IdForm = Literal["openai", "alnum9"]

_THOUGHT = re.compile(r"<think(?:ing)?>(.*?)(?:</think(?:ing)?>|\Z)", re.DOTALL)
_UNOPENED = re.compile(r"\A(.*?)</think(?:ing)?>", re.DOTALL)
_FINISH = {
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.CONTENT_FILTER,
}
"""What endpoints call it when they stop; all else is told by whether there are calls."""

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def decode(
    payload: object,
    conversation: Sequence[Message],
    *,
    model: str,
    call_ids: IdForm,
    input_estimate: int,
    hide: Callable[[str], str],
) -> Reply | Failure:
    """A reply (without time, cost and retries), or what is wrong with the answer as a whole.

    Args:
        model: its name where the answer has none.
        input_estimate: tokens of the request, for an answer that does not say.
        hide: takes secrets out of a text.
    """
    if not isinstance(payload, dict):
        return Failure(status=200, summary=f"JSON, but no object: {clean(hide(str(payload)))[:80]}", malformed=True)
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    failed = payload.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    if failed:
        return _failed(failed, hide)
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Failure(status=200, summary="an answer without a message", malformed=True)
    content, thought = _texts(message.get("content"))
    content, taken = _without_thoughts(content)
    reasoning = [_text(message.get("reasoning_content")) or _text(message.get("reasoning")), thought, taken]
    calls = _calls(message)
    if calls is None:
        return Failure(status=200, summary="tool calls of no known form", malformed=True)
    finish = _finish(choice.get("finish_reason"), calls)
    refusal = _text(message.get("refusal"))
    if refusal and not content and not calls:
        content, finish = refusal, FinishReason.CONTENT_FILTER
    named = payload.get("model")
    answer = Message(
        role="assistant",
        content=content,
        reasoning="\n".join(filter(None, reasoning)),
        tool_calls=_identified(calls, conversation, call_ids),
    )
    usage = _usage(payload.get("usage"), answer, input_estimate)
    return Reply(
        message=answer, finish=finish, usage=usage, model=clean(named) if isinstance(named, str) and named else model
    )


def decode_arguments(raw: object) -> tuple[dict[str, Any] | None, str, str]:
    """The arguments, their text, and why they cannot be used. Empty text and null are no arguments; an object that came
    as one, not as text, is taken."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, "{}", ""
    if isinstance(raw, dict):
        raw = _dumped(raw)
    if not isinstance(raw, str):
        return None, clean(str(raw)), f"The arguments must be a JSON object, not {_kind(raw)}."
    try:
        value = from_json(raw.encode("utf-8", "surrogatepass"), allow_inf_nan=False)
    except ValueError as error:
        reason = "incomplete" if is_incomplete(raw) else "no valid JSON"
        return None, clean(raw), f"The arguments are {reason}: {clean(str(error))}."
    if not isinstance(value, dict):
        return None, clean(raw), f"The arguments must be a JSON object, not {_kind(value)}."
    return value, clean(raw), ""


def is_incomplete(raw: str) -> bool:
    """Whether `raw` is the beginning of a JSON object and stops before its end."""
    try:
        from_json(raw.encode("utf-8", "replace"))
    except ValueError as error:
        return raw.lstrip().startswith("{") and str(error).startswith("EOF")
    return False


def fresh_id(conversation: Sequence[Message], form: IdForm) -> str:
    """An id for one more call in a conversation."""
    return _made_up(f"{len(conversation)}", _taken(conversation), form)


def calls_in_text(text: str, tools: Sequence[str]) -> bool:
    """Whether `text` has what looks like a tool call that the server should have taken out of it."""
    names = "|".join(map(re.escape, tools)) or r"\b\B"
    return said(tuple(pattern.replace("{tools}", names) for pattern in quirks().text_calls), text) is not None


def _failed(error: object, hide: Callable[[str], str]) -> Failure:
    """An error that came with status 200, as gateways send one: its code is the status that was meant."""
    code = error.get("code") or error.get("status") if isinstance(error, dict) else None
    meant = int(str(code)) if str(code).isdecimal() else 0
    return Failure.of_payload(meant if 400 <= meant < 600 else 500, {"error": error}, hide)


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _texts(content: object) -> tuple[str, str]:
    """The text and the thoughts of a content that is text, null, or a list of parts."""
    if not isinstance(content, list):
        return _text(content), ""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(clean(part))
        elif isinstance(part, dict):
            thinking = part.get("thinking")
            inner = _texts(thinking)[0] if thinking is not None else ""
            thoughts.append(inner or (_text(part.get("text")) if part.get("type") == "reasoning" else ""))
            texts.append("" if part.get("type") == "reasoning" else _text(part.get("text")))
    return "".join(texts), "".join(thoughts)


def _without_thoughts(content: str) -> tuple[str, str]:
    """Thoughts that a server left in the text, taken out. Where the template opened them, only the end is there."""
    if "</think" in content and not re.search(r"<think(?:ing)?>.*?</think", content, re.DOTALL):
        content = _UNOPENED.sub(r"<think>\1</think>", content)
    thoughts = [found.strip() for found in _THOUGHT.findall(content)]
    if not thoughts:
        return content, ""
    return _THOUGHT.sub("", content).strip(), "\n".join(filter(None, thoughts))


def _calls(message: Mapping[str, Any]) -> list[ToolCall] | None:
    """The calls with the ids that they came with; None where they have no known form."""
    given = message.get("tool_calls")
    if not given and isinstance(message.get("function_call"), dict):
        given = [{"function": message["function_call"]}]
    if not given:
        return []
    if not isinstance(given, list):
        return None
    calls = []
    for entry in given:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict):
            return None
        name, id_ = function.get("name"), entry.get("id")
        arguments, raw, error = decode_arguments(function.get("arguments"))
        if not isinstance(name, str) or not name:
            name, arguments, error = "unnamed", None, "The call names no tool."
        calls.append(
            ToolCall(
                id=clean(str(id_)) if isinstance(id_, str | int) else "",
                name=clean(name),
                arguments=arguments,
                raw=raw,
                error=error,
            )
        )
    return calls


def _finish(reason: object, calls: Sequence[ToolCall]) -> FinishReason:
    """Cut off is what the endpoint calls so, and what has arguments without an end, whatever it is called."""
    named = _FINISH.get(reason.lower()) if isinstance(reason, str) else None
    if named is FinishReason.LENGTH or any(call.arguments is None and is_incomplete(call.raw) for call in calls):
        return FinishReason.LENGTH
    if named is not None:
        return named
    return FinishReason.TOOL_CALLS if calls else FinishReason.STOP


def _identified(calls: Sequence[ToolCall], conversation: Sequence[Message], form: IdForm) -> tuple[ToolCall, ...]:
    """The calls with ids that are unique in the conversation and of the form asked for; the same at every replay."""
    taken = _taken(conversation)
    found = []
    for index, call in enumerate(calls):
        kept = call.id and call.id not in taken and (form == "openai" or _is_alnum9(call.id))
        id_ = call.id if kept else _made_up(f"{len(conversation)}:{index}:{call.name}:{call.raw}", taken, form)
        taken.add(id_)
        found.append(call.model_copy(update={"id": id_}))
    return tuple(found)


def _taken(conversation: Sequence[Message]) -> set[str]:
    return {call.id for message in conversation for call in message.tool_calls}


def _is_alnum9(id_: str) -> bool:
    return len(id_) == 9 and id_.isascii() and id_.isalnum()


def _made_up(seed: str, taken: set[str], form: IdForm) -> str:
    salt = 0
    while True:
        number = int.from_bytes(hashlib.sha256(f"{salt}:{seed}".encode()).digest())
        letters = ""
        for _ in range(9 if form == "alnum9" else 24):
            number, index = divmod(number, len(_ALPHABET))
            letters += _ALPHABET[index]
        id_ = letters if form == "alnum9" else f"call_{letters}"
        if id_ not in taken:
            return id_
        salt += 1


def _usage(given: object, answer: Message, input_estimate: int) -> TokenUsage:
    """What the endpoint counted, in any of the known forms; an estimate where it did not."""
    usage: Mapping[str, Any] = given if isinstance(given, dict) else {}
    sent = _count(usage, "prompt_tokens", "input_tokens")
    got = _count(usage, "completion_tokens", "output_tokens")
    if not sent:
        texts = [answer.content, answer.reasoning, *(call.name + call.raw for call in answer.tool_calls)]
        return TokenUsage(input_tokens=input_estimate, output_tokens=got or sum(map(estimate, texts)), estimated=True)
    cached = _count(_part(usage, "prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    cached = cached or _count(usage, "prompt_cache_hit_tokens", "cached_tokens")
    reasoning = _count(_part(usage, "completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    if reasoning and _count(usage, "total_tokens") == sent + got + reasoning:
        got += reasoning  # some count them beside the output, not within
    return TokenUsage(
        input_tokens=sent, cached_tokens=min(cached, sent), output_tokens=got, reasoning_tokens=min(reasoning, got)
    )


def _part(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((usage[name] for name in names if isinstance(usage.get(name), dict)), {})


def _count(usage: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 2**53:
            return int(value)
    return 0


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True)


def _kind(value: object) -> str:
    names = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else type(value).__name__)
