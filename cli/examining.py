"""How `autoinstall doctor` goes through its checks."""

from collections.abc import Callable, Iterable
from contextlib import closing

from autoinstall.doctor import Check, examine, examine_models
from autoinstall.settings import Settings


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
    from flows.examination import examine_prefect  # which takes its time to load

    note(examine_prefect(settings))
    return tuple(found)
