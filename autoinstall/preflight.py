"""What can be told before anything is begun."""

import uuid
from pathlib import Path

from autoinstall import agents
from autoinstall.datasets.store import store_of
from autoinstall.datasets.writer import ensure_writable
from autoinstall.errors import UnusableDirectory
from autoinstall.sandbox.engine import connect
from autoinstall.settings import Settings


def preflight(settings: Settings) -> None:
    """See that agents, directories and engine are there, the cheapest first.

    Raises:
        BadInput: a role is to be played by a model and none is configured; cache or datasets cannot be written.
        EngineUnavailable: no container engine answers.
        StorageFailed, DiskFull: the datasets' storage does not answer, or is full.
    """
    agents.check_models(settings)
    ensure_cache(settings.cache)
    ensure_writable(store_of(settings.data, settings.storage))
    connect(settings).close()


def try_directory(path: Path) -> None:
    """Make the directory, and a file in it for a moment.

    Raises:
        OSError: either is refused.
    """
    path.mkdir(parents=True, exist_ok=True)
    probe = path / f".{uuid.uuid4().hex}.tmp"
    probe.touch()
    probe.unlink()


def ensure_cache(cache: Path) -> None:
    """Make the cache directory.

    Raises:
        UnusableDirectory: it cannot be made or written.
    """
    try:
        try_directory(cache)
    except OSError as error:
        raise UnusableDirectory(
            f"The cache directory {cache} cannot be written: {error.strerror or error}.",
            hint="AUTOINSTALL_CACHE names another one; it needs room for clones and layers of images.",
        ) from error
