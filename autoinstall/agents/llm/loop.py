"""The loop of a model agent: query, tool calls, observations, until somebody or something ends it."""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from autoinstall.agents.contract import Journal
from autoinstall.agents.llm.context import Conversation
from autoinstall.agents.llm.contract import AgentTool, Budget, Desk, LoopResult, LoopStop, Observation
from autoinstall.agents.llm.meter import Meter
from autoinstall.agents.llm.notices import notices
from autoinstall.agents.llm.observations import bounded, remove_kept
from autoinstall.agents.llm.repetition import MAX_TIMES, Repetition
from autoinstall.agents.llm.tools.base import takes
from autoinstall.errors import (
    Cancelled,
    ContextExhausted,
    Infrastructure,
    ModelUnavailable,
    QuotaExhausted,
    SandboxBroken,
)
from autoinstall.models.contract import FinishReason, Message, Model, Reply, ToolCall

MAX_IN_A_ROW = 3
"""Answers in a row that were cut off, or that called no tool."""

MAX_OVERFLOWS = 4
"""Times in a row that the endpoint says a conversation is too long, shortened more each time."""

PARALLEL = 4
FAIR_SECONDS = 60.0
"""A model that had this long and gave no answer is at fault itself; with less it was the run's time that was over."""

_logger = logging.getLogger(__name__)


def run_loop(  # noqa: PLR0917  (what a run is made of, each of another kind)
    model: Model,
    messages: Sequence[Message],
    tools: Sequence[AgentTool],
    desk: Desk,
    budget: Budget,
    journal: Journal,
) -> LoopResult:
    """Let `model` work with `tools` until it hands in, gives up, or reaches a bound.

    Args:
        messages: how the conversation starts: the system's message and the task.

    Raises:
        Infrastructure: the sandbox, the network or the endpoint failed. The journal has everything by then, and every
            call in it is answered.
    """
    conversation = Conversation(messages, [tool.spec for tool in tools], model.context_tokens, journal)
    return _Run(model, tools, desk, Meter(budget), conversation).result()


class _Stopped(Exception):
    def __init__(self, stop: LoopStop, detail: str) -> None:
        super().__init__(detail)
        self.stop = stop
        self.detail = detail


