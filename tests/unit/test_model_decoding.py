"""Answers of endpoints, whatever form they have: what can be used is used as it is, what cannot says so."""

import json

import pytest

from autoinstall.models.contract import FinishReason, Message, ToolCall
from autoinstall.models.decoding import calls_in_text, decode, decode_arguments, is_incomplete
from autoinstall.models.failures import Failure
from tests.endpoint import Says, call, tool_call
from tests.unit.model_samples import ASKED


def decoded(says, conversation=ASKED, call_ids="openai"):
    payload = json.loads(json.dumps(says.payload("m")))
    found = decode(payload, conversation, model="named", call_ids=call_ids, input_estimate=77, hide=str)
    assert not isinstance(found, Failure), found
    return found


def failed(payload):
    found = decode(payload, ASKED, model="named", call_ids="openai", input_estimate=77, hide=str)
    assert isinstance(found, Failure), found
    return found


# --- cut off


@pytest.mark.parametrize("finish", ["length", "LENGTH", "max_tokens", "model_length"])
def test_a_cut_off_answer_is_called_so_whatever_the_endpoint_calls_it(finish):
    assert decoded(Says("Well, I", finish=finish)).finish is FinishReason.LENGTH


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "length", None, "eos", 7])
def test_incomplete_arguments_are_a_cut_off_answer_under_any_finish_reason(finish):
    calls = (call("bash", command="ls"), tool_call("write_file", '{"path": "a.py", "content": "import o', "call_1"))
    reply = decoded(Says(calls=calls, finish=finish))
    assert reply.finish is FinishReason.LENGTH
    last = reply.message.tool_calls[1]
    assert last.arguments is None
    assert "incomplete" in last.error
    assert last.raw == '{"path": "a.py", "content": "import o'


@pytest.mark.parametrize(
    "raw", ["{", '{"a', '{"a"', '{"a":', '{"a": tru', '{"a": "b', '{"a": [1, 2', '{"a": {"b": 1}', ' {"a": "\\']
)
def test_the_beginning_of_an_object_is_incomplete(raw):
    assert is_incomplete(raw)
    assert decode_arguments(raw)[0] is None


@pytest.mark.parametrize("raw", ['{"a": 1}', '{"a": 1} x', "{'a'", '{"a":}', '{"a" 1', "ls -la", '"abc', "[1,", ""])
def test_what_is_whole_or_wrong_is_not_incomplete(raw):
    assert not is_incomplete(raw)


# --- arguments


@pytest.mark.parametrize("raw", ["", "  \n", None, "{}", {}])
def test_no_arguments_are_an_empty_object(raw):
    (made,) = decoded(Says(calls=(tool_call("submit", raw),))).message.tool_calls
    assert (made.arguments, made.error, made.raw) == ({}, "", "{}")


def test_arguments_that_come_as_an_object_are_taken():
    (made,) = decoded(Says(calls=(tool_call("bash", {"command": "echo é", "n": 1}),))).message.tool_calls
    assert made.arguments == {"command": "echo é", "n": 1}
    assert json.loads(made.raw) == made.arguments


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("ls -la", "no valid JSON"),
        ("{'command': 'ls'}", "no valid JSON"),
        ('{"command": "ls",}', "no valid JSON"),
        ('{"command": "a\nb"}', "no valid JSON"),
        ('{"command": "ls"}{"command": "rm"}', "no valid JSON"),
        ('{"command": "ls"} Done.', "no valid JSON"),
        ('```json\n{"command": "ls"}\n```', "no valid JSON"),
        ('{"command": "\\ud800"}', "no valid JSON"),
        ('{"n": NaN}', "no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        ('"ls"', "must be a JSON object, not a string"),
        ('"{\\"command\\": \\"ls\\"}"', "must be a JSON object, not a string"),
        ('["ls"]', "must be a JSON object, not a list"),
        ("null", "must be a JSON object, not null"),
        ("7", "must be a JSON object, not a number"),
        (["ls"], "must be a JSON object, not a list"),
        (True, "must be a JSON object, not a boolean"),
        ({"command": "\ud800"}, "no valid JSON"),
    ],
)
def test_unusable_arguments_are_an_error_and_are_not_repaired(raw, why):
    reply = decoded(Says(calls=(tool_call("write_file", raw),)))
    (made,) = reply.message.tool_calls
    assert made.arguments is None
    assert why in made.error
    assert reply.finish is FinishReason.TOOL_CALLS


