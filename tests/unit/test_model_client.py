"""The client against a strict endpoint: what it sends, when it tries again, when it stops, and what it keeps silent."""

import ctypes
import logging
import pickle
import socket
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from autoinstall.errors import (
    AutoinstallError,
    BadInput,
    ContextExhausted,
    EndpointUnsuitable,
    ModelUnavailable,
    QuotaExhausted,
)
from autoinstall.models.client import OpenAIModel
from autoinstall.models.contract import FinishReason, Message, ToolCall
from autoinstall.models.conversation import InvalidConversation
from autoinstall.models.retries import backoff, retry_after, sleep_in_slices
from autoinstall.settings import ModelSettings, Price
from tests.endpoint import Cut, Drop, Endpoint, Failed, Hang, Raw, Says, Trickle, call, tool_call
from tests.unit.model_samples import ASKED, BASH, client

OK = Says("Hello")


# --- what it sends, what it gives back


def test_an_answer_with_what_it_took():
    usage = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 200_000,
        "prompt_tokens_details": {"cached_tokens": 400_000},
        "completion_tokens_details": {"reasoning_tokens": 50_000},
    }
    price = Price(input=2, output=10, cached_input=0.5)
    with client(Says("Hello", usage=usage, body={"model": "as-served"}), price=price) as made:
        reply = made.ask(ASKED, tools=[BASH])
    assert (reply.message.content, reply.finish, reply.model, reply.retries) == (
        "Hello",
        FinishReason.STOP,
        "as-served",
        0,
    )
    assert (reply.usage.cached_tokens, reply.usage.reasoning_tokens) == (400_000, 50_000)
    assert reply.cost_usd == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.2 * 10)
    assert 0 < reply.seconds < 10


def test_the_request_is_what_the_settings_say():
    extra = {"reasoning_effort": "low"}
    headers = {"X-Gateway": SecretStr("gate-way-secret")}
    with client(OK, temperature=0, max_output_tokens=500, extra=extra, headers=headers) as made:
        made.ask(ASKED, tools=[BASH])
        (asked,) = made.endpoint.requests
    assert {name: asked.body[name] for name in ("model", "temperature", "max_tokens", "reasoning_effort")} == {
        "model": "test-model",
        "temperature": 0,
        "max_tokens": 500,
        "reasoning_effort": "low",
    }
    assert asked.headers["authorization"] == "Bearer test-key-0123456789"
    assert asked.headers["x-gateway"] == "gate-way-secret"
    assert asked.path == "/v1/chat/completions"


def test_a_conversation_as_it_goes_out():
    unusable = ToolCall(id="b", name="bash", arguments=None, error="no JSON").model_copy(update={"raw": "ls \ud800"})
    good = ToolCall(id="a", name="bash", arguments={"command": "ls"}, raw='{"command":  "ls"}')
    conversation = (
        *ASKED,
        Message.model_construct(
            role="assistant", content="", tool_calls=(good, unusable), tool_call_id="", reasoning="hm"
        ),
        Message.model_construct(role="tool", content="a\0b\udfff", tool_calls=(), tool_call_id="a", reasoning=""),
        Message(role="tool", content="", tool_call_id="b"),
        Message(role="assistant"),
        Message(role="user", content="Go on"),
    )
    with client(OK) as made:
        made.ask(conversation, tools=[BASH])
        sent = made.endpoint.requests[0].body["messages"]
    assert sent[2]["content"] is None
    assert "reasoning_content" not in sent[2]
    # As the model wrote it, byte for byte: that is what an endpoint has in its cache.
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"command":  "ls"}'
    assert sent[2]["tool_calls"][1]["function"]["arguments"] == '{"unusable_arguments": "ls \ufffd"}'
    assert [sent[3]["content"], sent[4]["content"], sent[5]["content"]] == ["a\ufffdb\ufffd", "", ""]


def test_made_up_ids_go_back_to_the_endpoint_as_they_were_made():
    calls = (tool_call("bash", '{"command": "ls"}', ""), tool_call("bash", '{"command": "ls"}', ""))
    with client(Says(calls=calls), OK) as made:
        reply = made.ask(ASKED, tools=[BASH])
        results = [Message(role="tool", tool_call_id=one.id, content="x") for one in reply.message.tool_calls]
        made.ask([*ASKED, reply.message, *results], tools=[BASH])
        sent = made.endpoint.requests[1].body["messages"]
    assert [one["id"] for one in sent[2]["tool_calls"]] == [sent[3]["tool_call_id"], sent[4]["tool_call_id"]]


