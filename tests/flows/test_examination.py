"""What the doctor finds about Prefect."""

import uuid
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from autoinstall.doctor import Check, Status
from autoinstall.settings import OrchestrationSettings, Settings
from flows.examination import DEPLOYMENTS, examine_prefect

pytestmark = pytest.mark.prefect


@pytest.fixture
def named(settings: Settings) -> Settings:
    """Settings whose limits no other test makes."""
    name = uuid.uuid4().hex[:8]
    limits = OrchestrationSettings(run_limit=f"runs-{name}", model_limit=f"calls-{name}")
    return settings.model_copy(update={"orchestration": limits})


def by_name(checks: tuple[Check, ...]) -> dict[str, list[Check]]:
    return {check.name: [other for other in checks if other.name == check.name] for check in checks}


def test_a_server_that_answers_and_limits_that_are_or_are_not_there(named: Settings) -> None:
    with get_client(sync_client=True) as client:
        client.create_global_concurrency_limit(
            GlobalConcurrencyLimitCreate(name=named.orchestration.run_limit, limit=7)
        )
    found = by_name(examine_prefect(named))
    assert [check.status for check in found["prefect"]] == [Status.OK]
    assert "version 3." in found["prefect"][0].detail
    there, absent = found["limits"]
    assert there.status is Status.OK
    assert "0 of 7 in use" in there.detail
    assert absent.status is Status.WARN
    assert named.orchestration.model_limit in absent.detail
    assert "apply.py" in absent.hint
    assert [check.detail.split()[0] for check in found["deployments"]] == list(DEPLOYMENTS)


def test_a_server_that_is_not_there(settings: Settings) -> None:
    with temporary_settings({PREFECT_API_URL: "http://user:hidden@127.0.0.1:9/api"}):
        (check,) = examine_prefect(settings)
    assert check.status is Status.FAIL
    assert "127.0.0.1:9" in check.detail
    assert "hidden" not in check.detail
    assert "PREFECT_API_URL" in check.hint


def test_no_server_at_all(settings: Settings, tmp_path: Path) -> None:
    with temporary_settings({PREFECT_HOME: tmp_path / "home"}, restore_defaults={PREFECT_API_URL}):
        (check,) = examine_prefect(settings)
    assert check.status is Status.OK
    assert str(tmp_path / "home") in check.detail
