import gc
import os
import selectors
import subprocess
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from checkout_remotes import commit, git, make_repository, settings_for

from autoinstall.checkout import checkout, resolve
from autoinstall.checkout.git import Git
from autoinstall.checkout.process import Bounds, run
from autoinstall.errors import (
    Cancelled,
    CloneTimeout,
    CommitNotFound,
    EmptyRepository,
    RepositoryTooLarge,
    UnusableDirectory,
)
from autoinstall.tree import Tree
from autoinstall.values import RepositorySpec


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """trunk: one (v1, annotated) – two – three (v3); side: two – four (v4, annotated); HEAD is trunk."""
    directory = make_repository(tmp_path / "upstream")
    commit(directory, "one")
    git(directory, "tag", "-a", "-m", "first", "v1")
    commit(directory, "two", date="2021-05-06T07:08:09+02:00")
    git(directory, "branch", "side")
    commit(directory, "three", date="2022-01-01T00:00:00Z")
    git(directory, "tag", "v3")
    git(directory, "switch", "-q", "side")
    commit(directory, "four", {"other.txt": "four"}, date="2023-01-01T00:00:00Z")
    git(directory, "tag", "-a", "-m", "fourth", "v4")
    git(directory, "switch", "-q", "trunk")
    return directory


def sha(directory: Path, name: str) -> str:
    return git(directory, "rev-parse", f"{name}^{{commit}}")


@pytest.mark.parametrize("ref", [None, "trunk", "side", "v1", "v4", "refs/heads/side", "tags/v3", "HEAD", "trunk~1"])
def test_refs_are_resolved_to_full_shas(ref: str | None, upstream: Path, tmp_path: Path) -> None:
    spec, settings = RepositorySpec(url=str(upstream), ref=ref), settings_for(tmp_path)
    if ref == "trunk~1":  # an expression is no ref
        with pytest.raises(CommitNotFound):
            resolve(spec, settings)
        return
    expected = sha(upstream, ref or "trunk")
    assert resolve(spec, settings) == expected
    made = checkout(spec, tmp_path / "out", settings)
    assert (made.commit, made.ref, made.repository) == (expected, ref, str(upstream))
    assert git(made.path, "rev-parse", "HEAD") == expected


def test_short_and_upper_case_shas(upstream: Path, tmp_path: Path) -> None:
    two, settings = sha(upstream, "trunk~1"), settings_for(tmp_path)
    assert resolve(RepositorySpec(url=str(upstream), ref=two[:9]), settings) == two
    assert checkout(RepositorySpec(url=str(upstream), ref=two.upper()), tmp_path / "out", settings).commit == two
    assert list((tmp_path / "cache" / "clones").iterdir()) == []


def test_a_full_sha_passes_through_unasked(tmp_path: Path) -> None:
    spec = RepositorySpec(url="https://nowhere.invalid/o/n", ref="AB" * 20)
    assert resolve(spec, settings_for(tmp_path)) == "ab" * 20


def test_history_up_to_the_commit_and_nothing_after(upstream: Path, tmp_path: Path) -> None:
    two = sha(upstream, "trunk~1")
    made = checkout(RepositorySpec(url=str(upstream), ref=two), tmp_path / "out", settings_for(tmp_path))
    assert git(made.path, "log", "--all", "--format=%s").split() == ["two", "one"]
    assert git(made.path, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/trunk", "refs/tags/v1"]
    assert git(made.path, "describe") == git(upstream, "describe", two)
    assert git(made.path, "status", "--porcelain") == ""
    assert (made.path / ".git" / "HEAD").read_text().strip() == two
    every_object = git(made.path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    for later in ("v3", "v4", "side"):
        assert sha(upstream, later) not in every_object
    assert made.commit_date == datetime(2021, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2)))
    assert made.commit_date.astimezone(UTC).hour == 5
    assert made.file_count == 1
    assert made.size_bytes > 0
    assert made.warnings == ()