def test_three_parallel_calls_of_which_one_is_invalid_can_all_be_answered():
    calls = (call("bash", "a", command="x"), tool_call("bash", "{'command'}", "b"), call("bash", "c", command="y"))
    with client(Says(calls=calls), OK) as made:
        reply = made.ask(ASKED, tools=[BASH])
        assert [one.arguments is None for one in reply.message.tool_calls] == [False, True, False]
        results = [Message(role="tool", tool_call_id=one.id, content=one.error) for one in reply.message.tool_calls]
        assert made.ask([*ASKED, reply.message, *results], tools=[BASH]).message.content == "Hello"


def test_a_conversation_with_an_unanswered_call_is_never_sent():
    asking = Message(role="assistant", tool_calls=(ToolCall(id="a", name="bash", arguments={}),))
    with client() as made, pytest.raises(InvalidConversation, match="unanswered: a"):
        made.ask([*ASKED, asking])
    assert made.endpoint.requests == []


def test_connections_are_kept_and_shared_by_threads():
    with client(OK, repeat=True) as made:
        for _ in range(5):
            made.ask(ASKED)
        assert made.endpoint.connections == 1
        threads = [threading.Thread(target=made.ask, args=(ASKED,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made.endpoint.requests) == 9


# --- trying again


@pytest.mark.parametrize(
    "act",
    [
        *(Failed(status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 524)),
        Failed(400, "Failed to call a function", code="tool_use_failed"),
        Drop(),
        Cut(),
        Says(body={"error": {"message": "upstream", "code": 502}}),
        Raw(b"<html>Bad gateway</html>", "text/html", 502),
        Raw(b'{"choices": [', "application/json"),
        Says(body={"choices": []}),
    ],
)
def test_what_passes_is_tried_again(act):
    with client(act, act, OK) as made:
        reply = made.ask(ASKED)
    assert (reply.message.content, reply.retries, len(made.waits)) == ("Hello", 2, 2)


def test_retries_are_ours_alone_and_counted():
    """Were the SDK to retry too, there would be more requests than tries."""
    with client(Failed(503, "busy"), repeat=True, retries=3) as made:
        with pytest.raises(ModelUnavailable, match="503 after 4 tries: busy"):
            made.ask(ASKED)
        assert len(made.endpoint.requests) == 4
    assert len(made.waits) == 3


def test_retry_after_is_honoured_in_seconds_and_as_a_date():
    when = (datetime.now(UTC) + timedelta(seconds=9)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    answers = [Failed(429, headers={"Retry-After": value}) for value in ("7", "0", when, "2.5")]
    with client(*answers, Failed(429, headers={"retry-after-ms": "1500"}), OK) as made:
        made.ask(ASKED)
    assert made.waits[0] == 7
    assert made.waits[1] == 0
    assert 6 <= made.waits[2] <= 9
    assert made.waits[3:] == [2.5, 1.5]


@pytest.mark.parametrize("value", ["soon", "", "-5", "inf", "nan", "Fri, 99 Foo"])
def test_a_retry_after_that_says_nothing_falls_back_to_our_own_measure(value):
    assert retry_after({"retry-after": value}) is None


def test_a_date_that_has_passed_means_now():
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


def test_a_wait_beyond_the_deadline_is_not_begun():
    with client(Failed(429, "slow down", headers={"Retry-After": "3600"})) as made:
        with pytest.raises(ModelUnavailable, match="waiting 3600 s as it asks would pass the deadline"):
            made.ask(ASKED)
        assert made.waits == []


def test_waits_are_spent_in_slices_and_whole():
    started = time.monotonic()
    sleep_in_slices(0.7)
    assert 0.7 <= time.monotonic() - started < 1.5


def test_an_interrupt_of_the_caller_ends_the_request():
    with client(Hang(), OK) as made:
        caught = []

        def ask():
            try:
                made.ask(ASKED)
            except KeyboardInterrupt:
                caught.append(time.monotonic())

        thread = threading.Thread(target=ask)
        thread.start()
        while not made.endpoint.requests:
            time.sleep(0.01)
        began = time.monotonic()
        # As whoever runs tasks in threads cancels one.
        raised = ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_long(thread.ident), ctypes.py_object(KeyboardInterrupt)
        )
        assert raised == 1
        thread.join(5)
        assert caught
        assert caught[0] - began < 2
        assert made.ask(ASKED).message.content == "Hello"


def test_backoff_doubles_up_to_a_bound_and_is_spread():
    for retry, longest in [(0, 1), (1, 2), (3, 8), (10, 60), (10_000, 60)]:
        waits = {backoff(retry) for _ in range(50)}
        assert len(waits) > 1
        assert all(longest / 2 <= wait <= longest for wait in waits)


@pytest.mark.parametrize(
    "act",
    [
        Failed(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            type="insufficient_quota",
        ),
        Failed(429, "x", code="insufficient_quota"),
        Failed(402, "Insufficient Balance"),
        Failed(402, "Pay first"),
        Failed(403, "Key limit exceeded: insufficient credits"),
        Failed(400, "Your credit balance is too low to access the API."),
        Failed(429, "x", type="exceeded_current_quota_error"),
        Failed(429, body={"error": "Budget has been exceeded! Current cost: 10.1"}),
        Says(body={"error": {"message": "Insufficient credits", "code": 402}}),
    ],
)
def test_an_exhausted_quota_stops_at_once(act):
    with client(act) as made:
        with pytest.raises(QuotaExhausted, match="answered with"):
            made.ask(ASKED)
        assert len(made.endpoint.requests) == 1
    assert made.waits == []


def test_a_limit_a_minute_that_is_worded_like_a_quota_is_waited_for():
    said = "You exceeded your current quota, please check your plan and billing details. Please retry in 21.3s."
    with client(Failed(429, said, type="RESOURCE_EXHAUSTED"), OK) as made:
        assert made.ask(ASKED).retries == 1


# --- refusals


@pytest.mark.parametrize(
    ("act", "hint"),
    [
        (Failed(401, "Incorrect API key provided"), "AUTOINSTALL_MODEL__API_KEY"),
        (Failed(403, "Country not supported"), "AUTOINSTALL_MODEL__API_KEY"),
        (Failed(404, "The model `x` does not exist", code="model_not_found"), "AUTOINSTALL_MODEL__NAME"),
        (Failed(404, body={"error": "model 'x' not found"}), "AUTOINSTALL_MODEL__NAME"),
        (Failed(400, "x is not a valid model ID"), "AUTOINSTALL_MODEL__NAME"),
        (Failed(404, body={"detail": "Not Found"}), "AUTOINSTALL_MODEL__BASE_URL"),
        (Failed(307, "", headers={"Location": "https://elsewhere.example/"}), "AUTOINSTALL_MODEL__BASE_URL"),
        (Failed(400, "registry/x does not support tools"), "calls tools"),
        (Failed(400, '"auto" tool choice requires --enable-auto-tool-choice'), "--tool-call-parser"),
        (Failed(500, "tools param requires --jinja flag"), "--jinja"),
        (Failed(400, "Something is off"), "AUTOINSTALL_MODEL__EXTRA"),
        (Failed(501, "Not implemented here"), "AUTOINSTALL_MODEL__EXTRA"),
    ],
)
def test_a_refusal_is_not_repeated_and_names_the_setting(act, hint):
    with client(act) as made:
        with pytest.raises(EndpointUnsuitable) as caught:
            made.ask(ASKED, tools=[BASH])
        assert len(made.endpoint.requests) == 1
    assert hint in caught.value.hint
    assert f"answered with {act.status}" in caught.value.message


@pytest.mark.parametrize(
    "act",
    [Raw(b"<!doctype html><title>Sign in</title>", "text/html"), Raw(b"data: {}\n\n", "text/event-stream"), Raw(b"[]")],
)
def test_an_endpoint_that_keeps_answering_with_something_else_is_unsuitable(act):
    with client(act, repeat=True) as made:
        with pytest.raises(EndpointUnsuitable) as caught:
            made.ask(ASKED)
        assert len(made.endpoint.requests) == 3
    assert "AUTOINSTALL_MODEL__BASE_URL" in caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "the request exceeds the available context size, try increasing it",
        "prompt too long; exceeded max context length by 812 tokens",
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with 4096",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "Please reduce the length of the messages or completion.",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Invalid request: Your request exceeded model token limit: 131072",
        "Request too large for gpt on tokens per min (TPM): Limit 30000, Requested 40000.",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 429, 500])