class _Run:
    def __init__(
        self, model: Model, tools: Sequence[AgentTool], desk: Desk, meter: Meter, conversation: Conversation
    ) -> None:
        self._model = model
        self._tools = {tool.spec.name: tool for tool in tools}
        self._specs = tuple(tool.spec for tool in tools)
        self._desk = desk
        self._meter = meter
        self._conversation = conversation
        self._repetition = Repetition()
        self._cut = 0
        self._silent = 0

    def result(self) -> LoopResult:
        try:
            while True:
                self._step()
        except _Stopped as stopped:
            remove_kept(self._desk)
            return LoopResult(
                stop=stopped.stop,
                detail=stopped.detail,
                messages=tuple(self._conversation.messages),
                usage=self._meter.usage(),
                model=self._meter.model,
            )

    def _step(self) -> None:
        used_up = self._meter.used_up()
        if used_up is not None:
            raise _Stopped(*used_up)
        reply = self._query()
        calls = reply.message.tool_calls
        if reply.finish is FinishReason.LENGTH:
            self._refuse(reply, notices().cut_off_call, notices().cut_off)
            self._cut += 1
        elif reply.finish is FinishReason.CONTENT_FILTER:
            self._refuse(reply, notices().filtered_call, notices().filtered)
            self._silent += 1
        elif not calls:
            self._refuse(reply, "", notices().no_calls)
            self._silent += 1
        else:
            self._cut = self._silent = 0
            self._conversation.add(reply.message)
            self._answer(calls)
        if self._cut >= MAX_IN_A_ROW:
            raise _Stopped(LoopStop.TRUNCATED, f"{self._cut} answers in a row were cut off at their length limit.")
        if self._silent >= MAX_IN_A_ROW:
            raise _Stopped(LoopStop.NO_CALLS, f"{self._silent} answers in a row called no tool.")

    def _query(self) -> Reply:
        asked = time.monotonic()
        too_long = ""
        for _ in range(MAX_OVERFLOWS):
            try:
                sent = self._conversation.to_send()
                reply = self._model.complete(sent, tools=self._specs, deadline=self._meter.deadline)
            except ContextExhausted as error:
                too_long = error.message
                self._conversation.overflowed()
            except QuotaExhausted:
                raise
            except ModelUnavailable:
                if time.monotonic() < self._meter.deadline or self._meter.deadline - asked >= FAIR_SECONDS:
                    raise
                raise _Stopped(LoopStop.SECONDS, "The time was over while the model was answering.") from None
            else:
                self._meter.add(reply)
                self._conversation.calibrate(reply.usage)
                return reply
        raise _Stopped(LoopStop.CONTEXT, too_long)

    def _refuse(self, reply: Reply, answer: str, advice: str) -> None:
        """Keep a reply of which nothing is carried out."""
        self._conversation.add_refused(reply.message)
        calls = reply.message.tool_calls
        self._tell(calls, [answer] * len(calls), [advice, *self._meter.notices()])

    def _answer(self, calls: Sequence[ToolCall]) -> None:
        """Carry calls out and answer every one of them, whatever happens on the way."""
        observations: list[Observation] = []
        advice: list[str] = []
        times = 0
        try:
            observations += self._observations(calls)
            times = self._repetition.times(calls, [observation.text for observation in observations])
            advice = [*self._repetition.notices(times), *self._meter.notices()]
        finally:
            texts = [observation.text for observation in observations]
            self._tell(calls, texts + [notices().interrupted] * (len(calls) - len(texts)), advice)
        stop = next((observation for observation in observations if observation.stop is not None), None)
        if stop is not None and stop.stop is not None:
            raise _Stopped(stop.stop, stop.text)
        if times >= MAX_TIMES:
            raise _Stopped(LoopStop.REPETITION, f"The agent did the same {times} times in a row with the same result.")

    def _tell(self, calls: Sequence[ToolCall], texts: Sequence[str], advice: Sequence[str]) -> None:
        """Answer calls. Advice goes into the last answer: a user's message behind a tool's is not taken everywhere."""
        answers = list(texts) if calls else [""]
        answers[-1] = "\n\n".join(filter(None, [answers[-1], *advice]))
        for call, text in zip(calls, answers, strict=False):
            self._conversation.add(Message(role="tool", content=text, tool_call_id=call.id))
        if not calls:
            self._conversation.add(Message(role="user", content=answers[-1]))

    def _observations(self, calls: Sequence[ToolCall]) -> Iterator[Observation]:
        """One for each call, in order. Calls that only read run side by side; nothing runs after one that ends it."""
        ended_by = ""
        for side_by_side, group in groupby(calls, self._reads_only):
            batch = list(group)
            if ended_by:
                yield from (_error(notices().after_stop.format(tool=ended_by)) for _ in batch)
            elif side_by_side and len(batch) > 1:
                with ThreadPoolExecutor(min(PARALLEL, len(batch))) as pool:
                    yield from map(self._bounded, list(pool.map(self._call, batch)))
            else:
                for call in batch:
                    if ended_by:
                        yield _error(notices().after_stop.format(tool=ended_by))
                        continue
                    observation = self._call(call)
                    ended_by = call.name if observation.stop is not None else ""
                    yield self._bounded(observation)

    def _call(self, call: ToolCall) -> Observation:
        tool = self._tools.get(call.name)
        if tool is None:
            return _error(notices().unknown_tool.format(name=call.name, tools=", ".join(self._tools)))
        if call.arguments is None:
            said = notices().invalid_arguments
            return _error(said.format(name=call.name, error=call.error, takes=takes(tool.spec)))
        if time.monotonic() >= self._meter.deadline:
            return _error(notices().no_time)
        try:
            return tool.call(call.arguments, self._desk)
        except SandboxBroken:
            return Observation(text=notices().broken, error=True, stop=LoopStop.SANDBOX_BROKEN)
        except (Infrastructure, Cancelled):
            raise
        except Exception as error:  # whatever one call stumbles over, the run goes on without it
            _logger.warning("Tool %s failed", call.name, exc_info=True)
            return _error(notices().failed.format(name=call.name, error=error or type(error).__name__))

    def _bounded(self, observation: Observation) -> Observation:
        return observation.model_copy(update={"text": bounded(observation.text, self._desk)})

    def _reads_only(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.reads_only


def _error(text: str) -> Observation:
    return Observation(text=text, error=True)
