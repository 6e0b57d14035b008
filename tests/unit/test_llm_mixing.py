"""Who plays which role: by settings, on record, and compared."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dataset_rows import COMMIT, END, run
from llm_stage import settings_with

from autoinstall.agents import (
    check_models,
    goal_setter,
    installer,
    installer_of,
    judge,
    models_of,
    next_by_another,
    plays_llm,
    team_of,
)
from autoinstall.agents.contract import Consultation
from autoinstall.agents.llm.judge import LlmJudge
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.attempts import SetupAttempt
from autoinstall.datasets.comparison import compare_teams
from autoinstall.datasets.reader import load
from autoinstall.datasets.records import RepositoryRecord
from autoinstall.datasets.writer import ensure_writable, write_run
from autoinstall.errors import BadInput, BadProposal, ModelUnavailable, StorageFailed
from autoinstall.journals import recover_journals, remove_journals, write_head, write_lost_runs
from autoinstall.ledger import Ledger, configuration_of
from autoinstall.models.contract import Message, ToolCall
from autoinstall.models.scripted import ScriptedModel, says
from autoinstall.rows import run_records
from autoinstall.runtime import build_runtime
from autoinstall.settings import ModelSettings, SearchSettings, Settings
from autoinstall.values import (
    CommandResult,
    Goal,
    Outcome,
    Proposal,
    RepositorySpec,
    Role,
    SetupReport,
    StopReason,
    Trajectory,
    Usage,
    Verdict,
)

SPEC = RepositorySpec(url="https://example.org/o/name")
SPENT = Usage(seconds=3, model_seconds=2, steps=1, input_tokens=100, cached_tokens=60, output_tokens=10, cost_usd=0.5)


def mixed(tmp_path, **agents):
    return settings_with(tmp_path, **{"installer": ("rules", "llm"), **agents})


# --- Who plays


@pytest.mark.parametrize(
    ("agents", "names"),
    [
        ({"goal_setter": "rules", "installer": ("rules",), "judge": "rules"}, ("rules", "rules", "rules", "rules")),
        ({}, ("llm", "llm", "llm", "llm")),
        ({"installer": ("rules", "llm")}, ("llm", "rules", "llm", "llm")),
        ({"judge": "rules", "installer": ("llm", "rules")}, ("llm", "llm", "rules", "rules")),
    ],
)
def test_roles_are_played_by_whom_the_settings_name(tmp_path, agents, names):
    settings = settings_with(tmp_path, **agents)
    found = (goal_setter(settings), installer(settings, 1), installer(settings, 2), judge(settings))
    assert tuple(agent.name for agent in found) == names


def test_models_are_by_role_and_by_attempt(tmp_path):
    settings = settings_with(
        tmp_path, goal_setter_model="big", installer_models=("", "big", "other"), judge_model="small"
    ).model_copy(update={"models": {"big": ModelSettings(name="big-1", base_url="http://127.0.0.1:9/v1", api_key="k")}})
    assert [installer_of(settings, number) for number in (1, 2, 3, 4)] == [
        *(("llm", ""), ("llm", "big"), ("llm", "other"), ("llm", "other"))
    ]
    assert [model.name for model in models_of(settings)] == ["big-1", "scripted", "big-1", "other", "small"]
    assert team_of(settings) == "goals llm:big-1; set-up llm:scripted, llm:big-1, llm:other; judge llm:small"


def test_teams_have_short_names_where_they_can(tmp_path):
    assert team_of(Settings(_env_file=None)) == "rules"
    assert team_of(settings_with(tmp_path)) == "llm:scripted"
    assert team_of(mixed(tmp_path)) == "goals llm:scripted; set-up rules, llm:scripted; judge llm:scripted"


def test_a_role_without_a_model_is_told_before_anything_starts(tmp_path):
    for agents in ({}, {"goal_setter": "rules", "judge": "rules"}, {"goal_setter": "rules", "installer": ("rules",)}):
        settings = settings_with(tmp_path, model="", **agents)
        with pytest.raises(BadInput, match="played by a model") as caught:
            build_runtime(settings)
        assert "AUTOINSTALL_MODEL__NAME" in caught.value.hint
        assert "--agent rules" in caught.value.hint
    check_models(settings_with(tmp_path, model="", goal_setter="rules", installer=("rules",), judge="rules"))


def test_the_next_agent_is_the_first_that_differs(tmp_path):
    settings = settings_with(tmp_path, installer=("rules", "rules", "llm"), installer_models=("a", "a", "a", "b"))
    assert [next_by_another(settings, number) for number in (1, 2, 3, 4, 5)] == [3, 3, 4, None, None]
    assert next_by_another(settings_with(tmp_path), 1) is None


# --- Configuration


def test_the_configuration_covers_models_agents_and_prompts(tmp_path, monkeypatch):
    settings = settings_with(tmp_path)
    before = configuration_of(SPEC, settings)
    others = [
        settings_with(tmp_path, model="another"),
        settings_with(tmp_path, steps=10),
        settings_with(tmp_path, installer=("rules", "llm")),
        settings.model_copy(update={"model": settings.model.model_copy(update={"temperature": 0.5})}),
        settings.model_copy(update={"model": settings.model.model_copy(update={"extra": {"reasoning_effort": "low"}})}),
        settings.model_copy(update={"search": SearchSettings(provider="ddgs")}),
    ]
    assert len({before, *(configuration_of(SPEC, other) for other in others)}) == len(others) + 1
    monkeypatch.setattr("autoinstall.ledger.digest_of_prompts", lambda: "other prompts")
    assert configuration_of(SPEC, settings) != before


def test_how_an_endpoint_is_reached_is_no_part_of_the_configuration(tmp_path):
    settings = settings_with(tmp_path)
    client = {"base_url": "http://elsewhere/v1", "api_key": "another", "retries": 0, "read_seconds": 5.0}
    moved = settings.model_copy(update={"model": settings.model.model_copy(update=client)})
    assert configuration_of(SPEC, moved) == configuration_of(SPEC, settings)


def test_what_only_models_are_told_is_no_part_of_a_configuration_of_rules(tmp_path, monkeypatch):
    rules = settings_with(tmp_path, goal_setter="rules", installer=("rules",), judge="rules")
    assert not plays_llm(rules)
    before = configuration_of(SPEC, rules)
    monkeypatch.setattr("autoinstall.ledger.digest_of_prompts", lambda: "other prompts")
    other = rules.model_copy(update={"model": ModelSettings(name="another")})
    assert configuration_of(SPEC, other) == before


# --- Rows


def trajectory(role, agent="llm", model="m1"):
    return Trajectory(role=role, agent=agent, model=model, messages=({"role": "user", "content": "go"},))


def attempt(number, agent, model, **changes):
    report = SetupReport(
        stop=StopReason.GAVE_UP, summary="no", trajectory=trajectory(Role.INSTALLER, agent, model), usage=SPENT
    )
    return SetupAttempt(number=number, report=report, outcome=Outcome.GAVE_UP, **changes)


def test_rows_say_who_did_what_and_sum_up_what_it_cost(tmp_path):
    ledger = Ledger(SPEC, mixed(tmp_path))
    ledger.proposals.append(Proposal(goals=(), trajectory=trajectory(Role.GOAL_SETTER), usage=SPENT))
    ledger.attempts += [attempt(1, "rules", ""), attempt(2, "llm", "m1")]
    ledger.consultations.append(Consultation(trajectory=trajectory(Role.JUDGE, model="m2"), usage=SPENT))

    records = run_records(ledger)

    row = records.repository
    assert row.team == "goals llm:scripted; set-up rules, llm:scripted; judge llm:scripted"
    assert (row.agents.goal_setter_model, row.agents.installer, row.agents.installer_model, row.agents.judge_model) == (
        *("m1", "llm", "m1", "m2"),
    )
    assert (row.input_tokens, row.cached_tokens, row.output_tokens, row.cost_usd, row.model_seconds) == (
        *(400, 240, 40, 2.0, 8.0),
    )
    assert [(found.agent, found.model, found.input_tokens) for found in records.attempts] == [
        *(("rules", "", 100), ("llm", "m1", 100))
    ]
    assert [(found.role, found.attempt, found.outcome, found.sequence) for found in records.trajectories] == [
        (Role.GOAL_SETTER, None, Outcome.GAVE_UP, 0),
        (Role.INSTALLER, 1, Outcome.GAVE_UP, 1),
        (Role.INSTALLER, 2, Outcome.GAVE_UP, 2),
        (Role.JUDGE, None, Outcome.GAVE_UP, 3),
    ]
    ensure_writable(tmp_path / "data")
    write_run(tmp_path / "data", records)
    assert set(load(tmp_path / "data", "trajectories").model) == {"m1", "", "m2"}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ModelUnavailable("gone"), Outcome.INFRASTRUCTURE),
        (BadProposal("nine goals"), Outcome.BAD_PROPOSAL),
        (KeyboardInterrupt(), Outcome.CANCELLED),
    ],
)
def test_an_agent_run_that_is_interrupted_leaves_its_trajectory_and_its_cost(tmp_path, error, outcome):
    ledger = Ledger(SPEC, settings_with(tmp_path))
    with pytest.raises(type(error)), ledger.agent_run(Role.INSTALLER, 2) as journal:
        work(journal, error)
    (found,) = run_records(ledger).trajectories
    assert (found.role, found.attempt, found.outcome, found.model) == (Role.INSTALLER, 2, outcome, "m1")
    assert [message["role"] for message in found.messages] == ["user", "assistant", "tool"]
    assert (found.input_tokens, found.cost_usd) == (100, 0.5)
    assert run_records(ledger).repository.cost_usd == 0.5


def test_an_agent_run_that_ends_well_is_its_results_to_record(tmp_path):
    ledger = Ledger(SPEC, settings_with(tmp_path))
    with ledger.agent_run(Role.GOAL_SETTER) as journal:
        work(journal)
    with pytest.raises(ModelUnavailable), ledger.agent_run(Role.INSTALLER, 1):
        raise ModelUnavailable("before anything was said")
    assert run_records(ledger).trajectories == ()


def work(journal, error=None):
    journal.begin(Trajectory(role=Role.INSTALLER, agent="llm", model="m1", tools=({"type": "function"},)))
    journal.write(Message(role="user", content="set it up \u2028 now"))
    call = ToolCall(id="c1", name="bash", arguments={"command": "ls"}, raw='{"command": "ls"}')
    journal.write(Message(role="assistant", tool_calls=(call,)))
    journal.spend(SPENT)
    journal.write(Message(role="tool", content="README \ud800", tool_call_id="c1"))
    if error is not None:
        raise error


# --- Journals of killed processes


def row_of(run_id):
    now = datetime.now(UTC)
    return RepositoryRecord(
        run_id=run_id,
        repository=SPEC.url,
        commit=COMMIT,
        started_at=now,
        finished_at=now,
        outcome=Outcome.UNKNOWN,
        stage="setup",
        team="llm:m1",
    )


def killed(tmp_path):
    """A run whose process ended between two messages."""
    ledger = Ledger(SPEC, settings_with(tmp_path), run_id="killed")
    write_head(tmp_path / "cache", tmp_path / "data", row_of("killed"))
    for number in (1, 2):
        with ledger.agent_run(Role.INSTALLER, number) as journal:
            work(journal)
    path = next((tmp_path / "cache" / "journals").glob("killed-*-2.jsonl"))
    with path.open("a") as stream:
        stream.write('{"message": {"role": "assis')
    return ledger


def test_what_a_killed_process_left_becomes_rows(tmp_path):
    settings = killed(tmp_path).settings
    assert list(recover_journals(settings.cache)) == []  # this process is alive
    assert write_lost_runs(settings) == ()

    assert write_lost_runs(settings, alive=lambda process: False) == ("killed",)

    found = load(tmp_path / "data", "trajectories").sort_values("sequence")
    assert list(found.attempt) == [1, 2]
    assert list(found.outcome) == ["cancelled", "cancelled"]
    assert [message["role"] for message in json.loads(found.messages.iloc[1])] == ["user", "assistant", "tool"]
    assert "\u2028" in json.loads(found.messages.iloc[0])[0]["content"]
    (row,) = load(tmp_path / "data", "repositories").to_dict("records")
    assert (row["outcome"], row["code"], row["stage"], row["input_tokens"], row["team"]) == (
        *("cancelled", "interrupted", "setup", 200, "llm:m1"),
    )
    assert list((settings.cache / "journals").iterdir()) == []
    assert write_lost_runs(settings, alive=lambda process: False) == ()


def test_a_process_that_is_really_killed(tmp_path):
    script = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_llm_mixing import killed
killed(Path({str(tmp_path)!r}))
print("written", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        settings = settings_with(tmp_path)
        assert write_lost_runs(settings) == ()
        process.kill()
        process.wait()
    assert write_lost_runs(settings) == ("killed",)
    assert len(load(tmp_path / "data", "trajectories")) == 2


def test_what_a_judge_asked_is_in_a_journal_too(tmp_path):
    settings = settings_with(tmp_path)
    write_head(settings.cache, settings.data, row_of("killed"))
    ledger = Ledger(SPEC, settings, run_id="killed")
    answer = says("", ("verdict", {"verdict": "matches", "quote": "hello", "reason": "it greets"}))
    session = ledger.judge(LlmJudge(ScriptedModel([answer]), RulesJudge()))
    goal = Goal(command="greet", description="says `hello` to whoever is there")
    assert session.judge(goal, CommandResult(command="greet", exit_code=0, output="hello")).verdict is Verdict.MATCHES
    assert ledger.judge(RulesJudge()).name == "rules"
    assert write_lost_runs(settings, alive=lambda process: False) == ("killed",)
    (row,) = load(settings.data, "trajectories").to_dict("records")
    assert (row["role"], row["model"], row["input_tokens"] > 0) == ("judge", "scripted", True)
    assert len(json.loads(row["messages"])) == 3


def test_the_next_attempt_is_told_how_the_earlier_ones_ended(tmp_path):
    ledger = Ledger(SPEC, settings_with(tmp_path))
    ledger.attempts += [
        attempt(1, "rules", "").model_copy(update={"outcome": Outcome.MISMATCH, "reason": "`make test`: 1 failed"}),
        attempt(2, "llm", "m1").model_copy(update={"reason": "no"}),
    ]
    assert ledger.lessons == ("Attempt 1 ended as mismatch: `make test`: 1 failed", "Attempt 2 ended as gave_up: no")


def test_rows_that_are_written_already_are_not_replaced_by_what_a_journal_says(tmp_path):
    settings = killed(tmp_path).settings
    write_run(tmp_path / "data", run("killed"))
    assert write_lost_runs(settings, alive=lambda process: False) == ()
    assert list(load(tmp_path / "data", "repositories").outcome) == ["verified"]
    assert list((settings.cache / "journals").iterdir()) == []


def test_rows_that_cannot_be_written_keep_their_journal(tmp_path):
    settings = killed(tmp_path).settings
    (tmp_path / "data").write_text("a file is in the way")
    assert write_lost_runs(settings, alive=lambda process: False) == ()
    assert len(list((settings.cache / "journals").iterdir())) == 3


def test_a_head_that_cannot_be_read_is_left_alone(tmp_path):
    settings = killed(tmp_path).settings
    (settings.cache / "journals" / "broken.json").write_text("{")
    assert write_lost_runs(settings, alive=lambda process: False) == ("killed",)
    assert [path.name for path in (settings.cache / "journals").iterdir()] == ["broken.json"]


def test_journals_are_for_their_owner_alone_and_go_with_their_run(tmp_path):
    settings = killed(tmp_path).settings
    modes = {path.stat().st_mode & 0o077 for path in (settings.cache / "journals").glob("*.jsonl")}
    assert modes == {0}
    remove_journals(settings.cache, "killed")
    assert list((settings.cache / "journals").iterdir()) == []


def test_a_journal_that_cannot_be_written_is_infrastructure(tmp_path):
    (tmp_path / "cache").write_text("a file is in the way")
    ledger = Ledger(SPEC, settings_with(tmp_path))
    with pytest.raises(StorageFailed, match="journal"), ledger.agent_run(Role.INSTALLER, 1) as journal:
        work(journal)


# --- Comparison


def team_run(data, run_id, team, repository, *, verified=True, **changes):
    write_run(
        data,
        run(run_id, repository=repository, verified=verified, configuration=team, team=team, **changes),
    )


def test_teams_are_compared_on_the_repositories_that_all_of_them_decided(tmp_path):
    spent = {"input_tokens": 900, "output_tokens": 100, "cost_usd": 1.5}
    team_run(tmp_path, "a1", "llm:m1", "https://h/a", attempts=1, **spent)
    team_run(tmp_path, "a2", "llm:m1", "https://h/b", attempts=3, **spent)
    team_run(tmp_path, "b1", "rules", "https://h/a")
    team_run(tmp_path, "b2", "rules", "https://h/b", verified=False)
    team_run(tmp_path, "b3", "rules", "https://h/only-rules", verified=False)
    team_run(tmp_path, "b4", "rules", "https://h/c", verified=False, outcome="infrastructure")
    team_run(tmp_path, "a4", "llm:m1", "https://h/c", **spent)

    found = compare_teams(tmp_path)

    assert found.repositories == 2
    model, rules = found.teams
    assert (model.team, model.ran, model.total, model.verified, model.yield_rate) == ("llm:m1", 3, 2, 2, 1.0)
    assert (model.attempts, model.tokens, model.cost_usd, model.held_out) == (2.0, 1000.0, 1.5, 5 / 7)
    assert (rules.team, rules.ran, rules.total, rules.verified, rules.yield_rate) == ("rules", 3, 2, 1, 0.5)
    assert (rules.seconds, rules.tokens) == (600.0, 0.0)


def test_the_last_run_of_a_team_counts(tmp_path):
    team_run(tmp_path, "a1", "llm:m1", "https://h/a", verified=False)
    team_run(tmp_path, "a2", "llm:m1", "https://h/a", finished_at=END.replace(year=2026))
    (team,) = compare_teams(tmp_path).teams
    assert (team.total, team.verified) == (1, 1)


def test_teams_without_a_common_repository_are_shown_as_such(tmp_path):
    team_run(tmp_path, "a1", "llm:m1", "https://h/a")
    team_run(tmp_path, "b1", "rules", "https://h/b", verified=False)
    found = compare_teams(tmp_path)
    assert found.repositories == 0
    assert [(team.team, team.total, team.tokens) for team in found.teams] == [("llm:m1", 1, 0.0), ("rules", 1, None)]


def test_rows_of_older_versions_are_teams_by_their_agents(tmp_path):
    write_run(tmp_path, run("old", agents={"goal_setter": "rules", "installer": "rules", "judge": "rules"}))
    assert [team.team for team in compare_teams(tmp_path).teams] == ["rules"]


def test_nothing_is_compared_where_nothing_ran(tmp_path):
    ensure_writable(tmp_path)
    assert compare_teams(tmp_path).teams == ()
    team_run(tmp_path, "a", "rules", "https://h/a", verified=False, outcome="infrastructure")
    assert compare_teams(tmp_path).teams == ()