def test_context_overflow_in_the_words_of_the_common_servers(said, status):
    with client(Failed(status, said)) as made:
        with pytest.raises(ContextExhausted):
            made.ask(ASKED)
        assert len(made.endpoint.requests) == 1


def test_context_overflow_by_its_code_alone():
    with client(Failed(400, "Too much.", code="context_length_exceeded")) as made, pytest.raises(ContextExhausted):
        made.ask(ASKED)


@pytest.mark.parametrize(
    "act",
    [
        Failed(400, "The response was filtered due to the prompt", code="content_filter"),
        Failed(400, "Content Exists Risk"),
    ],
)
def test_a_filter_that_comes_as_an_error_is_an_answer(act):
    with client(act) as made:
        reply = made.ask(ASKED)
    assert (reply.finish, reply.message.content, reply.usage.estimated) == (FinishReason.CONTENT_FILTER, "", True)


# --- deadlines


@pytest.mark.parametrize("act", [Hang(), Trickle("headers"), Trickle("body"), Says("late", delay=30)])
def test_a_connection_that_hangs_or_trickles_ends_at_the_total_deadline(act):
    with client(act, repeat=True, total_seconds=0.6, read_seconds=30) as made:
        started = time.monotonic()
        with pytest.raises(ModelUnavailable, match="within its deadline") as caught:
            made.ask(ASKED)
        assert 0.5 < time.monotonic() - started < 1.5
        assert "TOTAL_SECONDS" in caught.value.hint


