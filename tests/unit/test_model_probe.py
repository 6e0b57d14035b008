"""The probe tells an endpoint that serves agents from one that does not, and says why."""

import json

import pytest

from autoinstall.doctor import Status, examine_models
from autoinstall.models.contract import TokenUsage, ToolCall
from autoinstall.models.probe import probe
from autoinstall.models.scripted import ScriptedModel, says
from autoinstall.settings import AgentSettings, ModelSettings, Settings
from tests.endpoint import Endpoint, Failed, Hang, Says, call
from tests.unit.model_samples import client

USAGE = {"completion_tokens": 5}


class Mind:
    """A model that does what the probe asks, with the faults that a test gives it."""

    def __init__(self, *faults, context=10**9):
        self.faults = faults
        self.context = context

    def __call__(self, body):
        messages = body["messages"]
        size = sum(len(json.dumps(message)) for message in messages) // 4
        if size > self.context and "truncates" in self.faults:
            # As servers do that keep the system message and the newest ones.
            messages = [messages[0], *messages[-(self.context // 600) :]]
            size = self.context
        elif size > self.context:
            return Failed(400, f"This model's maximum context length is {self.context} tokens.")
        return self.answer(body, messages, {**USAGE, "prompt_tokens": max(size, 1)})

    def answer(self, body, messages, usage):
        asked, last = messages[-1]["content"] or "", messages[-1]
        if "response_format" in body or "tool_choice" in body or "JSON schema" in asked:
            right = {"capital": "Paris", "letters": 5}
            if "no objects" in self.faults:
                return Says("Paris has five letters.", usage=usage)
            forced = "tool_choice" in body
            return (
                Says(calls=(call("answer", **right),), usage=usage) if forced else Says(json.dumps(right), usage=usage)
            )
        if last["role"] == "tool":
            return Says("I have no results." if "deaf" in self.faults else f"So: {asked}", usage=usage)
        if "code word" in asked:
            words = [message["content"] for message in messages if "Remember it" in (message["content"] or "")]
            return Says("periwinkle-5203" if words else "There was none.", usage=usage)
        trees = [tree for tree in ("alder", "birch", "cedar") if tree in asked]
        if "leaves calls in text" in self.faults:
            return Says('<tool_call>{"name": "look_up", "arguments": {"tree": "alder"}}</tool_call>', usage=usage)
        if "no tools" in self.faults:
            return Says("I cannot look things up.", usage=usage)
        trees = trees[:1] if "one at a time" in self.faults else trees
        return Says(calls=tuple(call("look_up", f"c{i}", tree=tree) for i, tree in enumerate(trees)), usage=usage)


def probed(mind, **settings):
    with client(mind, repeat=True, **settings) as made:
        found = {finding.name: finding for finding in probe(made.model)}
        sent = sum(len(json.dumps(asked.body)) for asked in made.endpoint.requests)
    return found, sent


def test_an_endpoint_that_serves():
    found, sent = probed(Mind())
    assert {name: finding.level for name, finding in found.items()} == {
        "tools": "ok",
        "tool results": "ok",
        "parallel calls": "ok",
        "structured output": "ok",
        "context": "ok",
    }
    assert "the rest of 131072 is not tried" in found["context"].detail
    assert sent < 80_000  # bytes: what the question costs is bounded, however large the context


@pytest.mark.parametrize(
    ("fault", "name", "level", "words"),
    [
        ("leaves calls in text", "tools", "fail", "endpoint_unsuitable: Tool calls are left in the text"),
        ("no tools", "tools", "fail", "endpoint_unsuitable: Asked to use a tool"),
        ("deaf", "tool results", "fail", "endpoint_unsuitable: a tool's result does not reach the model"),
        ("one at a time", "parallel calls", "warn", "one call at a time"),
        ("no objects", "structured output", "fail", "endpoint_unsuitable: no object"),
    ],
)
def test_what_an_endpoint_lacks_is_said_plainly(fault, name, level, words):
    found, _ = probed(Mind(fault))
    assert found[name].level == level
    assert words in found[name].detail
    assert [finding.name for finding in found.values() if finding.level != "ok"] == [name]


def test_calls_left_in_text_come_with_what_to_do():
    found, _ = probed(Mind("leaves calls in text"))
    assert "--tool-call-parser" in found["tools"].hint
    assert list(found) == ["tools"]  # nothing further can work


def test_an_endpoint_that_cuts_off_silently_is_found_out():
    found, _ = probed(Mind("truncates", context=4096), context_tokens=16_000)
    assert found["context"].level == "fail"
    assert "endpoint_unsuitable" in found["context"].detail
    assert "cut off silently" in found["context"].detail
    assert "OLLAMA_CONTEXT_LENGTH" in found["context"].hint
    assert "AUTOINSTALL_MODEL__CONTEXT_TOKENS (16000)" in found["context"].hint


def test_an_endpoint_that_cuts_off_silently_is_found_out_by_its_own_count_too():
    model = ScriptedModel(
        [
            says("", ("look_up", {"tree": "alder"})),
            says("7319"),
            says("", ("look_up", {"tree": "birch"}), ("look_up", {"tree": "cedar"})),
            says("", ("answer", {"capital": "Paris", "letters": 5})),
            says("periwinkle-5203", usage=TokenUsage(input_tokens=2048)),
        ]
    )
    (last,) = (finding for finding in probe(model) if finding.level != "ok")
    assert "the server counts 2048" in last.detail


def test_an_endpoint_that_takes_less_than_the_settings_say():
    found, _ = probed(Mind(context=4096), context_tokens=16_000)
    assert found["context"].level == "fail"
    assert "are refused" in found["context"].detail
    found, _ = probed(Mind(context=4096), context_tokens=4096)
    assert found["context"].level == "ok"


@pytest.mark.parametrize(("act", "words"), [(Failed(401, "no"), "endpoint_unsuitable"), (Hang(), "model_unavailable")])
def test_an_endpoint_that_does_not_answer_is_a_finding(act, words):
    found, _ = probed(act, total_seconds=0.5, retries=0)
    assert list(found) == ["tools"]
    assert words in found["tools"].detail


def test_arguments_that_cannot_be_used_are_no_call():
    broken = ToolCall(id="a", name="look_up", arguments=None, raw="alder", error="The arguments are no valid JSON: x.")
    reply = says("", ("look_up", {}))
    reply = reply.model_copy(update={"message": reply.message.model_copy(update={"tool_calls": (broken,)})})
    (finding,) = probe(ScriptedModel([reply]))
    assert (finding.level, "no valid JSON" in finding.detail) == ("fail", True)


# --- the doctor


def test_the_doctor_examines_the_models_that_play_a_role():
    with Endpoint(Mind(), repeat=True) as endpoint:
        given = {"model": endpoint.settings(), "models": {"other": ModelSettings(base_url=endpoint.url)}}
        rules = Settings(_env_file=None, **given)
        assert list(examine_models(rules)) == []
        assert endpoint.requests == []
        asked = list(examine_models(rules, asked=True))
        assert {check.status for check in asked} == {Status.OK}
        assert all(check.name.startswith("model test-model: ") for check in asked)
        llm = Settings(_env_file=None, agents=AgentSettings(installer=("rules", "llm"), judge="llm"), **given)
        assert len(list(examine_models(llm))) == len(asked)
        broken = Settings(_env_file=None, agents=AgentSettings(judge="llm", judge_model="other"), **given)
        (check,) = examine_models(broken)
        assert check.status is Status.FAIL
        assert "AUTOINSTALL_MODELS__other__NAME" in check.hint
