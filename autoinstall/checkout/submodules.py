"""Submodules, fetched by the same rules as their parent. One that cannot be had is a warning, never a failure."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from autoinstall.checkout.clone import Cloner, Filled
from autoinstall.checkout.git import MIB, Git, GitFailed
from autoinstall.checkout.urls import join, locate
from autoinstall.errors import Cancelled, Infrastructure, InvalidUrl, RepositoryError
from autoinstall.redaction import redact

MAX_SUBMODULES = 100
MAX_DEPTH = 5


@dataclass
class _Sum:
    """What the submodules of one checkout took, all levels together."""

    until: float
    bytes_left: int
    count: int = 0


@dataclass(frozen=True)
class Added:
    """What the submodules added to their parent."""

    size_bytes: int
    file_count: int
    warnings: tuple[str, ...]


def add_submodules(cloner: Cloner, parent: Filled, url: str) -> Added:
    """Fills the gitlinks of `parent`, which came from `url`, and theirs, down to `MAX_DEPTH` levels.

    All together may take as long as one clone, and as much room as the parent left.

    Raises:
        Cancelled: somebody asked for it.
    """
    limits = cloner.settings.clone
    if not limits.submodules:
        skipped = tuple(f"submodule_skipped: {path}: by the settings" for path in parent.submodules)
        return Added(0, 0, skipped)
    room = limits.max_size_mb * MIB - parent.size_bytes
    return _add(cloner, parent, url, _Sum(time.monotonic() + limits.timeout, room), depth=1)


def _add(cloner: Cloner, parent: Filled, url: str, total: _Sum, depth: int) -> Added:
    size = files = 0
    warnings: list[str] = []
    git = Git(parent.directory, cloner.settings.clone, None, cloner.cancelled)
    urls = _urls(git) if parent.submodules else {}
    for path, sha in parent.submodules.items():
        try:
            added = _add_one(cloner, parent, path, sha, url=(url, urls.get(path)), total=total, depth=depth)
        except Cancelled:
            raise
        except (RepositoryError, Infrastructure, InvalidUrl) as error:
            _clear(parent.directory / path)
            warnings.append(f"submodule_skipped: {path}: {error.message}")
        except GitFailed as failure:
            _clear(parent.directory / path)
            warnings.append(f"submodule_skipped: {path}: {failure.message or failure.kind}")
        else:
            size, files = size + added.size_bytes, files + added.file_count
            warnings += [warning.replace(": ", f": {path}/", 1) for warning in added.warnings]
    return Added(size, files, tuple(warnings))


def _add_one(
    cloner: Cloner, parent: Filled, path: str, sha: str, *, url: tuple[str, str | None], total: _Sum, depth: int
) -> Added:
    parent_url, own_url = url
    if own_url is None:
        raise InvalidUrl("it has no URL in .gitmodules")
    total.count += 1
    seconds = total.until - time.monotonic()
    if total.count > MAX_SUBMODULES or depth > MAX_DEPTH or seconds <= 0 or total.bytes_left < MIB:
        raise InvalidUrl("the limit on submodules, their depth, time or size is reached")
    full_url = join(parent_url, own_url)
    remote = locate(full_url, cloner.settings, trusted=False)
    inner = cloner.for_submodule(redact(full_url), remote, seconds, total.bytes_left)
    place = parent.directory / path
    if place.is_symlink() or not place.is_dir():
        raise InvalidUrl("its place in the tree is taken")
    filled = inner.fill(sha, place, inner.advertised())
    total.bytes_left -= filled.size_bytes
    below = _add(cloner, filled, full_url, total, depth + 1)
    # Its history moves below the parent's .git, tied by relative paths: the whole may be copied anywhere.
    Git(parent.directory, cloner.settings.clone, None, cloner.cancelled).bytes(
        "submodule", "absorbgitdirs", "--", f":(literal){path}"
    )
    return Added(
        filled.size_bytes + below.size_bytes, filled.file_count + below.file_count, filled.warnings + below.warnings
    )


def _urls(git: Git) -> dict[str, str]:
    """path → URL, from the committed .gitmodules: in the tree it might be a link that leads out."""
    try:
        listing = git.text("config", "--blob=HEAD:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.(path|url)$")
    except GitFailed:
        return {}
    named: dict[str, dict[str, str]] = {}
    for entry in listing.split("\0"):
        key, _, value = entry.partition("\n")
        name, _, field = key.removeprefix("submodule.").rpartition(".")
        named.setdefault(name, {})[field] = value
    return {entry["path"].rstrip("/"): entry["url"] for entry in named.values() if "path" in entry and "url" in entry}


def _clear(place: Path) -> None:
    """An empty directory, as git leaves it for a submodule that is not there."""
    if place.is_symlink() or not place.is_dir():
        return
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(exist_ok=True)
