"""What this Debian has of other languages' packages, asked in the sandbox: by package name, or by the files in them."""

import re
from collections.abc import Iterable, Sequence

from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

LOOKUP_SECONDS = 120.0
MAX_LINES = 400

_LISTS = "ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1 || apt-get update -q >/dev/null 2>&1"


class Entry(Value):
    """A file of the archive: its path without the first slash, the package that has it."""

    path: str
    package: str


def versions(sandbox: Sandbox, names: Iterable[str]) -> dict[str, str]:
    """Those of the packages that this Debian has → their upstream version."""
    wanted = sorted({name for name in names if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name)})
    if not wanted:
        return {}
    result = sandbox.run(f"{_LISTS}; apt-cache policy {' '.join(wanted)} 2>/dev/null", timeout=LOOKUP_SECONDS)
    found = re.findall(r"(?m)^(\S+):\n\s+Installed:.*\n\s+Candidate: (\d\S*)", result.output)
    return {name: upstream(version) for name, version in found}


def upstream(version: str) -> str:
    """`2:8.2.7+dfsg-1~deb12u1` → `8.2.7`."""
    bare = version.split(":", 1)[-1].rsplit("-", 1)[0]
    match = re.match(r"\d+(?:\.\d+)*", bare)
    return match[0] if match else bare


def contents(sandbox: Sandbox, pattern: str) -> list[Entry]:
    """Files of the archive whose path matches the extended regular expression `pattern`, which must not contain a
    quote; empty where the index of files is not there. Takes seconds."""
    command = (
        "ls /var/lib/apt/lists/*_Contents-* >/dev/null 2>&1 || apt-file update >/dev/null 2>&1; "
        'for list in /var/lib/apt/lists/*_Contents-*; do /usr/lib/apt/apt-helper cat-file "$list"; done 2>/dev/null | '
        f"LC_ALL=C grep -E '^({pattern})[[:space:]]' | head -n {MAX_LINES}"
    )
    return list(_entries(sandbox.run(command, timeout=LOOKUP_SECONDS).output.splitlines()))


def _entries(lines: Sequence[str]) -> Iterable[Entry]:
    for line in lines:
        path, _, owners = line.rpartition(" ")
        for owner in owners.split(",") if path else ():
            yield Entry(path=path.strip(), package=owner.rpartition("/")[2])
