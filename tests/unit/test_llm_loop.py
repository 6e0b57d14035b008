"""The loop of a model agent: what it carries out, what it answers, and when it ends."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from autoinstall.agents.llm import loop, repetition
from autoinstall.agents.llm.contract import AgentTool, Budget, Desk, LoopResult, LoopStop, Observation
from autoinstall.agents.llm.loop import run_loop
from autoinstall.agents.llm.meter import Meter
from autoinstall.agents.llm.notices import notices
from autoinstall.errors import (
    Cancelled,
    ContextExhausted,
    InvalidUrl,
    ModelUnavailable,
    QuotaExhausted,
    SandboxLost,
)
from autoinstall.models.contract import FinishReason, Message, Reply, TokenUsage, Tool, ToolCall
from autoinstall.models.conversation import check_conversation
from autoinstall.models.scripted import Line, Recorded, ScriptedModel, says
from autoinstall.sandbox.contract import Sandbox, SandboxSpec
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.tree import Tree

START = (Message(role="system", content="You set things up."), Message(role="user", content="Set this up."))


class Notebook:
    """A journal in memory."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def write(self, message: Message) -> None:
        self.messages.append(message)


class FunctionTool:
    """A tool that is a function of its arguments."""

    def __init__(self, name: str, function: Callable[[dict[str, Any]], Any], *, reads_only: bool = False) -> None:
        self.spec = Tool(
            name=name, description=name, parameters={"type": "object", "properties": {"text": {"type": "string"}}}
        )
        self.reads_only = reads_only
        self._function = function
        self.calls: list[dict[str, Any]] = []

    def call(self, arguments: dict[str, Any], desk: Desk) -> Observation:
        self.calls.append(arguments)
        found = self._function(arguments)
        return found if isinstance(found, Observation) else Observation(text=str(found))


def raises(error: BaseException) -> Callable[[dict[str, Any]], Any]:
    def function(arguments: dict[str, Any]) -> Any:
        raise error

    return function


SUBMIT = FunctionTool("submit", lambda _: Observation(text="Handed in.", stop=LoopStop.SUBMITTED))
ECHO = FunctionTool("echo", lambda arguments: arguments.get("text", "nothing"))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    provider = ScriptedProvider()
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        yield sandbox


@pytest.fixture
def desk(sandbox: Sandbox, tmp_path: Path) -> Desk:
    return Desk(sandbox, Tree(tmp_path), 2000, 60, time.monotonic() + 600)


def budget(**changes: Any) -> Budget:
    return Budget(**{"deadline": time.monotonic() + 600, "steps": 100, "tokens": 10_000_000, **changes})


def run(
    lines: Sequence[Line],
    desk: Desk,
    *tools: AgentTool,
    bounds: Budget | None = None,
    repeat: bool = False,
    context_tokens: int = 131_072,
) -> tuple[LoopResult, ScriptedModel, Notebook]:
    model = ScriptedModel(lines, repeat=repeat, context_tokens=context_tokens)
    notebook = Notebook()
    result = run_loop(model, START, [*tools, ECHO, SUBMIT], desk, bounds or budget(), notebook)
    assert list(result.messages) == notebook.messages
    check_conversation(result.messages)
    return result, model, notebook


def answers(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]


def named(reply: Reply, identity: str) -> Reply:
    (call,) = reply.message.tool_calls
    calls = (call.model_copy(update={"id": identity}),)
    return reply.model_copy(update={"message": reply.message.model_copy(update={"tool_calls": calls})})


def numbered() -> Iterator[Reply]:
    number = 0
    while True:
        number += 1
        reply = says("", ("echo", {"text": f"number {number:03} {'word ' * 60}"}))
        yield named(reply, f"call_{number}")


def test_calls_are_carried_out_and_answered_until_the_agent_hands_in(desk: Desk) -> None:
    result, model, _ = run([says("First.", ("echo", {"text": "hello"})), says("", ("submit", {}))], desk)
    assert (result.stop, result.detail, result.model) == (LoopStop.SUBMITTED, "Handed in.", "scripted")
    assert answers(result.messages) == ["hello", "Handed in."]
    assert model.requests[0].messages == START
    assert [tool.name for tool in model.requests[0].tools] == ["echo", "submit"]
    assert result.usage.steps == 2
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens > 0