def test_the_checkout_stands_alone(upstream: Path, tmp_path: Path) -> None:
    made = checkout(RepositorySpec(url=f"file://{upstream}"), tmp_path / "out", settings_for(tmp_path))
    assert git(made.path, "remote") == ""
    own = made.path / ".git"
    leftovers = ("FETCH_HEAD", "ORIG_HEAD", "logs", "hooks", "objects/info/alternates")
    assert [name for name in leftovers if (own / name).exists()] == []
    texts = [path.read_bytes() for path in own.rglob("*") if path.is_file() and path.suffix not in (".pack", ".idx")]
    assert not any(str(upstream).encode() in text for text in texts)
    upstream.rename(tmp_path / "gone")
    assert git(made.path, "fsck", "--strict") == ""


def test_descriptions_are_as_long_as_the_full_repositorys(upstream: Path, tmp_path: Path) -> None:
    # More objects on another branch make git's short names longer.
    blob = "blob\nmark :{0}\ndata {1}\n{0}\n"
    entries = "".join(f"M 100644 :{n} f{n}\n" for n in range(1, 16_501))
    stream = "".join(blob.format(n, len(str(n))) for n in range(1, 16_501))
    stream += f"commit refs/heads/other\ncommitter A <a@example.org> 0 +0000\ndata 1\nx\n{entries}"
    done = subprocess.run(["git", "fast-import", "--quiet"], cwd=upstream, input=stream, text=True, check=True)
    assert done.returncode == 0
    two = sha(upstream, "trunk~1")
    made = checkout(RepositorySpec(url=str(upstream), ref=two), tmp_path / "out", settings_for(tmp_path))
    described = git(made.path, "describe")
    assert described == git(upstream, "describe", two)
    assert len(described) > len("v1-1-g0123456")


def test_branch_and_tag_of_one_name(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "branch", "v1", "trunk")
    assert resolve(RepositorySpec(url=str(upstream), ref="v1"), settings_for(tmp_path)) == sha(upstream, "refs/tags/v1")


@pytest.mark.parametrize(
    "ref", ["nothing", "0123456", "f" * 40, "--upload-pack=x", "a b", "v1\n", "v1^{tree}", "x.lock"]
)
def test_absent_refs_fail_at_once_and_leave_nothing(ref: str, upstream: Path, tmp_path: Path) -> None:
    with pytest.raises(CommitNotFound) as caught:
        checkout(RepositorySpec(url=str(upstream), ref=ref), tmp_path / "out", settings_for(tmp_path))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_sha_that_is_no_commit(upstream: Path, tmp_path: Path) -> None:
    tree = git(upstream, "rev-parse", "trunk^{tree}")
    with pytest.raises(CommitNotFound):
        checkout(RepositorySpec(url=str(upstream), ref=tree), tmp_path / "out", settings_for(tmp_path))


def test_an_empty_repository(tmp_path: Path) -> None:
    empty = make_repository(tmp_path / "empty")
    with pytest.raises(EmptyRepository):
        checkout(RepositorySpec(url=str(empty)), tmp_path / "out", settings_for(tmp_path))
    with pytest.raises(EmptyRepository):
        resolve(RepositorySpec(url=str(empty)), settings_for(tmp_path))


def test_a_missing_default_branch_asks_for_a_ref(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "symbolic-ref", "HEAD", "refs/heads/unborn")
    with pytest.raises(CommitNotFound, match="default branch"):
        resolve(RepositorySpec(url=str(upstream)), settings_for(tmp_path))
    made = checkout(RepositorySpec(url=str(upstream), ref="side"), tmp_path / "out", settings_for(tmp_path))
    assert made.commit == sha(upstream, "side")


