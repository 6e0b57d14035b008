import json
import logging
import threading
import time
from pathlib import Path

import pytest
from checkout_remotes import answering, commit, files_of, git, hanging, make_repository, serve, settings_for, smart
from pydantic import SecretStr

import autoinstall.checkout.clone as clone_module
from autoinstall.checkout import checkout, resolve
from autoinstall.checkout import process as process_module
from autoinstall.checkout.git import gist
from autoinstall.errors import AuthOrNotFound, CloneFailed, CloneTimeout, CommitNotFound
from autoinstall.settings import Settings
from autoinstall.values import RepositorySpec

SECRET = "s3cr3t-t0ken-value"


@pytest.fixture(autouse=True)
def no_proxy_and_short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(clone_module, "BACKOFF_SECONDS", 0.05)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """o/n.git below a root, with the commits one (v1) and two, and a newer branch that is not asked for."""
    work = make_repository(tmp_path / "work")
    commit(work, "one")
    git(work, "tag", "-a", "-m", "first", "v1")
    commit(work, "two")
    git(work, "switch", "-q", "-c", "later")
    commit(work, "three", {"later.txt": "later"})
    git(work, "switch", "-q", "trunk")
    git(tmp_path, "clone", "-q", "--bare", str(work), "root/o/n.git")
    return tmp_path / "root" / "o" / "n.git"


def with_credentials(settings: Settings, **credentials: str) -> Settings:
    return settings.model_copy(update={"git_credentials": {k: SecretStr(v) for k, v in credentials.items()}})


@pytest.mark.parametrize("status", [401, 403, 404])
def test_private_or_absent_fails_within_seconds_and_is_not_tried_again(status: int, tmp_path: Path) -> None:
    handler = answering(status)
    started = time.monotonic()
    with serve(handler) as base, pytest.raises(AuthOrNotFound):
        checkout(RepositorySpec(url=f"{base}/o/n"), tmp_path / "out", settings_for(tmp_path, retries=5))
    assert time.monotonic() - started < 20
    assert handler.requests <= 2  # type: ignore[attr-defined]
    assert not (tmp_path / "out").exists()


def test_an_absent_local_repository(tmp_path: Path) -> None:
    with pytest.raises(AuthOrNotFound, match="no repository that can be read"):
        resolve(RepositorySpec(url=str(tmp_path / "nowhere")), settings_for(tmp_path))


def test_a_server_error_is_tried_again_and_then_infrastructure(tmp_path: Path) -> None:
    handler = answering(503)
    with serve(handler) as base, pytest.raises(CloneFailed):
        checkout(RepositorySpec(url=f"{base}/o/n"), tmp_path / "out", settings_for(tmp_path, retries=2))
    assert handler.requests == 3  # type: ignore[attr-defined]


def test_a_server_that_hangs(tmp_path: Path) -> None:
    released = threading.Event()
    started = time.monotonic()
    with serve(hanging(released)) as base:
        with pytest.raises(CloneTimeout):
            checkout(RepositorySpec(url=f"{base}/o/n"), tmp_path / "out", settings_for(tmp_path, timeout=1, retries=3))
        released.set()
    assert time.monotonic() - started < 20
    assert not (tmp_path / "out").exists()