def test_usage_is_summed_over_all_answers(desk: Desk) -> None:
    usage = TokenUsage(input_tokens=100, cached_tokens=60, output_tokens=10, reasoning_tokens=4)
    replies = [
        says("", ("echo", {"text": str(number)}), usage=usage).model_copy(update={"seconds": 2.0, "cost_usd": 0.5})
        for number in range(2)
    ]
    result, _, _ = run([*replies, says("", ("submit", {}), usage=usage)], desk)
    used = result.usage
    assert (used.input_tokens, used.cached_tokens, used.output_tokens, used.reasoning_tokens) == (300, 180, 30, 12)
    assert (used.model_seconds, used.cost_usd, used.steps) == (4.0, 1.0, 3)
    assert 0 < used.seconds < 60


def test_what_a_model_does_wrong_is_an_answer_and_the_loop_goes_on(desk: Desk) -> None:
    bad = ToolCall(id="bad", name="echo", arguments=None, raw='{"text": ', error="no JSON object")
    reply = says("", ("nonsense", {}), ("breaks", {}), ("refuses", {}))
    reply = reply.model_copy(
        update={"message": reply.message.model_copy(update={"tool_calls": (*reply.message.tool_calls, bad)})}
    )
    breaks = FunctionTool("breaks", raises(OSError("disk on fire")))
    refuses = FunctionTool("refuses", raises(InvalidUrl("Not that address.")))
    ECHO.calls.clear()
    result, _, _ = run([reply, says("", ("submit", {}))], desk, breaks, refuses)
    unknown, broken, refused, invalid = answers(result.messages)[:4]
    assert unknown == "There is no tool `nonsense`. There are: breaks, refuses, echo, submit."
    assert broken == "`breaks` failed: disk on fire"
    assert refused == "`refuses` failed: Not that address."
    assert invalid.startswith("The arguments of `echo` cannot be used (no JSON object), so nothing was carried out.")
    assert "echo takes text (string)" in invalid
    assert ECHO.calls == []
    assert result.stop is LoopStop.SUBMITTED


@pytest.mark.parametrize("error", [ValueError("bad"), KeyError("key"), ZeroDivisionError()], ids=repr)
def test_one_of_three_parallel_calls_raising_leaves_none_unanswered(desk: Desk, error: Exception) -> None:
    breaks = FunctionTool("breaks", raises(error), reads_only=True)
    reads = FunctionTool("reads", lambda arguments: arguments["text"], reads_only=True)
    calls = (("reads", {"text": "a"}), ("breaks", {}), ("reads", {"text": "b"}))
    result, _, _ = run([says("", *calls), says("", ("submit", {}))], desk, breaks, reads)
    first, second, third, _ = answers(result.messages)
    assert (first, third) == ("a", "b")
    assert second.startswith("`breaks` failed: ")


def test_calls_that_only_read_run_side_by_side_and_are_answered_in_order(desk: Desk) -> None:
    together = threading.Barrier(3, timeout=20)

    def meet(arguments: dict[str, Any]) -> str:
        together.wait()
        return str(arguments["text"])

    reads = FunctionTool("reads", meet, reads_only=True)
    calls = [("reads", {"text": text}) for text in "abc"]
    result, _, _ = run([says("", *calls), says("", ("submit", {}))], desk, reads)
    assert answers(result.messages) == ["a", "b", "c", "Handed in."]


def test_calls_that_change_something_run_one_after_the_other_in_order(desk: Desk) -> None:
    events: list[str] = []

    def slow(arguments: dict[str, Any]) -> str:
        events.append(f"begin {arguments['text']}")
        time.sleep(0.02)
        events.append(f"end {arguments['text']}")
        return "done"

    changes = FunctionTool("changes", slow)
    reads = FunctionTool("reads", slow, reads_only=True)
    calls = [
        ("changes", {"text": "1"}),
        ("reads", {"text": "2"}),
        ("changes", {"text": "3"}),
        ("changes", {"text": "4"}),
    ]
    run([says("", *calls), says("", ("submit", {}))], desk, changes, reads)
    assert events == [f"{what} {number}" for number in "1234" for what in ("begin", "end")]


def test_nothing_is_carried_out_behind_the_call_that_ends_the_work(desk: Desk) -> None:
    ECHO.calls.clear()
    reads = FunctionTool("reads", lambda _: "read", reads_only=True)
    calls = (("echo", {"text": "before"}), ("submit", {}), ("echo", {"text": "after"}), ("reads", {}), ("reads", {}))
    result, _, _ = run([says("", *calls)], desk, reads)
    assert result.stop is LoopStop.SUBMITTED
    assert ECHO.calls == [{"text": "before"}]
    assert reads.calls == []
    assert answers(result.messages)[2:] == [notices().after_stop.format(tool="submit")] * 3


