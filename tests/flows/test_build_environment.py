"""One repository through the flow, with scripted agents and sandboxes."""

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pandas as pd
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State

from autoinstall.agents.hardware import architecture
from autoinstall.agents.llm.goal_setter import LlmGoalSetter
from autoinstall.agents.llm.installer import LlmInstaller
from autoinstall.agents.llm.judge import LlmJudge
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.agents.scripted import ScriptedGoalSetter, ScriptedInstaller, ScriptedJudge
from autoinstall.datasets.records import RunRecords
from autoinstall.errors import EngineFailed, EngineUnavailable, ModelUnavailable
from autoinstall.models.scripted import ScriptedModel, says
from autoinstall.runtime import Runtime
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.settings import AgentSettings, ModelSettings, Settings
from autoinstall.values import Category, Goal, Outcome, RepositorySpec, Verdict
from flows.build_environment import build_environment, records_of, run_build
from tasks.policy import STAGE
from tasks.runtime import use_runtime
from tests.flows.conftest import INSTALL, ten_goals, works_once_installed

pytestmark = pytest.mark.prefect

MakeRuntime = Callable[..., Runtime]


def build(runtime: Runtime, spec: RepositorySpec) -> tuple[State, RunRecords]:
    with use_runtime(runtime):
        state = build_environment(spec, return_state=True)
    return state, records_of(state)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without their delay."""
    from tasks import clone, goal_setting, publishing, setup, verification

    for module in (clone, goal_setting, publishing, setup, verification):
        for name, value in vars(module).items():
            if hasattr(value, "retry_delay_seconds"):
                monkeypatch.setattr(module, name, value)
                monkeypatch.setattr(value, "retry_delay_seconds", 0)
    assert STAGE["retries"] > 0


def test_a_repository_becomes_an_environment(make_runtime: MakeRuntime, repository: Path, data: Path) -> None:
    state, records = build(make_runtime(), RepositorySpec(url=str(repository)))

    row = records.repository
    assert (row.outcome, row.attempts, state.name) == (Outcome.VERIFIED, 1, "Verified"), row.reason
    assert (row.held_out_passed, row.held_out_total, row.offline_ok, row.needs_setup) == (7, 7, True, True)
    assert records.environment is not None
    assert records.environment.rebuild_ok is True
    assert f"RUN {INSTALL}\n" in (records.environment.dockerfile or "")
    assert records.environment.platform == f"linux/{architecture()}"
    environments = pd.read_parquet(data / "environments")
    assert list(environments.environment_id) == [row.environment_id]
    assert len(pd.read_parquet(data / "goals")) == 10
    assert pd.read_parquet(data / "goals").target.sum() == 3
    assert len(pd.read_parquet(data / "attempts")) == 1
    assert set(pd.read_parquet(data / "trajectories").role) == {"goal_setter", "installer"}


def test_the_installer_sees_the_targets_and_none_of_the_held_out_goals(
    make_runtime: MakeRuntime, repository: Path
) -> None:
    installer = ScriptedInstaller([INSTALL])
    _, records = build(make_runtime(installer=lambda _: installer), RepositorySpec(url=str(repository)))

    targets = {goal.command for goal in records.goals if goal.target}
    held_out = {goal.command for goal in records.goals if not goal.target}
    (assignment,) = installer.assignments
    assert {goal.command for goal in assignment.targets} == targets
    assert not any(command in assignment.model_dump_json() for command in held_out)
    assert records.repository.seed == 0


def test_verdicts_come_from_fresh_sandboxes_of_the_committed_image(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider
) -> None:
    build(make_runtime(), RepositorySpec(url=str(repository)))

    snapshot, rebuilt = provider.snapshots
    assert provider.image_exists(snapshot.digest)
    assert not provider.image_exists(rebuilt.digest)
    by_purpose = {sandbox.spec.purpose: sandbox.spec for sandbox in provider.opened}
    assert "verify-2" not in by_purpose
    for purpose in ("verify-1", "held-out", "offline"):
        assert by_purpose[purpose].image == snapshot.digest
    assert by_purpose["attempt-1"].image != snapshot.digest
    assert not by_purpose["offline"].network
    assert all(sandbox.closed for sandbox in provider.opened)


def test_five_attempts_from_the_initial_state_then_discarded(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider, data: Path
) -> None:
    installer = ScriptedInstaller(["something useless"])
    state, records = build(make_runtime(installer=lambda _: installer), RepositorySpec(url=str(repository)))

    assert (records.repository.outcome, records.repository.attempts) == (Outcome.MISMATCH, 5)
    assert (state.name, state.type.value) == ("Discarded", "COMPLETED")
    attempts = [sandbox.spec for sandbox in provider.opened if sandbox.spec.purpose.startswith("attempt-")]
    assert len({spec.image for spec in attempts}) == 1
    assert [spec.purpose for spec in attempts] == [f"attempt-{number}" for number in range(1, 6)]
    assert provider.snapshots == []  # no commit for an attempt that fails the cheap check
    assert len(pd.read_parquet(data / "attempts")) == 5
    assert pd.read_parquet(data / "environments").empty


def test_lessons_reach_the_next_attempt_and_no_state_does(make_runtime: MakeRuntime, repository: Path) -> None:
    installer = ScriptedInstaller(["exit 1"], [INSTALL])
    provider_answers = make_runtime().provider
    assert isinstance(provider_answers, ScriptedProvider)
    provider_answers.responses["exit 1"] = 1
    _, records = build(make_runtime(installer=lambda _: installer), RepositorySpec(url=str(repository)))

    assert [attempt.outcome for attempt in records.attempts] == [Outcome.GAVE_UP, Outcome.VERIFIED]
    assert installer.assignments[0].lessons == ()
    assert any("exit 1" in lesson for lesson in installer.assignments[1].lessons)


def test_an_installer_that_knows_nothing_else_ends_the_attempts(make_runtime: MakeRuntime, repository: Path) -> None:
    installer = ScriptedInstaller(["something useless"], exhausted=True)
    _, records = build(make_runtime(installer=lambda _: installer), RepositorySpec(url=str(repository)))
    assert records.repository.attempts == 1


def test_attempts_go_on_with_another_agent_where_one_knows_nothing_else(
    make_runtime: MakeRuntime, repository: Path, settings: Settings
) -> None:
    agents = AgentSettings(installer=("rules", "rules", "llm"))
    model = ModelSettings(name="m1", base_url="http://127.0.0.1:9/v1")
    settings = settings.model_copy(update={"agents": agents, "model": model})
    rules, other = ScriptedInstaller(["something useless"], exhausted=True), ScriptedInstaller([INSTALL])
    runtime = make_runtime(settings=settings, installer=lambda number: rules if number < 3 else other)
    _, records = build(runtime, RepositorySpec(url=str(repository)))

    assert [(attempt.attempt, attempt.outcome) for attempt in records.attempts] == [
        (1, Outcome.MISMATCH),
        (3, Outcome.VERIFIED),
    ]
    assert records.repository.team == "goals rules; set-up rules, llm:m1; judge rules"


def test_models_play_all_roles(
    make_runtime: MakeRuntime, repository: Path, settings: Settings, provider: ScriptedProvider, data: Path
) -> None:
    """Goal-setter, installer and judge by scripted models; the endpoint fails once, and once an attempt fails."""
    agents = AgentSettings(goal_setter="llm", installer=("llm",), judge="llm")
    model = ModelSettings(name="m1", base_url="http://127.0.0.1:9/v1")
    settings = settings.model_copy(update={"agents": agents, "model": model})
    quoted = {re.compile(r"^check part"): lambda call: "part is fine" if works_once_installed(call) == 0 else 1}
    provider.responses = {INSTALL: provider.responses[INSTALL], **quoted}
    drafts = [
        {
            "command": f"check part {index}",
            "category": ("build", "run", "lint")[index % 3],
            "description": "says `part is fine` once everything is installed",
            "evidence_path": "main.py",
            "evidence_line": 1,
        }
        for index in range(10)
    ]
    setter = ScriptedModel([says("", ("submit", {"goals": drafts}))])
    hopeless = says("", ("give_up", {"reason": "no idea", "lessons": ["nothing helps"]}))
    good = says("", ("bash", {"command": INSTALL})), says("", ("submit", {"summary": "installed"}))
    worker = ScriptedModel([says("", ("bash", {"command": "ls"})), ModelUnavailable("gone"), hopeless, *good])
    opinion = {"verdict": "matches", "quote": "part is fine", "reason": "it says so"}
    doubter = ScriptedModel([says("", ("verdict", opinion))], repeat=True)
    runtime = make_runtime(
        settings=settings,
        goal_setter=LlmGoalSetter(settings, setter, RulesJudge()),
        installer=lambda _: LlmInstaller(settings, worker, RulesJudge()),
        judge=LlmJudge(doubter, RulesJudge()),
    )
    _, records = build(runtime, RepositorySpec(url=str(repository)))

    row = records.repository
    assert (row.outcome, row.attempts, row.infrastructure_failures) == (Outcome.VERIFIED, 2, 1), row.reason
    assert (row.team, row.agents.installer, row.agents.judge_model) == ("llm:m1", "llm", "scripted")
    assert "nothing helps" in worker.requests[-1].messages[1].content
    trajectories = pd.read_parquet(data / "trajectories").sort_values("sequence")
    found = list(zip(trajectories.role, trajectories.attempt.fillna(0), trajectories.outcome, strict=True))
    assert found[:4] == [
        ("goal_setter", 0, "verified"),
        ("installer", 1, "gave_up"),
        ("installer", 2, "verified"),
        ("installer", 1, "infrastructure"),
    ]
    assert {role for role, _, _ in found[4:]} == {"judge"}
    assert row.input_tokens == trajectories.input_tokens.sum() > 0
    assert len(doubter.requests) == 10  # the ten goals; further runs of the targets printed the same
    assert not list((settings.cache / "journals").iterdir())


def test_infrastructure_is_retried_and_not_charged(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider
) -> None:
    failures = [EngineFailed("The engine stumbled."), EngineFailed("The engine stumbled again.")]

    def stumbles(call: Call) -> int:
        if failures:
            raise failures.pop()
        call.sandbox.write_file("/opt/installed", b"yes")
        return 0

    provider.responses[INSTALL] = stumbles
    _, records = build(make_runtime(), RepositorySpec(url=str(repository)))

    assert (records.repository.outcome, records.repository.attempts) == (Outcome.VERIFIED, 1)
    assert records.repository.infrastructure_failures == 2


def test_infrastructure_that_stays_is_a_row_of_its_own(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider, data: Path
) -> None:
    provider.responses[INSTALL] = EngineUnavailable("No engine answers.", hint="Start one.")
    state, records = build(make_runtime(), RepositorySpec(url=str(repository)))

    row = records.repository
    assert (row.outcome, row.code, row.attempts, row.stage) == (
        Outcome.INFRASTRUCTURE,
        "engine_unavailable",
        0,
        "setup",
    )
    assert (state.name, state.type.value) == ("Infrastructure", "FAILED")
    assert list(pd.read_parquet(data / "repositories").outcome) == ["infrastructure"]


def test_a_defect_is_a_row_and_not_a_crash(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider, data: Path
) -> None:
    provider.responses[INSTALL] = ZeroDivisionError("oops")
    _, records = build(make_runtime(), RepositorySpec(url=str(repository)))
    assert (records.repository.outcome, records.repository.code) == (Outcome.INFRASTRUCTURE, "internal_error")
    assert "ZeroDivisionError" in records.repository.reason
    assert len(pd.read_parquet(data / "repositories")) == 1


def test_an_interrupted_run_is_a_row(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider, data: Path
) -> None:
    provider.responses[INSTALL] = _interrupt
    state, records = build(make_runtime(), RepositorySpec(url=str(repository)))
    assert (state.type.value, records.repository.code) == ("CANCELLED", "cancelled")
    assert list(pd.read_parquet(data / "repositories").outcome) == ["cancelled"]
    assert all(sandbox.closed for sandbox in provider.opened)


def _interrupt(call: Call) -> int:
    raise KeyboardInterrupt


def test_differing_runs_are_flaky(make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider) -> None:
    def works_in_the_first_only(call: Call) -> int:
        return 1 if call.sandbox.spec.purpose in ("offline", "verify-2") else works_once_installed(call)

    provider.responses = {
        INSTALL: provider.responses[INSTALL],
        re.compile(r"^check part"): works_in_the_first_only,
    }
    _, records = build(make_runtime(), RepositorySpec(url=str(repository)))
    assert {attempt.outcome for attempt in records.attempts} == {Outcome.FLAKY}


def test_a_judge_that_breaks_makes_the_verdict_unknown(make_runtime: MakeRuntime, repository: Path) -> None:
    def breaks(goal: Goal, result: object) -> Verdict:
        raise RuntimeError("judge broke")

    state, records = build(make_runtime(judge=ScriptedJudge(breaks)), RepositorySpec(url=str(repository)))
    assert records.repository.outcome is Outcome.UNKNOWN
    assert state.name == "Unknown"


@pytest.mark.parametrize(
    ("goals", "complaint"),
    [
        (ten_goals()[:9], "9"),
        ((*ten_goals()[:9], ten_goals()[0]), "same command"),
        ((*ten_goals()[:9], Goal(command="vim", description="opens the editor with the main file")), "vim"),
    ],
)
def test_a_bad_proposal_is_asked_for_again_and_then_discarded(
    make_runtime: MakeRuntime, repository: Path, goals: tuple[Goal, ...], complaint: str
) -> None:
    goal_setter = ScriptedGoalSetter(goals)
    _, records = build(make_runtime(goal_setter=goal_setter), RepositorySpec(url=str(repository)))

    assert records.repository.outcome is Outcome.BAD_PROPOSAL
    assert len(goal_setter.asked) == 3
    assert goal_setter.asked[0][1] == ""
    assert complaint in goal_setter.asked[1][1]


def test_trivial_goals_are_asked_for_again(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider
) -> None:
    trivial = ten_goals("already fine:")
    provider.responses[re.compile(r"^already fine")] = 0
    goal_setter = ScriptedGoalSetter(trivial, ten_goals())
    _, records = build(make_runtime(goal_setter=goal_setter), RepositorySpec(url=str(repository)))

    assert records.repository.outcome is Outcome.VERIFIED
    assert len(goal_setter.asked) == 2
    assert set(goal_setter.asked[1][0]) == {goal.command for goal in trivial}


def test_a_repository_that_needs_no_setup_is_marked(
    make_runtime: MakeRuntime, repository: Path, provider: ScriptedProvider
) -> None:
    provider.responses[re.compile(r"^already fine")] = 0
    goal_setter = ScriptedGoalSetter(ten_goals("already fine:"))
    _, records = build(make_runtime(goal_setter=goal_setter), RepositorySpec(url=str(repository)))
    assert (records.repository.outcome, records.repository.needs_setup) == (Outcome.VERIFIED, False)


def test_goals_of_the_user_are_the_targets(make_runtime: MakeRuntime, repository: Path) -> None:
    goals = (Goal(command="check part 1", description="says that the first part works", category=Category.OTHER),)
    goal_setter = ScriptedGoalSetter(ten_goals())
    _, records = build(make_runtime(goal_setter=goal_setter), RepositorySpec(url=str(repository), goals=goals))

    assert records.repository.outcome is Outcome.VERIFIED
    assert goal_setter.asked == []
    assert [target.command for target in records.repository.targets] == ["check part 1"]
    assert records.repository.held_out_total is None


@pytest.mark.parametrize(
    ("where", "outcome"),
    [
        (("ext::sh -c id", None), Outcome.INVALID_URL),
        (("/nowhere/at/all", None), Outcome.AUTH_OR_NOT_FOUND),
        ((None, "no-such-branch"), Outcome.COMMIT_NOT_FOUND),
        ((None, "0" * 40), Outcome.COMMIT_NOT_FOUND),
    ],
)
def test_what_cannot_be_cloned_is_a_row(
    make_runtime: MakeRuntime, repository: Path, data: Path, where: tuple[str | None, str | None], outcome: Outcome
) -> None:
    url, ref = where
    state, records = build(make_runtime(), RepositorySpec(url=url or str(repository), ref=ref))
    assert (records.repository.outcome, records.repository.stage, state.name) == (outcome, "clone", "Discarded")
    assert records.repository.reason
    assert len(pd.read_parquet(data / "repositories")) == 1


def test_a_token_in_the_url_reaches_nobody_but_git(settings: Settings, data: Path) -> None:
    secret = "tok3n-of-the-user"
    spec = RepositorySpec(url=f"http://user:{secret}@127.0.0.1:1/owner/name", ref="main")

    records = run_build(spec, data=data, settings=settings)

    assert records.repository.repository == "http://127.0.0.1:1/owner/name"
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs()
        logs = client.read_logs()
    assert any(run.id == UUID(str(records.repository.flow_run_id)) for run in runs)
    assert secret not in str([run.parameters for run in runs]) + str([log.message for log in logs])
    assert not [path for path in data.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_control_characters_of_a_url_are_spelled_out(make_runtime: MakeRuntime, data: Path) -> None:
    _, records = build(make_runtime(), RepositorySpec(url="https://example.org/a/b\x1b[31m\nX"))
    assert records.repository.outcome is Outcome.INVALID_URL
    assert records.repository.repository == "https://example.org/a/b\\x1b[31m\\nX"
