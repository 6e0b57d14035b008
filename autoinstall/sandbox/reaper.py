"""Removes what processes that are gone have left on the engine, and nothing else."""

import contextlib
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker.errors

from autoinstall.errors import EngineFailed
from autoinstall.liveness import is_dead
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.labels import (
    ATTEMPT_REPOSITORY,
    ENVIRONMENT_REPOSITORY,
    KIND,
    OURS,
    OWNER,
    PROCESS,
    WORKSPACE_REPOSITORY,
    Kind,
)
from autoinstall.sandbox.network import remove_container
from autoinstall.values import Value

if TYPE_CHECKING:
    from docker import DockerClient

WORKSPACE_DAYS = 14.0

_FILTERS = {"label": f"{OURS}=1"}
_CONTAINERS = frozenset({Kind.SANDBOX, Kind.SIDECAR, Kind.BUILD})
"""Kinds of containers that are ours. A container that somebody starts from an environment inherits the image's labels,
and so its kind: that is none of these."""

_logger = logging.getLogger(__name__)


class ReapReport(Value):
    """What was removed, by name; `failed` is what the engine would not remove, with its reason.

    `freed_bytes` is by how much what the engine stores has shrunk: images share layers, so a name may cost nothing.
    """

    containers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    freed_bytes: int = 0

    @property
    def total(self) -> int:
        return len(self.containers) + len(self.networks) + len(self.images)


def reap(
    client: "DockerClient",
    cache: Path,
    *,
    keep: Collection[str] | None = None,
    expired: Collection[str] = (),
    live_owners: Collection[str] = (),
    workspace_days: float = WORKSPACE_DAYS,
    old_bases: Collection[str] = (),
    measure: bool = False,
    dry_run: bool = False,
) -> ReapReport:
    """Remove containers (with their anonymous volumes), networks and images of ours whose process is certainly dead:
    see `autoinstall.liveness`. What another host's process holds is left alone.

    Args:
        cache: the directory by which processes tell each other that they live.
        keep: digests and references of environment images that somebody still needs, such as those that a dataset
            names. None keeps every accepted one; images of attempts that were never accepted go.
        live_owners: owners whose things stay whatever became of the process that made them.
        expired: ids of environments whose images go, whoever made them; every name that ends in such an id does.
        workspace_days: workspace images older than this go, and images of environments that were pulled, which their
            registry has; unless something uses them.
        old_bases: base images that go, unless something uses them.
        measure: find out how much was freed, which takes the engine a moment.
        dry_run: only report what would be removed.

    Raises:
        EngineUnavailable: the engine does not answer.
    """
    reaper = _Reaper(client, cache, frozenset(live_owners), dry_run)
    before = _stored(client) if measure else 0
    found = reaper.reap(keep, frozenset(expired), workspace_days, old_bases)
    freed = before - _stored(client) if measure and found.total else 0
    return found.model_copy(update={"freed_bytes": max(freed, 0)})


def _stored(client: "DockerClient") -> int:
    with engine_errors("measure what the engine stores"):
        used: Any = client.api.df()
    containers = sum(container.get("SizeRw") or 0 for container in used.get("Containers") or ())
    return int(used.get("LayersSize") or 0) + int(containers)


