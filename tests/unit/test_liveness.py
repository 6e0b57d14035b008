import os
import subprocess
import sys
import time
from pathlib import Path

from autoinstall.liveness import KEPT_SECONDS, clear_scratch, hold, is_dead, only_one, scratch
from autoinstall.sandbox.labels import Process, current_process

HOLDER = """
import sys, time
from pathlib import Path
from autoinstall.liveness import hold, scratch
from autoinstall.sandbox.labels import current_process
hold(Path(sys.argv[1]))
(scratch(Path(sys.argv[1])) / "checkout").mkdir()
print(current_process(), flush=True)
time.sleep(600)
"""


def unseen(process: Process) -> str:
    """The same process, as one that cannot be looked at from here: in another pid namespace."""
    return str(process._replace(namespace="1"))


def as_unseen(cache: Path, process: Process) -> str:
    """Its files under that name, as a container that shares the directory has written them."""
    for path in [*(cache / "processes").iterdir(), *(cache / "runs").iterdir()]:
        if str(process).replace("/", "+") in path.name:
            path.rename(
                path.with_name(path.name.replace(str(process).replace("/", "+"), unseen(process).replace("/", "+")))
            )
    return unseen(process)


def test_a_killed_process_is_told_by_its_lock_where_it_cannot_be_seen(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        process = Process.parse(holder.stdout.readline().strip())
        assert process is not None
        assert not is_dead(unseen(process), tmp_path)  # nothing is known of it
        name = as_unseen(tmp_path, process)
        assert not is_dead(name, tmp_path)
        clear_scratch(tmp_path)
        assert len(list((tmp_path / "runs").iterdir())) == 1

        holder.kill()
        holder.wait()

        assert is_dead(name, tmp_path)
        clear_scratch(tmp_path)
        assert list((tmp_path / "runs").iterdir()) == []
        assert is_dead(name, tmp_path)  # what it has left elsewhere is still to be found
        (file,) = (tmp_path / "processes").iterdir()
        os.utime(file, (0, time.time() - KEPT_SECONDS - 1))
        clear_scratch(tmp_path)
        assert not file.exists()


def test_this_process_lives(tmp_path: Path) -> None:
    hold(tmp_path)
    hold(tmp_path)
    scratch(tmp_path)
    clear_scratch(tmp_path)
    assert not is_dead(str(current_process()), tmp_path)
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert not is_dead("", tmp_path)
    assert not is_dead("no/process", tmp_path)


def test_a_cache_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    hold(tmp_path / "file")
    assert not is_dead(unseen(current_process()), tmp_path / "file")


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        only_one(tmp_path, "work") as first,
        only_one(tmp_path, "work") as second,
        only_one(tmp_path, "other") as third,
    ):
        assert (first, second, third) == (True, False, True)
    with only_one(tmp_path, "work") as again:
        assert again
