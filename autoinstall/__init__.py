"""Turns git repositories into verified, runnable environments.

    from autoinstall import environments, load, open_environment

    record = environments("data/datasets")[0]
    with open_environment(record) as env:
        print(env.run("pytest -q").output)

Importing the package costs next to nothing: pyarrow, pandas and the container engine's client come with first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autoinstall.datasets.reader import environments, find_environment, load
    from autoinstall.environment import Environment, open_environment, reverify

_HOMES = {
    "environments": "autoinstall.datasets.reader",
    "find_environment": "autoinstall.datasets.reader",
    "load": "autoinstall.datasets.reader",
    "Environment": "autoinstall.environment",
    "open_environment": "autoinstall.environment",
    "reverify": "autoinstall.environment",
}

__all__ = ["Environment", "environments", "find_environment", "load", "open_environment", "reverify"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