@pytest.mark.parametrize("error", [SandboxLost("gone"), Cancelled("enough"), KeyboardInterrupt()], ids=repr)
def test_infrastructure_passes_through_with_every_call_answered_in_the_journal(
    desk: Desk, error: BaseException
) -> None:
    lost = FunctionTool("lost", raises(error))
    model = ScriptedModel([says("", ("echo", {"text": "one"}), ("lost", {}), ("echo", {"text": "three"}))])
    notebook = Notebook()
    with pytest.raises(type(error)):
        run_loop(model, START, [ECHO, lost], desk, budget(), notebook)
    check_conversation(notebook.messages)
    assert answers(notebook.messages) == ["one", notices().interrupted, notices().interrupted]


def test_a_cut_off_answer_is_never_carried_out_and_the_model_is_told(desk: Desk) -> None:
    ECHO.calls.clear()
    cut = ToolCall(id="cut", name="echo", arguments=None, raw='{"text": "half of', error="it is cut off")
    whole = says("", ("echo", {"text": "whole"}))
    message = whole.message.model_copy(update={"tool_calls": (*whole.message.tool_calls, cut)})
    reply = Reply(message=message, finish=FinishReason.LENGTH, usage=TokenUsage(), model="scripted")
    result, model, _ = run([reply, says("half a sent", finish=FinishReason.LENGTH), says("", ("submit", {}))], desk)
    assert ECHO.calls == []
    first, second = answers(result.messages)[:2]
    assert first == notices().cut_off_call
    assert second.startswith(notices().cut_off_call)
    assert notices().cut_off.strip() in second
    # What was cut off is in the record, and is not sent back: it is no JSON.
    assert result.messages[2].tool_calls[1].raw == '{"text": "half of'
    sent = model.requests[1].messages[2]
    assert [(call.id, call.arguments, call.raw) for call in sent.tool_calls] == [
        ("call_0", {}, "{}"),
        ("cut", {}, "{}"),
    ]
    assert sent.content
    assert model.requests[2].messages[-1].role == "user"
    assert result.stop is LoopStop.SUBMITTED


def test_three_cut_off_answers_in_a_row_end_the_run(desk: Desk) -> None:
    cut = says("", ("echo", {"text": "x"}), finish=FinishReason.LENGTH)
    good = says("", ("echo", {"text": "y"}))
    result, model, _ = run([cut, cut, good, cut, cut, cut], desk)
    assert result.stop is LoopStop.TRUNCATED
    assert len(model.requests) == 6


@pytest.mark.parametrize(
    "silent", [says("I am done."), says(""), says("x", finish=FinishReason.CONTENT_FILTER)], ids=str
)
def test_answers_without_a_call_are_nudged_and_three_in_a_row_end_the_run(desk: Desk, silent: Reply) -> None:
    result, model, _ = run([silent, silent, says("", ("echo", {})), silent, silent, silent], desk)
    assert result.stop is LoopStop.NO_CALLS
    assert len(model.requests) == 6
    nudge = model.requests[1].messages[-1]
    assert nudge.role == "user"
    assert nudge.content.strip()
    assert all(message.content or message.tool_calls for message in model.requests[-1].messages)


def test_calls_of_a_filtered_answer_are_not_carried_out(desk: Desk) -> None:
    ECHO.calls.clear()
    reply = says("", ("echo", {"text": "x"}), finish=FinishReason.CONTENT_FILTER)
    result, _, _ = run([reply, says("", ("submit", {}))], desk)
    assert ECHO.calls == []
    assert answers(result.messages)[0].startswith(notices().filtered_call)


def test_steps_are_bounded_and_their_end_is_announced_once(desk: Desk) -> None:
    result, model, _ = run(list(_take(numbered(), 20)), desk, bounds=budget(steps=10))
    assert result.stop is LoopStop.STEPS
    assert len(model.requests) == 10
    told = [text for text in answers(result.messages) if "of this run are used" in text]
    assert len(told) == 1
    assert "80% of the steps" in told[0]


