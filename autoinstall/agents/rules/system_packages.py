"""The system packages that the repository's own files install, put in before anything else."""

import re
from collections.abc import Sequence

from autoinstall.agents.rules.contract import Context, Manager, Step
from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value

MAX_PACKAGES = 40

_INSTALL = "apt-get install -y --no-install-recommends"
_LISTED = "ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1"


def apt_install(packages: str) -> str:
    """A shell command that installs `packages`, with fresh package lists where the image has none or stale ones."""
    install = f"{_INSTALL} {packages}"
    return f"{{ {_LISTED} && {install}; }} || {{ apt-get update -q && {install}; }}"


def tools_step(commands: Sequence[str], packages: str) -> Step:
    """Installs `packages` unless every one of `commands` is there already."""
    return Step(
        command=f"type {' '.join(commands)} >/dev/null 2>&1 || {apt_install(packages)}",
        why="The tools that the project is built with.",
        optional=True,
        timeout=600,
    )


class SkipTable(Value):
    """The form of `apt_skip.toml`: regular expressions over package names."""

    patterns: tuple[str, ...]


def system_packages_step(context: Context) -> Step | None:
    """One step that installs those of them that this Debian has; None where nothing is named."""
    skip = [re.compile(pattern) for pattern in load("apt_skip", SkipTable).patterns]
    found = [item for item in context.findings.requirements if item.manager is Manager.APT]
    names = [item.name for item in found if not any(pattern.search(item.name) for pattern in skip)][:MAX_PACKAGES]
    if not names:
        return None
    first = next(item for item in found if item.name == names[0])
    where = f" ({first.evidence.path}:{first.evidence.line})" if first.evidence else ""
    # apt-get refuses all for the sake of one unknown name, and names differ between distributions.
    known = f"apt-cache pkgnames | grep -Fx {' '.join('-e ' + name for name in names)}"
    return Step(
        command=f"{_LISTED} || apt-get update -q; names=$({known}); "
        f'[ -z "$names" ] || {{ {apt_install("$names")}; }} || for name in $names; do {_INSTALL} "$name"; done',
        why=f"System packages that the repository's own files install{where}.",
        optional=True,
        timeout=600,
    )
