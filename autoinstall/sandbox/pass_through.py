"""The variables of commands in a sandbox: constant ones, and what the settings pass through of the host's network."""

import tomllib
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

from autoinstall.sandbox import jvm
from autoinstall.settings import PassThrough

CA_BUNDLE = "/dev/autoinstall-ca.pem"
"""Where the CA bundle is mounted: in the runtime's tmpfs, so that no trace of it is ever committed."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    constant: dict[str, str]
    pass_through: dict[str, tuple[str, ...]]
    jvm: tuple[str, ...]


@cache
def _table() -> _Table:
    text = resources.files(__package__).joinpath("environment.toml").read_text(encoding="utf-8")
    return _Table.model_validate(tomllib.loads(text))


def constant_env() -> dict[str, str]:
    """What every command has, on every host."""
    return dict(_table().constant)


def pass_through_env(settings: PassThrough) -> dict[str, str]:
    """What the settings hand on of the host's network set-up; may hold credentials, so it goes into commands only."""
    env: dict[str, str] = {}
    for setting, names in _table().pass_through.items():
        value = getattr(settings, setting)
        if value:
            env |= dict.fromkeys(names, CA_BUNDLE if setting == "ca_bundle" else str(value))
    options = jvm.options(settings)
    return env | (dict.fromkeys(_table().jvm, options) if options else {}) | settings.env


def mounts(settings: PassThrough) -> list[str]:
    """Bind mounts in the Docker SDK's form: the CA bundle, read-only, or none."""
    if settings.ca_bundle is None:
        return []
    return [f"{settings.ca_bundle}:{CA_BUNDLE}:ro"]
