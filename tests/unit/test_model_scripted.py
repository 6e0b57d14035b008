"""The scripted model, what a valid conversation is, and which model a role's name means."""

import subprocess
import sys

import pytest
from pydantic import SecretStr

from autoinstall.errors import BadInput, ModelUnavailable
from autoinstall.models.contract import FinishReason, Message, Model, TokenUsage, ToolCall
from autoinstall.models.conversation import InvalidConversation, check_conversation
from autoinstall.models.quirks import quirks, said
from autoinstall.models.registry import model_for, names_in_use, resolve
from autoinstall.models.scripted import ScriptedModel, ScriptExhausted, says
from autoinstall.models.tokens import cost_usd, estimate, estimate_conversation
from autoinstall.settings import AgentSettings, ModelSettings, Price, Settings
from tests.unit.model_samples import ASKED, BASH

SYSTEM, USER = ASKED


def asks(*ids):
    return Message(role="assistant", tool_calls=tuple(ToolCall(id=one, name="bash", arguments={}) for one in ids))


def answers(id_):
    return Message(role="tool", tool_call_id=id_, content="ok")


# --- conversations


def test_valid_conversations():
    check_conversation(ASKED)
    check_conversation([USER, asks("a", "b"), answers("a"), answers("b")])
    check_conversation([USER, asks("a"), answers("a"), Message(role="assistant", content="x"), USER])


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "empty"),
        ([SYSTEM], "system message alone"),
        ([USER, SYSTEM, USER], "not the first"),
        ([USER, asks("a")], "unanswered: a"),
        ([USER, asks("a", "b"), answers("a")], "unanswered: b"),
        ([USER, asks("a"), USER], "before the answers of a"),
        ([USER, asks("a"), answers("a"), answers("a")], "no call is open"),
        ([USER, asks("a", "b"), answers("b"), answers("a")], "'a' is next"),
        ([USER, answers("a")], "no call is open"),
        ([USER, asks("a"), answers("a"), asks("a"), answers("a")], "was used before"),
        ([USER, asks("a", "a"), answers("a"), answers("a")], "was used before"),
        ([USER, asks(""), answers("")], "empty or was used"),
        ([Message(role="user", tool_calls=asks("a").tool_calls), answers("a")], "has tool calls"),
        ([Message(role="user", tool_call_id="a")], "answers a call"),
    ],
)
def test_invalid_conversations_are_told(messages, why):
    with pytest.raises(InvalidConversation, match=why):
        check_conversation(messages)
    with pytest.raises(InvalidConversation, match=why):
        ScriptedModel([says("x")]).complete(messages)


# --- the script


def test_a_script_is_played_in_order_and_recorded():
    error = ModelUnavailable("down")
    model: Model = ScriptedModel(
        [says("one", ("bash", {"command": "ls"})), error, lambda asked: says(asked.tools[0].name)]
    )
    first = model.complete(ASKED, tools=[BASH], max_output_tokens=5)
    assert first.finish is FinishReason.TOOL_CALLS
    assert first.message.tool_calls[0].arguments == {"command": "ls"}
    assert first.message.tool_calls[0].raw == '{"command": "ls"}'
    with pytest.raises(ModelUnavailable):
        model.complete(ASKED)
    assert model.complete(ASKED, tools=[BASH]).message.content == "bash"
    with pytest.raises(ScriptExhausted, match="request 4"):
        model.complete(ASKED)
    assert isinstance(model, ScriptedModel)
    assert model.requests[0].max_output_tokens == 5
    assert model.requests[0].messages == ASKED


def test_the_last_line_can_be_said_again_and_its_ids_stay_unique():
    model = ScriptedModel([says("", ("bash", {}), ("bash", {}))], repeat=True)
    conversation = list(ASKED)
    for _ in range(3):
        reply = model.complete(conversation)
        conversation += [reply.message, *(answers(one.id) for one in reply.message.tool_calls)]
    check_conversation(conversation)


def test_usage_is_estimated_unless_the_script_has_it():
    plain, given = ScriptedModel([says("x" * 350), says("x", usage=TokenUsage(input_tokens=5))]), ASKED
    assert plain.complete(given).usage.output_tokens >= 100
    assert plain.complete(given).usage == TokenUsage(input_tokens=5)


