"""Whether an endpoint will serve agents: a few small questions and one long one, before a night depends on it."""

import time
from collections.abc import Iterator, Sequence
from typing import Literal

from autoinstall.errors import AutoinstallError, ContextExhausted, EndpointUnsuitable
from autoinstall.models.contract import Message, Model, Reply, Tool
from autoinstall.models.decoding import calls_in_text
from autoinstall.models.tokens import estimate_conversation
from autoinstall.values import Value

CONTEXT_TOKENS = 16_000
"""What the long question has at most, unless more is asked for: it costs as much as a step of an agent."""

SECONDS = 600.0
"""For the whole probe."""

ANSWER_TOKENS = 2048
"""Of one answer: room for a reasoning model's thoughts."""

SEEN = 0.6
"""The share of the estimated input that an endpoint must count; below it, it dropped some unseen."""

LOOK_UP = Tool(
    name="look_up",
    description="Looks up the number of a tree.",
    parameters={
        "type": "object",
        "properties": {"tree": {"type": "string", "description": "Name of the tree."}},
        "required": ["tree"],
        "additionalProperties": False,
    },
)
ANSWER = Tool(
    name="answer",
    description="The capital of France, and how many letters its name has.",
    parameters={
        "type": "object",
        "properties": {"capital": {"type": "string"}, "letters": {"type": "integer"}},
        "required": ["capital", "letters"],
        "additionalProperties": False,
    },
)
_SYSTEM = Message(role="system", content="You are being tested. Do exactly what is asked, briefly.")
_NUMBERS = {"alder": "7319", "birch": "4027", "cedar": "8856"}
_CODE_WORD = "periwinkle-5203"


class Finding(Value):
    """One finding. A `fail` is what agents cannot do without; a `warn` makes them slower or less sure."""

    name: str
    level: Literal["ok", "warn", "fail"]
    detail: str
    hint: str = ""


def probe(
    model: Model, *, variable: str = "AUTOINSTALL_MODEL", context_tokens: int = CONTEXT_TOKENS
) -> tuple[Finding, ...]:
    """Everything there is to find; stops where nothing further can work. Never raises for what the endpoint does.

    Args:
        variable: where the model's settings are, for hints.
        context_tokens: how long the long question may get; the model's own limit counts too.
    """
    return tuple(_findings(model, variable, context_tokens, time.monotonic() + SECONDS))


def _findings(model: Model, variable: str, context_tokens: int, deadline: float) -> Iterator[Finding]:
    try:
        yield from _tools(model, deadline)
    except AutoinstallError as error:
        yield _failed("tools", error)
        return
    for name, check in (("parallel calls", _parallel), ("structured output", _structured)):
        try:
            yield check(model, deadline)
        except AutoinstallError as error:
            yield _failed(name, error)
    try:
        yield _context(model, variable, context_tokens, deadline)
    except AutoinstallError as error:
        yield _failed("context", error)


def _failed(name: str, error: AutoinstallError) -> Finding:
    return Finding(name=name, level="fail", detail=f"{error.code}: {error.message}", hint=error.hint)


def _ask(model: Model, messages: Sequence[Message], deadline: float, *, tools: Sequence[Tool] = (LOOK_UP,)) -> Reply:
    return model.complete(messages, tools=tools, deadline=deadline, max_output_tokens=ANSWER_TOKENS)


def _tools(model: Model, deadline: float) -> Iterator[Finding]:
    """A call comes as one, and its result reaches the model."""
    asked = [_SYSTEM, Message(role="user", content="Use the tool to look up the number of alder, then tell it to me.")]
    reply = _ask(model, asked, deadline)
    if not _calls(reply):
        raise _no_calls(reply)
    yield Finding(name="tools", level="ok", detail=f"{reply.model} calls them, {reply.seconds:.1f} s")
    results = tuple(
        Message(role="tool", tool_call_id=call.id, content=f"The number of alder is {_NUMBERS['alder']}.")
        for call in reply.message.tool_calls
    )
    said = _ask(model, (*asked, reply.message, *results), deadline).message.content
    if _NUMBERS["alder"] not in said.replace(",", "").replace(" ", ""):
        yield Finding(
            name="tool results",
            level="fail",
            detail=f"{EndpointUnsuitable.code}: a tool's result does not reach the model; it said {said[:120]!r}.",
            hint="The chat template has to render messages of the role `tool`.",
        )
    else:
        yield Finding(name="tool results", level="ok", detail="they reach the model")


def _calls(reply: Reply) -> list[str]:
    """The trees that were looked up, in calls that can be used."""
    calls = [call for call in reply.message.tool_calls if call.name == LOOK_UP.name and call.arguments]
    return [str(call.arguments.get("tree", "")).lower() for call in calls if call.arguments]


