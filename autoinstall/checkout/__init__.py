"""From a repository spec to a working tree at one commit: safe, bounded, and free of credentials.

Nothing of the repository is executed: no hook, filter, fsmonitor, or other configuration of its own or of the host's
takes part. Credentials reach the git process by its environment alone.
"""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autoinstall.checkout.clone import Cloner
from autoinstall.checkout.git import GitFailed
from autoinstall.checkout.secrets import without_credentials
from autoinstall.checkout.submodules import add_submodules
from autoinstall.checkout.urls import check_url, locate
from autoinstall.errors import DiskFull, UnusableDirectory
from autoinstall.redaction import without_userinfo
from autoinstall.settings import Settings
from autoinstall.values import Checkout, RepositorySpec

__all__ = ["check_url", "checkout", "resolve", "without_credentials"]


def resolve(spec: RepositorySpec, settings: Settings, *, cancelled: Callable[[], bool] | None = None) -> str:
    """The full SHA that `spec` means now. Cheap: it asks the remote for its refs, and for a full SHA nothing at all;
    a short SHA alone needs a fetch of the commits.

    Raises:
        InvalidUrl, AuthOrNotFound, CommitNotFound, EmptyRepository, CloneTimeout, CloneFailed, Cancelled
    """
    remote = locate(spec.url, settings)
    repository = without_userinfo(spec.url)
    with _product_errors(repository):
        return Cloner(repository, remote, settings, cancelled).resolve(spec.ref)


def checkout(
    spec: RepositorySpec, directory: Path, settings: Settings, *, cancelled: Callable[[], bool] | None = None
) -> Checkout:
    """Fills `directory`, which is made, with the repository at its commit: HEAD detached there, one local branch named
    like the remote's default one, the tags of its history, no remote, no hook. On any failure nothing of it remains.

    Raises:
        InvalidUrl, AuthOrNotFound, CommitNotFound, EmptyRepository, RepositoryTooLarge, CloneTimeout, CloneFailed,
        DiskFull, UnusableDirectory, Cancelled
    """
    remote = locate(spec.url, settings)
    repository = without_userinfo(spec.url)
    _make(directory)
    try:
        with _product_errors(repository):
            cloner = Cloner(repository, remote, settings, cancelled)
            known = cloner.advertised()
            filled = cloner.fill(cloner.resolve(spec.ref, known), directory, known)
            added = add_submodules(cloner, filled, repository)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Checkout(
        repository=repository,
        ref=spec.ref,
        commit=filled.commit,
        commit_date=filled.commit_date,
        path=directory,
        size_bytes=filled.size_bytes + added.size_bytes,
        file_count=filled.file_count + added.file_count,
        warnings=filled.warnings + added.warnings,
    )


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UnusableDirectory(f"{directory} is not empty.", hint="Give a directory that does not exist yet.")
    except OSError as error:
        raise UnusableDirectory(f"{directory} cannot be used: {error.strerror}.") from None


@contextmanager
def _product_errors(repository: str) -> Iterator[None]:
    try:
        yield
    except GitFailed as failure:
        raise failure.as_error(repository) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"No space is left for the clone of {repository}.", hint="Free some disk space.") from None
        raise