def test_a_transfer_that_breaks_off_is_tried_again(bare: Path, tmp_path: Path) -> None:
    spec = {"url": "", "ref": None}
    handler = smart(bare.parents[1], broken_posts=1)
    with serve(handler) as base:
        spec["url"] = f"{base}/o/n.git"
        made = checkout(RepositorySpec.model_validate(spec), tmp_path / "out", settings_for(tmp_path, retries=1))
        assert made.commit == git(bare, "rev-parse", "trunk")
    handler = smart(bare.parents[1], broken_posts=9)
    with serve(handler) as base, pytest.raises(CloneFailed):
        checkout(RepositorySpec(url=f"{base}/o/n"), tmp_path / "again", settings_for(tmp_path, retries=1))
    assert handler.posts == 2  # type: ignore[attr-defined]
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("way", ["setting", "url"])
def test_a_login_reaches_git_and_nothing_else(
    way: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    arguments: list[str] = []
    plain_popen = process_module.subprocess.Popen

    def watched(command: list[str], **options: object) -> object:
        arguments.extend(command)
        return plain_popen(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(process_module.subprocess, "Popen", watched)
    with serve(smart(bare.parents[1], login=f"user:{SECRET}")) as base:
        url = f"{base}/o/n.git"
        settings = settings_for(tmp_path)
        if way == "setting":
            settings = with_credentials(settings, **{f"{base}/": f"user:{SECRET}"})
        else:
            url = url.replace("http://", f"http://user:{SECRET}@")
        made = checkout(RepositorySpec(url=url), tmp_path / "out", settings)
    assert made.repository == f"{base}/o/n.git"
    assert SECRET not in made.model_dump_json()
    assert arguments
    assert SECRET not in " ".join(arguments)
    assert SECRET not in caplog.text
    kept = [path.read_bytes() for path in (tmp_path / "out" / ".git").rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in content for content in kept)


def test_a_wrong_login_is_told_without_it(bare: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serve(smart(bare.parents[1], login="user:right")) as base:
        url = f"{base}/o/n.git".replace("http://", f"http://user:{SECRET}@")
        with pytest.raises(AuthOrNotFound) as caught:
            checkout(RepositorySpec(url=url), tmp_path / "out", settings_for(tmp_path))
    chain = [str(caught.value), repr(caught.value), json.dumps(caught.value.args)]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert not any(SECRET in text for text in [*chain, caplog.text])


def test_a_login_is_not_given_to_another_host(bare: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    with serve(smart(bare.parents[1], login=f"user:{SECRET}", seen=seen)) as base:
        settings = with_credentials(settings_for(tmp_path), **{"https://example.org/": f"user:{SECRET}"})
        with pytest.raises(AuthOrNotFound):
            checkout(RepositorySpec(url=f"{base}/o/n.git"), tmp_path / "out", settings)
    assert set(seen) == {""}


def test_a_plain_file_server_gives_no_more_than_was_asked(bare: Path, tmp_path: Path) -> None:
    git(bare, "repack", "-a", "-d", "-q")
    git(bare, "update-server-info")
    with serve(files_of(bare.parents[1])) as base:
        made = checkout(RepositorySpec(url=f"{base}/o/n.git"), tmp_path / "out", settings_for(tmp_path))
    every_object = git(made.path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert git(bare, "rev-parse", "trunk") == made.commit
    assert git(bare, "rev-parse", "later") not in every_object
    assert git(made.path, "describe") == git(bare, "describe", "trunk")


def test_a_server_that_serves_no_single_commit(bare: Path, tmp_path: Path) -> None:
    """The older protocol refuses what is no tip: a wider fetch finds it, and what is after it does not stay."""
    one = git(bare, "rev-parse", "v1^{commit}")
    with serve(smart(bare.parents[1], old=True)) as base:
        spec = RepositorySpec(url=f"{base}/o/n.git", ref=one)
        git(bare, "tag", "-d", "v1")  # else it would be a tip
        git(bare, "tag", "v2", "trunk")
        made = checkout(spec, tmp_path / "out", settings_for(tmp_path))
        assert git(made.path, "log", "--all", "--format=%s") == "one"
        assert git(made.path, "tag") == ""
        with pytest.raises(CommitNotFound):
            checkout(spec.model_copy(update={"ref": "f" * 40}), tmp_path / "none", settings_for(tmp_path))
    assert list((tmp_path / "cache" / "clones").iterdir()) == []


def test_what_git_said_comes_without_its_progress() -> None:
    said = "remote: Counting objects: 100% (4/4), done.\nremote: Enumerating objects: 4, done.\nfatal: early EOF\n"
    assert gist(said, ()) == "fatal: early EOF"
