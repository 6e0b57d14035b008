import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from dataset_rows import environment, run

from autoinstall.datasets import evolution
from autoinstall.datasets.compaction import compact
from autoinstall.datasets.evolution import VERSION_KEY
from autoinstall.datasets.reader import environments, load
from autoinstall.datasets.records import SCHEMA_VERSION
from autoinstall.datasets.schemas import SCHEMAS, Dataset
from autoinstall.datasets.writer import ensure_writable, file_name, write_run
from autoinstall.errors import StorageFailed

LACKING = {"team", "warnings", "model_seconds"}
"""Columns that the made-up older version does not know, and one field of its targets."""


def as_older(path: Path) -> None:
    """A file as an earlier version would have written it: no metadata, fewer columns, fewer fields in a struct."""
    table = pq.read_table(path)
    table = table.drop_columns([name for name in table.column_names if name in LACKING])
    if "targets" in table.column_names:
        index = table.schema.get_field_index("targets")
        item = table.schema.field(index).type.value_type
        smaller = pa.list_(pa.struct([field for field in item if field.name != "min_pass_rate"]))
        table = table.set_column(index, "targets", table.column(index).cast(smaller))
    pq.write_table(table.replace_schema_metadata(None), path)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Two runs of an earlier version, empty files included, and one of the present version."""
    for run_id in ("r1", "r2"):
        write_run(tmp_path, run(run_id))
    for path in tmp_path.glob("*/*.parquet"):
        as_older(path)
    write_run_without_looking(tmp_path, "r3")
    return tmp_path


def write_run_without_looking(data: Path, run_id: str) -> None:
    """As a worker of the present version that found everything prepared."""
    from autoinstall.datasets.store import store_of
    from autoinstall.datasets.writer import _put_files, run_files

    _put_files(store_of(data), run_id, run_files(run(run_id)))


@pytest.mark.parametrize("dataset", Dataset)
def test_older_files_are_read_as_the_present_version(mixed, dataset):
    frame = load(mixed, dataset)
    assert list(frame.columns) == SCHEMAS[dataset].names
    assert set(frame["run_id"]) == {"r1", "r2", "r3"}
    for name in LACKING & set(frame.columns):
        assert frame.set_index("run_id")[name].isna().loc["r1"].all()


def test_rows_of_older_files_are_whole_records(mixed):
    by_run = {record.run_id: record for record in environments(mixed)}
    assert by_run["r3"] == environment("r3")
    assert by_run["r1"].warnings == ()
    assert by_run["r1"].targets[0].min_pass_rate == 1.0
    assert by_run["r1"].services == by_run["r3"].services


def test_the_first_use_of_a_version_brings_older_files_to_it(mixed):
    ensure_writable(mixed)
    for dataset in Dataset:
        for path in (mixed / dataset).glob("*.parquet"):
            assert pq.read_schema(path).equals(SCHEMAS[dataset])
            assert pq.read_schema(path).metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()
        assert len(list((mixed / dataset).glob("*.parquet"))) == 2


def test_a_large_file_of_an_older_version_is_rewritten_alone(mixed, monkeypatch):
    monkeypatch.setattr("autoinstall.datasets.compaction.TARGET_BYTES", 1)
    compact(mixed, min_age=pd.Timedelta(0).to_pytimedelta())
    assert all(pq.read_schema(path).equals(SCHEMAS[Dataset.GOALS]) for path in (mixed / "goals").glob("[cr]*"))
    assert len(load(mixed, "goals")) == 30


def test_a_renamed_column_has_its_present_name(mixed, monkeypatch):
    path = mixed / "attempts" / file_name("r1")
    table = pq.read_table(path)
    pq.write_table(table.rename_columns({"summary": "report"}), path)
    monkeypatch.setitem(evolution.RENAMED, Dataset.ATTEMPTS, {"report": "summary"})  # type: ignore[index]
    frame = load(mixed, "attempts")
    assert list(frame.columns) == SCHEMAS[Dataset.ATTEMPTS].names
    assert list(frame["summary"]) == ["", "", ""]
    compact(mixed, min_age=pd.Timedelta(0).to_pytimedelta())
    assert list(load(mixed, "attempts")["summary"]) == ["", "", ""]


def test_a_later_version_is_refused_with_what_to_do(tmp_path):
    write_run(tmp_path, run("r1"))
    path = tmp_path / "goals" / file_name("r1")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION + 1)}), path)
    with pytest.raises(StorageFailed, match=f"version {SCHEMA_VERSION + 1} of the schema") as caught:
        load(tmp_path, "goals")
    assert "later one" in caught.value.hint
    assert len(load(tmp_path, "attempts")) == 1


def test_every_reader_opens_what_several_versions_wrote(mixed, tmp_path):
    ensure_writable(mixed)
    write_run(mixed, run("r4"))
    for dataset in Dataset:
        folder, rows = mixed / dataset, 40 if dataset is Dataset.GOALS else 4
        names = SCHEMAS[dataset].names
        assert list(pd.read_parquet(folder).columns) == names
        assert len(pd.read_parquet(folder)) == rows
        assert ds.dataset(folder).to_table().num_rows == pq.read_table(folder).num_rows == rows
        assert pl.read_parquet(folder).shape == (rows, len(names))
        assert pl.scan_parquet(folder).collect().height == rows
        relation = duckdb.sql(f"select * from '{folder}/*.parquet'")
        assert (relation.shape, relation.columns) == ((rows, len(names)), names)


HUGGING_FACE = """
import sys
import datasets
for name in sys.argv[2:]:
    rows = datasets.load_dataset(f"{sys.argv[1]}/{name}", split="train")
    print(name, rows.num_rows, len(rows.column_names), rows[0]["started_at"].tzinfo is not None)
"""


@pytest.mark.slow
def test_hugging_face_datasets_opens_what_several_versions_wrote(mixed, tmp_path_factory):
    ensure_writable(mixed)
    write_run(mixed, run("r4"))
    home = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        [sys.executable, "-c", HUGGING_FACE, str(mixed), *Dataset],
        env={"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HOME": str(home), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        f"{dataset} {40 if dataset is Dataset.GOALS else 4} {len(SCHEMAS[dataset].names)} True" for dataset in Dataset
    ]
