"""What set-up meets every day, each kind in a small repository of `tests/traps`: by the rules, on a real engine."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Assignment, Repository
from autoinstall.agents.rules.installer import RulesInstaller
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.attempts import set_up
from autoinstall.goals_file import read_goals
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.settings import LimitSettings, Settings, VerificationSettings
from autoinstall.tree import Tree
from autoinstall.values import Checkout, Goal, RepositorySpec
from autoinstall.verification import verify
from tests.conftest import committed

pytestmark = [pytest.mark.docker, pytest.mark.slow]

OWNER = "traps"
TRAPS = Path(__file__).resolve().parents[1] / "traps"
ATTEMPTS = 2
SETTINGS = Settings(limits=LimitSettings(idle_seconds=30), verification=VerificationSettings(runs=1))


@pytest.fixture(scope="module")
def patient() -> Iterator[DockerProvider]:
    """Sandboxes in which a command that hangs is ended soon."""
    provider = DockerProvider(SETTINGS)
    yield provider
    provider.close()


@pytest.mark.parametrize("name", sorted(path.name for path in TRAPS.iterdir() if path.is_dir()))
def test_the_rules_get_out_of(name: str, patient: DockerProvider, base: Snapshot, tmp_path: Path) -> None:
    source = committed(shutil.copytree(TRAPS / name / "repository", tmp_path / name))
    initial = patient.build_workspace_image(base.digest, source, labels={"autoinstall.test": "1"})
    checkout = Checkout(
        repository=f"https://example.org/traps/{name}",
        ref=None,
        commit=source.commit,
        commit_date=datetime.now(UTC),
        path=Path(source.path),
        size_bytes=0,
        file_count=0,
    )
    try:
        assert outcome(patient, initial, checkout, read_goals(TRAPS / name / "goals.json")) == "verified"
    finally:
        patient.release(OWNER)
        patient.remove_image(initial.reference)


def outcome(provider: DockerProvider, initial: Snapshot, checkout: Checkout, targets: tuple[Goal, ...]) -> str:
    """What comes of it in at most `ATTEMPTS` attempts; the reason in its place where it is not verified."""
    judge = RulesJudge()
    repository = Repository(url=checkout.repository, commit=checkout.commit, commit_date=checkout.commit_date)
    spec = RepositorySpec(url=checkout.repository, ref=checkout.commit)
    lessons: tuple[str, ...] = ()
    reason = ""
    for number in range(1, ATTEMPTS + 1):
        attempt = set_up(
            provider,
            RulesInstaller(SETTINGS, judge),
            judge,
            spec=spec,
            initial=initial,
            assignment=Assignment(repository=repository, targets=targets, attempt=number, lessons=lessons),
            tree=Tree(checkout.path),
            owner=OWNER,
        )
        lessons, reason = (*lessons, *attempt.report.lessons), attempt.reason or attempt.report.summary
        if attempt.snapshot is None:
            continue
        verification = verify(
            provider,
            attempt.snapshot.digest,
            attempt.report.recipe,
            targets,
            judge,
            settings=SETTINGS,
            owner=OWNER,
            checkout=checkout,
            report=attempt.report,
            changed=attempt.changed,
        )
        provider.remove_image(attempt.snapshot.reference)
        if verification.verified:
            return "verified"
        reason = f"{verification.outcome}: {verification.reason} {verification.output_tail[-500:]}"
    return reason