def _no_calls(reply: Reply) -> EndpointUnsuitable:
    text = f"{reply.message.reasoning}\n{reply.message.content}"
    if calls_in_text(text, [LOOK_UP.name]):
        return EndpointUnsuitable(
            "Tool calls are left in the text of the answer.",
            hint="Turn on the server's parser for the model's calls (vLLM: --enable-auto-tool-choice and "
            "--tool-call-parser; llama.cpp: --jinja), or choose a model whose template has tools.",
        )
    errors = [call.error for call in reply.message.tool_calls if call.error]
    said = errors[0] if errors else f"it said {reply.message.content[:120]!r}"
    return EndpointUnsuitable(
        f"Asked to use a tool, the model made no usable call: {said}", hint="Agents need a model that calls tools."
    )


def _parallel(model: Model, deadline: float) -> Finding:
    """Two calls in one answer."""
    question = "Look up the numbers of birch and of cedar: call the tool for both at once, in one answer."
    reply = _ask(model, (_SYSTEM, Message(role="user", content=question)), deadline)
    if {"birch", "cedar"} <= set(_calls(reply)):
        return Finding(name="parallel calls", level="ok", detail="several in one answer")
    return Finding(name="parallel calls", level="warn", detail="one call at a time: agents take more steps")


def _structured(model: Model, deadline: float) -> Finding:
    """An object of a given form."""
    asked = (_SYSTEM, Message(role="user", content=ANSWER.description))
    reply = model.complete(asked, schema=ANSWER, deadline=deadline, max_output_tokens=ANSWER_TOKENS)
    arguments = reply.message.tool_calls[0].arguments if reply.message.tool_calls else None
    if arguments and str(arguments.get("capital", "")).lower() == "paris" and arguments.get("letters") == 5:
        return Finding(name="structured output", level="ok", detail="objects of a given form")
    return Finding(
        name="structured output",
        level="fail",
        detail=f"{EndpointUnsuitable.code}: no object of the form that was asked for, but {arguments!r:.120}",
        hint="Goal-setters and judges need it; choose another model.",
    )


def _context(model: Model, variable: str, most: int, deadline: float) -> Finding:
    """Whether a conversation that nearly fills the context arrives whole, its beginning above all."""
    tokens = min(most, model.context_tokens - ANSWER_TOKENS) * 9 // 10
    asked = _long_conversation(tokens)
    estimated = estimate_conversation(asked)
    declared = f"{variable}__CONTEXT_TOKENS ({model.context_tokens})"
    try:
        reply = _ask(model, asked, deadline, tools=())
    except ContextExhausted as error:
        detail = f"{EndpointUnsuitable.code}: about {estimated} tokens are refused: {error.message}"
        hint = f"Lower {declared} to what the server was started with, or start it with more."
        return Finding(name="context", level="fail", detail=detail, hint=hint)
    counted = reply.usage.input_tokens
    said = _CODE_WORD in reply.message.content.lower()
    if said and (reply.usage.estimated or counted >= SEEN * estimated):
        checked = f"{estimated if reply.usage.estimated else counted} tokens arrive whole"
        rest = f"; the rest of {model.context_tokens} is not tried" if estimated < 0.8 * model.context_tokens else ""
        return Finding(name="context", level="ok", detail=checked + rest)
    lost = f"the server counts {counted}" if said else "the model does not know the beginning"
    return Finding(
        name="context",
        level="fail",
        detail=f"{EndpointUnsuitable.code}: about {estimated} tokens are cut off silently: {lost}.",
        hint=f"Start the server with the context of {declared}, or lower that (Ollama: OLLAMA_CONTEXT_LENGTH; "
        "llama.cpp: -c).",
    )


def _long_conversation(tokens: int) -> tuple[Message, ...]:
    """A code word, much text over many messages, and the question for the word: servers that cut drop the oldest."""
    messages = [
        _SYSTEM,
        Message(role="user", content=f"The code word is {_CODE_WORD}. Remember it; I shall ask for it at the end."),
        Message(role="assistant", content="I shall remember it."),
    ]
    question = Message(role="user", content="What is the code word that I gave at the beginning? Answer with it alone.")
    number = 0
    while (left := tokens - estimate_conversation([*messages, question])) > 100:
        lines = []
        for _ in range(max(1, min(left, 2000) // 22)):
            number += 1
            lines.append(f"Entry {number}: parcel {number * 7919 % 10007} went by the road to the north gate.")
        messages.append(Message(role="user", content="\n".join(lines)))
        messages.append(Message(role="assistant", content="Noted."))
    return (*messages, question)
