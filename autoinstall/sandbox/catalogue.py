"""The bases that are known by name: catalogue.toml and what it is built from, read and validated."""

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Annotated

from pydantic import Field

from autoinstall.values import Value

RECIPE_FILES = ("Dockerfile", "apt.conf", "dpkg.cfg", "pnpm.rc")
"""Files of base/ that go into the build as they are; packages.txt is adapted to the entry."""

DEFAULT = "default"


class Base(Value):
    """An entry of the catalogue; the fields are described at the top of catalogue.toml."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    suite: Annotated[str, Field(pattern=r"^[a-z]+$")]
    image: str
    python: Annotated[str, Field(pattern=r"^3\.\d+$")]
    aliases: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    java: tuple[int, ...] = ()
    interpreters: bool = False


class Versions(Value):
    """Pinned versions of what comes from the language registries."""

    uv: str
    node: str
    pnpm: str
    yarn: str


class Catalogue(Value):
    versions: Versions
    bases: tuple[Base, ...]

    def find(self, name: str) -> Base | None:
        """The entry of that name or alias."""
        return next((base for base in self.bases if name == base.name or name in base.aliases), None)

    def for_python(self, minor: str) -> Base | None:
        """The entry whose python3 is `minor` (`3.11`)."""
        return next((base for base in self.bases if base.python == minor), None)


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """The catalogue that ships."""
    raw = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text())
    bases = tuple(Base(name=name, **entry) for name, entry in raw["bases"].items())
    return Catalogue(versions=Versions(**raw["versions"]), bases=bases)


def recipe(base: Base) -> dict[str, bytes]:
    """The files that the base is built from, by name: what its content name is computed from."""
    folder = resources.files(__package__) / "base"
    files = {name: (folder / name).read_bytes() for name in RECIPE_FILES}
    files["packages.txt"] = "\n".join(packages((folder / "packages.txt").read_text(), base)).encode()
    return files


def packages(listing: str, base: Base) -> tuple[str, ...]:
    """The Debian packages of `base`: the common list with the entry's differences."""
    common = [word for line in listing.splitlines() for word in line.partition("#")[0].split()]
    return tuple(sorted({*common, *base.add} - set(base.drop)))
