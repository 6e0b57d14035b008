import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.baseline import baseline
from autoinstall.errors import SandboxLost
from autoinstall.sandbox.contract import WorkspaceSource
from autoinstall.sandbox.scripted import Answer, Call, ScriptedProvider
from autoinstall.settings import Settings
from autoinstall.values import (
    Category,
    Checkout,
    CommandResult,
    Goal,
    Judgement,
    Outcome,
    Probe,
    ProbeKind,
    Recipe,
    Service,
    Verdict,
)
from autoinstall.verification import HELD_OUT, OFFLINE, check_live, fresh_spec, held_out, offline, verify

TEST = Goal(command="pytest", description="All tests of it pass", category=Category.TEST)
RUN = Goal(command="tool", description='Prints "ready" at the end', category=Category.RUN)
SETUP = Goal(command="pip install .", description="The package is installed", category=Category.SETUP)
PASSING = {"pytest": "3 passed in 0.1s", "tool": "ready"}
SERVICE = Service(name="web", command="serve", probe=Probe(kind=ProbeKind.TCP, target="80"))


class BrokenJudge:
    name = "broken"

    def judge(self, goal: Goal, result: CommandResult) -> Judgement:
        raise KeyError("token=https://user:secret@host")


def run_verify(
    provider: ScriptedProvider, *goals: Goal, recipe: Recipe | None = None, judge: object = None, runs: int = 2
):
    settings = Settings(verification={"runs": runs}, _env_file=None)
    image = provider.ensure_base().digest
    return verify(
        provider, image, recipe or Recipe(), goals or (TEST, RUN), judge or RulesJudge(), settings=settings, owner="me"
    )


def test_targets_that_match_twice_are_verified() -> None:
    provider = ScriptedProvider(PASSING)
    verification = run_verify(provider)
    assert verification.outcome is Outcome.VERIFIED
    assert verification.verified
    assert [len(run) for run in verification.runs] == [2, 2]
    assert len(provider.opened) == 2
    assert provider.opened[0] is not provider.opened[1]
    assert {sandbox.spec.owner for sandbox in provider.opened} == {"me"}
    assert all(sandbox.closed for sandbox in provider.opened)
    assert provider.opened[0].spec.image.startswith("sha256:")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("2 passed, 1 failed in 0.1s", Outcome.MISMATCH),
        ((1, "3 passed in 0.1s"), Outcome.MISMATCH),
        ("who knows", Outcome.UNKNOWN),
        (CommandResult(command="pytest", exit_code=124, output="", timed_out=True), Outcome.TIMEOUT),
        (CommandResult(command="pytest", exit_code=137, output="", out_of_memory=True), Outcome.OUT_OF_MEMORY),
    ],
)
def test_outcomes_are_kept_apart(answer: Answer, outcome: Outcome) -> None:
    verification = run_verify(ScriptedProvider({**PASSING, "pytest": answer}))
    assert verification.outcome is outcome
    assert verification.failing_command == "pytest"
    assert verification.reason.startswith("pytest: ")
    assert not verification.results[0].matches


def test_what_ended_by_time_is_not_run_again() -> None:
    slow = CommandResult(command="pytest", exit_code=124, output="", timed_out=True)
    provider = ScriptedProvider({**PASSING, "pytest": slow})
    run_verify(provider)
    assert len(provider.opened) == 1


@pytest.mark.parametrize("order", [("3 passed in 0.1s", "1 failed in 0.1s"), ("1 failed in 0.1s", "3 passed in 0.1s")])
def test_differing_verdicts_are_flaky(order: tuple[str, str]) -> None:
    answers = itertools.cycle(order)
    verification = run_verify(ScriptedProvider({**PASSING, "pytest": lambda _: next(answers)}))
    assert verification.outcome is Outcome.FLAKY
    assert verification.failing_command == "pytest"
    assert "1 failed" in verification.output_tail


