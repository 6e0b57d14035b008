"""Requests that an endpoint refuses are adapted once, and remembered."""

import pytest

from autoinstall.errors import EndpointUnsuitable
from autoinstall.models.adaptation import Structured
from autoinstall.models.contract import FinishReason, Message, ToolCall
from tests.endpoint import Endpoint, Failed, Says, call, tool_call
from tests.unit.model_samples import ASKED, BASH, VERDICT, Client, client

OK = Says("Hello")
JSON_ANSWER = '{"verdict": "matches", "reason": "12 passed"}'


def learns(refuses, *, requests, check, messages=ASKED, **settings):
    """Ask twice: the refusals come once, and `check` looks at the last request."""
    with client(OK, repeat=True, refuses=refuses, **settings) as made:
        assert made.ask(messages).message.content == "Hello"
        assert len(made.endpoint.requests) == requests
        made.ask(messages)
        assert len(made.endpoint.requests) == requests + 1
        assert made.waits == []
        check(made.endpoint.requests[-1].body)


@pytest.mark.parametrize(
    "said",
    [
        Failed(
            400,
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
            param="max_tokens",
        ),
        Failed(400, "max_tokens is deprecated in favor of max_completion_tokens"),
        Failed(422, body={"detail": [{"loc": ["body", "max_tokens"], "msg": "Extra inputs are not permitted"}]}),
    ],
)
def test_the_bound_of_an_answer_gets_its_other_name(said):
    def check(body):
        assert body["max_completion_tokens"] == 8192
        assert "max_tokens" not in body

    learns(lambda body: said if "max_tokens" in body else None, requests=2, check=check)


