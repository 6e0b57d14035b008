"""How long environments keep their images: so many of each repository, and so many days."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from autoinstall.datasets.reader import load_table
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import DataPlace
from autoinstall.settings import RetentionSettings
from autoinstall.values import Value


class KnownEnvironment(Value):
    """What retention needs of an `environments` row. `image_digest` is None for a row that an early version wrote."""

    environment_id: str
    repository: str
    finished_at: datetime
    image: str | None
    image_digest: str | None


def known_environments(data: DataPlace) -> tuple[KnownEnvironment, ...]:
    """Every environment of the datasets.

    Raises:
        StorageFailed: the dataset cannot be read.
    """
    table = load_table(data, Dataset.ENVIRONMENTS, list(KnownEnvironment.model_fields))
    return tuple(KnownEnvironment.model_validate(row) for row in table.to_pylist())


def names_of(environments: Iterable[KnownEnvironment]) -> frozenset[str]:
    """References and digests of their images."""
    return frozenset(name for one in environments for name in (one.image, one.image_digest) if name)


def expired(
    environments: Iterable[KnownEnvironment], settings: RetentionSettings, now: datetime
) -> tuple[KnownEnvironment, ...]:
    """Those beyond what the settings say to keep, the oldest first; none where they say nothing."""
    by_repository: dict[str, list[KnownEnvironment]] = defaultdict(list)
    for one in sorted(environments, key=lambda one: one.finished_at, reverse=True):
        by_repository[one.repository].append(one)
    oldest = now - timedelta(days=settings.environment_days) if settings.environment_days is not None else None
    gone = [
        one
        for newest_first in by_repository.values()
        for rank, one in enumerate(newest_first, start=1)
        if (settings.environments is not None and rank > settings.environments)
        or (oldest is not None and one.finished_at < oldest)
    ]
    return tuple(sorted(gone, key=lambda one: one.finished_at))
