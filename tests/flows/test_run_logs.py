"""What the domain logs is in the log of the run that it belongs to."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from autoinstall.runtime import Runtime
from autoinstall.values import RepositorySpec
from flows.build_environment import build_environment, run_name
from tasks.logs import logs_in_runs
from tasks.runtime import use_runtime
from tests.flows.conftest import INSTALL

pytestmark = pytest.mark.prefect


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record)


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
    assert f"{name}, attempt 1, " in install.getMessage()
    goals = [record for record in commands if vars(record)["command"].startswith("check part")]
    assert {vars(record)["purpose"] for record in goals} >= {"baseline", "verify-1", "verify-2", "held-out"}
    assert not any(hasattr(record, "attempt") for record in goals if vars(record)["purpose"] == "baseline")
    assert logging.getLogger("autoinstall").propagate  # nothing is left of it afterwards
    assert logging.getLogger("autoinstall").handlers == []


def test_outside_of_a_run_the_root_has_the_warnings(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("autoinstall.sandbox")
    with logs_in_runs(), logs_in_runs():
        logger.warning("The disk is low.")
        logger.info("A detail.")
    assert caplog.messages == ["The disk is low."]
