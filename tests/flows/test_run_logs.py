"""What the domain logs is in the log of the run that it belongs to."""

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autoinstall.agents.scripted import ScriptedInstaller, ScriptedJudge
from autoinstall.logs import LINE_CHARACTERS
from autoinstall.runtime import Runtime
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.values import CommandResult, Goal, Judgement, RepositorySpec
from flows import reports
from flows.build_environment import build_environment, run_name
from tasks.logs import logs_in_runs
from tasks.runtime import use_runtime
from tests.flows.conftest import INSTALL, INSTALLED, ten_goals

pytestmark = pytest.mark.prefect

GOALS = {goal.command for goal in ten_goals()}


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record)


class Repeats(ScriptedJudge):
    """Gives as the reason all that it was shown."""

    def judge(self, goal: Goal, result: CommandResult) -> Judgement:
        return super().judge(goal, result).model_copy(update={"reason": result.output})


@pytest.fixture
def task_log(monkeypatch: pytest.MonkeyPatch) -> Records:
    """The records that a task run's logger is given."""
    records = Records()
    # A handler would be dropped by the first flow run, which sets Prefect's logging up.
    monkeypatch.setattr(logging.getLogger("prefect.task_runs"), "handle", records.emit)
    return records


def test_commands_are_logged_with_repository_and_attempt(
    make_runtime: Callable[..., Runtime], repository: Path, task_log: Records
) -> None:
    with use_runtime(make_runtime()):
        build_environment(RepositorySpec(url=str(repository)), return_state=True)
    commands = [record for record in task_log.seen if hasattr(record, "command")]
    (install,) = [record for record in commands if record.command == INSTALL]  # type: ignore[attr-defined]
    name = run_name(str(repository))
    assert {field: vars(install)[field] for field in ("repository", "attempt", "exit_code", "task_run_name")} == {
        "repository": name,
        "attempt": 1,
        "exit_code": 0,
        "task_run_name": "set-up attempt 1",
    }
    assert f"{name}, attempt 1: exit code 0 after" in install.getMessage()
    goals = [record for record in commands if vars(record)["command"].startswith("check part")]
    assert {vars(record)["purpose"] for record in goals} >= {"baseline", "verify-1", "offline", "held-out"}
    assert not any(hasattr(record, "attempt") for record in goals if vars(record)["purpose"] == "baseline")
    own = [record.getMessage() for record in commands if vars(record)["command"] not in {INSTALL, *GOALS}]
    assert own == []  # with which the product looks at a sandbox
    assert logging.getLogger("autoinstall").propagate  # nothing is left of it afterwards
    assert logging.getLogger("autoinstall").handlers == []


def test_outside_of_a_run_the_root_has_the_warnings(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("autoinstall.sandbox")
    with logs_in_runs(), logs_in_runs():
        logger.warning("The disk is low.")
        logger.info("A detail.")
    assert caplog.messages == ["The disk is low."]


def test_floods_reach_neither_the_log_nor_the_page(
    make_runtime: Callable[..., Runtime],
    repository: Path,
    task_log: Records,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines of megabytes in what commands print, in the commands, and in what a judge says of them."""
    line, flood = "x" * 2 * 2**20, "one of many lines\n" * 100_000
    command = f"install {'y' * 2**20}"

    def install(call: Call) -> tuple[int, str]:
        call.sandbox.write_file(INSTALLED, b"yes")
        return 0, line

    def goal(call: Call) -> tuple[int, str]:
        return (0 if INSTALLED in call.sandbox.files and call.command.endswith("0") else 1), f"{flood}{line}"

    flow_log, pages = Records(), list[str]()
    monkeypatch.setattr(logging.getLogger("prefect.flow_runs"), "handle", flow_log.emit)
    monkeypatch.setattr(reports, "create_markdown_artifact", lambda markdown, **_: pages.append(markdown))
    provider = ScriptedProvider({command: install, re.compile("check part"): goal})
    installer = ScriptedInstaller([command])
    with use_runtime(make_runtime(provider=provider, installer=lambda _attempt: installer, judge=Repeats())):
        state = build_environment(RepositorySpec(url=str(repository)), return_state=True)
    lines = [record.getMessage() for record in (*task_log.seen, *flow_log.seen)]
    assert any("install yyy" in said for said in lines)
    assert max(map(len, lines)) < 2 * LINE_CHARACTERS
    assert len(lines) < 200
    assert len(state.message or "") <= LINE_CHARACTERS
    (page,) = pages
    assert len(page) < 50_000
    assert max(map(len, page.splitlines())) < 3 * reports.WORDS
