"""What `autoinstall prune` removes."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from autoinstall.datasets.store import store_of
from autoinstall.errors import BadInput
from autoinstall.retention import expired, known_environments, names_of
from autoinstall.sandbox import reaper
from autoinstall.sandbox.images import outdated_bases
from autoinstall.settings import Settings
from autoinstall.values import Value

if TYPE_CHECKING:
    from docker import DockerClient


class Choice(Value):
    """Which images of accepted environments go: `expired` are ids; `keep` names those that stay, None for all."""

    expired: tuple[str, ...] = ()
    keep: frozenset[str] | None = None


def choice(settings: Settings, *, retain: bool, newest: int | None, days: float | None, unnamed: bool) -> Choice:
    """What the options mean for the environments of the settings' datasets.

    Raises:
        BadInput: there is nothing to go by.
        StorageFailed: the datasets cannot be read.
    """
    given = {"environments": newest, "environment_days": days}
    retention = settings.retention.model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )
    if not retain and (newest is not None or days is not None):
        raise BadInput("--newest and --days say what --retain leaves.", hint="Add --retain.")
    if retain and retention.environments is None and retention.environment_days is None:
        raise BadInput(
            "Nothing says how many environments to keep.",
            hint="Give --newest N or --days N, or set AUTOINSTALL_RETENTION__ENVIRONMENTS or …__ENVIRONMENT_DAYS.",
        )
    known = known_environments(store_of(settings.data, settings.storage)) if retain or unnamed else ()
    if unnamed and not known:
        raise BadInput(
            f"There is no environment in {settings.data}, so every image would go.",
            hint="--data names the datasets whose environments are to stay.",
        )
    gone = expired(known, retention, datetime.now(UTC)) if retain else ()
    return Choice(
        expired=tuple(one.environment_id for one in gone),
        keep=names_of(known) if unnamed else None,
    )


def prune(client: "DockerClient", settings: Settings, chosen: Choice, *, dry_run: bool) -> reaper.ReapReport:
    """Remove it.

    Raises:
        EngineUnavailable: the engine does not answer.
    """
    return reaper.reap(
        client,
        settings.cache,
        keep=chosen.keep,
        expired=chosen.expired,
        workspace_days=settings.retention.workspace_days,
        old_bases=outdated_bases(client, settings),
        dry_run=dry_run,
        measure=not dry_run,
    )
