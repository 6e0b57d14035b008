import errno
import json
import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from dataset_rows import run

from autoinstall.datasets import cleaning, store, writer
from autoinstall.datasets.reader import environments, load
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.writer import ensure_writable, file_name, secrets_of, write_run
from autoinstall.errors import DiskFull, StorageFailed, UnusableDirectory
from autoinstall.settings import ModelSettings, PassThrough, Settings


def test_a_run_is_one_file_in_each_dataset(tmp_path):
    written = write_run(tmp_path, run("r1"))
    assert written.environments == str(tmp_path / "environments" / "run-r1.parquet")
    assert [len(load(tmp_path, dataset)) for dataset in Dataset] == [1, 10, 1, 1, 1]
    assert list((tmp_path / ".staging").iterdir()) == []


def test_writing_a_run_again_replaces_its_rows(tmp_path):
    write_run(tmp_path, run("r1"))
    write_run(tmp_path, run("r1", reason="again"))
    assert list(load(tmp_path, "repositories")["reason"]) == ["again"]
    assert len(load(tmp_path, "goals")) == 10


def test_a_rewrite_that_is_no_longer_verified_takes_its_environment_away(tmp_path):
    write_run(tmp_path, run("r1"))
    assert write_run(tmp_path, run("r1", verified=False)).environments is None
    assert environments(tmp_path) == ()


def test_writers_at_the_same_time_neither_collide_nor_double(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_run(tmp_path, run(f"r{number % 4}")), range(16)))
    assert sorted(load(tmp_path, "repositories")["run_id"]) == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize("run_id", ["../../escape", "a/b", "", "ü" * 300, "x" * 300, ".hidden"])
def test_file_names_are_plain_and_distinct(run_id):
    name = file_name(run_id)
    assert Path(name).name == name
    assert len(name) < 120
    assert not name.startswith((".", "_"))
    assert name != file_name(run_id + "1")


def _write_slowly(data):
    def stall(*_args):
        Path(data, "stalled").touch()
        time.sleep(60)

    store.os.fsync = stall
    write_run(Path(data), run("r2"))


def test_a_killed_writer_leaves_nothing_that_a_reader_sees(tmp_path):
    write_run(tmp_path, run("r1"))
    process = multiprocessing.get_context("fork").Process(target=_write_slowly, args=(str(tmp_path),))
    process.start()
    deadline = time.monotonic() + 30
    while not (tmp_path / "stalled").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    leftovers = list((tmp_path / ".staging").iterdir())
    assert leftovers
    assert all(path.suffix == ".tmp" for path in leftovers)
    for dataset in Dataset:
        assert set(pd.read_parquet(tmp_path / dataset)["run_id"]) == {"r1"}
    # A young file may belong to a living writer; an hour later it cannot.
    ensure_writable(tmp_path)
    assert list((tmp_path / ".staging").iterdir()) == leftovers
    os.utime(leftovers[0], (0, time.time() - store.STALE_SECONDS - 1))
    ensure_writable(tmp_path)
    assert list((tmp_path / ".staging").iterdir()) == []


def test_the_environment_row_comes_last(tmp_path, monkeypatch):
    ensure_writable(tmp_path)
    real = Path.replace

    def fail_late(aside, target):
        if target.parent.name == Dataset.REPOSITORIES:
            raise OSError(errno.EIO, "broken")
        return real(aside, target)

    monkeypatch.setattr(Path, "replace", fail_late)
    with pytest.raises(StorageFailed, match="broken"):
        write_run(tmp_path, run("r1"))
    assert len(load(tmp_path, "attempts")) == 1
    assert environments(tmp_path) == ()


def test_a_full_disk_is_its_own_error_and_leaves_no_partial_file(tmp_path, monkeypatch):
    ensure_writable(tmp_path)

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(DiskFull):
        write_run(tmp_path, run("r1"))
    assert list((tmp_path / ".staging").iterdir()) == []
    assert load(tmp_path, "goals").empty


def test_a_directory_that_cannot_be_written_is_refused_up_front(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableDirectory, match="cannot be written") as caught:
        ensure_writable(tmp_path / "file" / "data")
    assert "--data" in caught.value.hint