def test_a_silent_connection_ends_at_the_read_limit_and_is_tried_again():
    with client(Hang(), OK, read_seconds=0.3) as made:
        started = time.monotonic()
        assert made.ask(ASKED).retries == 1
        assert time.monotonic() - started < 2


def test_the_callers_deadline_counts_too():
    with client(Hang()) as made, pytest.raises(ModelUnavailable, match="within its deadline"):
        made.ask(ASKED, deadline=time.monotonic() + 0.3)
    with client() as made, pytest.raises(ModelUnavailable, match="within its deadline"):
        made.ask(ASKED, deadline=time.monotonic() - 1)


def test_there_is_no_way_to_wait_forever():
    for name in ("connect_seconds", "read_seconds", "total_seconds"):
        for never in (None, 0, -1):
            with pytest.raises(ValueError):
                ModelSettings(**{name: never})
    with client(Hang(), total_seconds=float("inf"), read_seconds=float("inf"), retries=0) as made:
        with pytest.raises(ModelUnavailable, match="within its deadline"):
            made.ask(ASKED, deadline=time.monotonic() + 0.3)
        assert float(made.endpoint.requests[0].headers["x-stainless-read-timeout"]) < 1


def test_an_endpoint_that_is_not_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        model = OpenAIModel(ModelSettings(base_url=url, name="m", retries=1), sleep=lambda _: None)
        with pytest.raises(ModelUnavailable, match="gave no answer after 2 tries") as caught:
            model.complete(ASKED)
    assert "AUTOINSTALL_MODEL__BASE_URL" in caught.value.hint


# --- secrets

KEY = "unusual-key-abcdef0123456789"
HEADER = "gateway-value-9876543210"


@pytest.mark.parametrize(
    "act",
    [
        Failed(401, f"Incorrect API key provided: {KEY}"),
        Failed(400, "x" * 280 + f" {KEY} {HEADER}"),
        Failed(400, "y" * 3990 + f" {KEY} {HEADER}"),
        Failed(500, body={"detail": [{"loc": ["headers"], "input": f"Bearer {KEY}, {HEADER}, hunter2hunter2"}]}),
        Failed(400, "bad", param=KEY),
        Raw(f"<html>{'z' * 100}{KEY}{HEADER}</html>".encode(), "text/html"),
        Says(body={"error": f"no {KEY} {HEADER}"}),
        Drop(),
        Hang(),
    ],
)
def test_secrets_appear_in_no_error_log_or_repr(act, caplog):
    caplog.set_level(logging.DEBUG)
    with Endpoint(act, repeat=True) as endpoint:
        url = endpoint.url.replace("//", "//someone:hunter2hunter2@")
        given = endpoint.settings(
            base_url=url, api_key=SecretStr(KEY), headers={"X-Key": SecretStr(HEADER)}, retries=1, total_seconds=0.5
        )
        model = OpenAIModel(given, sleep=lambda _: None)
        with pytest.raises(AutoinstallError) as caught:
            model.complete(ASKED)
        model.close()
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "\n".join([str(error), repr(error), repr(pickle.dumps(error)), repr(model), caplog.text])
    for secret in (KEY, KEY[:16], HEADER, HEADER[:16], "hunter2", "c29tZW9uZTpodW50ZXIyaHVudGVyMg"):
        assert secret not in text


