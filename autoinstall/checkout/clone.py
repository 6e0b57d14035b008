"""Fills a directory with one commit of a remote: its history, its tags, its files, and nothing else."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import uniform
from typing import TypeVar

from git import Repo

from autoinstall.checkout.git import MIB, Failure, Git, GitFailed, environment
from autoinstall.checkout.refs import Advertised, advertised, check_ref, full_sha, is_short_sha, look_up
from autoinstall.checkout.urls import Remote
from autoinstall.errors import Cancelled, CloneFailed, CommitNotFound, RepositoryTooLarge, UnusableDirectory
from autoinstall.settings import Settings
from autoinstall.tree import Tree

T = TypeVar("T")

BACKOFF_SECONDS = 1.0
_MAX_BACKOFF_SECONDS = 30.0
_PIN = "refs/autoinstall/pin"
_FETCH = ("fetch", "--no-write-fetch-head", "--update-shallow", "--no-recurse-submodules", "--progress")
_LFS_MARK = "version https://git-lfs.github.com/spec/"
_MAX_LFS_POINTER = 1024


@dataclass(frozen=True)
class Filled:
    """What one directory got.

    Attributes:
        size_bytes: history and files.
        submodules: path → commit of each gitlink of the tree; none of them is there yet.
    """

    directory: Path
    commit: str
    commit_date: datetime
    size_bytes: int
    file_count: int
    submodules: dict[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Cloner:
    """Resolves refs and fills directories, for one repository.

    Attributes:
        repository: as messages may show it.
        remote: where it is fetched from.
    """

    repository: str
    remote: Remote
    settings: Settings
    cancelled: Callable[[], bool] | None = None

    @property
    def _git(self) -> Git:
        # The root: below it, git would read the configuration of whatever repository we are started in.
        return Git(Path("/"), self.settings.clone, self.remote, self.cancelled)

    def advertised(self) -> Advertised:
        """What the remote has, asked as often as the settings allow."""
        return self._patiently(lambda: advertised(self._git, self.remote))

    def resolve(self, ref: str | None, known: Advertised | None = None) -> str:
        """The full SHA of `ref`. A full SHA passes through, unasked."""
        if (sha := full_sha(ref)) is not None:
            return sha
        if ref is not None:
            check_ref(ref, self.repository)
        sha = look_up(known or self.advertised(), ref, self.repository)
        if sha is None and ref is not None and is_short_sha(ref):
            sha = self._expand(ref)
        if sha is None:
            raise CommitNotFound(f"{ref!r} is no branch, tag or commit of {self.repository}.", hint="Check its ref.")
        return sha

    def fill(self, sha: str, directory: Path, known: Advertised) -> Filled:
        """Makes `directory` a working tree at `sha`, with one local branch there, named like the remote's default one,
        and HEAD detached."""
        if len(sha) != 40:
            raise CloneFailed(f"{self.repository} uses SHA-256 object names, which are not supported.")
        warnings: tuple[str, ...] = ()
        try:
            exact = self._patiently(lambda: self._fetch(self.remote, sha, directory))
        except GitFailed as failure:
            match failure.kind:
                case Failure.REFUSED:
                    with self._everything(sha) as whole:
                        exact = self._fetch(whole, sha, directory)
                case Failure.DAMAGED:
                    # Old objects may be gone (an expired promisor, a damaged mirror) while the commit itself is whole.
                    exact = self._patiently(lambda: self._fetch(self.remote, sha, directory, "--depth=1"))
                    warnings = ("history_truncated: the remote lacks objects of the history; only the commit is here",)
                case _:
                    raise
        local = self._git.against(None).at(directory)
        if local.text("cat-file", "-t", sha) != "commit":
            raise CommitNotFound(f"{sha} of {self.repository} is not a commit.", hint="Give the SHA of a commit.")
        _leave_only(local, sha, known.branch_name)
        self._abbreviate_alike(local, sha)
        if not exact:
            local.bytes("repack", "-a", "-d", "-q")
            local.bytes("prune", "--expire=now")
        sizes, submodules = _listing(local, sha)
        history = _bytes_below(directory / ".git")
        self._check_caps(history + sum(sizes.values()), len(sizes))
        local.bytes("checkout", "--force", "--progress", "--detach", sha)
        return Filled(
            directory=directory,
            commit=sha,
            commit_date=self._verified_date(directory, sha),
            size_bytes=history + sum(sizes.values()),
            file_count=len(sizes),
            submodules=submodules,
            warnings=warnings + _lfs_warnings(directory, sizes),
        )

    def _abbreviate_alike(self, git: Git, sha: str) -> None:
        """The more objects a repository has, the longer are git's short names, which `git describe` ends in: ours
        become as long as the full repository's, where that is at hand to ask."""
        source = self.remote.path
        if source is not None and source.is_dir():
            short = git.at(source).text("rev-parse", "--short", sha)
            git.bytes("config", "core.abbrev", str(len(short)))

    def _verified_date(self, directory: Path, sha: str) -> datetime:
        """The committer date in UTC, read back from the finished checkout."""
        with Repo(directory) as repo:
            repo.git.update_environment(**environment(self.settings.clone))
            if not repo.head.is_detached or repo.head.commit.hexsha != sha:
                raise CloneFailed(f"Commit mismatch: {self.repository} was asked for {sha}.", hint="Try again.")
            return repo.head.commit.committed_datetime.astimezone(UTC)

    def _check_caps(self, size: int, files: int) -> None:
        limits = self.settings.clone
        if size > limits.max_size_mb * MIB:
            raise RepositoryTooLarge(
                f"{self.repository} takes {size // MIB} MiB; the limit is {limits.max_size_mb}.",
                hint="Raise AUTOINSTALL_CLONE__MAX_SIZE_MB, or leave the repository out.",
            )
        if files > limits.max_files:
            raise RepositoryTooLarge(
                f"{self.repository} has {files} files; the limit is {limits.max_files}.",
                hint="Raise AUTOINSTALL_CLONE__MAX_FILES, or leave the repository out.",
            )

    def _fetch(self, remote: Remote, sha: str, directory: Path, *options: str) -> bool:
        """The commit, its history and the tags in it, into an empty repository: what is there is thrown away.

        Returns:
            Whether nothing else came: a plain file server has whole packs to give, and no progress to tell.
        """
        git = self._empty(directory).against(remote)
        # Tags come along where they point into what is fetched, so that `git describe` works.
        return "Receiving objects" in self._transfer(git, remote.address, f"+{sha}:{_PIN}", options=options)

    def _empty(self, directory: Path, *options: str) -> Git:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        git = self._git.against(None).at(directory)
        git.bytes("init", "--quiet", *options)
        return git

    def _transfer(self, git: Git, source: str, *specs: str, options: tuple[str, ...] = ()) -> str:
        return git.transfer(*_FETCH, *options, "--", source, *specs, size=lambda: _bytes_below(git.directory))

    @contextmanager
    def _everything(self, sha: str) -> Iterator[Remote]:
        """A temporary bare clone of all branches, or of all refs, of a server that serves no single commit."""
        with self._scratch() as scratch:
            git = self._empty(scratch / "all", "--bare").against(self.remote)
            for spec in ("+refs/heads/*:refs/heads/*", "+refs/*:refs/*"):
                self._patiently(lambda spec=spec: self._transfer(git, self.remote.address, spec))  # type: ignore[misc]
                if git.against(None).succeeds("cat-file", "-e", f"{sha}^{{commit}}"):
                    break
            else:
                raise CommitNotFound(f"{sha} does not exist in {self.repository}.", hint="Check the ref.")
            yield Remote(str(git.directory))

    def _expand(self, short: str) -> str | None:
        """The full SHA for a short one. Only the commits themselves tell, so they are fetched, without any file."""
        with self._scratch() as scratch:
            git = self._empty(scratch / "commits", "--bare").against(self.remote)
            specs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            git.bytes("config", "remote.source.url", self.remote.address)  # a filter needs a remote with a name
            self._patiently(lambda: self._transfer(git, "source", *specs, options=("--filter=tree:0",)))
            local = git.against(None)
            try:
                return local.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{short}^{{commit}}")
            except GitFailed:
                return None

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        place = self.settings.cache / "clones"
        try:
            place.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix="scratch-", dir=place, ignore_cleanup_errors=True)
        except OSError as error:
            raise UnusableDirectory(f"The cache {place} cannot be written: {error.strerror}.") from None
        with scratch as name:
            yield Path(name)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Does `action`, again after a growing pause where a transfer broke."""
        for attempt in range(self.settings.clone.retries):
            try:
                return action()
            except GitFailed as failure:
                if failure.kind is not Failure.BROKEN:
                    raise
            self._pause(min(BACKOFF_SECONDS * 2**attempt, _MAX_BACKOFF_SECONDS) * uniform(0.75, 1.25))
        return action()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.cancelled and self.cancelled():
                raise Cancelled("The clone was cancelled.")
            time.sleep(min(left, 0.2))

    def for_submodule(self, repository: str, remote: Remote, seconds: float, bytes_left: int) -> "Cloner":
        """One for a submodule, within what is left of the time and the size."""
        limits = self.settings.clone.model_copy(
            update={
                "timeout": min(seconds, self.settings.clone.timeout),
                "max_size_mb": max(0, bytes_left // MIB),
            }
        )
        return replace(
            self, repository=repository, remote=remote, settings=self.settings.model_copy(update={"clone": limits})
        )


def _leave_only(git: Git, sha: str, branch: str) -> None:
    """One branch, the tags of the commit's own history, and no object that neither reaches."""
    git.bytes("update-ref", f"refs/heads/{branch}", sha)
    git.bytes("update-ref", "--no-deref", "HEAD", sha)
    git.bytes("update-ref", "-d", _PIN)
    for name in git.text("for-each-ref", "--format=%(refname)", f"--no-merged={sha}", "refs/tags").splitlines():
        git.bytes("update-ref", "-d", name)


