"""Records, rows and schemas agree, and every reader opens what is written."""

from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from dataset_rows import environment, run

from autoinstall.datasets.records import GoalRecord, RepositoryRecord, RunRecords, new_environment_id, summary_of
from autoinstall.datasets.schemas import RECORDS, SCHEMAS, Dataset, from_row, to_row, to_table
from autoinstall.datasets.writer import ensure_writable, write_run


@pytest.mark.parametrize("dataset", Dataset)
def test_schema_has_a_column_for_every_field_and_none_else(dataset):
    assert set(SCHEMAS[dataset].names) == set(RECORDS[dataset].model_fields)


@pytest.mark.parametrize("dataset", Dataset)
def test_schemas_use_one_string_type_and_utc_microseconds(dataset):
    text = str(SCHEMAS[dataset])
    assert "large_string" not in text
    assert "dictionary" not in text
    assert "map<" not in text
    assert SCHEMAS[dataset].field("started_at").type == pa.timestamp("us", tz="UTC")
    assert "schema_version" in SCHEMAS[dataset].names


@pytest.mark.parametrize("dataset", Dataset)
def test_records_round_trip(dataset):
    records = run("r1")
    record = {
        Dataset.ENVIRONMENTS: records.environment,
        Dataset.GOALS: records.goals[0],
        Dataset.ATTEMPTS: records.attempts[0],
        Dataset.TRAJECTORIES: records.trajectories[0],
        Dataset.REPOSITORIES: records.repository,
    }[dataset]
    table = to_table(dataset, [to_row(record)])
    assert table.schema.equals(SCHEMAS[dataset])
    assert from_row(dataset, table.to_pylist()[0]) == record


def test_an_all_null_batch_is_typed():
    minimal = RepositoryRecord(
        run_id="r", repository="u", outcome="invalid_url", stage="clone", started_at=_now(), finished_at=_now()
    )
    table = to_table(Dataset.REPOSITORIES, [to_row(minimal)])
    assert table.column("commit").null_count == 1
    assert table.schema.field("commit").type == pa.string()
    assert table.schema.field("offline_ok").type == pa.bool_()


def test_an_unknown_column_is_an_error_when_written_and_extra_when_read():
    row = to_row(run("r1").repository)
    with pytest.raises(ValueError, match="no column surprise"):
        to_table(Dataset.REPOSITORIES, [{**row, "surprise": 1}])
    stored = to_table(Dataset.REPOSITORIES, [row]).to_pylist()[0]
    assert from_row(Dataset.REPOSITORIES, {**stored, "surprise": [1]}).extra == {"surprise": [1]}


def test_a_missing_column_of_an_older_version_takes_the_default():
    stored = to_table(Dataset.REPOSITORIES, [to_row(run("r1").repository)]).to_pylist()[0]
    for name in ("agents", "warnings", "seed"):
        del stored[name]
    assert from_row(Dataset.REPOSITORIES, stored).seed == 0


@pytest.mark.parametrize("dataset", Dataset)
@pytest.mark.parametrize("filled", [False, True])
def test_every_reader_opens_the_directory_with_its_defaults(tmp_path, dataset, filled):
    ensure_writable(tmp_path)
    if filled:
        write_run(tmp_path, run("r1"))
        write_run(tmp_path, run("r2", verified=False))
    directory = tmp_path / dataset
    rows = ds.dataset(directory).count_rows()
    assert (rows > 0) is filled
    assert len(pd.read_parquet(directory)) == rows
    assert list(pd.read_parquet(directory).columns) == SCHEMAS[dataset].names
    assert duckdb.sql(f"select count(*) from '{directory}/*.parquet'").fetchall() == [(rows,)]
    assert pl.read_parquet(directory).height == rows
    assert len(pl.read_parquet(directory).columns) == len(SCHEMAS[dataset])


def test_timestamps_need_a_zone_and_become_utc():
    east = datetime(2024, 1, 1, 3, tzinfo=timezone(timedelta(hours=3)))
    fields = {"run_id": "r", "repository": "u", "index": 1, "command": "c", "description": "d", "finished_at": _now()}
    assert GoalRecord(started_at=east, **fields).started_at == datetime(2024, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="time zone"):
        GoalRecord(started_at=datetime(2024, 1, 1), **fields)


def test_rows_of_different_runs_do_not_mix():
    with pytest.raises(ValueError, match="run_id"):
        RunRecords(repository=run("r1").repository, environment=environment("r2"))


def test_environment_ids_are_readable_stable_and_distinct():
    first = new_environment_id("https://user:secret@example.org/o/My.Repo.git", "a" * 40, "r1")
    assert first.startswith("my-repo-")
    assert first == new_environment_id("https://example.org/o/My.Repo.git", "a" * 40, "r1")
    assert first != new_environment_id("https://example.org/o/My.Repo.git", "a" * 40, "r2")
    assert new_environment_id("git@host:o/x", "a", "r").startswith("x-")


def test_credentials_in_a_repository_url_never_enter_a_record():
    record = run("r1", repository="https://user:secret@example.org/o/n").repository
    assert record.repository == "https://example.org/o/n"
    assert run("r1", repository="http://[broken").repository.repository == "http://[broken"


def test_summary_has_what_json_output_promises():
    summary = summary_of(run("r1").repository)
    promised = "outcome reason environment_id repository commit attempts seconds targets held_out_passed held_out_total"
    assert summary.keys() >= {*promised.split(), "offline_ok", "image"}
    assert summary["targets"][0].keys() >= {"command", "description", "exit_code", "verdict", "reason"}


def _now():
    return datetime.now(UTC)