def test_an_unusable_call_leaves_its_neighbours_alone():
    calls = (call("bash", "a", command="ls"), tool_call("bash", "nonsense", "b"), call("bash", "c", command="pwd"))
    made = decoded(Says(calls=calls)).message.tool_calls
    assert [one.id for one in made] == ["a", "b", "c"]
    assert [one.arguments for one in made] == [{"command": "ls"}, None, {"command": "pwd"}]


def test_a_call_without_a_name_is_an_error():
    (made,) = decoded(Says(calls=(tool_call(None, '{"command": "ls"}'),))).message.tool_calls
    assert made.arguments is None
    assert "names no tool" in made.error


def test_the_old_form_of_a_function_call_is_taken():
    old = {"function_call": {"name": "bash", "arguments": '{"command": "ls"}'}}
    reply = decoded(Says(message=old, finish="function_call"))
    assert reply.finish is FinishReason.TOOL_CALLS
    assert reply.message.tool_calls[0].arguments == {"command": "ls"}
    assert reply.message.tool_calls[0].id


# --- ids


@pytest.mark.parametrize("given", [None, "", [], {}])
def test_missing_ids_are_made_up_and_stay_the_same(given):
    says = Says(calls=(tool_call("bash", '{"command": "ls"}', given), tool_call("bash", '{"command": "ls"}', given)))
    first, second = (decoded(says).message.tool_calls for _ in range(2))
    assert [one.id for one in first] == [one.id for one in second]
    assert len({one.id for one in first}) == 2
    assert all(one.id.startswith("call_") and len(one.id) <= 40 for one in first)


def test_ids_repeated_in_an_answer_or_in_the_conversation_are_told_apart():
    says = Says(calls=(call("bash", "call_0", command="ls"), call("bash", "call_0", command="pwd")))
    one, two = decoded(says).message.tool_calls
    assert one.id == "call_0"
    assert two.id not in ("", "call_0")
    before = (
        *ASKED,
        Message(role="assistant", tool_calls=(ToolCall(id="call_0", name="bash", arguments={}),)),
        Message(role="tool", tool_call_id="call_0", content="ok"),
    )
    again = decoded(says, before).message.tool_calls
    assert len({"call_0", again[0].id, again[1].id}) == 3


def test_ids_of_the_form_that_mistral_insists_on():
    given = (
        call("bash", "abcDEF123", command="a"),
        call("bash", "chatcmpl-tool-1", command="b"),
        tool_call("bash", "{}", None),
    )
    made = decoded(Says(calls=given), call_ids="alnum9").message.tool_calls
    assert made[0].id == "abcDEF123"
    assert all(len(one.id) == 9 and one.id.isalnum() for one in made)
    assert len({one.id for one in made}) == 3


def test_a_number_as_an_id_is_text():
    assert decoded(Says(calls=(tool_call("bash", "{}", 12),))).message.tool_calls[0].id == "12"


# --- content and reasoning


@pytest.mark.parametrize(
    ("content", "message", "text", "reasoning"),
    [
        (None, {}, "", ""),
        (7, {}, "", ""),
        ([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}, "!"], {}, "Hello!", ""),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
            {},
            "a",
            "hm",
        ),
        ([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "a"}], {}, "a", "hm"),
        ("a", {"reasoning_content": "hm"}, "a", "hm"),
        ("a", {"reasoning": "hm"}, "a", "hm"),
        ("a", {"reasoning_content": None, "reasoning": "hm"}, "a", "hm"),
        ("<think>hm</think>\n\na", {}, "a", "hm"),
        ("<think>\n</think>a", {}, "a", ""),
        ("hm\n</think>\na", {}, "a", "hm"),
        ("<think>never ends", {}, "", "never ends"),
        ("<thinking>hm</thinking>a", {}, "a", "hm"),
        ("a\ud800b\0", {}, "a\ufffdb\ufffd", ""),
    ],
)
def test_content_and_reasoning_in_all_their_forms(content, message, text, reasoning):
    reply = decoded(Says(content, message=message))
    assert (reply.message.content, reply.message.reasoning) == (text, reasoning)


