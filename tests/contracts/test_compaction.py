"""Compaction wherever the datasets are: nothing lost, nothing doubled, at any moment and after any death."""

import multiprocessing
import threading
from datetime import timedelta

import pandas as pd
import pyarrow.parquet as pq
import pytest

from autoinstall.datasets import compaction, lease
from autoinstall.datasets.compaction import compact, compact_above, file_count
from autoinstall.datasets.reader import done_keys, environments, load
from autoinstall.datasets.schemas import SCHEMAS, Dataset
from autoinstall.datasets.store import STAGING, Store
from autoinstall.datasets.writer import ensure_writable, has_run, write_run
from autoinstall.errors import StorageFailed
from tests.unit.dataset_rows import COMMIT, URL, run

AT_ONCE = timedelta(0)
RUNS = [f"r{number}" for number in range(4)]


@pytest.fixture
def place(empty_place: Store) -> Store:
    """A place with the rows of four runs."""
    for run_id in RUNS:
        write_run(empty_place, run(run_id))
    return empty_place


def _rows(place):
    """Rows of each dataset, and the run ids of those that have one row a run."""
    ids = {dataset: sorted(load(place, dataset)["run_id"]) for dataset in ("environments", "goals", "repositories")}
    return {dataset: len(found) for dataset, found in ids.items()}, ids["repositories"]


WHOLE = ({"environments": 4, "goals": 40, "repositories": 4}, RUNS)


def test_many_files_become_one_with_the_same_rows(place):
    before = {dataset: load(place, dataset).sort_values("run_id", ignore_index=True) for dataset in Dataset}
    found = compact(place, min_age=AT_ONCE)
    assert (found.before, found.after) == (20, 5)
    for dataset in Dataset:
        after = load(place, dataset).sort_values("run_id", ignore_index=True)
        pd.testing.assert_frame_equal(before[dataset], after)
        frame = pd.read_parquet(str(place.location / dataset))
        assert len(frame) == len(after)
        assert list(frame.columns) == SCHEMAS[dataset].names
    assert place.files(STAGING) == ()
    assert done_keys(place) == {(URL, COMMIT, "c1")}
    assert has_run(place, "r0")
    # Later nights join what there is, and nothing happens where there is nothing to do.
    write_run(place, run("r9"))
    assert compact(place, min_age=AT_ONCE).after == 5
    assert compact(place, min_age=AT_ONCE).after == 5
    assert len(load(place, "goals")) == 50


def test_young_files_and_few_files_are_left_alone(place):
    assert compact(place).after == 20
    assert compact_above(place, 20) is None
    assert compact_above(place, 19) is not None


def test_large_files_are_not_touched_again(place, monkeypatch):
    monkeypatch.setattr(compaction, "TARGET_BYTES", 3 * max(file.size for file in place.files("environments")))
    compact(place, min_age=AT_ONCE)
    files = {file.path for file in place.files("environments")}
    assert len(files) > 2  # the typed empty one, and more than one of rows
    assert _rows(place) == WHOLE
    compact(place, min_age=AT_ONCE)
    assert _rows(place) == WHOLE
    assert file_count(place) <= 20


def test_a_run_that_is_written_again_after_compaction_replaces_its_rows(place):
    compact(place, min_age=AT_ONCE)
    write_run(place, run("r1", verified=False, reason="again"))
    assert _rows(place)[1] == RUNS
    frame = load(place, "repositories").set_index("run_id")
    assert frame.loc["r1", "reason"] == "again"
    assert "r1" not in [record.run_id for record in environments(place)]
    assert len(pd.read_parquet(str(place.location / "goals"))) == 40
    compact(place, min_age=AT_ONCE)
    assert load(place, "repositories").set_index("run_id").loc["r1", "reason"] == "again"
    assert _rows(place)[1] == RUNS


class Died(BaseException):
    pass


