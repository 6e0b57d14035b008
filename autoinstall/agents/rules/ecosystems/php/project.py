"""What the composer.json, PHPUnit's configuration and the sources of a PHP project say."""

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from autoinstall.agents.rules.ecosystems.needs import Need
from autoinstall.agents.rules.ecosystems.php.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.scripting import at, files_of, root_of
from autoinstall.agents.rules.evidence.yaml_marks import mapping, sequence
from autoinstall.tree import Tree
from autoinstall.values import Value

MANIFESTS = (r"composer\.json", r"phpunit\.xml(?:\.dist)?", r"phpunit\.dist\.xml")

_NAMESPACE = re.compile(r"(?m)^\s*namespace\s+(?P<name>[\w\\]+)\s*[;{]")
_CLASS = re.compile(r"(?m)^(?:abstract\s+|final\s+|readonly\s+)*(?:class|interface|trait|enum)\s+(?P<name>\w+)")
_VERSION = re.compile(
    r"(?mi)^\s*(?:public\s+|final\s+)*const\s+(?:string\s+)?(?P<name>version)\s*=\s*'(?P<version>\d+(?:\.\w+)+)'"
)


class Project(Value):
    """Attributes:
    directory: relative to the root of the checkout, empty for the root.
    name: of the package, `vendor/name`.
    requires, develops: package → constraint.
    autoload: whether composer makes an autoloader for its sources.
    configuration: of PHPUnit, relative to the directory; empty where there is none.
    tests: files with test cases.
    sources: files with classes, those that the autoloader is told of first.
    programs: that the package installs.
    """

    directory: str
    manifest: str
    composer: bool = False
    name: str = ""
    requires: dict[str, str] = Field(default_factory=dict)
    develops: dict[str, str] = Field(default_factory=dict)
    autoload: bool = False
    configuration: str = ""
    tests: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def at(self, path: str) -> str:
        return at(self.directory, path)

    @property
    def phpunit(self) -> str:
        return "vendor/bin/phpunit" if self.composer else "phpunit"


class Class(Value):
    """A class that the autoloader finds; `version`: (constant, value), empty where it has none."""

    name: str
    path: str
    version: tuple[str, str] = ("", "")


def project_of(tree: Tree) -> Project | None:
    directory = root_of(tree, MANIFESTS, (".php",))
    if directory is None:
        return None
    document = _composer(tree, at(directory, "composer.json"))
    php = files_of(tree, directory, ".php")
    names = ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    configuration = next((name for name in names if tree.has(at(directory, name))), "")
    tests = [path for path in php if re.search(r"Test\.php$", path) and re.search(r"(?i)(?:^|/)tests?/", path)]
    if not php or not (document or configuration or tests):
        return None
    folders = [str(path) for path in _autoload_paths(document)]
    sources = [path for path in php if not re.search(r"(?i)(?:^|/)(?:tests?|spec)", path)]
    first = [path for path in sources if any(path.startswith(folder.lstrip("./")) for folder in folders)]
    manifest = "composer.json" if document else configuration or tests[0]
    return Project(
        directory=directory,
        manifest=at(directory, manifest),
        composer=bool(document),
        name=str(document.get("name", "")),
        requires={name: str(value) for name, value in mapping(document.get("require")).items()},
        develops={name: str(value) for name, value in mapping(document.get("require-dev")).items()},
        autoload=bool(folders),
        configuration=configuration,
        tests=tuple(tests),
        sources=tuple(dict.fromkeys((*sorted(first, key=lambda path: (path.count("/"), len(path), path)), *sources))),
        programs=tuple(str(item) for item in sequence(document.get("bin")) if tree.has(at(directory, str(item)))),
    )


def needs_of(project: Project) -> tuple[Need, ...]:
    """Packages that running the project or its tests takes, and, as wishes, those for its developers."""
    known = knowledge()
    needs: list[Need] = []
    for name, constraint in project.requires.items():
        if "/" in name and name not in known.platform:
            needs.append(Need(name=name, constraint=constraint))
    for name, constraint in project.develops.items():
        if "/" in name:
            needs.append(Need(name=name, constraint=constraint, hard=name in known.runners, tool=name in known.runners))
    return tuple(needs)


def extensions_of(project: Project) -> tuple[str, ...]:
    """PHP's extensions that it names, without `ext-`."""
    return tuple(
        name.removeprefix("ext-") for name in {**project.requires, **project.develops} if name.startswith("ext-")
    )


def classes_of(tree: Tree, project: Project, count: int) -> Iterator[Class]:
    """Classes of the first sources, by their full names."""
    found = 0
    for path in project.sources:
        text = tree.read(project.at(path))
        named = _CLASS.search(text)
        # Names of the time before namespaces have the directories in them.
        if not named or named["name"].rpartition("_")[2] != posixpath.basename(path).removesuffix(".php"):
            continue
        space = _NAMESPACE.search(text)
        version = _VERSION.search(text)
        yield Class(
            name=f"{space['name']}\\{named['name']}" if space else named["name"],
            path=path,
            version=(version["name"], version["version"]) if version else ("", ""),
        )
        found += 1
        if found >= count:
            return


def _composer(tree: Tree, path: str) -> dict[str, Any]:
    try:
        document: Any = json.loads(tree.read(path) or "{}")
    except ValueError:
        return {}
    return dict(mapping(document))


def _autoload_paths(document: dict[str, Any]) -> Iterator[Any]:
    autoload = mapping(document.get("autoload"))
    for kind in ("psr-4", "psr-0"):
        for value in mapping(autoload.get(kind)).values():
            yield from sequence(value)
    yield from sequence(autoload.get("classmap"))
    yield from sequence(autoload.get("files"))