def test_a_judge_that_crashes_is_undecided_and_tells_no_secret() -> None:
    verification = run_verify(ScriptedProvider(PASSING), judge=BrokenJudge())
    assert verification.outcome is Outcome.UNKNOWN
    assert "secret" not in verification.reason


def test_a_start_script_that_does_not_come_up_is_the_attempts_failure() -> None:
    provider = ScriptedProvider(PASSING, not_ready={"web"})
    verification = run_verify(provider, recipe=Recipe(services=(SERVICE,)))
    assert verification.outcome is Outcome.MISMATCH
    assert verification.code == "service_not_ready"
    assert len(provider.opened) == 1


def test_a_lost_sandbox_is_nobodys_verdict() -> None:
    with pytest.raises(SandboxLost):
        run_verify(ScriptedProvider({"pytest": SandboxLost("gone")}))


def test_nothing_to_verify_is_no_success() -> None:
    provider = ScriptedProvider(PASSING)
    image = provider.ensure_base().digest
    verification = verify(provider, image, Recipe(), (), RulesJudge(), settings=Settings(_env_file=None))
    assert verification.outcome is Outcome.UNKNOWN


def test_a_tampered_image_is_not_run(tmp_path: Path, make_checkout: Callable[[Path], Checkout]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_a(): assert f() == 1\n")
    provider = ScriptedProvider(PASSING)
    initial = provider.build_workspace_image(
        provider.ensure_base().digest, WorkspaceSource(path=str(tmp_path), commit="a" * 40), labels={}
    )
    from autoinstall.sandbox.contract import SandboxSpec

    with provider.open(SandboxSpec(image=initial.digest)) as sandbox:
        sandbox.write_file("tests/test_a.py", b"def test_a(): pass\n")
        snapshot = sandbox.snapshot()
        changed = sandbox.changed_paths()
    arguments = {"settings": Settings(_env_file=None), "checkout": make_checkout(tmp_path)}
    verification = verify(provider, snapshot.digest, Recipe(), (TEST,), RulesJudge(), changed=changed, **arguments)
    assert verification.outcome is Outcome.TAMPERED
    assert verification.code == "test_changed"
    assert "tests/test_a.py" in verification.reason


@pytest.mark.parametrize(("runs_them", "outcome"), [(True, Outcome.VERIFIED), (False, Outcome.TAMPERED)])
def test_tests_that_can_only_fail_must_not_pass(
    tmp_path: Path, make_checkout: Callable[[Path], Checkout], *, runs_them: bool, outcome: Outcome
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_a(): assert f() == 1\n")

    def respond(call: Call) -> Answer:
        failing = b"raise" in call.sandbox.files["/workspace/tests/test_a.py"].content
        return (1, "1 failed in 0.1s") if failing and runs_them else "1 passed in 0.1s"

    provider = ScriptedProvider({"pytest": respond})
    initial = provider.build_workspace_image(
        provider.ensure_base().digest, WorkspaceSource(path=str(tmp_path), commit="a" * 40), labels={}
    )
    arguments = {"checkout": make_checkout(tmp_path), "changed": ()}
    settings = Settings(_env_file=None)
    verification = verify(provider, initial.digest, Recipe(), (TEST,), RulesJudge(), settings=settings, **arguments)
    assert verification.outcome is outcome
    assert verification.code == ("" if runs_them else "forged")
    trusting = Settings(verification={"control": False}, _env_file=None)
    assert verify(provider, initial.digest, Recipe(), (TEST,), RulesJudge(), settings=trusting, **arguments).verified


def test_the_baseline_uses_an_untouched_sandbox_for_each_goal() -> None:
    def touch(call: Call) -> Answer:
        call.sandbox.write_file("/workspace/build/x", b"")
        return "built"

    def harmless(call: Call) -> Answer:
        call.sandbox.write_file("/tmp/x", b"")
        call.sandbox.write_file("/root/.cache/pip/x", b"")
        return "ready"

    build = Goal(command="make", description="The sources are compiled", category=Category.BUILD)
    provider = ScriptedProvider(
        {
            re.compile("status --porcelain"): lambda call: (
                "?? build/" if "/workspace/build/x" in call.sandbox.files else ""
            ),
            "make": touch,
            "tool": harmless,
            "pytest": (127, "bash: line 1: pytest: command not found"),
        }
    )
    goals = (SETUP, RUN, build, TEST)
    results = baseline(provider, provider.ensure_base().digest, goals, RulesJudge(), settings=Settings(_env_file=None))
    assert [result.goal for result in results] == list(goals)
    assert [result.judgement.verdict for result in results] == [
        Verdict.UNKNOWN,
        Verdict.MATCHES,
        Verdict.MATCHES,
        Verdict.MISMATCH,
    ]
    run = [[command for command in sandbox.commands if "status" not in command] for sandbox in provider.opened]
    assert run == [["tool", "make"], ["pytest"]]


@pytest.mark.parametrize(
    ("command", "answer", "looked"),
    [
        ("pytest -q", (127, "bash: line 1: pytest: command not found"), False),
        ("python -m pytest", (1, "/usr/bin/python: No module named pytest"), False),
        ("python -c 'import x'", (1, "Traceback …\nModuleNotFoundError: No module named 'x'"), False),
        ("make; pytest", (127, "bash: line 1: pytest: command not found"), True),
        ("npm test", (127, "> jest\n\nbash: line 1: jest: command not found"), True),
        ("pytest -q", (1, "1 failed in 0.1s"), True),
        ("python -m pytest", (1, "built" * 300 + "\n/usr/bin/python: No module named pytest"), True),
    ],
)
def test_what_was_not_even_there_left_nothing(command: str, answer: tuple[int, str], looked: bool) -> None:
    provider = ScriptedProvider({command: answer})
    goal = Goal(command=command, description="All tests of it pass", category=Category.TEST)
    baseline(provider, provider.ensure_base().digest, (goal,), RulesJudge(), settings=Settings(_env_file=None))
    assert [call for call in provider.opened[0].commands if "-newercc" in call] == (
        [provider.opened[0].commands[-1]] if looked else []
    )


def test_the_next_sandbox_is_prepared_while_one_runs() -> None:
    seen: list[list[str]] = []
    provider = ScriptedProvider(default=lambda call: seen.append([spec.purpose for spec in provider.prepared]) or "")
    provider.responses |= {
        "pytest": lambda call: seen.append([spec.purpose for spec in provider.prepared]) or "3 passed in 0.1s"
    }
    image = provider.ensure_base().digest
    then = fresh_spec(image, HELD_OUT, recipe=Recipe(), owner="me")
    settings = Settings(verification={"runs": 2}, _env_file=None)
    assert verify(provider, image, Recipe(), (TEST,), RulesJudge(), settings=settings, owner="me", then=then).verified
    assert seen == [["verify-2"], ["held-out"]]
    offline_spec = fresh_spec(image, OFFLINE, recipe=Recipe(), owner="me")
    held_out(provider, image=image, recipe=Recipe(), goals=(TEST,), judge=RulesJudge(), owner="me", then=offline_spec)
    assert seen[2:] == [["offline"]]
    assert not offline_spec.network
    offline(provider, image=image, recipe=Recipe(), goals=(TEST,), judge=RulesJudge(), owner="me")
    assert provider.prepared == []


@pytest.mark.parametrize(
    ("answers", "ok", "networks", "outcome"),
    [
        ({}, True, [True, False], Outcome.VERIFIED),
        ({"offline": (1, "Network is unreachable")}, False, [True, False, True], Outcome.VERIFIED),
        ({"offline": 1, "verify-2": 1}, None, [True, False, True], Outcome.FLAKY),
        ({"verify-1": 1}, None, [True, True], Outcome.FLAKY),
    ],
)
def test_the_last_run_may_be_without_a_network(
    answers: dict[str, Answer], ok: bool | None, networks: list[bool], outcome: Outcome
) -> None:
    provider = ScriptedProvider(
        {"pytest": lambda call: answers.get(call.sandbox.spec.purpose, "3 passed in 0.1s")},
    )
    settings = Settings(_env_file=None)
    image = provider.ensure_base().digest
    verification = verify(provider, image, Recipe(), (TEST,), RulesJudge(), settings=settings, cut_off=True)
    assert verification.outcome is outcome
    assert [sandbox.spec.network for sandbox in provider.opened] == networks
    assert len(verification.runs) == 2
    assert (verification.offline.ok if verification.offline and verification.verified else None) is ok


def test_one_run_alone_has_a_network() -> None:
    provider = ScriptedProvider({"pytest": "3 passed in 0.1s"})
    settings = Settings(verification={"runs": 1}, _env_file=None)
    image = provider.ensure_base().digest
    verification = verify(provider, image, Recipe(), (TEST,), RulesJudge(), settings=settings, cut_off=True)
    assert verification.verified
    assert verification.offline is None
    assert [sandbox.spec.network for sandbox in provider.opened] == [True]


def test_no_goal_takes_long_in_the_baseline() -> None:
    seen = []
    provider = ScriptedProvider({"pytest": lambda call: seen.append(call.timeout) or "3 passed in 0.1s"})
    goals = (TEST, TEST.model_copy(update={"timeout": 20.0}))
    baseline(provider, provider.ensure_base().digest, goals, RulesJudge(), settings=Settings(_env_file=None))
    assert seen == [180.0, 20.0]


def test_the_live_check_ends_at_the_first_failure() -> None:
    provider = ScriptedProvider({"pytest": 1})
    from autoinstall.sandbox.contract import SandboxSpec

    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        assert [result.matches for result in check_live(sandbox, (TEST, RUN), RulesJudge())] == [False]


def test_held_out_goals_run_once_with_set_up_goals_last() -> None:
    provider = ScriptedProvider({**PASSING, "pip install .": 0})
    results = held_out(
        provider, image=provider.ensure_base().digest, recipe=Recipe(), goals=(SETUP, TEST), judge=RulesJudge()
    )
    assert [result.goal for result in results] == [SETUP, TEST]
    assert provider.opened[0].commands == ["pytest", "pip install ."]
    assert held_out(provider, image="none", recipe=Recipe(), goals=(), judge=RulesJudge()) == ()


@pytest.mark.parametrize(
    ("answer", "ok"), [("3 passed in 0.1s", True), ((1, "no network"), False), ("who knows", None)]
)
def test_offline(answer: Answer, ok: bool | None) -> None:
    provider = ScriptedProvider({"pytest": answer})
    result = offline(provider, image=provider.ensure_base().digest, recipe=Recipe(), goals=(TEST,), judge=RulesJudge())
    assert result.ok is ok
    assert provider.opened[0].spec.network is False


def test_offline_with_a_service_that_does_not_come_up() -> None:
    provider = ScriptedProvider(PASSING, not_ready={"web"})
    recipe = Recipe(services=(SERVICE,))
    assert (
        offline(provider, image=provider.ensure_base().digest, recipe=recipe, goals=(TEST,), judge=RulesJudge()).ok
        is False
    )


@pytest.fixture
def make_checkout() -> Callable[[Path], Checkout]:
    def make(path: Path) -> Checkout:
        return Checkout(
            repository="https://x.example/y",
            ref=None,
            commit="a" * 40,
            commit_date="2024-01-01T00:00:00Z",
            path=path,
            size_bytes=1,
            file_count=1,
        )

    return make


def test_the_baseline_as_a_whole_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoinstall.baseline.BASELINE_TOTAL_SECONDS", -1.0)
    provider = ScriptedProvider(PASSING)
    results = baseline(
        provider, provider.ensure_base().digest, (TEST, RUN), RulesJudge(), settings=Settings(_env_file=None)
    )
    assert [result.judgement.verdict for result in results] == [Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert provider.opened == []
