"""What the Cargo.toml files of a checkout say: the package or workspace, its targets, its features."""

import posixpath
import re
import tomllib
from typing import Any

from autoinstall.tree import Tree, glob_to_regex
from autoinstall.values import Value

MAX_MEMBERS = 60
_ASIDE = re.compile(
    r"(?i)(?:^|/)(?:testdata|tests?|fuzz|examples?|vendor|third_party|target|node_modules|benches|fixtures)/"
)
_HELPER = re.compile(
    r"(?i)^(?:systest|xtask|fuzz\w*|bench\w*|benchmarks?|.*[-_](?:fuzz|bench(?:es|marks?)?|wasm|ffi-tests?))$"
)
_FOLDERS = {"bin": "src/bin", "example": "examples", "test": "tests", "bench": "benches"}


class Target(Value):
    """A program, example, integration test or benchmark.

    Attributes:
        path: of its source, relative to the root of the checkout.
        plain: whether it is built without features that have to be asked for.
    """

    name: str
    path: str
    plain: bool = True


class Package(Value):
    """A package. `directory` is relative to the root of the checkout, empty for the root; `lib`: the library's file."""

    directory: str
    name: str
    version: str = ""
    lib: str = ""
    programs: tuple[Target, ...] = ()
    examples: tuple[Target, ...] = ()
    tests: tuple[Target, ...] = ()
    benches: tuple[Target, ...] = ()

    @property
    def manifest(self) -> str:
        return posixpath.join(self.directory, "Cargo.toml")

    @property
    def helper(self) -> bool:
        """Whether it is there for the others' sake: fuzzing, benchmarks, checks against the system's headers."""
        return bool(_HELPER.match(self.name))


class Project(Value):
    """What is built together.

    Attributes:
        directory: of the manifest that cargo is run beside.
        packages: that of this manifest first, then a workspace's members.
        virtual: the manifest has no package of its own.
        locked: the commit has a lock file.
    """

    directory: str
    packages: tuple[Package, ...]
    virtual: bool = False
    locked: bool = False

    @property
    def manifest(self) -> str:
        return posixpath.join(self.directory, "Cargo.toml")

    def inside(self, command: str) -> str:
        """The command as it is run from the root of the checkout."""
        return f"cd {self.directory} && {command}" if self.directory else command


def project_of(tree: Tree) -> Project | None:
    """The main project: the root's, else the one of the first three directory levels with most sources."""
    found = [
        posixpath.dirname(path)
        for path in tree.files
        if (path == "Cargo.toml" or path.endswith("/Cargo.toml")) and path.count("/") <= 2 and not _ASIDE.search(path)
    ]
    for directory in sorted(found, key=lambda item: (item.count("/") if item else -1, -_sources(tree, item), item)):
        project = _read_project(tree, directory)
        if project.packages:
            return project
    return None


def _sources(tree: Tree, directory: str) -> int:
    return sum(path.endswith(".rs") and path.startswith(f"{directory}/") for path in tree.files)


def _read_project(tree: Tree, directory: str) -> Project:
    data = _toml(tree, posixpath.join(directory, "Cargo.toml"))
    workspace = _table(data, "workspace")
    own = _read_package(tree, directory, data, _table(workspace, "package"))
    packages = [own] if own else []
    for member in _members(tree, directory, workspace):
        inherited = _table(workspace, "package")
        package = _read_package(tree, member, _toml(tree, posixpath.join(member, "Cargo.toml")), inherited)
        packages += [package] if package else []
    return Project(
        directory=directory,
        packages=tuple(packages[:MAX_MEMBERS]),
        virtual=own is None,
        locked=tree.has(posixpath.join(directory, "Cargo.lock")),
    )


def _members(tree: Tree, directory: str, workspace: dict[str, Any]) -> list[str]:
    """Directories of the members, in the manifest's order."""
    manifests = [posixpath.dirname(path) for path in tree.files if path.endswith("/Cargo.toml")]
    left_out = [posixpath.normpath(posixpath.join(directory, item)) for item in _texts(workspace, "exclude")]
    found: dict[str, None] = {}
    for pattern in _texts(workspace, "members"):
        regex = glob_to_regex(posixpath.normpath(posixpath.join(directory, pattern)))
        found |= dict.fromkeys(item for item in manifests if regex.fullmatch(item) and item not in left_out)
    return [item for item in found if item != directory]


def _read_package(tree: Tree, directory: str, data: dict[str, Any], inherited: dict[str, Any]) -> Package | None:
    package = _table(data, "package")
    name = package.get("name")
    if not isinstance(name, str):
        return None
    version = package.get("version")
    if isinstance(version, dict):
        version = inherited.get("version")
    lib = posixpath.join(directory, str(_table(data, "lib").get("path", "src/lib.rs")))
    return Package(
        directory=directory,
        name=name,
        version=version if isinstance(version, str) else "",
        lib=lib if tree.has(lib) else "",
        programs=_targets(tree, directory, data, "bin"),
        examples=_targets(tree, directory, data, "example"),
        tests=_targets(tree, directory, data, "test"),
        benches=_targets(tree, directory, data, "bench"),
    )


def _targets(tree: Tree, directory: str, data: dict[str, Any], kind: str) -> tuple[Target, ...]:
    """Targets of one kind: declared ones, and those that cargo finds by where they lie."""
    found: dict[str, Target] = {}
    main = posixpath.join(directory, "src/main.rs")
    if kind == "bin" and tree.has(main):
        package = str(_table(data, "package").get("name"))
        found[package] = Target(name=package, path=main)
    prefix = posixpath.join(directory, _FOLDERS[kind]) + "/"
    for path in tree.files:
        inside = path.removeprefix(prefix)
        if not path.startswith(prefix) or not re.fullmatch(r"[^/]+\.rs|[^/]+/main\.rs", inside):
            continue
        name = inside.removesuffix(".rs").removesuffix("/main")
        found.setdefault(name, Target(name=name, path=path))
    for raw in data.get(kind, []):
        named = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(named, str):
            continue
        declared = raw.get("path")
        place = posixpath.join(directory, declared) if isinstance(declared, str) else ""
        known = found.get(named)
        for other in [item.name for item in found.values() if place and item.path == place and item.name != named]:
            del found[other]
        plain = not raw.get("required-features")
        found[named] = Target(name=named, path=place or (known.path if known else ""), plain=plain)
    return tuple(target for target in found.values() if tree.has(target.path))


def _toml(tree: Tree, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(tree.read(path))
    except tomllib.TOMLDecodeError:
        return {}


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _texts(data: dict[str, Any], key: str) -> list[str]:
    value = data.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