def test_tokens_are_bounded_and_their_end_is_announced(desk: Desk) -> None:
    usage = TokenUsage(input_tokens=80, output_tokens=10)
    replies = [says("", ("echo", {"text": str(number)}), usage=usage) for number in range(20)]
    result, model, _ = run(replies, desk, bounds=budget(tokens=1000))
    assert result.stop is LoopStop.TOKENS
    assert len(model.requests) == 12
    assert sum("% of the tokens" in text for text in answers(result.messages)) == 1


def test_money_is_bounded_where_there_is_a_bound(desk: Desk) -> None:
    reply = says("", ("echo", {"text": "x"})).model_copy(update={"cost_usd": 0.3})
    other = says("", ("echo", {"text": "y"})).model_copy(update={"cost_usd": 0.3})
    result, model, _ = run([reply, other, reply, other, reply], desk, bounds=budget(cost_usd=1.0))
    assert result.stop is LoopStop.COST
    assert result.usage.cost_usd == pytest.approx(1.2)
    assert len(model.requests) == 4


def test_the_deadline_is_the_models_and_ends_the_run_with_its_calls_answered(desk: Desk) -> None:
    end = time.monotonic() + 0.2
    wait = FunctionTool("wait", lambda _: time.sleep(0.25) or "waited")
    ECHO.calls.clear()
    result, model, _ = run([says("", ("wait", {}), ("echo", {}))], desk, wait, bounds=budget(deadline=end))
    assert result.stop is LoopStop.SECONDS
    assert model.requests[0].deadline == end
    assert ECHO.calls == []
    first, second = answers(result.messages)
    assert first == "waited"
    assert second.startswith(notices().no_time)
    assert "of the time of this run are used" in second


def test_no_answer_at_the_deadline_is_the_runs_end_unless_the_model_had_its_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(request: Recorded) -> Reply:
        time.sleep(0.12)
        raise ModelUnavailable("No answer.")

    result, _, _ = run([late], desk, bounds=budget(deadline=time.monotonic() + 0.1))
    assert result.stop is LoopStop.SECONDS
    monkeypatch.setattr(loop, "FAIR_SECONDS", 0.05)
    with pytest.raises(ModelUnavailable):
        run([late], desk, bounds=budget(deadline=time.monotonic() + 0.1))


@pytest.mark.parametrize("error", [ModelUnavailable("down"), QuotaExhausted("no money")], ids=repr)
def test_an_endpoint_that_fails_is_not_charged_to_the_agent(desk: Desk, error: Exception) -> None:
    model = ScriptedModel([says("", ("echo", {"text": "kept"})), error])
    notebook = Notebook()
    with pytest.raises(type(error)):
        run_loop(model, START, [ECHO], desk, budget(), notebook)
    assert answers(notebook.messages) == ["kept"]


def test_the_same_call_with_the_same_result_is_noticed_and_then_ends_the_run(desk: Desk) -> None:
    result, model, _ = run([says("", ("echo", {"text": "took 1.5 s"}))], desk, repeat=True)
    assert result.stop is LoopStop.REPETITION
    assert len(model.requests) == repetition.MAX_TIMES
    told = ["time that you do the same" in text for text in answers(result.messages)]
    assert told == [False, False, True, True, False]


@pytest.mark.parametrize("length", [2, 3])
def test_a_cycle_of_calls_is_noticed_too(desk: Desk, length: int) -> None:
    cycle = [says("", ("echo", {"text": "abc"[index]})) for index in range(length)]
    result, model, _ = run(cycle * 10, desk)
    assert result.stop is LoopStop.REPETITION
    assert len(model.requests) == length * repetition.MAX_TIMES


def test_the_same_call_with_other_results_is_progress(desk: Desk) -> None:
    count = iter(range(100))
    polls = FunctionTool("polls", lambda _: f"{next(count)} of 100 done")
    result, _, _ = run([says("", ("polls", {}))] * 12 + [says("", ("submit", {}))], desk, polls)
    assert result.stop is LoopStop.SUBMITTED
    assert not [text for text in answers(result.messages) if "the same" in text]


def test_an_endpoint_that_finds_a_conversation_too_long_gets_a_shorter_one(desk: Desk) -> None:
    long = [says("", ("echo", {"text": f"{number} " + "x" * 1800})) for number in range(12)]
    too_long = ContextExhausted("Too long.")
    result, model, _ = run([*long, too_long, too_long, says("", ("submit", {}))], desk)
    assert result.stop is LoopStop.SUBMITTED
    sizes = [sum(len(message.content) for message in request.messages) for request in model.requests[-3:]]
    assert sizes[0] > sizes[1] > sizes[2]
    assert len(result.messages) == 2 + 2 * 13


