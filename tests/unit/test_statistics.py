from datetime import timedelta

import pytest
from dataset_rows import END, run

from autoinstall.datasets.statistics import yield_statistics
from autoinstall.datasets.writer import ensure_writable, write_run


def test_nothing_yet_gives_zeros(tmp_path):
    ensure_writable(tmp_path)
    for data in (tmp_path, tmp_path / "absent"):
        statistics = yield_statistics(data)
        assert statistics.total == 0
        assert statistics.yield_rate is None
        assert statistics.outcomes == ()


def test_yield_leaves_infrastructure_out_of_the_denominator(tmp_path):
    write_run(tmp_path, run("a", repository="https://h/a", night_id="n1"))
    write_run(tmp_path, run("b", repository="https://h/b", night_id="n1", attempts=3, offline_ok=False))
    write_run(tmp_path, run("c", verified=False, repository="https://h/c", night_id="n1", language=None))
    write_run(tmp_path, run("d", verified=False, repository="https://h/d", outcome="infrastructure"))
    statistics = yield_statistics(tmp_path)
    assert (statistics.total, statistics.decided, statistics.verified) == (4, 3, 2)
    assert statistics.yield_rate == pytest.approx(2 / 3)
    assert {share.name: share.count for share in statistics.outcomes} == {
        "verified": 2,
        "mismatch": 1,
        "infrastructure": 1,
    }
    assert [(share.name, share.count) for share in statistics.stages] == [("verification", 1)]
    assert {share.name: share.count for share in statistics.languages} == {"python": 3, "unknown": 1}
    assert statistics.attempts_to_success == ((1, 1), (3, 1))
    assert statistics.held_out_mean == pytest.approx(5 / 7)
    assert statistics.offline_share == 0.5
    assert statistics.mean_seconds == 300
    assert {(night.night, night.total, night.verified) for night in statistics.nights} == {
        ("n1", 3, 2),
        ("2025-01-02", 1, 0),
    }


@pytest.mark.parametrize("outcome", ["cancelled", "infrastructure", "unknown"])
def test_what_is_undecided_is_neither_discarded_nor_a_repositorys_time(tmp_path, outcome):
    write_run(tmp_path, run("a", verified=False, outcome=outcome, repository="https://h/a", seconds=3.0))
    alone = yield_statistics(tmp_path)
    assert (alone.total, alone.decided, alone.yield_rate) == (1, 0, None)
    assert (alone.mean_seconds, alone.median_seconds, alone.stages) == (None, None, ())
    write_run(tmp_path, run("b", verified=False, repository="https://h/b", stage="setup"))
    both = yield_statistics(tmp_path)
    assert (both.mean_seconds, both.median_seconds) == (300, 300)
    assert [(share.name, share.count, share.fraction) for share in both.stages] == [("setup", 1, 1.0)]


def test_a_night_without_a_success(tmp_path):
    write_run(tmp_path, run("a", verified=False))
    statistics = yield_statistics(tmp_path)
    assert statistics.yield_rate == 0
    assert statistics.held_out_mean is None
    assert statistics.offline_share is None


def test_the_last_run_of_a_repository_counts(tmp_path):
    write_run(tmp_path, run("a"))
    write_run(tmp_path, run("b", verified=False, finished_at=END + timedelta(hours=1)))
    assert yield_statistics(tmp_path).verified == 0
    assert yield_statistics(tmp_path).total == 1