def _listing(git: Git, sha: str) -> tuple[dict[str, int], dict[str, str]]:
    """(path → bytes of each file, path → commit of each gitlink), read before anything is written out."""
    sizes: dict[str, int] = {}
    links: dict[str, str] = {}
    for entry in git.bytes("ls-tree", "-r", "-l", "-z", "--full-tree", sha).split(b"\0"):
        if entry:
            about, _, name = entry.partition(b"\t")
            _, kind, object_name, size = about.decode("ascii").split()
            if kind == "commit":
                links[os.fsdecode(name)] = object_name
            else:
                sizes[os.fsdecode(name)] = int(size)
    return sizes, links


def _bytes_below(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:  # git renames its temporary files meanwhile
                continue
    return total


def _lfs_warnings(directory: Path, sizes: dict[str, int]) -> tuple[str, ...]:
    tree = Tree(directory)
    attributes = [name for name in sizes if name.rpartition("/")[2] == ".gitattributes"]
    if not any("filter=lfs" in tree.read(name) for name in attributes):
        return ()
    small = (name for name, size in sizes.items() if 100 <= size <= _MAX_LFS_POINTER)
    pointers = sorted(name for name in small if tree.read(name).startswith(_LFS_MARK))
    if not pointers:
        return ()
    return (f"lfs_skipped: {len(pointers)} files are LFS pointers, {', '.join(pointers[:5])} among them",)
