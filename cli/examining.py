"""How `autoinstall doctor` goes through its checks."""

from collections.abc import Callable, Iterable
from contextlib import closing

from autoinstall.doctor import Check, examine, examine_models
from autoinstall.settings import Settings
from cli import server


def examined(settings: Settings, *, model: bool, show: Callable[[Check], None]) -> tuple[Check, ...]:
    """All findings, each given to `show` as it is known.

    Args:
        model: examine the default model even where no role needs it.
    """
    found: list[Check] = []

    def note(checks: Iterable[Check]) -> None:
        for check in checks:
            found.append(check)
            show(check)

    with closing(examine(settings)) as checks:  # however it ends, its sandbox goes with it
        note(checks)
    note(examine_models(settings, asked=model))
    # Prefect takes its time to load.
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows.examination import examine_prefect

    url = PREFECT_API_URL.value() or server.running(server.STATE)  # as the other commands choose it
    with temporary_settings({PREFECT_API_URL: url} if url else {}):
        note(examine_prefect(settings))
    return tuple(found)
