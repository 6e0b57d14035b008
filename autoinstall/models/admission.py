"""Leave to ask a model: whoever runs the agents may bound how many calls are under way, in all its processes."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Admission = Callable[[], AbstractContextManager[None]]
"""Entered before a call and left after it; waits where there are too many."""

_admission: Admission = nullcontext


def admit_by(admission: Admission) -> None:
    """Have every model of this process ask `admission` first."""
    global _admission  # noqa: PLW0603 - one a process: the bound is on all of its calls
    _admission = admission


def admitted() -> AbstractContextManager[None]:
    """To be held during one call."""
    return _admission()