def test_user_info_of_the_url_becomes_a_header():
    with Endpoint(OK) as endpoint:
        given = endpoint.settings(base_url=endpoint.url.replace("//", "//me:p%40ss@"), api_key=SecretStr(""))
        model = OpenAIModel(given)
        model.complete(ASKED)
        model.close()
        assert endpoint.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="


def test_an_endpoint_of_ones_own_is_given_nothing_of_the_environments_account(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the-hosts-own-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "the-hosts-organization")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "the-hosts-project")
    with client(OK, api_key=SecretStr("")) as made:
        made.ask(ASKED)
        headers = made.endpoint.requests[0].headers
    assert "authorization" not in headers
    assert "the-hosts" not in str(headers)


def test_a_redirect_carries_nothing_elsewhere():
    with (
        Endpoint() as elsewhere,
        client(Failed(307, headers={"Location": f"{elsewhere.url}/chat/completions"})) as made,
    ):
        with pytest.raises(EndpointUnsuitable, match="307"):
            made.ask(ASKED)
        assert elsewhere.requests == []


# --- settings that cannot be used


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"name": ""}, "AUTOINSTALL_MODEL__NAME"),
        ({"base_url": "localhost:8000/v1"}, "AUTOINSTALL_MODEL__BASE_URL"),
        ({"base_url": "http://[::1/v1"}, "AUTOINSTALL_MODEL__BASE_URL"),
        ({"base_url": "http://host:port/v1"}, "AUTOINSTALL_MODEL__BASE_URL"),
        ({"api_key": SecretStr("two\nlines-of-key")}, "AUTOINSTALL_MODEL__API_KEY"),
        ({"api_key": SecretStr("“quoted-key”")}, "AUTOINSTALL_MODEL__API_KEY"),
        ({"headers": {"X": SecretStr("a\r\nInjected: b")}}, "AUTOINSTALL_MODEL__HEADERS"),
        ({"headers": {"X Y": SecretStr("a")}}, "AUTOINSTALL_MODEL__HEADERS"),
    ],
)
def test_settings_that_cannot_be_used_are_told_before_anything_is_asked(changes, variable):
    given = {"base_url": "http://localhost:1/v1", "name": "m", **changes}
    with pytest.raises(BadInput) as caught:
        OpenAIModel(ModelSettings(**given))
    assert variable in caught.value.hint
    assert "of-key" not in str(caught.value) + repr(caught.value.__context__)


def test_the_default_endpoint_wants_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(EndpointUnsuitable) as caught:
        OpenAIModel(ModelSettings(name="m"))
    assert "AUTOINSTALL_MODEL__API_KEY" in caught.value.hint


def test_hints_name_the_endpoint_that_a_role_uses():
    with Endpoint(Failed(401)) as endpoint:
        model = OpenAIModel(endpoint.settings(), variable="AUTOINSTALL_MODELS__fast")
        with pytest.raises(EndpointUnsuitable) as caught:
            model.complete(ASKED)
        model.close()
    assert "AUTOINSTALL_MODELS__fast__API_KEY" in caught.value.hint


def test_many_threads_learn_once(caplog):
    """A refusal that all of them meet at the same time is adapted to once, and nobody fails."""

    def refuses(body):
        return Failed(400, "Unsupported parameter", param="max_tokens") if "max_tokens" in body else None

    with client(OK, repeat=True, refuses=refuses) as made:
        caplog.set_level(logging.INFO, "autoinstall.models")
        threads = [threading.Thread(target=made.ask, args=(ASKED,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counts = Counter("max_completion_tokens" in asked.body for asked in made.endpoint.requests)
    assert counts[True] == 6
    assert caplog.text.count("A request was refused") == 1
