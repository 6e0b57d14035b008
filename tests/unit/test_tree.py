import os
from pathlib import Path

import pytest

import autoinstall.tree as tree_module
from autoinstall.tree import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("README.md", "src/a.py", "src/deep/b.py", ".github/workflows/ci.yml", ".git/config", "sub/.git"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}\n")
    return root


def test_files_are_sorted_and_without_gits_own(root: Path) -> None:
    assert Tree(root).files == (".github/workflows/ci.yml", "README.md", "src/a.py", "src/deep/b.py")


def test_links_are_neither_listed_nor_followed(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "key"
    secret.parent.mkdir()
    secret.write_text("secret")
    (root / "link").symlink_to(secret)
    (root / "directory").symlink_to(secret.parent)
    (root / "inside").symlink_to("README.md")
    (root / "loop").symlink_to(".")
    tree = Tree(root)
    for path in ("link", "directory/key", "inside", "loop/README.md", "../secret/key", str(secret), "src/../README.md"):
        assert not tree.has(path)
        assert tree.read(path) == ""
    assert not tree.has_directory("directory")


def test_a_file_that_becomes_a_link_later_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    tree = Tree(root)
    assert tree.has("README.md")
    (root / "README.md").unlink()
    (root / "README.md").symlink_to(tmp_path / "secret")
    assert tree.read("README.md") == ""


def test_pipes_and_unreadable_names_do_no_harm(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.txt"))).write_text("x")
    tree = Tree(root)
    assert "pipe" not in tree.files
    "\n".join(tree.files).encode()
    assert len(tree.files) == 4


def test_reading_is_bounded_and_never_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "MAX_FILE_BYTES", 10)
    (root / "long").write_text("x" * 20)
    (root / "binary").write_bytes(b"\xff\x00a")
    tree = Tree(root)
    assert tree.read("long") == "x" * 10
    assert tree.read("binary") == "\ufffd\x00a"
    assert tree.read("absent") == ""


def test_the_number_of_files_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "MAX_FILES", 2)
    assert len(Tree(root).files) == 2


def test_lines_are_counted_as_editors_do(root: Path) -> None:
    (root / "old.py").write_bytes(b"\xef\xbb\xbfone\r\ntwo\x0c\x0bstill two\n\nfour")
    (root / "empty").write_text("")
    tree = Tree(root)
    assert list(tree.lines("old.py")) == [(1, "one"), (2, "two\x0c\x0bstill two"), (3, ""), (4, "four")]
    assert tree.find_line("old.py", "four") == 4
    assert tree.find_line("old.py", "five") == 0
    assert list(tree.lines("empty")) == []


def test_questions_about_paths(root: Path) -> None:
    tree = Tree(root)
    assert tree.has_directory("src/")
    assert tree.has_directory("src/deep")
    assert not tree.has_directory("sr")
    assert tree.first("setup.py", "README.md") == "README.md"
    assert tree.first("setup.py") is None


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.md", ("README.md",)),
        ("*.py", ()),
        ("src/*.py", ("src/a.py",)),
        ("**/*.py", ("src/a.py", "src/deep/b.py")),
        ("**/README.md", ("README.md",)),
        ("src/**", ("src/a.py", "src/deep/b.py")),
        ("src/?.py", ("src/a.py",)),
        ("README+md", ()),
    ],
)
def test_globs(pattern: str, expected: tuple[str, ...], root: Path) -> None:
    assert Tree(root).match(pattern) == expected
