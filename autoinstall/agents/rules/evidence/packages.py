"""System packages that install commands name."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import EvidenceCommand, Manager, Requirement
from autoinstall.agents.rules.evidence.script import words

_APT = re.compile(r"^(?:sudo\s+(?:-\S+\s+)*)?(?:[A-Z_]+=\S+\s+)*(?:apt|apt-get|aptitude)\s+(?:-\S+\s+)*install\b")
_PACKAGE = re.compile(r"^[a-z0-9][a-z0-9+.-]+$")


def apt_requirements(command: EvidenceCommand) -> Iterator[Requirement]:
    """What an `apt-get install` line installs; nothing for any other command."""
    if not _APT.search(command.command):
        return
    after_install = words(command.command[command.command.index("install") :])[1:]
    for word in after_install:
        if word in ("||", "&&", "|", ">", ";"):
            return
        word = word.strip()  # noqa: PLW2901 (what a folded line left of its backslash)
        name = word.split("=")[0].split(":")[0]
        if _PACKAGE.match(name) and not word.startswith("-"):
            yield Requirement(manager=Manager.APT, name=name, evidence=command.evidence)
