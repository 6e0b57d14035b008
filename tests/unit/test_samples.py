"""The sample projects become the same repositories everywhere."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"python-library", "node-package", "cmake-program", "web-app", "needs-file", "cannot-work"}


def _make(directory, **env):
    script = ROOT / "data" / "make_samples.py"
    done = subprocess.run(
        [sys.executable, str(script), str(directory)], check=True, capture_output=True, text=True, env=env or None
    )
    with open(done.stdout.strip(), encoding="utf-8", newline="") as stream:
        return {row["url"].rpartition("/")[2]: row for row in csv.DictReader(stream)}


def _git(directory, *arguments):
    return subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("samples")
    return directory, _make(directory)


def test_there_is_one_repository_of_each_sample(made):
    directory, rows = made
    assert rows.keys() >= NAMES
    for name, row in rows.items():
        assert row["url"] == (directory / name).as_uri()
        assert _git(directory / name, "rev-parse", "HEAD").strip() == row["ref"]
        assert _git(directory / name, "status", "--porcelain") == ""


def test_the_commits_do_not_depend_on_place_user_or_configuration(made, tmp_path):
    config = tmp_path / "config"
    config.write_text("[core]\nautocrlf = true\n[user]\nname = Somebody\n[commit]\ngpgsign = true\n")
    env = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": str(config), "TZ": "Asia/Tokyo", "GIT_DIR": "/nowhere"}
    again = _make(tmp_path / "elsewhere", **env)
    assert {name: row["ref"] for name, row in again.items()} == {name: row["ref"] for name, row in made[1].items()}


def test_making_them_again_replaces_them(made):
    directory, rows = made
    (directory / "web-app" / "stray.txt").write_text("")
    assert _make(directory) == rows
    assert not (directory / "web-app" / "stray.txt").exists()


def test_ignore_files_and_modes(made):
    directory, _ = made
    tracked = _git(directory / "needs-file", "ls-files").split()
    assert ".gitignore" in tracked
    assert "gitignore" not in tracked
    assert "config.ini" not in tracked
    assert _git(directory / "web-app", "ls-files", "--stage", "scripts/smoke.sh").startswith("100755")
