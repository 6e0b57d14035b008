import shutil
from pathlib import Path

import pytest
from checkout_remotes import commit, git, make_repository, settings_for

from autoinstall.checkout import checkout
from autoinstall.values import Checkout, RepositorySpec

BASE = "https://example.org/"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """app has lib at vendor/lib, which has deep at deep; all are reached by a mirror."""
    for name in ("deep", "lib", "app"):
        make_repository(tmp_path / "root" / name)
        commit(tmp_path / "root" / name, f"{name} one", {f"{name}.txt": name})
    root = tmp_path / "root"
    add(root / "lib", "../deep", "deep", root / "deep")
    add(root / "app", f"{BASE}lib.git", "vendor/lib", root / "lib")
    commit(root / "lib", "lib later", {"later.txt": "later"})
    return root


def add(parent: Path, url: str, path: str, source: Path) -> None:
    git(parent, "submodule", "add", "-q", str(source), path)
    git(parent, "config", "-f", ".gitmodules", f"submodule.{path}.url", url)
    git(parent, "commit", "-q", "-am", f"add {path}")


def make(root: Path, place: Path, **clone: object) -> Checkout:
    settings = settings_for(root.parent, mirrors={BASE: f"file://{root}/"}, **clone)
    return checkout(RepositorySpec(url=f"{BASE}app"), place, settings)


def test_submodules_come_along_and_the_whole_can_be_moved(root: Path, tmp_path: Path) -> None:
    made = make(root, tmp_path / "out")
    assert made.warnings == ()
    assert made.repository == f"{BASE}app"
    assert made.file_count == 2 + 2 + 1
    moved = tmp_path / "moved" / "elsewhere"
    shutil.copytree(made.path, moved, symlinks=True)
    shutil.rmtree(made.path)
    lib, deep = moved / "vendor/lib", moved / "vendor/lib/deep"
    assert (deep / "deep.txt").read_text() == "deep"
    assert (lib / ".git").is_file()
    assert git(moved, "status", "--porcelain") == ""
    assert git(lib, "rev-parse", "HEAD") == git(moved, "rev-parse", "HEAD:vendor/lib")
    assert git(lib, "log", "--all", "--format=%s").splitlines() == ["add deep", "lib one"]
    for place in (moved, lib, deep):
        assert git(place, "remote") == ""
    configs = [path.read_text() for path in moved.rglob("config") if path.is_file()]
    assert len(configs) == 3
    assert not any(str(root) in text or "[remote" in text for text in configs)


def test_submodules_can_be_left_out(root: Path, tmp_path: Path) -> None:
    made = make(root, tmp_path / "out", submodules=False)
    assert made.warnings == ("submodule_skipped: vendor/lib: by the settings",)
    assert list((made.path / "vendor/lib").iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/absent",
        "ext::sh -c touch% ran",
        "-u./x",
        "file:///{root}/lib",
        "{root}/lib",
        "ssh://git@127.0.0.1:1/lib",
        "../../../../lib",
        "http://127.0.0.1:1/lib",
    ],
)
def test_one_that_cannot_be_had_is_a_warning(url: str, root: Path, tmp_path: Path) -> None:
    app = root / "app"
    git(app, "config", "-f", ".gitmodules", "submodule.vendor/lib.url", url.format(root=root))
    git(app, "commit", "-q", "-am", "other url")
    made = make(root, tmp_path / "out", retries=0)
    assert len(made.warnings) == 1
    assert made.warnings[0].startswith("submodule_skipped: vendor/lib: ")
    assert (made.path / "app.txt").exists()
    assert list((made.path / "vendor/lib").iterdir()) == []
    assert git(made.path, "status", "--porcelain") == ""


def test_a_missing_commit_is_a_warning_below_the_first_level_too(root: Path, tmp_path: Path) -> None:
    shutil.rmtree(root / "deep")
    make_repository(root / "deep")
    commit(root / "deep", "another history", {"x": "y"})
    made = make(root, tmp_path / "out", retries=0)
    assert len(made.warnings) == 1
    assert made.warnings[0].startswith("submodule_skipped: vendor/lib/deep: ")
    assert (made.path / "vendor/lib/lib.txt").exists()


def test_a_gitlink_without_an_entry_is_a_warning(root: Path, tmp_path: Path) -> None:
    git(root / "app", "rm", "-q", "--cached", ".gitmodules")
    git(root / "app", "commit", "-q", "-m", "no .gitmodules")
    made = make(root, tmp_path / "out")
    assert len(made.warnings) == 1
    assert "no URL in .gitmodules" in made.warnings[0]


def test_what_the_parent_left_of_the_size_is_what_submodules_get(root: Path, tmp_path: Path) -> None:
    (root / "lib" / "zeros").write_bytes(bytes(4 * 2**20))
    git(root / "lib", "add", "-A")
    git(root / "lib", "commit", "-q", "-m", "big")
    git(root / "app" / "vendor/lib", "fetch", "-q", str(root / "lib"), "trunk")
    git(root / "app" / "vendor/lib", "checkout", "-q", "FETCH_HEAD")
    git(root / "app", "commit", "-q", "-am", "bump")
    made = make(root, tmp_path / "out", max_size_mb=3)
    assert len(made.warnings) == 1
    assert "MiB" in made.warnings[0]