def test_a_conversation_that_stays_too_long_ends_the_run(desk: Desk) -> None:
    result, model, _ = run([ContextExhausted("Too long.")], desk, repeat=True)
    assert result.stop is LoopStop.CONTEXT
    assert len(model.requests) <= loop.MAX_OVERFLOWS


def test_a_task_larger_than_the_context_ends_the_run_before_anything_is_asked(desk: Desk) -> None:
    model = ScriptedModel([], context_tokens=4096)
    start = (START[0], Message(role="user", content="x" * 100_000))
    result = run_loop(model, start, [ECHO], desk, budget(), Notebook())
    assert result.stop is LoopStop.CONTEXT
    assert model.requests == []


def test_each_request_is_the_one_before_with_something_behind_it(desk: Desk) -> None:
    lines = [*_take(numbered(), 59), says("", ("submit", {}))]
    result, model, _ = run(lines, desk)
    assert result.stop is LoopStop.SUBMITTED
    assert len(model.requests) == 60
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert later.tools == earlier.tools


def test_a_long_run_in_a_small_context_keeps_its_prefix_for_most_requests(desk: Desk) -> None:
    lines = [*_take(numbered(), 99), says("", ("submit", {}))]
    result, model, _ = run(lines, desk, context_tokens=8192)
    assert result.stop is LoopStop.SUBMITTED
    pairs = list(zip(model.requests, model.requests[1:], strict=False))
    kept = sum(later.messages[: len(earlier.messages)] == earlier.messages for earlier, later in pairs)
    assert len(pairs) * 0.8 < kept < len(pairs)
    for request in model.requests:
        check_conversation(request.messages)
        assert request.messages[:2] == START
    assert len(result.messages) == 2 + 200


def test_ids_that_an_endpoint_uses_again_are_told_apart_in_the_record(desk: Desk) -> None:
    replies = [
        named(reply, "call_0" if number % 30 == 29 else f"call_{number}")
        for number, reply in zip(range(99), numbered(), strict=False)
    ]
    result, model, _ = run([*replies, says("", ("submit", {}))], desk, context_tokens=4096)
    assert result.stop is LoopStop.SUBMITTED
    assert [call.id for call in model.requests[30].messages[-2].tool_calls] == ["call_0"]


def test_a_long_observation_is_cut_and_kept_whole_in_the_sandbox(desk: Desk) -> None:
    text = "\n".join(f"line {number}" for number in range(50_000))
    page = FunctionTool("page", lambda _: text)
    seen: list[bytes] = []

    def look(request: Recorded) -> Reply:
        found = re.search(r"/tmp/autoinstall-outputs/\d+\.txt", request.messages[-1].content)
        assert found
        seen.append(desk.sandbox.read_file(found[0]))
        return says("", ("submit", {}))

    result, _, _ = run([says("", ("page", {})), look], desk, page)
    shown = answers(result.messages)[0]
    assert len(shown) <= desk.observation_characters
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 49999")
    assert f"of {len(text)} characters" in shown
    assert seen == [text.encode()]
    # No environment should carry what was kept.
    assert desk.sandbox.commands == ["rm -rf /tmp/autoinstall-outputs"]  # type: ignore[attr-defined]


def test_every_notice_has_the_words_that_it_is_filled_with() -> None:
    fields = {
        "after_stop": {"tool"},
        "unknown_tool": {"name", "tools"},
        "invalid_arguments": {"name", "error", "takes"},
        "failed": {"name", "error"},
        "repeated": {"count"},
        "running_out": {"percent", "what"},
        "left_out": {"count", "calls"},
        "shortened": {"count"},
        "middle_left_out": {"count", "total", "path"},
        "middle_left_out_unkept": {"count", "total"},
    }
    for name, text in notices():
        assert set(re.findall(r"{(\w+)}", text)) == fields.get(name, set()), name


def test_a_budget_that_is_nothing_is_used_up_at_once() -> None:
    assert Meter(Budget(deadline=0, steps=5, tokens=5)).used_up() is not None
    used = Meter(Budget(deadline=time.monotonic() + 9, steps=5, tokens=5, cost_usd=0)).used_up()
    assert used is not None
    assert used[0] is LoopStop.COST


def _take(replies: Iterator[Reply], count: int) -> Iterator[Reply]:
    return (reply for _, reply in zip(range(count), replies, strict=False))