# --- tokens and prices


def test_estimates_grow_with_all_that_is_sent():
    assert estimate("") == 0
    assert 90 <= estimate("x" * 350) <= 110
    whole = estimate_conversation([*ASKED, asks("a"), answers("a")], [BASH])
    assert whole > estimate_conversation([*ASKED, asks("a"), answers("a")]) > estimate_conversation(ASKED)
    assert estimate("\ud800") == 1


def test_costs():
    usage = TokenUsage(input_tokens=1000, cached_tokens=400, output_tokens=100)
    assert cost_usd(usage, None) == 0
    assert cost_usd(usage, Price(input=1, output=2)) == pytest.approx(0.0012)
    assert cost_usd(usage, Price(input=1, output=2, cached_input=0)) == pytest.approx(0.0008)


# --- names of models


def configured(**changes):
    default = ModelSettings(base_url="http://localhost:1/v1", name="base", price=Price(input=1, output=1))
    fast = ModelSettings(base_url="http://localhost:2/v1", name="small", api_key=SecretStr("fast-key"))
    return Settings(
        _env_file=None, **({"model": default, "models": {"fast": fast, "broken": ModelSettings()}} | changes)
    )


def test_a_name_is_a_key_of_models_or_a_model_at_the_default_endpoint():
    settings = configured()
    assert resolve(settings)[0].name == "base"
    assert resolve(settings, "base")[0].price is not None
    assert resolve(settings, "fast") == (settings.models["fast"], "AUTOINSTALL_MODELS__fast")
    other, variable = resolve(settings, "other")
    assert (other.base_url, other.name, other.price) == ("http://localhost:1/v1", "other", None)
    assert variable == "AUTOINSTALL_MODEL"


def test_a_missing_name_says_which_variable_to_set():
    with pytest.raises(BadInput) as caught:
        model_for(configured(model=ModelSettings()))
    assert "AUTOINSTALL_MODEL__NAME" in caught.value.hint
    with pytest.raises(BadInput) as caught:
        model_for(configured(), "broken")
    assert "AUTOINSTALL_MODELS__broken__NAME" in caught.value.hint


def test_one_model_for_equal_settings_in_a_process():
    assert model_for(configured(), "fast") is model_for(configured(), "fast")
    assert model_for(configured(), "base") is model_for(configured())
    assert model_for(configured(), "other") is not model_for(configured())
    changed = ModelSettings(base_url="http://localhost:2/v1", name="small", api_key=SecretStr("another-key"))
    assert model_for(configured(models={"fast": changed}), "fast") is not model_for(configured(), "fast")


def test_the_names_that_roles_use():
    assert names_in_use(configured()) == ()
    agents = AgentSettings(
        goal_setter="llm",
        installer=("rules", "llm"),
        judge="llm",
        installer_models=("fast", "other"),
        judge_model="fast",
    )
    assert names_in_use(configured(agents=agents)) == ("", "fast", "other")
    assert names_in_use(configured(agents=AgentSettings(installer=("llm",)))) == ("",)


def test_naming_a_model_does_not_load_the_openai_package():
    code = "import sys, autoinstall.models.registry, autoinstall.models.scripted, autoinstall.models.probe; "
    code += "sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


# --- the table


def test_the_table_is_read_and_all_of_its_patterns_compile():
    table = quirks()
    said(table.text_calls, "")
    said((table.rejection, *(row.pattern for row in table.unsuitable), *table.quota_unless), "")
    assert {"temperature", "parallel_tool_calls", "response_format", "tool_choice"} <= table.optional
    assert all(row.hint.format(variable="X") for row in table.unsuitable)
    assert all("(?P<limit>" in pattern and "(?P<input>" in pattern for pattern in table.room)
    assert all("(?P<cap>" in pattern for pattern in table.cap)


@pytest.mark.parametrize("text", ["Invalid 'tools' format", "Rate limit reached", "The server had an error", ""])
def test_ordinary_failures_are_neither_quota_nor_context(text):
    assert said(quirks().context, text) is None
    assert said(quirks().quota, text) is None
