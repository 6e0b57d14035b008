import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_rows import COMMIT, URL, environment, run

import autoinstall
from autoinstall.datasets.nights import ended_without_commit
from autoinstall.datasets.reader import done_keys, environment_from, environments, find_environment, load
from autoinstall.datasets.schemas import SCHEMAS, Dataset
from autoinstall.datasets.writer import ensure_writable, file_name, write_run
from autoinstall.errors import BadInput, StorageFailed


@pytest.mark.parametrize("dataset", Dataset)
def test_an_absent_or_empty_dataset_is_an_empty_typed_frame(tmp_path, dataset):
    absent = load(tmp_path / "absent", dataset)
    ensure_writable(tmp_path)
    for frame in (absent, load(tmp_path, dataset.value)):
        assert frame.empty
        assert list(frame.columns) == SCHEMAS[dataset].names
        assert str(frame["started_at"].dtype) == "datetime64[us, UTC]"


def test_a_row_alone_gives_the_whole_environment_back(tmp_path):
    write_run(tmp_path, run("r1"))
    expected = environment("r1")
    assert environments(tmp_path) == (expected,)
    assert expected.recipe.env["DATABASE_URL"] == "postgres://me:pw@db:5432/x"
    assert expected.goals[0].exit_codes == (0, 5)
    assert expected.goals[0].min_pass_rate == 0.95
    assert expected.goals[0].timeout == 60
    assert expected.targets[0].goal_result.matches
    assert expected.targets[1].goal_result is None
    # As a trainer has it: a row of a pandas frame, or of any other reader.
    assert environment_from(load(tmp_path, "environments").iloc[0]) == expected
    assert environment_from(pd.read_parquet(tmp_path / "environments").iloc[0].to_dict()) == expected
    assert autoinstall.environments(tmp_path) == (expected,)


def test_something_else_is_no_environment_row():
    with pytest.raises(StorageFailed, match="not a row"):
        environment_from({"environment_id": "x"})


def test_environments_are_found_by_id_and_by_unambiguous_prefix(tmp_path):
    write_run(tmp_path, run("r1"))
    write_run(tmp_path, run("r2"))
    first, second = environment("r1").environment_id, environment("r2").environment_id
    assert find_environment(tmp_path, first).run_id == "r1"
    assert find_environment(tmp_path, second[:-2]).run_id == "r2"
    with pytest.raises(BadInput, match="any of 2"):
        find_environment(tmp_path, "name-")
    for unknown in ("zzz", ""):
        with pytest.raises(BadInput, match="no environment"):
            find_environment(tmp_path, unknown)


def test_columns_of_other_versions(tmp_path):
    write_run(tmp_path, run("r1"))
    path = tmp_path / "environments" / file_name("r1")
    table = pq.read_table(path)
    newer = table.append_column("colour", pa.array(["green"])).set_column(
        table.schema.get_field_index("run_id"), "run_id", pa.array(["r2"])
    )
    pq.write_table(newer, path.with_name("newer.parquet"))
    older = table.drop_columns(["rebuild_ok", "warnings", "extra"]).set_column(
        table.schema.get_field_index("run_id"), "run_id", pa.array(["r0"])
    )
    pq.write_table(older, path.with_name("older.parquet"))
    by_run = {record.run_id: record for record in environments(tmp_path)}
    assert by_run["r2"].extra == {"colour": "green"}
    assert by_run["r1"].extra == {}
    assert by_run["r0"].warnings == ()
    frame = load(tmp_path, "environments")
    assert sorted(frame["run_id"]) == ["r0", "r1", "r2"]
    assert list(frame.columns)[-1] == "colour"


def test_a_file_that_is_no_parquet_is_a_clear_error(tmp_path):
    write_run(tmp_path, run("r1"))
    (tmp_path / "goals" / "note.parquet").write_text("hello")
    with pytest.raises(StorageFailed, match="goals"):
        load(tmp_path, "goals")


def test_done_keys(tmp_path):
    assert done_keys(tmp_path) == frozenset()
    write_run(tmp_path, run("r1"))
    write_run(tmp_path, run("r2", verified=False, configuration="c2"))
    write_run(tmp_path, run("r3", verified=False, configuration="c3", outcome="infrastructure"))
    write_run(tmp_path, run("r4", verified=False, configuration="c4", outcome="cancelled"))
    write_run(tmp_path, run("r5", verified=False, configuration="c5", outcome="invalid_url", commit=None))
    write_run(tmp_path, run("r6", configuration="c6"))
    (tmp_path / "environments" / file_name("r6")).unlink()
    assert done_keys(tmp_path) == {(URL, COMMIT, "c1"), (URL, COMMIT, "c2")}


def test_what_a_night_ended_before_its_commit_was_known(tmp_path):
    unknown = {"verified": False, "outcome": "invalid_url", "commit": None}
    write_run(tmp_path, run("r1", night_id="n1"))
    write_run(tmp_path, run("r2", night_id="n1", ref="a", **unknown))
    write_run(tmp_path, run("r3", night_id="n1", ref="b", **unknown | {"outcome": "cancelled"}))
    write_run(tmp_path, run("r4", night_id="n2", ref="c", **unknown))
    assert ended_without_commit(tmp_path, "n1") == {(URL, "a")}
