from datetime import UTC, datetime, timedelta

from autoinstall.datasets.writer import write_run
from autoinstall.retention import KnownEnvironment, expired, known_environments, names_of
from autoinstall.settings import RetentionSettings
from tests.unit.dataset_rows import run

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def known(name: str, repository: str, days: float) -> KnownEnvironment:
    finished = NOW - timedelta(days=days)
    return KnownEnvironment(
        environment_id=name,
        repository=repository,
        finished_at=finished,
        image=f"i:{name}",
        image_digest=f"sha256:{name}",
    )


ALL = [known("a3", "a", 3), known("a1", "a", 1), known("a2", "a", 2), known("b9", "b", 9)]


def ids(**settings: float) -> list[str]:
    return [one.environment_id for one in expired(ALL, RetentionSettings(**settings), NOW)]  # type: ignore[arg-type]


def test_nothing_expires_unless_the_settings_say_so() -> None:
    assert ids() == []


def test_the_newest_of_each_repository_are_kept() -> None:
    assert ids(environments=1) == ["a3", "a2"]
    assert ids(environments=3) == []


def test_old_ones_expire() -> None:
    assert ids(environment_days=2.5) == ["b9", "a3"]
    assert ids(environment_days=2.5, environments=1) == ["b9", "a3", "a2"]


def test_environments_are_known_by_their_rows(tmp_path) -> None:
    write_run(tmp_path, run("r1"))
    (one,) = known_environments(tmp_path)
    assert one.environment_id == run("r1").environment.environment_id
    assert names_of([one]) == {name for name in (one.image, one.image_digest) if name}
