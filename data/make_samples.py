"""Makes git repositories of the sample projects in data/samples, for the demo and for tests.

    python data/make_samples.py DIRECTORY

The commits are the same everywhere and every time: author, dates, file modes and line ends are fixed, and neither the
user's nor the system's git configuration has a say. A file named `gitignore` becomes `.gitignore`; under that name it
would apply to this repository.
"""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent / "samples"
DATE = "2025-06-02T09:00:00+00:00"
LIST = "repositories.csv"

_ENV = {
    "GIT_AUTHOR_NAME": "Sample",
    "GIT_AUTHOR_EMAIL": "sample@example.org",
    "GIT_AUTHOR_DATE": DATE,
    "GIT_COMMITTER_NAME": "Sample",
    "GIT_COMMITTER_EMAIL": "sample@example.org",
    "GIT_COMMITTER_DATE": DATE,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
_GENERATED = shutil.ignore_patterns("__pycache__", "node_modules", "build", ".pytest_cache", "*.egg-info")


def make_samples(directory: Path) -> Path:
    """Make one repository of each sample below `directory`, replacing what is there under the same name.

    Returns:
        The list of them, with file:// URLs and the full SHA of each.
    """
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LIST
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["url", "ref"])
        for sample in sorted(entry for entry in SAMPLES.iterdir() if entry.is_dir()):
            target = directory / sample.name
            rows.writerow([target.as_uri(), _make_repository(sample, target)])
    return path


def _make_repository(sample: Path, target: Path) -> str:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(sample, target, ignore=_GENERATED)
    for ignore in target.rglob("gitignore"):
        ignore.rename(ignore.with_name(".gitignore"))
    _git(target, "init", "--quiet", "--template=", "--initial-branch=main")
    for setting in ("core.autocrlf=false", "core.fileMode=false", "gc.auto=0"):
        _git(target, "config", *setting.split("=", 1))
    _git(target, "add", "--all")
    for script in target.rglob("*.sh"):
        _git(target, "update-index", "--chmod=+x", str(script.relative_to(target)))
        script.chmod(0o755)
    _git(target, "commit", "--quiet", "--no-verify", "--message", "Initial commit")
    return _git(target, "rev-parse", "HEAD")


def _git(directory: Path, *arguments: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=inherited | _ENV, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python data/make_samples.py DIRECTORY")
    sys.stdout.write(f"{make_samples(Path(sys.argv[1]))}\n")