def _die_at_the_third_removal(place, monkeypatch):
    """Compact until the third old file is to be removed, as a process that is killed there would leave it."""
    removed = []
    real, release = type(place).delete, lease.Lease.release

    def delete(self, path):
        if "/run-" in path:
            removed.append(path)
            if len(removed) > 2:
                raise Died
        real(self, path)

    monkeypatch.setattr(type(place), "delete", delete)
    monkeypatch.setattr(lease, "current_process", lambda: lease.Process("host", "boot", "ns", 1, 1))
    monkeypatch.setattr(lease.Lease, "release", lambda _lease: None)
    with pytest.raises(Died):
        compact(place, min_age=AT_ONCE)
    monkeypatch.setattr(type(place), "delete", real)
    monkeypatch.setattr(lease.Lease, "release", release)


def test_what_a_killed_compaction_left_is_read_once_and_finished_by_the_next(place, monkeypatch):
    _die_at_the_third_removal(place, monkeypatch)
    assert len(place.files(STAGING)) == 2  # the lease, and what replaces what
    assert len(place.files("environments")) == 1 + 1 + 2  # the empty one, the new one, and those not yet removed
    assert _rows(place) == WHOLE
    # From another host nothing can be said of that process: it may be at work.
    with pytest.raises(StorageFailed, match="Somebody else"), lease.leased(place, wait_seconds=0):
        pass
    monkeypatch.setattr(lease.Process, "is_dead", lambda process: process.pid == 1)
    ensure_writable(place)
    assert place.files(STAGING) == ()
    assert len(place.files("environments")) == 2
    assert compact(place, min_age=AT_ONCE).after == 5
    assert _rows(place) == WHOLE


def test_a_lease_of_a_process_that_cannot_be_seen_ends_by_itself(place, monkeypatch):
    _die_at_the_third_removal(place, monkeypatch)
    monkeypatch.setattr(lease, "STALE", timedelta(seconds=-1))
    assert compact(place, min_age=AT_ONCE).after == 5
    assert _rows(place) == WHOLE


def test_readers_see_every_row_once_while_writers_write_and_files_are_put_together(place):
    over = threading.Event()
    seen: list[tuple[int, int]] = []
    broken: list[Exception] = []

    def read():
        try:
            while not over.is_set():
                ids = load(place, "repositories")["run_id"]
                seen.append((len(ids), ids.nunique()))
        except Exception as error:  # noqa: BLE001 - shown below
            broken.append(error)

    def write():
        for number in range(10, 16):
            write_run(place, run(f"r{number}"))

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        compact(place, min_age=AT_ONCE)
    threads[1].join()
    compact(place, min_age=AT_ONCE)
    over.set()
    threads[0].join()
    assert not broken
    assert seen
    assert all(rows == distinct >= len(RUNS) for rows, distinct in seen)
    assert [rows for rows, _ in seen] == sorted(rows for rows, _ in seen)
    assert len(load(place, "repositories")) == len(RUNS) + 6
    assert file_count(place) == 5


def _compact_at(address):
    compact(address, min_age=AT_ONCE)


def test_two_processes_that_compact_at_the_same_time(tmp_path):
    for run_id in RUNS:
        write_run(tmp_path, run(run_id))
    processes = [multiprocessing.get_context("fork").Process(target=_compact_at, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert _rows(tmp_path) == WHOLE
    assert file_count(tmp_path) == 5


def test_row_groups_are_few_and_bounded(tmp_path, monkeypatch):
    for run_id in RUNS:
        write_run(tmp_path, run(run_id))
    compact(tmp_path, min_age=AT_ONCE)
    (path,) = (tmp_path / "goals").glob("compact-*.parquet")
    assert pq.ParquetFile(path).num_row_groups == 1
    write_run(tmp_path, run("r7"))
    monkeypatch.setattr(compaction, "GROUP_BYTES", 1)
    compact(tmp_path, min_age=AT_ONCE)
    (path,) = (tmp_path / "goals").glob("compact-*.parquet")
    assert pq.ParquetFile(path).num_row_groups == 2