class _Reaper:
    def __init__(self, client: "DockerClient", cache: Path, live_owners: frozenset[str], dry_run: bool) -> None:
        self._cache = cache
        self._api: Any = client.api  # the SDK's own annotations leave most of these calls out
        self._live_owners = live_owners
        self._dry_run = dry_run
        self._failed: list[str] = []

    def reap(
        self,
        keep: Collection[str] | None,
        expired: frozenset[str],
        workspace_days: float,
        old_bases: Collection[str],
    ) -> ReapReport:
        containers = tuple(self._containers())
        networks = tuple(self._networks())
        images = (
            *self._images(keep, expired, workspace_days),
            *(name for base in old_bases for name in self._remove(base)),
        )
        return ReapReport(containers=containers, networks=networks, images=images, failed=tuple(self._failed))

    def _is_abandoned(self, labels: Mapping[str, str]) -> bool:
        return is_dead(labels.get(PROCESS, ""), self._cache) and labels.get(OWNER) not in self._live_owners

    def _containers(self) -> Iterator[str]:
        with engine_errors("list containers"):
            found = self._api.containers(all=True, filters=_FILTERS)
        for container in found:
            labels = container["Labels"]
            if labels.get(KIND) in _CONTAINERS and self._is_abandoned(labels):
                name = container["Names"][0].lstrip("/") if container.get("Names") else container["Id"]
                with self._noting(name):
                    if not self._dry_run:
                        remove_container(self._api, container["Id"])
                    yield name

    def _networks(self) -> Iterator[str]:
        with engine_errors("list networks"):
            found = self._api.networks(filters=_FILTERS)
        for network in found:
            if self._is_abandoned(network["Labels"]):
                with self._noting(network["Name"]), engine_errors("remove a network"):
                    if not self._dry_run:
                        self._api.remove_network(network["Id"])
                    yield network["Name"]

    def _images(self, keep: Collection[str] | None, expired: frozenset[str], workspace_days: float) -> Iterator[str]:
        with engine_errors("list images"):
            found = self._api.images(filters=_FILTERS)
        oldest = time.time() - workspace_days * 86400
        for image in found:
            tags = [_short(tag) for tag in image.get("RepoTags") or () if tag != "<none>:<none>"]
            if past := [tag for tag in tags if tag.rpartition(":")[2] in expired]:
                for reference in past:
                    yield from self._remove(reference)
            elif self._is_leftover(image, tags, keep, oldest):
                # By tag where it has some: then one that somebody else tagged too stays theirs.
                for reference in [tag for tag in tags if _repository(tag) in _OWN_REPOSITORIES] or [image["Id"]]:
                    yield from self._remove(reference)

    def _remove(self, reference: str) -> Iterator[str]:
        with self._noting(reference), engine_errors("remove an image"):
            if not self._dry_run:
                with contextlib.suppress(docker.errors.ImageNotFound):  # another process was faster
                    self._api.remove_image(reference)
            yield reference

    def _is_leftover(
        self, image: Mapping[str, Any], tags: list[str], keep: Collection[str] | None, oldest: float
    ) -> bool:
        labels = image["Labels"] or {}
        digests = [digest for digest in image.get("RepoDigests") or () if digest != "<none>@<none>"]
        if labels.get(KIND) == Kind.ENVIRONMENT and digests and not tags:
            return int(image["Created"]) < oldest
        own = [tag for tag in tags if _repository(tag) in _OWN_REPOSITORIES]
        if tags and not own:
            return False
        if labels.get(KIND) == Kind.WORKSPACE and tags:
            return int(image["Created"]) < oldest
        if labels.get(KIND) not in (Kind.WORKSPACE, Kind.ENVIRONMENT) or not self._is_abandoned(labels):
            return False
        if keep is None and any(_repository(tag) != ATTEMPT_REPOSITORY for tag in tags):
            return False
        return not {image["Id"], *tags, *digests} & set(map(_short, keep or ()))

    @contextlib.contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        try:
            yield
        except EngineFailed as error:
            # In use after all, or in the middle of being removed: the next run has another look.
            self._failed.append(f"{name}: {error.message}")
            _logger.warning("%s is not removed: %s", name, error)


_OWN_REPOSITORIES = frozenset({ATTEMPT_REPOSITORY, ENVIRONMENT_REPOSITORY, WORKSPACE_REPOSITORY})


def _short(tag: str) -> str:
    """`tag` as the product names it: Podman puts a registry, or the local one, before a name that has none."""
    return tag.removeprefix("docker.io/").removeprefix("localhost/")


def _repository(tag: str) -> str:
    return tag.rpartition(":")[0]
