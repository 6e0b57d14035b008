"""What of a list a night has to do: branches are looked up, and what was done before is left out."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from autoinstall.checkout import resolve
from autoinstall.datasets.nights import ended_without_commit, last_outcomes
from autoinstall.datasets.store import Store
from autoinstall.errors import AutoinstallError
from autoinstall.ledger import configuration_of
from autoinstall.redaction import printable, without_userinfo
from autoinstall.settings import Settings
from autoinstall.values import Outcome, RepositorySpec
from flows.reports import NightRow

Done = frozenset[tuple[str, str, str]]
"""Repository, commit and configuration."""

LOOKUPS = 8
"""Remotes that are asked for their heads at once."""


def with_outcome(
    specs: Sequence[RepositorySpec], store: Store, outcomes: Sequence[Outcome]
) -> tuple[RepositorySpec, ...]:
    """The repositories whose last run ended in one of `outcomes`.

    Raises:
        StorageFailed: the datasets cannot be read.
    """
    last = last_outcomes(store)
    return tuple(spec for spec in specs if last.get((without_userinfo(spec.url), spec.ref)) in outcomes)


def without_ended(
    specs: Sequence[RepositorySpec], store: Store, night_id: str, skipped: Callable[[NightRow], None]
) -> tuple[RepositorySpec, ...]:
    """The repositories but those that ended in that night before their commit was known, each of which is told to
    `skipped`; what ended later is known by its commit.

    Raises:
        StorageFailed: the datasets cannot be read.
    """
    ended = ended_without_commit(store, night_id)
    left = []
    for spec in specs:
        if (without_userinfo(spec.url), spec.ref) in ended:
            skipped(_left_out(spec, "Ended in this night before it was interrupted."))
        else:
            left.append(spec)
    return tuple(left)


def due(
    specs: Sequence[RepositorySpec], done: Done, settings: Settings, skipped: Callable[[NightRow], None]
) -> Iterator[RepositorySpec]:
    """The repositories that are not `done` at the commit that they mean now, in their order, looked up only a little
    ahead of where they are taken. Each of the others is told to `skipped`."""
    if not done:
        yield from specs
        return
    waiting = iter(specs)
    ahead: deque[tuple[RepositorySpec, Future[bool]]] = deque()
    pool = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")
    try:
        while True:
            for spec in islice(waiting, 2 * LOOKUPS - len(ahead)):
                ahead.append((spec, pool.submit(_is_done, spec, done, settings)))
            if not ahead:
                return
            spec, answer = ahead.popleft()
            if answer.result():
                skipped(_left_out(spec, "Done before at this commit with this configuration."))
            else:
                yield spec
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _left_out(spec: RepositorySpec, reason: str) -> NightRow:
    return NightRow(repository=printable(spec.url), ref=spec.ref, outcome=None, reason=reason)


def _is_done(spec: RepositorySpec, done: Done, settings: Settings) -> bool:
    try:
        commit = resolve(spec, settings)
    except AutoinstallError:
        return False  # the run itself meets the same error, and makes a row of it
    return (without_userinfo(spec.url), commit, configuration_of(spec, settings)) in done
