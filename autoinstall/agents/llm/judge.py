"""The judge that lets a model doubt what the rules accept.

It can turn a match into a failure or an undecided, and nothing else.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from autoinstall.agents.contract import Consultation, Judge
from autoinstall.agents.llm.prompting import render
from autoinstall.agents.llm.recording import trajectory_of, usage_of
from autoinstall.errors import ContextExhausted
from autoinstall.models.contract import FinishReason, Message, Model, Reply, Tool
from autoinstall.outputs.cleaning import clean, normalise
from autoinstall.values import CommandResult, Goal, Judgement, Role, Usage, Value, Verdict

MAX_OUTPUT = 24_000
"""Characters of an output that the model is shown: a quarter of them from its start, the rest from its end."""

MAX_TRIES = 2
"""Answers that are asked for where the first cannot be used."""

MAX_OUTPUT_TOKENS = 2048
MAX_QUOTE = 300
_SECONDS = 300.0


class Opinion(Value):
    """What the model answers. `quote` is a passage of the output; `reason` is one sentence."""

    verdict: Verdict
    quote: str
    reason: str


def _answer_tool() -> Tool:
    schema = {
        "type": "object",
        "properties": {
            "quote": {"type": "string", "description": "The passage of the output that the verdict rests on."},
            "reason": {"type": "string", "description": "One sentence."},
            "verdict": {"type": "string", "enum": [verdict.value for verdict in Verdict]},
        },
        "required": ["quote", "reason", "verdict"],
        "additionalProperties": False,
    }
    return Tool(name="verdict", description="Give the verdict on the output.", parameters=schema)


class LlmJudge:
    """Rules first; where they say that a result matches, a model is asked whether it really does.

    An answer whose quote is not in the output is none: the model saw something that is not there. Answers are kept by
    goal, exit code and what of the output does not vary from run to run; those that cannot be used are not.

    Args:
        model: asked only for what the rules accept.
        rules: the judge that must accept first.
        consulted: told of every consultation.
    """

    name = "llm"

    def __init__(self, model: Model, rules: Judge, consulted: Callable[[Consultation], None] | None = None) -> None:
        self._model = model
        self._rules = rules
        self._consulted = consulted
        self._known: dict[str, _Answer] = {}
        self._lock = threading.Lock()

    @property
    def rules(self) -> Judge:
        return self._rules

    def session(self, consulted: Callable[[Consultation], None]) -> "LlmJudge":
        """As the contract says. The session's answers are its own."""
        return LlmJudge(self._model, self._rules, consulted)

    def judge(self, goal: Goal, result: CommandResult) -> Judgement:
        first = self._rules.judge(goal, result)
        if first.verdict is not Verdict.MATCHES:
            return first
        key = _key(goal, result)
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = self._ask(goal, result)
            if known.usable:
                with self._lock:
                    self._known[key] = known
        reason = known.reason_for(result)
        if known.verdict is Verdict.MATCHES:
            return first.model_copy(update={"reason": f"{first.reason} The model agrees: {reason}"})
        return Judgement(verdict=known.verdict, reason=reason, tests=first.tests)

    def _ask(self, goal: Goal, result: CommandResult) -> "_Answer":
        talk = _Talk(self._model)
        try:
            return _opinion(talk, goal, result)
        except ContextExhausted as error:
            return _Answer(Verdict.UNKNOWN, f"The model cannot read the output: {error.message}")
        finally:
            if self._consulted is not None:
                self._consulted(talk.consultation())


class _Answer(NamedTuple):
    """What came of a consultation. It serves for outputs that differ in what varies from run to run, too."""

    verdict: Verdict
    reason: str
    quote: str = ""
    usable: bool = True

    def reason_for(self, result: CommandResult) -> str:
        """The reason, with the quote where it is in this output as well."""
        quote = self.quote.strip()
        quoted = f' "{quote[:MAX_QUOTE]}"' if quote and _quotes(clean(result.output), quote) else ""
        return self.reason + quoted


class _Talk:
    """One consultation as it goes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tool = _answer_tool()
        self._messages: list[Message] = []
        self._usage: list[Usage] = []
        self._begun = time.monotonic()

    def ask(self, messages: Sequence[Message]) -> Reply:
        self._messages += messages
        reply = self._model.complete(
            tuple(self._messages),
            schema=self._tool,
            deadline=self._begun + _SECONDS,
            max_output_tokens=MAX_OUTPUT_TOKENS,
        )
        self._usage.append(usage_of(reply))
        # As text: the call is only the form in which the answer came, and no tool of that name is there to answer it.
        said = "\n".join(filter(None, [reply.message.content, *(call.raw for call in reply.message.tool_calls)]))
        self._messages.append(reply.message.model_copy(update={"content": said or "(nothing)", "tool_calls": ()}))
        return reply

    def consultation(self) -> Consultation:
        fields = set(Usage.model_fields) - {"seconds"}
        spent = {name: sum(getattr(usage, name) for usage in self._usage) for name in fields}
        return Consultation(
            trajectory=trajectory_of(Role.JUDGE, self._model.name, self._messages, (self._tool,)),
            usage=Usage(seconds=time.monotonic() - self._begun, **spent),
        )


def _opinion(talk: _Talk, goal: Goal, result: CommandResult) -> _Answer:
    output = clean(result.output)
    messages: tuple[Message, ...] = (
        Message(role="system", content=render("judge_system")),
        Message(role="user", content=_task(goal, result, output)),
    )
    complaint = ""
    for _ in range(MAX_TRIES):
        reply = talk.ask(messages)
        opinion, complaint = _read(reply, output)
        if opinion is not None:
            return _Answer(opinion.verdict, opinion.reason.strip(), opinion.quote)
        messages = (Message(role="user", content=complaint),)
    return _Answer(Verdict.UNKNOWN, f"The model gave no verdict that can be used: {complaint}", usable=False)


def _read(reply: Reply, output: str) -> tuple[Opinion | None, str]:
    """The model's opinion, or None and what is wrong with the answer."""
    if reply.finish is FinishReason.LENGTH:
        return None, "The answer was cut off. Give a shorter one."
    call = next((call for call in reply.message.tool_calls if call.arguments is not None), None)
    if call is None:
        return None, "There was no verdict in the answer."
    try:
        opinion = Opinion.model_validate(call.arguments)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3])
        return None, f"The answer is not of the form that was asked for: {wrong}."
    if not _quotes(output, opinion.quote):
        return None, "The quote does not occur in the output. Copy a passage of the output letter by letter."
    return opinion, ""


def _quotes(output: str, quote: str) -> bool:
    """Whether `quote` is a passage of the output, amounts of white space aside; of an empty output nothing is."""
    wanted, flat = " ".join(quote.split()), " ".join(output.split())
    return wanted in flat if wanted else not flat


def _task(goal: Goal, result: CommandResult, output: str) -> str:
    shortened = len(output) > MAX_OUTPUT
    if shortened:
        head, tail = MAX_OUTPUT // 4, MAX_OUTPUT - MAX_OUTPUT // 4
        missing = len(output) - head - tail
        output = f"{output[:head]}\n[… {missing} characters are left out here …]\n{output[-tail:]}"
    return render(
        "judge_task",
        command=goal.command,
        category=goal.category.value,
        description=goal.description,
        min_pass_rate=goal.min_pass_rate,
        exit_code=result.exit_code,
        seconds=result.duration,
        output=output,
        shortened=shortened or result.dropped_bytes > 0,
    )


def _key(goal: Goal, result: CommandResult) -> str:
    parts = (goal.model_dump_json(exclude={"evidence"}), str(result.exit_code), normalise(result.output))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
