"""Libraries that lie where Python imports from, and whether a package manager put them there.

A made-up library makes tests pass that should have failed for want of the real one. So whatever is new at the top of
a directory that interpreters import from has to be in the records of pip and its like, of Debian's packages or of
conda's, or be what the checkout's own build installs.
"""

import csv
import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files as resources
from pathlib import Path

from autoinstall.integrity.changes import Changes
from autoinstall.integrity.files import Files, in_workspace, lines
from autoinstall.integrity.owners import Owners
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table
from autoinstall.sandbox.contract import WORKSPACE

_IMPORTED_FROM = re.compile(r"(?P<site>/.+/lib(?:32|64)?/(?:python|pypy)[^/]*/(?:site|dist)-packages)/(?P<name>[^/]+)")
_CONDA_CACHE = re.compile(r"/pkgs/[^/]+-[^/]+-[^/]+/")
_MODULE = re.compile(r"(?P<module>[A-Za-z_]\w*)(?:\.py|\.pyc|(?:\.[\w-]+)*\.so)?")
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+(\w+(?:[ \t]*(?:\.\w+)*[ \t]*,[ \t]*\w+)*))", re.MULTILINE
)
_SOURCES = frozenset({".c", ".cc", ".cpp", ".cxx", ".pyx", ".i", ".swg", ".rs", ".f90", ".pyf", ".in", ".proto"})
_BUILD_FILES = frozenset({"CMakeLists.txt", "meson.build", "Makefile.am", "configure.ac", "SConstruct", "SConscript"})
_LISTS = re.compile(r"(?:.*/)?(?:[^/]*requirements[^/]*|requirements/[^/]+)\.(?:txt|in)")
_LISTED = re.compile(r"(?m)^([A-Za-z][\w.-]*)")
_MANIFESTS = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "environment.yml", "environment.yaml"})
_REQUIREMENT = re.compile(
    r"""(?:^|["'-])[ \t]*([A-Za-z][\w.-]*)[ \t]*(?:\[[^\]\n]*\][ \t]*)?[<>=!~]=?[ \t]*v?\d""", re.MULTILINE
)
_REMOTE = re.compile(r"(?m)^\s*url\s*=\s*(?:https?|git|ssh)(?:://|@)")
_CLAIM_SECONDS = 120.0
_MAX_BYTES = 2**20

