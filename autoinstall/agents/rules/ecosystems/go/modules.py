"""The Go modules of a checkout, and where there are none, what the module would be."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

from autoinstall.languages import language_of
from autoinstall.tree import Tree
from autoinstall.values import Value

MAX_MODULES = 30
MAX_SOURCES = 3000
_ASIDE = re.compile(r"(?:^|/)(?:testdata|vendor|third_party|node_modules|_[^/]*|\.[^/]*)/")
_HELPER = re.compile(
    r"(?i)(?:^|/)_?(?:tools?|examples?|testing|tests?|hack|docs?|bench\w*|e2e|integration\w*|scripts?)(?:/|$)"
)
_DIRECTIVE = re.compile(r"(?m)^\s*(?P<word>module|go|toolchain)\s+\"?(?P<value>[^\s\"/][^\s\"]*)\"?\s*(?://.*)?$")
_USE = re.compile(r"(?ms)^use\s*\((?P<block>.*?)^\)|^use\s+(?P<one>\S+)")
_IMPORT_COMMENT = re.compile(r"(?m)^package \w+ *(?://|/\*) *import \"(?P<path>[^\"]+)\"")
_GET = re.compile(r"\bgo (?:get|install) (?:-[\w=-]+ )*(?P<path>[\w-]+\.[\w.-]+/[\w./~-]+)")
_IMPORT = re.compile(r"^\s*(?:import\s+)?(?:[\w.]+\s+)?\"(?P<path>[\w-]+\.[\w.-]+/[^\"\s]+)\"", re.MULTILINE)
_PLATFORM = re.compile(
    r"_(?:windows|darwin|freebsd|openbsd|netbsd|solaris|plan9|js|wasm|wasip1|android|ios|aix|arm|arm64|386|s390x)"
    r"(?:_test)?\.go$"
)
_CONSTRAINT = re.compile(r"(?m)^//(?:go:build|\s*\+build) (?P<expression>.+)$")


class Module(Value):
    """A module of the checkout.

    Attributes:
        directory: of its go.mod, relative to the root; empty for the root.
        path: its import path; empty where a repository without go.mod leaves it to be found out.
        go: the language version that go.mod asks for, as written; empty where it names none.
        toolchain: the toolchain that it names, without `go`.
        declared: whether there is a go.mod.
        vendored: whether its packages are in a vendor directory that go.mod goes with.
    """

    directory: str = ""
    path: str = ""
    go: str = ""
    toolchain: str = ""
    declared: bool = True
    vendored: bool = False

    @property
    def manifest(self) -> str:
        return posixpath.join(self.directory, "go.mod")

    @property
    def helper(self) -> bool:
        """Whether it serves the others: examples, tools, suites that need what only its authors have."""
        return bool(_HELPER.search(self.directory))

    def inside(self, command: str) -> str:
        """The command as it is run from the root of the checkout."""
        return f"cd {self.directory} && {command}" if self.directory else command


def modules_of(tree: Tree) -> tuple[Module, ...]:
    """Modules of the first three directory levels, the main one first; a repository of Go without go.mod is one."""
    found = [
        path.removesuffix("go.mod").rstrip("/")
        for path in tree.files
        if (path == "go.mod" or path.endswith("/go.mod")) and path.count("/") <= 2 and not _ASIDE.search(path)
    ]
    if not found:
        shallow = any(path.endswith(".go") and path.count("/") <= 2 and not _ASIDE.search(path) for path in tree.files)
        return (Module(declared=False),) if shallow and language_of(tree) == "go" else ()
    used = workspace(tree)
    counts = {directory: len(tuple(sources(tree, directory))) for directory in found}
    ranked = sorted(
        (directory for directory in found if counts[directory] or directory == ""),
        key=lambda item: (bool(used) and item not in used, bool(item), bool(_HELPER.search(item)), -counts[item], item),
    )
    # A root that only holds the others' tools together is not what the repository is about.
    if len(ranked) > 1 and not ranked[0] and counts[""] == 0:
        ranked = [*ranked[1:], ""]
    return tuple(_read(tree, directory) for directory in ranked[:MAX_MODULES])


def workspace(tree: Tree) -> tuple[str, ...]:
    """Directories that the go.work of the root names; empty where there is none."""
    text = re.sub(r"//.*", "", tree.read("go.work"))
    words = [word for match in _USE.finditer(text) for word in (match["block"] or match["one"]).split()]
    return tuple("" if word in (".", "./") else posixpath.normpath(word.strip('"')) for word in words)


def sources(tree: Tree, directory: str) -> Iterator[str]:
    """Go files of the module at `directory`, without those of modules inside it and without test data."""
    prefix = f"{directory}/" if directory else ""
    inner = tuple(
        path.removesuffix("go.mod")
        for path in tree.files
        if path.endswith("/go.mod") and path.startswith(prefix) and path != f"{prefix}go.mod"
    )
    found = 0
    for path in tree.files:
        if not path.endswith(".go") or not path.startswith(prefix) or path.startswith(inner or ("\0",)):
            continue
        if _ASIDE.search(path.removeprefix(prefix)) or found >= MAX_SOURCES:
            continue
        found += 1
        yield path


def builds_here(tree: Tree, path: str) -> bool:
    """Whether a plain build on Linux takes the file in: by its name and its build constraint."""
    if _PLATFORM.search(path):
        return False
    match = _CONSTRAINT.search(tree.read(path)[:4000])
    if match is None:
        return True
    words = set(re.findall(r"!?[\w.]+", match["expression"]))
    return all(
        word in ("linux", "unix", "amd64", "cgo", "gc") or re.match(r"!|go1\.\d+$", word) for word in words
    ) and not (words & {"!linux", "!unix", "!amd64", "!cgo"})


def import_path(tree: Tree, url: str) -> str:
    """The import path of a repository without go.mod: what the sources and the documents call it, else its URL.

    Canonical comments decide. Otherwise it is the path of three parts that most of the sources import from and that
    ends in the repository's name, then what the README has its users install.
    """
    files = [path for path in tree.files if path.endswith(".go") and not _ASIDE.search(path)][:MAX_SOURCES]
    for path in files:
        match = _IMPORT_COMMENT.search(tree.read(path)[:8000])
        if match:
            directory = posixpath.dirname(path)
            return match["path"].removesuffix(f"/{directory}") if directory else match["path"]
    split = urlsplit(url)
    name = split.path.strip("/").removesuffix(".git")
    own = f"{split.hostname or 'example.com'}/{name}" if name else "example.com/module"
    last = own.rpartition("/")[2].lower()
    imported = Counter(
        stem
        for path in files
        for match in _IMPORT.finditer(tree.read(path)[:8000])
        if (stem := _stem(match["path"], last))
        and tree.has_directory(match["path"].removeprefix(stem).strip("/") or ".")
    )
    if imported:
        return imported.most_common(1)[0][0]
    readme = next((path for path in tree.files if re.fullmatch(r"(?i)readme(?:\.\w+)?", path)), "")
    told = [stem for match in _GET.finditer(tree.read(readme)) if (stem := _stem(match["path"], last))]
    return told[0] if told else own


def _stem(path: str, last: str) -> str:
    """`path` up to the part that is the repository's name; empty where it has none."""
    parts = path.rstrip("/.").split("/")
    for index, part in enumerate(parts[1:], start=1):
        if part.lower() == last or re.fullmatch(rf"{re.escape(last)}\.v\d+", part.lower()):
            return "/".join(parts[: index + 1])
    return ""


def _read(tree: Tree, directory: str) -> Module:
    manifest = posixpath.join(directory, "go.mod")
    found: dict[str, str] = {}
    for match in _DIRECTIVE.finditer(tree.read(manifest)):
        found.setdefault(match["word"], match["value"])
    return Module(
        directory=directory,
        path=found.get("module", ""),
        go=found.get("go", ""),
        toolchain=re.sub(r"^go|-.*$", "", found.get("toolchain", "")),
        vendored=tree.has(posixpath.join(directory, "vendor/modules.txt")),
    )
