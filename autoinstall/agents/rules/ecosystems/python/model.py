"""What is read from a Python project before anything of it runs."""

from enum import StrEnum

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import Field

from autoinstall.values import Evidence, Value


class SetRole(StrEnum):
    """What a set of requirements is for."""

    RUNTIME = "runtime"
    TEST = "test"
    DEV = "dev"
    EXTRA = "extra"
    LINT = "lint"
    DOCS = "docs"
    RELEASE = "release"


class RequirementSet(Value):
    """Requirements that are installed together.

    Attributes:
        name: as the project calls it: an extra, a group, a file, a tox environment.
        extra: it is an extra of the project's own distribution.
        requirements: PEP 508 strings. Local paths, VCS and URL references are already turned into names or left out.
        paths: local directories that it wants installed, relative to the checkout.
        dropped: references that cannot be had from an index, as written.
    """

    name: str
    role: SetRole
    requirements: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    extra: bool = False
    evidence: Evidence


class PythonProject(Value):
    """One distribution, or a directory that is used as it lies.

    Attributes:
        root: directory relative to the checkout; empty for the checkout itself.
        name: distribution name; empty where none is declared.
        installable: has a build backend or a setup script, and does not say that it is no package.
        build_requires: what its build takes.
        legacy_setup: there is a setup.py and no declared build backend.
        sets: dependencies (role RUNTIME), extras, groups.
        scripts: console script → entry point.
        packages: importable top-level names that lie in the tree.
        source_dir: directory (relative to the checkout) that has to be on the import path.
    """

    root: str
    name: str = ""
    installable: bool = False
    legacy_setup: bool = False
    backend: str = ""
    build_requires: tuple[str, ...] = ()
    requires_python: str = ""
    classifiers: tuple[str, ...] = ()
    sets: tuple[RequirementSet, ...] = ()
    scripts: dict[str, str] = Field(default_factory=dict)
    packages: tuple[str, ...] = ()
    source_dir: str = ""
    evidence: Evidence

    def path(self, name: str) -> str:
        """`name` below the project's root, relative to the checkout."""
        return f"{self.root}/{name}" if self.root else name


def requirement_name(text: str) -> str:
    """Canonical distribution name of a PEP 508 string; empty where it is not one."""
    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        return ""