def test_a_directory_in_use_is_left_alone(upstream: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(UnusableDirectory):
        checkout(RepositorySpec(url=str(upstream)), tmp_path / "out", settings_for(tmp_path))
    assert (tmp_path / "out" / "mine").read_text() == "x"


def test_a_shallow_mirror_serves(upstream: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", "--depth=1", f"file://{upstream}", "shallow.git")
    made = checkout(RepositorySpec(url=str(tmp_path / "shallow.git")), tmp_path / "out", settings_for(tmp_path))
    assert git(made.path, "log", "--format=%s") == "three"


def test_limits_on_size_and_files(upstream: Path, tmp_path: Path) -> None:
    spec = RepositorySpec(url=str(upstream))
    commit(upstream, "many", {f"d/{number}": str(number) for number in range(20)})
    with pytest.raises(RepositoryTooLarge, match="files"):
        checkout(spec, tmp_path / "out", settings_for(tmp_path, max_files=10))
    assert not (tmp_path / "out").exists()
    # A file of zeros packs to almost nothing: only its size in the tree tells.
    (upstream / "zeros").write_bytes(bytes(3 * 2**20))
    git(upstream, "add", "-A")
    git(upstream, "commit", "-q", "-m", "big")
    with pytest.raises(RepositoryTooLarge, match="MiB"):
        checkout(spec, tmp_path / "out", settings_for(tmp_path, max_size_mb=2))
    (upstream / "zeros").write_bytes(os.urandom(3 * 2**20))
    git(upstream, "commit", "-q", "-am", "bigger")
    with pytest.raises(RepositoryTooLarge):
        checkout(spec, tmp_path / "out", settings_for(tmp_path, max_size_mb=2))
    assert not (tmp_path / "out").exists()


def test_nothing_of_the_repository_or_the_host_runs(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {marker}\n"
    home = tmp_path / "home"
    home.mkdir()
    evil = (
        f'[core]\n fsmonitor = "touch {marker}"\n hooksPath = {home}\n sshCommand = touch {marker}\n'
        f'[filter "x"]\n smudge = touch {marker}\n required = true\n process = touch {marker}\n'
    )
    (home / ".gitconfig").write_text(evil)
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (home / hook).write_text(script)
        (home / hook).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    files = {".gitattributes": "* filter=x\n", ".gitconfig": evil, "hooks/post-checkout": script, "a.txt": "a"}
    commit(upstream, "traps", files)
    (upstream / "passwd").symlink_to("/etc/passwd")
    (upstream / "up").symlink_to("../..")
    git(upstream, "add", "-A")
    git(upstream, "commit", "-q", "-m", "links")
    made = checkout(RepositorySpec(url=str(upstream)), tmp_path / "out", settings_for(tmp_path))
    assert not marker.exists()
    assert (made.path / "passwd").is_symlink()
    tree = Tree(made.path)
    assert tree.has("a.txt")
    assert tree.read("passwd") == ""
    assert tree.read("up/upstream/a.txt") == ""
    assert not any(name.startswith("up/") for name in tree.files)


def test_lfs_pointers_are_left_and_told(upstream: Path, tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    commit(upstream, "lfs", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "data.bin": pointer})
    made = checkout(RepositorySpec(url=str(upstream)), tmp_path / "out", settings_for(tmp_path))
    assert (made.path / "data.bin").read_text() == pointer
    assert len(made.warnings) == 1
    assert made.warnings[0].startswith("lfs_skipped: 1 ")
    assert "data.bin" in made.warnings[0]


def test_cancelling_ends_the_clone(upstream: Path, tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        checkout(RepositorySpec(url=str(upstream)), tmp_path / "out", settings_for(tmp_path), cancelled=lambda: True)
    assert not (tmp_path / "out").exists()


def test_the_process_group_dies_at_the_deadline(tmp_path: Path) -> None:
    """A child that ignores the polite signal, in a git alias, stands for a transfer helper that hangs."""
    before = _children()
    pid_file = tmp_path / "pid"
    shell = f"!trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {pid_file}; while :; do sleep 0.05; done' & sleep 60"
    started = time.monotonic()
    with pytest.raises(CloneTimeout):
        run(
            ["-c", f"alias.hang={shell}", "hang"],
            cwd=tmp_path,
            environment={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
            bounds=Bounds(timeout=1, stall=30, max_bytes=1),
        )
    assert time.monotonic() - started < 20
    pid = int(pid_file.read_text())
    until = time.monotonic() + 5
    while _alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _alive(pid)
    assert _children() <= before  # none is left, not even as a zombie


def _children() -> set[str]:
    """Processes that this one has started and not reaped; a whole test run has some of its own."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def _alive(pid: int) -> bool:
    """A zombie, which waits for whoever adopted it, is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_background_child_does_not_hold_the_call(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run(
        ["-c", "alias.fork=!sleep 60 & echo done", "fork"],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        bounds=Bounds(timeout=30, stall=30, max_bytes=1),
    )
    assert (done.code, done.stdout) == (0, b"done\n")
    assert time.monotonic() - started < 20


def test_standing_still_is_a_timeout(tmp_path: Path) -> None:
    with pytest.raises(CloneTimeout, match="stood still"):
        run(
            ["-c", "alias.wait=!sleep 60", "wait"],
            cwd=tmp_path,
            environment={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
            bounds=Bounds(timeout=30, stall=0.5, max_bytes=1),
        )


def test_descriptors_and_children_stay_flat(upstream: Path, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)

    def once(number: int) -> None:
        checkout(RepositorySpec(url=str(upstream)), tmp_path / f"out{number}", settings)
        with pytest.raises(CommitNotFound):
            checkout(RepositorySpec(url=str(upstream), ref="f" * 40), tmp_path / "none", settings)

    once(0)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 9):
        once(number)
    assert len(os.listdir("/proc/self/fd")) == before
    children = subprocess.run(
        ["pgrep", "-c", "-P", str(os.getpid())], capture_output=True, text=True, check=False
    ).stdout
    assert int(children) <= 1  # pgrep itself


def test_git_reads_no_configuration_of_the_directory_it_starts_in(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = make_repository(tmp_path / "around")
    git(around, "config", f"url.{tmp_path}/nowhere.insteadOf", str(upstream))
    monkeypatch.chdir(around)
    made = checkout(RepositorySpec(url=str(upstream)), around / "out", settings_for(tmp_path))
    assert made.commit == sha(upstream, "trunk")


def test_our_configuration_is_valid(upstream: Path, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    shown = Git(Path("/"), settings.clone).text("config", "--list", "--show-scope")
    assert "global\tcore.hookspath=/dev/null" in shown.splitlines()
    assert "system\t" not in shown


def test_a_history_with_missing_objects_is_cut_and_said(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    commit(origin, "first", {"old.txt": "old"})
    lost = git(origin, "rev-parse", "HEAD:old.txt")
    (origin / "old.txt").unlink()
    pin = commit(origin, "second", {"new.txt": "new"})
    (origin / ".git/objects" / lost[:2] / lost[2:]).unlink()

    made = checkout(RepositorySpec(url=str(origin), ref=pin), tmp_path / "made", settings_for(tmp_path))

    assert (made.path / "new.txt").read_text() == "new"
    assert [warning.split(":")[0] for warning in made.warnings] == ["history_truncated"]
    assert git(made.path, "log", "--format=%H") == pin


class Late(selectors.DefaultSelector):
    """Its first look is over just before the process writes and ends."""

    looked = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.looked:
            return super().select(timeout)
        self.looked = True
        super().select(timeout=30)  # it writes …
        time.sleep(1)  # … and ends
        return []


def test_what_is_written_just_before_the_end_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoinstall.checkout.process.selectors.DefaultSelector", Late)
    bounds = Bounds(timeout=60, stall=60, max_bytes=2**20)
    command = ["-c", "alias.late=!sleep 2; echo written", "late"]  # there still when it is looked at first
    finished = run(command, cwd=tmp_path, environment={"PATH": os.environ["PATH"]}, bounds=bounds)
    assert finished.stdout == b"written\n"