Claims = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By directory and name at its top: the records that name it."""


class Libraries:
    """What is new where the interpreters of one container import from.

    Args:
        root: the pristine checkout on the host. tracked: its files, relative.
    """

    def __init__(self, files: Files, changes: Changes, root: Path, tracked: Collection[str]) -> None:
        self._files = files
        self._changes = changes
        self._root = root
        self._tracked = tracked
        self._owners = Owners(files, tracked)

    def check(self, env: Mapping[str, str], additions: Sequence[str] = ()) -> Iterator[Violation]:
        """Every library that nobody but the set-up put there.

        Args:
            env: of the environment, for its PYTHONPATH.
            additions: files of /workspace that the commit does not have, relative.
        """
        yield from self._in_workspace(additions)
        sites = self._sites(env)
        claims = self._claims(sites)
        for site, names in sites.items():
            for name in sorted(names):
                if name.endswith(".dist-info"):
                    complaint = self._origin(site, name)
                elif self._is_module(f"{site}/{name}"):
                    complaint = self._complaint(site, name, claims.get(site, {}).get(name, ()))
                else:
                    continue
                if complaint:
                    yield _stub(f"{site}/{name}", complaint)

    def _sites(self, env: Mapping[str, str]) -> dict[str, frozenset[str]]:
        """By directory, the names at its top that may be new."""
        found: dict[str, set[str]] = {}
        for path in self._changes.paths:
            match = _IMPORTED_FROM.fullmatch(path)
            if match is not None and not _CONDA_CACHE.search(path):
                found.setdefault(match["site"], set()).add(match["name"])
        named = [
            posixpath.normpath(posixpath.join(WORKSPACE, part)) for part in env.get("PYTHONPATH", "").split(":") if part
        ]
        pth = sorted(f"{site}/{name}" for site, names in found.items() for name in names if name.endswith(".pth"))
        for path in pth:
            named += [
                posixpath.normpath(posixpath.join(posixpath.dirname(path), line))
                for line in lines(self._files.text(path))
                if not line.startswith(("#", "import ", "import\t")) and not line.endswith(".egg")
            ]
        for directory in dict.fromkeys(named):
            real = self._files.end(self._files.real(directory))
            if real not in found and not self._is_the_projects(real) and not self._is_cloned(real):
                tops = {path[len(real) + 1 :] for path in self._changes.paths if posixpath.dirname(path) == real}
                found[real] = tops
        return {site: frozenset(names) for site, names in sorted(found.items()) if names}

    def _is_module(self, path: str) -> bool:
        name = posixpath.basename(path)
        match = _MODULE.fullmatch(name)
        if match is None or name in integrity_table().known_modules:
            return False
        kind = self._files.kind(path)
        return kind in {"symlink", "file" if "." in name else "directory"}

    def _claims(self, sites: Mapping[str, frozenset[str]]) -> Claims:
        """What records name. The container is asked: what matters to the checkout is held against the records."""
        if not any(self._is_module(f"{site}/{name}") for site, names in sites.items() for name in names):
            return {}
        script = resources(__package__).joinpath("claims.sh").read_text(encoding="utf-8")
        command = f"{script}\n".replace("for site; do", f"for site in {shlex.join(sites)}; do")
        output = self._files.sandbox.run(command, timeout=_CLAIM_SECONDS).output
        rows = [line.split("\t") for line in output.splitlines()]
        if ["done"] not in rows:
            rows = [
                [site, record, name] for site, names in sites.items() for record, name in self._records(site, names)
            ]
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for row in rows:
            if len(row) == 3:
                site, record, name = row
                owners = found.setdefault(site, {})
                owners[name] = (*owners.get(name, ()), record)
        return found

    def _records(self, site: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
        """What new distributions record, where the container does not tell."""
        for name in sorted(names):
            record = f"{site}/{name}/{'RECORD' if name.endswith('.dist-info') else 'installed-files.txt'}"
            if name.endswith((".dist-info", ".egg-info")):
                tops = {line.removeprefix("../").partition("/")[0] for line in lines(self._files.text(record))}
                yield from ((record, top.partition(",")[0]) for top in sorted(tops))

    def _recorded(self, record: str) -> dict[str, tuple[str, str]]:
        """(hash, size) by path, relative to the directory that the distribution lies in."""
        rows = csv.reader(self._files.text(record).splitlines())
        return {posixpath.normpath(row[0]): (row[1], row[2]) for row in rows if len(row) >= 3}

    def _complaint(self, site: str, name: str, records: Sequence[str]) -> str:
        path = f"{site}/{name}"
        end = self._files.end(path)
        if end != path:
            return self._about_link(end)
        module = name.partition(".")[0]
        if records and module not in self._imported:
            return ""
        if in_workspace(site) is not None and not _IMPORTED_FROM.fullmatch(path) and not self._is_required(module):
            return ""  # what builds and code generators write
        complaint = ""
        for record in records:
            complaint = self._about_record(site, name, record)
            if not complaint:
                return ""
        if self._is_built_here(path, module):
            return ""
        return complaint or "is a library that no package manager put there"

    def _about_link(self, end: str) -> str:
        if self._is_the_projects(end) or not self._changes.may_include(end):
            return ""
        site, name = posixpath.split(end)
        return self._complaint(site, name, self._claims({site: frozenset({name})}).get(site, {}).get(name, ()))

    def _about_record(self, site: str, name: str, record: str) -> str:
        """Whether a record's word on a module that the checkout imports holds."""
        is_debians = record.endswith(".list")
        dist = posixpath.basename(record.removesuffix(".list") if is_debians else posixpath.dirname(record))
        first = name if "." in name else f"{name}/__init__.py"
        found = self._files.stat(f"{site}/{first}")
        if found is None:
            return ""
        if is_debians:
            entry = self._files.entry(f"{site}/{first}")
            held = entry is None or self._owners.is_debians(entry)
        elif record.endswith("/RECORD"):
            digest, size = self._recorded(record).get(first, ("", ""))
            held = bool(digest) and size in {"", str(found.size)}
        else:
            held = True
        return "" if held else f"is not what {dist} says that it brought"

    def _origin(self, site: str, dist: str) -> str:
        """Where a new distribution was installed from, if from a place on disk."""
        path = f"{site}/{dist}/direct_url.json"
        if self._files.stat(path) is None:
            return ""
        try:
            url = str(json.loads(self._files.text(path)).get("url", ""))
        except (json.JSONDecodeError, AttributeError):
            return "has a broken record of where it was installed from"
        if not url.startswith("file://"):
            return ""
        source = url.removeprefix("file://").rstrip("/")
        name = _canonical(dist.partition("-")[0])
        if in_workspace(source) is not None and name not in self._required:
            return ""
        if self._is_the_projects(source) or self._is_cloned(source):
            return ""
        return f"was installed from {source}, which is the set-up's own"

    def _is_the_projects(self, directory: str) -> bool:
        if directory == str(WORKSPACE):
            return True
        inside = in_workspace(directory)
        return inside is not None and any(path == inside or path.startswith(f"{inside}/") for path in self._tracked)

    def _is_cloned(self, directory: str) -> bool:
        """Whether it lies in a clone of somebody's repository."""
        while directory not in {"/", str(WORKSPACE)}:
            if re.search(
                r"(?m)^\s*url\s*=\s*(?:https?|git|ssh)(?:://|@)", self._files.text(f"{directory}/.git/config")
            ):
                return True
            directory = posixpath.dirname(directory)
        return False

    def _is_built_here(self, path: str, module: str) -> bool:
        """Whether the checkout's own build installed it: copies of tracked sources, or what is compiled of them."""
        copies = compiled = False
        for entry in self._files.sandbox.read_tree([path], max_bytes=_MAX_BYTES):
            if entry.kind != "file":
                continue
            compiled = compiled or entry.path.endswith(".so")
            relative = entry.path[len(posixpath.dirname(path)) + 1 :]
            if not relative.endswith(".py"):
                continue
            sources = [source for source in self._tracked if source == relative or source.endswith(f"/{relative}")]
            if sources and not any(
                (self._root / source).read_bytes()[:_MAX_BYTES] == entry.content for source in sources
            ):
                return False
            copies = copies or bool(sources)
        return copies or self._is_generated(module) or (compiled and self._is_named_by_a_build(module))

    def _is_generated(self, module: str) -> bool:
        stem = module.strip("_").removesuffix("module").removesuffix("_pb2")
        sources = (posixpath.splitext(posixpath.basename(path)) for path in self._tracked)
        return any(
            name.strip("_").removesuffix("module").removesuffix(".py") == stem and ending in _SOURCES
            for name, ending in sources
        )

    def _is_named_by_a_build(self, module: str) -> bool:
        word = re.compile(rf"\b{re.escape(module)}\b")
        return any(word.search(self._text(path)) for path in self._tracked if posixpath.basename(path) in _BUILD_FILES)

    def _in_workspace(self, additions: Sequence[str]) -> Iterator[Violation]:
        """Modules that the commit does not have, by the name of a library that it asks for."""
        tops = {path for path in self._changes.paths if posixpath.dirname(path) == str(WORKSPACE)}
        below = {f"{WORKSPACE}/{path.removesuffix('/__init__.py')}" for path in additions if path.endswith(".py")}
        for path in sorted(tops | below):
            directory, name = posixpath.split(path)
            module = name.removesuffix(".py")
            if not self._is_required(module) or module not in self._imported or self._is_the_projects(path):
                continue
            in_a_package = f"{in_workspace(directory)}/__init__.py" in self._tracked
            file = path if name.endswith(".py") else f"{path}/__init__.py"
            if not in_a_package and self._files.stat(file) is not None:
                yield _stub(path, "takes the place of a library that the project asks for")

    @cached_property
    def _imported(self) -> frozenset[str]:
        """Top-level modules that the checkout's Python files import."""
        found: set[str] = set()
        for path in self._tracked:
            if path.endswith(".py"):
                for first, several in _IMPORT.findall(self._bytes(path)):
                    found |= {part.strip().partition(b".")[0].decode() for part in (first or several).split(b",")}
        return frozenset(found)

    def _is_required(self, module: str) -> bool:
        name = _canonical(module)
        return not self._required.isdisjoint({name, f"py{name}", f"python-{name}"})

    @cached_property
    def _required(self) -> frozenset[str]:
        """Distributions that the checkout's manifests name, canonical."""
        found: set[str] = set()
        for path in self._tracked:
            if _LISTS.fullmatch(path):
                found.update(_LISTED.findall(self._text(path)))
            elif posixpath.basename(path) in _MANIFESTS:
                found.update(_REQUIREMENT.findall(self._text(path)))
        return frozenset(map(_canonical, found))

    def _text(self, path: str) -> str:
        return self._bytes(path).decode("utf-8", "replace")

    def _bytes(self, path: str) -> bytes:
        file = self._root / path
        return file.read_bytes()[:_MAX_BYTES] if file.is_file() and not file.is_symlink() else b""


def _stub(path: str, detail: str) -> Violation:
    return Violation(kind=ViolationKind.STUB, path=path, detail=detail)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
