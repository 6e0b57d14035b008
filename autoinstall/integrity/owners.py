"""Who put an executable script where it is: a package manager, whose records can be held against it, or somebody
else."""

import csv
import hashlib
import json
import posixpath
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection

from autoinstall.integrity.files import Files, in_workspace
from autoinstall.integrity.table import integrity_table
from autoinstall.sandbox.contract import TreeEntry

_SHIM_TARGET = re.compile(r'"\$basedir/(?P<target>\.\./[^"]+)"')
_NODE_PACKAGE = re.compile(r"^(?P<package>.*/node_modules/(?:@[^/]+/)?[^/]+)/(?P<file>.+)$")
_SITE = re.compile(r"^(?P<site>.*/(?:site|dist)-packages)/(?P<dist>[^/]+\.(?:dist|egg)-info)/RECORD$")


class Owners:
    """Answers for one container.

    Args:
        tracked: the checkout's files, relative.
    """

    def __init__(self, files: Files, tracked: Collection[str]) -> None:
        self.files = files
        self.tracked = tracked

    def complaint(self, script: TreeEntry) -> str:
        """Why nobody trustworthy owns a script; empty where somebody does."""
        if any(marker.encode() in script.content[:2048] for marker in integrity_table().generated):
            return ""
        if hashlib.sha256(script.content).hexdigest() in integrity_table().known_programs.values():
            return ""
        complaint: str | None = None
        for owner in (self._node, self._python):
            found = owner(script)
            if found == "":
                return ""
            complaint = complaint or found
        return "" if self.is_debians(script) else complaint or "no package manager put it there"

    def is_debians(self, script: TreeEntry) -> bool:
        """Whether a package of Debian's brought it as it is; conffiles count as they were brought."""
        digest = hashlib.md5(script.content, usedforsecurity=False).hexdigest()
        path = script.path.removeprefix("/usr").lstrip("/")
        lines = {f"{digest}  {path}", f"{digest}  usr/{path}"}
        records = self.files.find("/var/lib/dpkg/info", "-name", "*.md5sums", containing=f"{digest}  ")
        return any(
            not lines.isdisjoint(self.files.text(record).splitlines())
            for record, _ in records
            if posixpath.dirname(record) == "/var/lib/dpkg/info"
        )

    def _node(self, script: TreeEntry) -> str | None:
        """None where it is no Node package's; else the complaint."""
        path = script.path
        shim = _SHIM_TARGET.search(script.content.decode("utf-8", "replace")) if "/node_modules/.bin/" in path else None
        if shim is not None:
            resolved, file = self.files.resolve(posixpath.join(posixpath.dirname(path), shim["target"]))
            if file is None:
                return "its shim leads nowhere"
            path = resolved
        match = _NODE_PACKAGE.match(path)
        if match is None:
            return None
        package = match["package"]
        try:
            described = json.loads(self.files.text(f"{package}/package.json") or "{}")
        except json.JSONDecodeError:
            described = {}
        programs = described.get("bin") or {}
        targets = (
            [programs] if isinstance(programs, str) else list(programs.values()) if isinstance(programs, dict) else []
        )
        if not any(
            posixpath.normpath(str(target)).removesuffix(".js") == match["file"].removesuffix(".js")
            for target in targets
        ):
            return "its package does not name it as a program"
        return self._npm_lock(package, str(described.get("name", "")))

    def _npm_lock(self, package: str, name: str) -> str:
        modules, _, inner = package.partition("/node_modules/")
        lock = self.files.text(f"{modules}/node_modules/.package-lock.json")
        if not lock:
            return ""
        try:
            entries = json.loads(lock).get("packages", {})
        except (json.JSONDecodeError, AttributeError):
            return "npm's record of what it installed is broken"
        return self.npm_entry(entries.get(f"node_modules/{inner}"), name or inner)

    def npm_entry(self, entry: object, name: str) -> str:
        """What speaks against a package by its entry in npm's record; None is for one that has none."""
        if not isinstance(entry, dict):
            return f"npm did not install the package {name}"
        resolved = str(entry.get("resolved", ""))
        if entry.get("link") or resolved.startswith("file:"):
            target = resolved.removeprefix("file:").strip("/")
            inside = any(path == target or path.startswith(f"{target}/") or not target for path in self.tracked)
            return "" if inside else f"the package {name} was installed from a directory of the set-up's own"
        return ""

    def _python(self, script: TreeEntry) -> str | None:
        """None where no distribution records it; else the complaint, empty where its record holds."""
        directory, name = posixpath.split(script.path)
        if posixpath.basename(directory) not in {"bin", "sbin"}:
            return None
        prefix = posixpath.dirname(directory)
        # One question serves every script of the prefix, unless it has more of them than the output of a run can hold.
        for text in ("../bin/", f"/bin/{name},"):
            found = self.files.find(f"{prefix}/lib", "-maxdepth", "4", "-name", "RECORD", containing=text)
            records = tuple(dict.fromkeys(path for path, line in found if f"/bin/{name}," in line))
            if records:
                break
        for path in records:
            site = _SITE.match(path)
            if site is None:
                continue
            self.files.load(posixpath.dirname(path))
            text = self.files.text(path)
            if f"/bin/{name}," not in text:
                continue
            return self._record(site["site"], site["dist"], text, script, name)
        return None

    def _record(self, site: str, dist: str, record: str, script: TreeEntry, name: str) -> str:
        entries = {
            posixpath.normpath(posixpath.join(site, row[0])): row[1]
            for row in csv.reader(record.splitlines())
            if len(row) >= 2
        }
        if not _holds(entries.get(script.path, ""), script.content):
            return f"it differs from what {dist} brought"
        origin = self.files.text(f"{site}/{dist}/direct_url.json")
        if origin and (complaint := self._origin(origin, name)):
            return complaint
        tops = sorted(
            {
                path[len(site) + 1 :].partition("/")[0]
                for path in entries
                if path.startswith(f"{site}/") and path.endswith(".py")
            }
        )
        for entry in self.files.sandbox.read_tree([f"{site}/{top}" for top in tops][:10]):
            if entry.kind != "file" or not entry.path.endswith(".py"):
                continue
            expected = entries.get(entry.path)
            if expected is not None and not _holds(expected, entry.content):
                return f"{entry.path} differs from what {dist} brought"
        return ""

    def _origin(self, direct_url: str, name: str) -> str:
        try:
            url = str(json.loads(direct_url).get("url", ""))
        except (json.JSONDecodeError, AttributeError):
            return "the record of where it was installed from is broken"
        if not url.startswith("file://"):
            return ""
        path = url.removeprefix("file://").rstrip("/")
        inside = in_workspace(path)
        known = path == "/workspace" or (
            inside is not None and any(other.startswith(f"{inside}/") for other in self.tracked)
        )
        if known or (inside is not None and name not in integrity_table().runner_scripts):
            return ""
        return f"it was installed from {path}, which is the set-up's own"


def _holds(recorded: str, content: bytes) -> bool:
    """Whether a RECORD's hash is that of the content; one without a hash holds for nothing."""
    algorithm, _, value = recorded.partition("=")
    if algorithm not in {"sha256", "sha384", "sha512"}:
        return False
    digest = urlsafe_b64encode(hashlib.new(algorithm, content).digest()).decode().rstrip("=")
    return digest == value.rstrip("=")