def test_secrets_are_masked_in_every_column_but_made_up_ones_of_the_recipe_stay(tmp_path):
    secret = "s3cr3t-literal"
    base = run("r1", reason=f"cloning https://u:{secret}@h/x failed; token ghp_{'a' * 30}")
    call = {"role": "assistant", "tool_calls": [{"function": {"arguments": json.dumps({"command": _CURL})}}]}
    records = base.model_copy(
        update={
            "trajectories": (base.trajectories[0].model_copy(update={"messages": (call,)}),),
            "environment": base.environment.model_copy(update={"env": {"A": f"x{secret}", "B": "postgres://u:p@h/d"}}),
        }
    )
    written = write_run(tmp_path, records, secrets=(secret,))
    for path in written.model_dump().values():
        text = str(pq.read_table(path).to_pylist())
        assert secret not in text
        assert "ghp_" not in text
    assert environments(tmp_path)[0].env == {"A": "x***", "B": "postgres://u:p@h/d"}
    message = json.loads(load(tmp_path, "trajectories")["messages"][0])[0]
    arguments = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert "abcdef" not in arguments["command"]
    assert arguments["command"].startswith("curl")


_CURL = 'curl -H "Authorization: Bearer abcdef" http://x/'


def test_keys_of_model_endpoints_are_secrets_and_made_up_words_are_not():
    settings = Settings(
        model=ModelSettings(
            api_key="very-secret-key",
            headers={"Authorization": "Bearer other-secret-key", "X-Team": "infrastructure"},
        ),
        models={"own": ModelSettings(api_key="EMPTY"), "hosted": ModelSettings(api_key="third-secret-key")},
        _env_file=None,
    )
    assert set(secrets_of(settings)) == {"very-secret-key", "other-secret-key", "third-secret-key"}


def test_secrets_of_the_settings():
    settings = Settings(
        _env_file=None,
        git_credentials={"https://h/": "user:token1"},
        pass_through=PassThrough(https_proxy="http://me:pw2@proxy:1"),
    )
    assert set(secrets_of(settings)) == {"user:token1", "token1", "me:pw2", "pw2"}


def test_huge_messages_are_shortened_and_say_so(tmp_path):
    base = run("r1")
    messages = tuple({"role": "tool", "content": f"start{number}" + "x" * (3 * 2**20)} for number in range(40))
    trajectory = base.trajectories[0].model_copy(update={"messages": messages})
    path = write_run(tmp_path, base.model_copy(update={"trajectories": (trajectory,)})).trajectories
    row = pq.read_table(path).to_pylist()[0]
    assert row["shortened"]
    kept = json.loads(row["messages"])
    assert len(kept) == 40
    assert "characters left out" in kept[3]["content"]
    assert kept[3]["content"].startswith("start3")
    assert len(row["messages"]) <= cleaning.MAX_MESSAGES * 1.1


def test_long_outputs_keep_their_end(tmp_path):
    base = run("r1")
    attempt = base.attempts[0].model_copy(update={"output_tail": "x" * 100_000 + "the end"})
    write_run(tmp_path, base.model_copy(update={"attempts": (attempt,)}))
    tail = load(tmp_path, "attempts")["output_tail"][0]
    assert tail.endswith("the end")
    assert "left out" in tail.splitlines()[0]
    assert len(tail) < 20_000


def test_row_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "ROW_GROUP_BYTES", 1000)
    path = write_run(tmp_path, run("r1")).goals
    assert pq.ParquetFile(path).num_row_groups > 1
    assert len(load(tmp_path, "goals")) == 10


def test_text_that_utf8_has_no_form_for_is_written(tmp_path):
    write_run(tmp_path, run("r1", reason="bad \udcff byte"))
    assert load(tmp_path, "repositories")["reason"][0] == "bad ? byte"


def test_threads_that_begin_at_once_leave_the_datasets_as_they_are(tmp_path):
    ensure_writable(tmp_path)
    files = sorted(tmp_path.glob("*/*.parquet"))
    before = [path.stat().st_ino for path in files]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: ensure_writable(tmp_path), range(120)))
    assert [path.stat().st_ino for path in files] == before