def test_the_bound_of_an_answer_is_left_out_where_it_has_no_name():
    def refuses(body):
        given = {"max_tokens", "max_completion_tokens"} & body.keys()
        return Failed(400, f"Unknown parameter: {given}") if given else None

    learns(refuses, requests=3, check=lambda body: None)


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]",
        "`max_tokens` must be less than or equal to `4096`, the maximum value for this model",
        "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens",
    ],
)
def test_the_bound_of_an_answer_is_lowered_to_what_the_endpoint_takes(said):
    def check(body):
        assert body["max_tokens"] == 4096

    learns(
        lambda body: Failed(400, said, param="max_tokens") if body["max_tokens"] > 4096 else None,
        requests=2,
        check=check,
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("temperature", 0.5, "Unsupported value: 'temperature' does not support 0.5 with this model."),
        ("parallel_tool_calls", True, "Unrecognized request argument supplied: parallel_tool_calls"),
        ("stream_options", {"include_usage": True}, "stream_options is not supported"),
        ("response_format", {"type": "json_object"}, "This response_format type is unavailable now"),
        ("reasoning_effort", "low", "extra fields not permitted: reasoning_effort"),
        ("tool_choice", "auto", "tool_choice: not implemented"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_parameter_that_is_refused_by_name_is_left_out_from_then_on(name, value, said, named):
    settings = {"temperature": value} if name == "temperature" else {"extra": {name: value}}

    def refuses(body):
        return Failed(400, said, param=name if named else None) if name in body else None

    def check(body):
        assert name not in body

    learns(refuses, requests=2, check=check, **settings)


def test_several_refusals_in_a_row_are_all_learnt():
    def refuses(body):
        for name in ("max_tokens", "temperature", "seed"):
            if name in body:
                return Failed(400, f"{name} is not supported")
        return None

    learns(refuses, requests=4, check=lambda body: None, temperature=0.5, extra={"seed": 1})


@pytest.mark.parametrize(
    ("said", "roles", "requests"),
    [
        ("System role not supported", ["user"], 2),
        ("Developer instruction is not enabled for models/gemma", ["user"], 2),
        ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", ["user"], 2),
        ("messages[0].role: system is not a valid role. Use the developer role instead.", ["developer", "user"], 2),
    ],
)
def test_the_system_message_gets_a_role_that_the_endpoint_takes(said, roles, requests):
    def refuses(body):
        return Failed(400, said) if body["messages"][0]["role"] == "system" else None

    def check(body):
        assert [message["role"] for message in body["messages"]] == roles
        assert "Be brief." in body["messages"][0]["content"]

    learns(refuses, requests=requests, check=check)


CALLED = (
    *ASKED,
    Message(role="assistant", tool_calls=(ToolCall(id="a", name="bash", arguments={}),), reasoning="hm"),
    Message(role="tool", tool_call_id="a", content="ok"),
)


def test_an_endpoint_that_wants_content_beside_calls_gets_it():
    def refuses(body):
        wrong = body["messages"][2]["content"] is None
        return Failed(400, "messages.2.content: Input should be a valid string") if wrong else None

    def check(body):
        assert body["messages"][2]["content"] == ""

    learns(refuses, requests=2, check=check, messages=CALLED)


def test_an_endpoint_that_wants_reasoning_back_gets_it():
    asked = []

    def refuses(body):
        asked.append(body)
        missing = "reasoning_content" not in body["messages"][2]
        return Failed(400, "Missing `reasoning_content` field in the assistant message") if missing else None

    # The package's types do not know the field, so the endpoint is not strict about it here.
    with Endpoint(OK, refuses=refuses, strict=False) as endpoint:
        made = Client(endpoint)
        made.ask(CALLED)
        made.model.close()
    assert asked[-1]["messages"][2]["reasoning_content"] == "hm"


def test_an_answer_that_does_not_fit_beside_the_conversation_is_asked_for_shorter_this_once():
    said = (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 9000 "
        "tokens and your request has 5000 input tokens (8192 > 9000 - 5000)."
    )
    with client(Failed(400, said), OK, OK) as made:
        made.ask(ASKED)
        made.ask(ASKED)
        assert [asked.body["max_tokens"] for asked in made.endpoint.requests] == [8192, 4000, 8192]


def test_a_refusal_that_names_nothing_we_sent_is_not_guessed_at():
    with client(Failed(400, "top_k is not supported")) as made:
        with pytest.raises(EndpointUnsuitable, match="top_k is not supported"):
            made.ask(ASKED)
        assert len(made.endpoint.requests) == 1


def test_an_endpoint_that_refuses_everything_is_left_in_peace():
    with client(Failed(400, "temperature, max_tokens, messages: not supported"), repeat=True, temperature=1) as made:
        with pytest.raises(EndpointUnsuitable):
            made.ask(ASKED)
        assert len(made.endpoint.requests) < 8


# --- objects of a given form


def verdict(reply):
    (made,) = reply.message.tool_calls
    assert (made.name, reply.finish) == ("verdict", FinishReason.TOOL_CALLS)
    return made


def test_an_object_by_a_forced_call():
    with client(Says(calls=(tool_call("verdict", JSON_ANSWER),), finish="stop")) as made:
        assert verdict(made.ask(ASKED, schema=VERDICT)).arguments == {"verdict": "matches", "reason": "12 passed"}
        body = made.endpoint.requests[0].body
    assert body["tool_choice"] == {"type": "function", "function": {"name": "verdict"}}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["verdict"]


@pytest.mark.parametrize(
    "said", ["deepseek-reasoner does not support this tool_choice", "registry/x does not support tools"]
)
def test_an_object_by_a_schema_where_calls_cannot_be_forced(said):
    def refuses(body):
        return Failed(400, said) if "tools" in body else None

    with client(Says(JSON_ANSWER), repeat=True, refuses=refuses) as made:
        for _ in range(2):
            assert verdict(made.ask(ASKED, schema=VERDICT)).arguments["verdict"] == "matches"
        assert made.model.profile.structured is Structured.JSON_SCHEMA
        bodies = [asked.body for asked in made.endpoint.requests]
    assert len(bodies) == 3
    assert bodies[-1]["response_format"]["json_schema"]["name"] == "verdict"


@pytest.mark.parametrize(
    "content",
    [
        JSON_ANSWER,
        f"```json\n{JSON_ANSWER}\n```",
        f"Here it is:\n\n```\n{JSON_ANSWER}\n```\nDone.",
        f"I looked closely.\n{JSON_ANSWER}\n",
        f"<think>An object {{}}.</think>{JSON_ANSWER}",
    ],
)
def test_an_object_in_plain_text_where_there_is_nothing_else(content):
    def refuses(body):
        for name in ("tool_choice", "response_format"):
            if name in body:
                return Failed(400, f"{name} is not supported", param=name)
        return None

    with client(Says(content), repeat=True, refuses=refuses) as made:
        for _ in range(2):
            reply = made.ask(ASKED, schema=VERDICT)
            assert verdict(reply).arguments == {"verdict": "matches", "reason": "12 passed"}
            assert reply.message.content == ""
        assert len(made.endpoint.requests) == 4
        last = made.endpoint.requests[-1].body["messages"][-1]
    assert '"required": ["verdict", "reason"]' in last["content"]


def test_an_endpoint_that_ignores_a_forced_call_is_asked_in_another_way_and_that_is_remembered():
    def answer(body):
        return Says(JSON_ANSWER) if "response_format" in body else Says("It matches, I think.")

    with client(answer, repeat=True) as made:
        first = made.ask(ASKED, schema=VERDICT)
        assert verdict(first).arguments["verdict"] == "matches"
        assert first.usage.input_tokens == 200  # both requests were paid for
        made.ask(ASKED, schema=VERDICT)
        assert len(made.endpoint.requests) == 3


def test_no_object_at_all_is_a_call_that_cannot_be_used():
    with client(Says("It matches."), repeat=True) as made:
        made_call = verdict(made.ask(ASKED, schema=VERDICT))
        assert made_call.arguments is None
        assert "no JSON object" in made_call.error
        assert len(made.endpoint.requests) == 3
        # One answer without an object says nothing about the endpoint.
        assert made.model.profile.structured is Structured.TOOL


@pytest.mark.parametrize("content", ["It matches.", JSON_ANSWER])
def test_an_object_can_be_asked_for_again_in_the_same_conversation(content):
    with client(Says(content), repeat=True) as made:
        conversation = list(ASKED)
        for _ in range(3):
            reply = made.ask(conversation, schema=VERDICT)
            answer = Message(role="tool", tool_call_id=verdict(reply).id, content="Once more, please.")
            conversation += [reply.message, answer]


def test_an_object_of_another_form_is_not_taken():
    answers = (Says(calls=(call("verdict", verdict="matches"),)), Says('{"name": "verdict"}'), Says("[]"))
    with client(*answers) as made:
        assert verdict(made.ask(ASKED, schema=VERDICT)).arguments is None


def test_an_object_that_was_cut_off_is_told_as_such():
    with client(Says(calls=(tool_call("verdict", '{"verdict": "mat'),), finish="stop")) as made:
        assert made.ask(ASKED, schema=VERDICT).finish is FinishReason.LENGTH


def test_the_tools_of_the_conversation_stay_beside_a_schema():
    with client(Says(calls=(tool_call("verdict", JSON_ANSWER),))) as made:
        made.ask(CALLED, tools=[BASH], schema=VERDICT)
        assert [tool["function"]["name"] for tool in made.endpoint.requests[0].body["tools"]] == ["bash", "verdict"]
