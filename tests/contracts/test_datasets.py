"""What holds of the datasets wherever they are: one suite, run on a directory and on an S3-compatible storage."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from autoinstall.datasets.location import Location
from autoinstall.datasets.reader import done_keys, environments, find_environment, load
from autoinstall.datasets.schemas import SCHEMAS, Dataset
from autoinstall.datasets.spool import keep_run_rows, kept_runs, write_kept_runs
from autoinstall.datasets.store import STAGING, Store, ensure_bucket, store_of
from autoinstall.datasets.writer import ensure_writable, file_name, has_run, write_run
from autoinstall.errors import InvalidList, StorageFailed, UnusableDirectory
from autoinstall.repository_list import read_list
from autoinstall.settings import Settings
from tests.storage import BUCKET, Storage, storage_server
from tests.unit.dataset_rows import COMMIT, URL, environment, run


@pytest.fixture
def place(empty_place: Store) -> Store:
    return empty_place


def test_a_run_is_written_and_read_back(place):
    assert environments(place) == ()
    ensure_writable(place)
    written = write_run(place, run("r1"))
    assert written.environments == place.location / "environments" / "run-r1.parquet"
    assert [len(load(place, dataset)) for dataset in Dataset] == [1, 10, 1, 1, 1]
    assert environments(place) == (environment("r1"),)
    assert find_environment(place, "name-").run_id == "r1"
    assert done_keys(place) == {(URL, COMMIT, "c1")}
    assert has_run(place, "r1")
    assert not has_run(place, "r2")
    assert place.files(STAGING) == ()


def test_writing_a_run_again_replaces_its_rows(place):
    write_run(place, run("r1"))
    assert write_run(place, run("r1", verified=False, reason="again")).environments is None
    assert list(load(place, "repositories")["reason"]) == ["again"]
    assert len(load(place, "goals")) == 10
    assert environments(place) == ()


def test_writers_at_the_same_time_neither_collide_nor_double(place):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_run(place, run(f"r{number % 4}")), range(16)))
    assert sorted(load(place, "repositories")["run_id"]) == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize("dataset", Dataset)
def test_pandas_reads_a_dataset_with_its_defaults(place, dataset):
    ensure_writable(place)
    address = str(place.location / dataset)
    assert list(pd.read_parquet(address).columns) == SCHEMAS[dataset].names
    write_run(place, run("r1"))
    frame = pd.read_parquet(address)
    assert set(frame["run_id"]) == {"r1"}
    assert list(frame.columns) == SCHEMAS[dataset].names


def test_a_file_is_replaced_and_removed_whole(place):
    ensure_writable(place)
    big = pa.py_buffer(b"x" * (12 * 2**20))
    place.put("goals/big", big)
    place.put("goals/big", pa.py_buffer(b"small"))
    assert place.read("goals/big") == b"small"
    place.delete("goals/big")
    place.delete("goals/big")
    assert place.read("goals/big") is None
    assert [file.name for file in place.files("goals")] == ["0000-empty.parquet"]


def test_rows_that_cannot_be_written_wait_and_are_written_later(tmp_path, monkeypatch):
    settings = Settings(cache=tmp_path / "cache", _env_file=None)
    with storage_server() as storage:
        port = int(storage.endpoint.rpartition(":")[2])
        settings = settings.model_copy(update={"storage": storage.settings})
        data = Location(f"s3://{BUCKET}/x")
        ensure_writable(store_of(data, settings.storage))
        storage.stop()
        with pytest.raises(StorageFailed, match="does not answer") as down:
            write_run(store_of(data, settings.storage), run("r1"))
        assert "AUTOINSTALL_STORAGE__ENDPOINT" in down.value.hint
    place = keep_run_rows(settings, data, run("r1", reason="first"))
    keep_run_rows(settings, data, run("r1", reason="secret-of-the-storage"))
    assert write_kept_runs(settings) == ()
    assert [kept.run_id for kept in kept_runs(settings)] == ["r1"]
    assert b"secret-of-the-storage" not in (place / "repositories.parquet").read_bytes()
    with storage_server(port):
        assert write_kept_runs(settings) == ("r1",)
        assert environments(store_of(data, settings.storage)) == (environment("r1"),)
        assert list(load(store_of(data, settings.storage), "repositories")["reason"]) == ["***"]
    assert kept_runs(settings) == ()
    assert list((tmp_path / "cache/unwritten").iterdir()) == []


def test_an_absent_bucket_and_refused_keys_are_told_apart(storage):
    with pytest.raises(UnusableDirectory, match="no bucket 'another'"):
        ensure_writable(store_of("s3://another/x", storage.settings))
    with pytest.raises(UnusableDirectory, match="no bucket 'another'"):
        write_run(store_of("s3://another/x", storage.settings), run("r1"))
    with storage_server(checks_keys=True) as strict:
        with pytest.raises(UnusableDirectory, match="refuses its credentials") as refused:
            ensure_writable(store_of(f"s3://{BUCKET}/x", strict.settings))
        assert "AUTOINSTALL_STORAGE__ACCESS_KEY" in refused.value.hint


def test_file_names_of_runs_are_the_same_everywhere(place):
    write_run(place, run("a/b"))
    assert [file.name for file in place.files("goals")][1:] == [file_name("a/b")]


def test_a_bucket_is_made_where_it_is_absent(storage: Storage, tmp_path: Path) -> None:
    there, absent = Location(f"s3://{BUCKET}/x"), Location("s3://made-on-demand/below/it")
    assert [ensure_bucket(place, storage.settings) for place in (there, absent, absent)] == [False, True, False]
    ensure_writable(store_of(absent, storage.settings))
    assert not ensure_bucket(Location(tmp_path), storage.settings)


def test_a_list_of_repositories_may_be_in_the_bucket(storage):
    store_of(f"s3://{BUCKET}/lists", storage.settings).put("all.csv", pa.py_buffer(b"url\nhttps://example.org/a/b\n"))
    (spec,) = read_list(f"s3://{BUCKET}/lists/all.csv", storage.settings)
    assert spec.url == "https://example.org/a/b"
    for absent in (f"s3://{BUCKET}/lists/absent.csv", "s3://another/all.csv"):
        with pytest.raises(InvalidList, match=f"There is no repository list {absent}"):
            read_list(absent, storage.settings)
