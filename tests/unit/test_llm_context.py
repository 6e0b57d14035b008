"""Keeping a conversation within a model's context."""

import pytest

from autoinstall.agents.contract import NO_JOURNAL
from autoinstall.agents.llm.context import RECENT, SHORT, TARGET, Conversation
from autoinstall.errors import ContextExhausted
from autoinstall.models.contract import Message, TokenUsage, Tool, ToolCall
from autoinstall.models.conversation import check_conversation

START = (Message(role="system", content="System."), Message(role="user", content="Task."))
TOOL = Tool(name="bash", description="Run a command.", parameters={"type": "object"})


def conversation(tokens: int, *start: Message) -> Conversation:
    return Conversation(start or START, [TOOL], tokens, NO_JOURNAL)


def step(talk: Conversation, number: int, *sizes: int, said: str = "") -> None:
    """One assistant's message with a call for each size, and results of these many characters."""
    calls = tuple(
        ToolCall(id=f"{number}-{index}", name="bash", arguments={"command": f"make {number}"}, raw=f'{{"n": {number}}}')
        for index in range(len(sizes))
    )
    talk.add(Message(role="assistant", content=said, tool_calls=calls))
    for call, size in zip(calls, sizes, strict=True):
        content = f"[exit code {number}, 1.0 s]\n".ljust(size, "x")
        talk.add(Message(role="tool", content=content, tool_call_id=call.id))


def contents(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages)


def test_all_is_sent_as_it_is_while_it_fits() -> None:
    talk = conversation(32_768)
    for number in range(5):
        step(talk, number, 3000)
    assert list(talk.to_send()) == talk.messages


def test_old_observations_are_shortened_first_oldest_first_and_nothing_is_left_out() -> None:
    talk = conversation(32_768)  # 24,576 for the request: some 73,000 characters
    for number in range(10):
        step(talk, number, 7500)
    sent = talk.to_send()
    assert len(sent) == len(talk.messages) == 22
    sizes = [len(message.content) for message in sent if message.role == "tool"]
    assert sizes[0] < 2 * SHORT + 100
    assert sizes[-RECENT:] == [7500] * RECENT
    assert sizes == sorted(sizes)
    assert "characters of this older result were left out" in sent[3].content
    assert sent[3].content.startswith("[exit code 0")
    assert [len(message.content) for message in talk.messages if message.role == "tool"] == [7500] * 10


def test_shortening_goes_well_below_the_limit_so_that_the_next_requests_share_their_beginning() -> None:
    talk = conversation(16_384)
    for number in range(10):
        step(talk, number, 4000)
    first = talk.to_send()
    assert talk.tokens <= 12_288 * TARGET
    step(talk, 10, 4000)
    second = talk.to_send()
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2


def test_then_whole_steps_are_left_out_oldest_first_with_one_note() -> None:
    talk = conversation(8192)
    for number in range(60):
        step(talk, number, 700, 700, said=f"Step {number}.")
        check_conversation(talk.to_send())
    sent = talk.to_send()
    assert sent[:2] == START
    notes = [message for message in sent if "earlier steps were left out" in message.content]
    assert notes == [sent[2]]
    assert notes[0].role == "user"
    kept = [message.content for message in sent if message.role == "assistant"]
    assert kept == [f"Step {number}." for number in range(60 - len(kept), 60)]
    last = 59 - len(kept)
    assert f"[{last + 1} earlier steps" in notes[0].content
    assert f"- bash make {last} → [exit code {last}, 1.0 s]" in notes[0].content
    assert len(notes[0].content) < 4000
    assert talk.tokens <= 6144
    assert len(talk.messages) == 2 + 60 * 3


def test_what_belongs_to_a_step_goes_with_it() -> None:
    talk = conversation(4096)
    for number in range(30):
        step(talk, number, 400)
        talk.add(Message(role="assistant", content="Thinking aloud."))
        talk.add(Message(role="user", content="Call a tool."))
        sent = talk.to_send()
        check_conversation(sent)
        assert sent[2].role in {"assistant", "user"}
    assert talk.tokens <= 3072


def test_one_huge_step_is_shortened_and_if_need_be_left_out() -> None:
    talk = conversation(4096)
    step(talk, 0, 50_000)
    sent = talk.to_send()
    assert len(sent) == 4
    assert len(sent[3].content) < 2 * SHORT + 100
    other = conversation(4096)
    other.add(Message(role="assistant", content="y" * 50_000))
    other.add(Message(role="user", content="Call a tool."))
    assert len(other.to_send()) == 3
    assert "1 earlier steps" in contents(other.to_send())


def test_a_task_that_does_not_fit_is_said_to() -> None:
    talk = conversation(4096, START[0], Message(role="user", content="z" * 40_000))
    with pytest.raises(ContextExhausted, match="has room for 3072"):
        talk.to_send()


def test_characters_are_counted_as_the_endpoint_counts_tokens() -> None:
    talk = conversation(100_000)
    step(talk, 0, 60_000)
    talk.to_send()
    guess = talk.tokens
    talk.calibrate(TokenUsage(input_tokens=guess * 2))
    assert talk.tokens == pytest.approx(guess * 2, rel=0.01)
    talk.calibrate(TokenUsage(input_tokens=7, estimated=True))
    talk.calibrate(TokenUsage())
    assert talk.tokens == pytest.approx(guess * 2, rel=0.01)


def test_a_dense_text_is_shortened_before_it_overflows() -> None:
    talk = conversation(16_384)
    step(talk, 0, 8000)
    talk.to_send()
    talk.calibrate(TokenUsage(input_tokens=8000))  # a character a token
    step(talk, 1, 6000)
    for number in range(2, 7):
        step(talk, number, 100)
    sent = talk.to_send()
    assert len(contents(sent)) < 12_288


def test_after_an_overflow_requests_are_shorter_for_good() -> None:
    talk = conversation(100_000)
    for number in range(10):
        step(talk, number, 6000)
    talk.to_send()
    too_much = talk.tokens
    talk.overflowed()
    talk.to_send()
    assert talk.tokens < 0.8 * too_much
    for number in range(10, 20):
        step(talk, number, 6000)
        talk.to_send()
        assert talk.tokens <= 0.8 * too_much


def test_a_refused_answer_is_sent_back_without_its_arguments() -> None:
    talk = conversation(8192)
    cut = ToolCall(id="a", name="write_file", arguments=None, raw='{"content": "' + "x" * 5000, error="cut off")
    talk.add_refused(Message(role="assistant", tool_calls=(cut,)))
    talk.add(Message(role="tool", content="Not carried out.", tool_call_id="a"))
    assert talk.messages[2].tool_calls == (cut,)
    sent = talk.to_send()[2]
    assert sent.tool_calls == (ToolCall(id="a", name="write_file", arguments={}),)
    assert sent.content


def test_what_a_model_thought_is_counted_since_some_endpoints_want_it_back() -> None:
    talk = conversation(8192)
    before = talk.tokens
    talk.add(Message(role="assistant", content="Done.", reasoning="r" * 6000))
    assert talk.tokens - before == pytest.approx(2000, abs=20)
    talk.add_refused(Message(role="assistant", content="Cut", reasoning="r" * 6000))
    assert talk.tokens - before == pytest.approx(2000, abs=40)