def test_a_refusal_is_its_text():
    reply = decoded(Says(None, message={"refusal": "I cannot help."}))
    assert (reply.message.content, reply.finish) == ("I cannot help.", FinishReason.CONTENT_FILTER)


@pytest.mark.parametrize(
    ("finish", "calls", "found"),
    [
        ("stop", (), FinishReason.STOP),
        (None, (), FinishReason.STOP),
        ("tool_calls", (), FinishReason.STOP),
        ("stop", (call("bash"),), FinishReason.TOOL_CALLS),
        ("content_filter", (), FinishReason.CONTENT_FILTER),
        ("SAFETY", (), FinishReason.CONTENT_FILTER),
    ],
)
def test_finish_reasons(finish, calls, found):
    assert decoded(Says("x", calls, finish=finish)).finish is found


# --- usage


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10}, (100, 0, 10, 0)),
        ({"input_tokens": 100, "output_tokens": 10}, (100, 0, 10, 0)),
        (
            {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}},
            (100, 60, 10, 0),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 60}, (100, 60, 10, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 600}, (100, 100, 10, 0)),
        (
            {"prompt_tokens": 100, "completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 7}},
            (100, 0, 10, 7),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 117,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            (100, 0, 17, 7),
        ),
        ({"prompt_tokens": 100.0, "completion_tokens": None, "prompt_tokens_details": None}, (100, 0, 0, 0)),
        (
            {"prompt_tokens": 100, "completion_tokens": "many", "prompt_tokens_details": {"cached_tokens": -4}},
            (100, 0, 0, 0),
        ),
    ],
)
def test_usage_in_all_its_forms(usage, counts):
    found = decoded(Says("x", usage=usage)).usage
    assert (found.input_tokens, found.cached_tokens, found.output_tokens, found.reasoning_tokens) == counts
    assert not found.estimated


@pytest.mark.parametrize("usage", [None, {}, [], "none", {"prompt_tokens": 0, "completion_tokens": 0}])
def test_missing_usage_is_estimated_and_flagged(usage):
    found = decoded(Says("Hello there, how are you?", usage=usage)).usage
    assert found.estimated
    assert found.input_tokens == 77
    assert 5 <= found.output_tokens <= 12


# --- no answer at all


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "text",
        {},
        {"choices": []},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{}]},
        {"choices": [{"message": "hi"}]},
        {"choices": [{"message": {"tool_calls": "bash"}}]},
        {"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]},
    ],
)
def test_what_is_no_answer_is_malformed(payload):
    assert failed(payload).malformed


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"error": {"message": "slow down", "code": 429}}, 429),
        ({"error": {"message": "broke", "code": "server_error"}}, 500),
        ({"error": "broke"}, 500),
        ({"choices": [{"error": {"message": "upstream", "code": 502}, "message": {"content": ""}}]}, 502),
    ],
)
def test_an_error_with_status_200_is_an_error(payload, status):
    found = failed(payload)
    assert (found.status, found.malformed) == (status, False)
    assert found.summary in ("slow down", "broke", "upstream")


# --- calls left in the text


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
        '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
        '{"tool": "bash", "command": "ls"}',
        "<function=bash><parameter=command>ls</parameter></function>",
        '[TOOL_CALLS][{"name": "bash"}]',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "<|python_tag|>bash.call()",
        "<|channel|>commentary to=functions.bash",
    ],
)
def test_calls_in_text_are_noticed_and_never_taken_for_calls(text):
    assert calls_in_text(text, ["bash"])
    reply = decoded(Says(text))
    assert reply.message.tool_calls == ()
    assert reply.message.content == text


@pytest.mark.parametrize(
    "text", ["I ran bash.", '{"name": "autoinstall"}', "```json\n{}\n```", "function bash() {}", ""]
)
def test_other_text_is_not(text):
    assert not calls_in_text(text, ["bash", "write_file"])
