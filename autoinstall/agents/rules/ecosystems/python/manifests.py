"""Reads pyproject.toml, setup.cfg and setup.py into one `PythonProject`."""

import ast
import configparser
import itertools
import posixpath
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from autoinstall.agents.rules.ecosystems.python.knowledge import role_words
from autoinstall.agents.rules.ecosystems.python.model import PythonProject, RequirementSet, SetRole
from autoinstall.agents.rules.ecosystems.python.poetry import poetry_python, poetry_requirement
from autoinstall.agents.rules.ecosystems.python.requirements import Parsed, parse_file, parse_lines
from autoinstall.agents.rules.ecosystems.python.setup_script import read_setup_script
from autoinstall.agents.rules.ecosystems.python.shapes import first_text, mapping, strings
from autoinstall.tree import Tree
from autoinstall.values import Evidence

_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg")
_NOT_PACKAGES = frozenset(
    [
        "tests",
        "test",
        "testing",
        "docs",
        "doc",
        "examples",
        "example",
        "scripts",
        "benchmarks",
        "build",
        "dist",
        "tools",
        "ci",
    ]
)


def role_of(name: str, default: SetRole) -> SetRole:
    """What a name of a set, or a path of a requirements file, says it is for."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    known = role_words()
    roles = [known[word] for word in words if word in known]
    roles += [known["-".join(pair)] for pair in itertools.pairwise(words) if "-".join(pair) in known]
    for role in (SetRole.TEST, SetRole.DEV, SetRole.LINT, SetRole.DOCS, SetRole.RELEASE):
        if role in roles:
            return role
    return default


def load_toml(tree: Tree, path: str) -> dict[str, Any]:
    """The document; empty where the file is absent or broken."""
    try:
        return tomllib.loads(tree.read(path))
    except tomllib.TOMLDecodeError:
        return {}


def load_ini(tree: Tree, path: str) -> configparser.RawConfigParser:
    """The document; without sections where the file is absent or broken."""
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(tree.read(path))
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def find_projects(tree: Tree) -> tuple[PythonProject, ...]:
    """The projects of the checkout, outermost first; the checkout itself where only loose files are there."""
    roots: list[str] = []
    for path in tree.files:
        directory, name = posixpath.split(path)
        is_new = name in _MANIFESTS and directory.count("/") < 2 and directory not in roots
        if is_new and not any(part.rstrip("0123456789") in _SKIPPED for part in directory.split("/")):
            roots.append(directory)
    roots.sort(key=lambda root: (root.count("/") + bool(root), root))
    projects = [project for project in (read_project(tree, root) for root in roots) if _is_project(project)]
    return tuple(projects) or (read_project(tree, ""),)


_SKIPPED = frozenset(
    [
        "tests",
        "test",
        "testdata",
        "fixtures",
        "examples",
        "example",
        "docs",
        "doc",
        "node_modules",
        "vendor",
        "third_party",
        "_vendor",
        "samples",
        "templates",
        "integration_tests",
        "benchmarks",
        "data",
        "assets",
    ]
)


_VENDORED = frozenset(
    ("node_modules", "vendor", "third_party", "_vendor", "templates", "testdata", "fixtures", "site-packages")
)


def _is_project(project: PythonProject) -> bool:
    return project.installable or bool(project.sets) or bool(project.name)


def read_project(tree: Tree, root: str) -> PythonProject:
    """The project at `root`; without manifests it is a directory of modules."""
    return _Reader(tree, root).read()


class _Reader:
    def __init__(self, tree: Tree, root: str) -> None:
        self.tree = tree
        self.root = root
        self.pyproject = load_toml(tree, self._path("pyproject.toml"))
        self.cfg = load_ini(tree, self._path("setup.cfg"))
        self.script = read_setup_script(tree, self._path("setup.py"))
        self.has_script = tree.has(self._path("setup.py"))
        self.sets: list[RequirementSet] = []

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if self.root else name

    def read(self) -> PythonProject:
        project = mapping(self.pyproject.get("project"))
        poetry = mapping(mapping(self.pyproject.get("tool")).get("poetry"))
        flit = mapping(mapping(self.pyproject.get("tool")).get("flit"))
        flit_metadata = mapping(flit.get("metadata"))
        build = mapping(self.pyproject.get("build-system"))
        metadata = dict(self.cfg["metadata"]) if self.cfg.has_section("metadata") else {}
        options = dict(self.cfg["options"]) if self.cfg.has_section("options") else {}
        name = first_text(
            project.get("name"),
            poetry.get("name"),
            flit_metadata.get("dist-name"),
            flit_metadata.get("module"),
            self.script.get("name"),
            metadata.get("name"),
        )
        requires_python = first_text(
            project.get("requires-python"),
            poetry_python(poetry),
            flit_metadata.get("requires-python"),
            self.script.get("python_requires"),
            options.get("python_requires"),
        )
        classifiers = [
            *strings(project.get("classifiers")),
            *strings(poetry.get("classifiers")),
            *strings(flit_metadata.get("classifiers")),
            *strings(self.script.get("classifiers")),
            *_cfg_lines(metadata.get("classifiers") or metadata.get("classifier")),
        ]
        self._standard(project)
        self._poetry(poetry)
        self._flit(flit_metadata)
        self._tools()
        self._setup_cfg(options)
        self._setup_script()
        packages, source_dir = self._packages(name)
        return PythonProject(
            root=self.root,
            name=name,
            installable=self._installable(project, poetry, build, options),
            legacy_setup=self.has_script and not build,
            backend=first_text(build.get("build-backend")),
            build_requires=tuple(self._build_requires(build)),
            requires_python=requires_python,
            classifiers=tuple(classifiers),
            sets=tuple(self.sets),
            scripts=self._scripts(project, poetry, flit),
            packages=packages,
            source_dir=source_dir,
            evidence=self._evidence(next((m for m in _MANIFESTS if self.tree.has(self._path(m))), ""), ""),
        )

    def _installable(
        self,
        project: Mapping[str, Any],
        poetry: Mapping[str, Any],
        build: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> bool:
        tool = mapping(self.pyproject.get("tool"))
        if poetry.get("package-mode") is False or mapping(tool.get("uv")).get("package") is False:
            return False
        if mapping(tool.get("pdm")).get("distribution") is False:
            return False
        if "poetry" in str(build.get("build-backend")) and not self._poetry_finds_package(project, poetry):
            return False
        if self.has_script:
            return True
        return bool(build) and bool(
            project or poetry or tool.get("flit") or options or self.cfg.has_section("metadata")
        )

    def _poetry_finds_package(self, project: Mapping[str, Any], poetry: Mapping[str, Any]) -> bool:
        """Whether there is what Poetry would put into a wheel; applications often use it for what they need alone."""
        if poetry.get("packages"):
            return True
        name = canonicalize_name(str(poetry.get("name") or project.get("name") or "")).replace("-", "_")
        places = [self._path(place) for place in (name, f"src/{name}")]
        return any(self.tree.has_directory(place) or self.tree.has(f"{place}.py") for place in places)

    def _build_requires(self, build: Mapping[str, Any]) -> list[str]:
        lines = [*strings(build.get("requires")), *strings(self.script.get("setup_requires"))]
        return parse_lines(lines or ["setuptools", "wheel"], self.tree, self.root).requirements

    # --- requirement sets -------------------------------------------------------------------------------------------

    def _add(self, name: str, role: SetRole, lines: Iterable[str], evidence: Evidence, *, extra: bool = False) -> None:
        parsed = parse_lines(lines, self.tree, self.root, seen=set())
        self._add_parsed(name, role, parsed, evidence, extra=extra)

    def _add_parsed(self, name: str, role: SetRole, parsed: Parsed, evidence: Evidence, *, extra: bool = False) -> None:
        if extra or parsed.requirements or parsed.dropped or parsed.paths:
            self.sets.append(
                RequirementSet(
                    name=name,
                    role=role,
                    requirements=tuple(dict.fromkeys(parsed.requirements)),
                    paths=tuple(parsed.paths),
                    dropped=tuple(parsed.dropped),
                    extra=extra,
                    evidence=evidence,
                )
            )

    def _evidence(self, file: str, needle: str, text: str = "") -> Evidence:
        path = self._path(file) if file else self.root or "."
        line = self.tree.find_line(path, needle) if needle else 0
        return Evidence(path=path, line=line, text=text or needle)

    def _standard(self, project: Mapping[str, Any]) -> None:
        pyproject = "pyproject.toml"
        if project:
            self._add(
                "dependencies",
                SetRole.RUNTIME,
                strings(project.get("dependencies")),
                self._evidence(pyproject, "dependencies"),
            )
        for name, lines in mapping(project.get("optional-dependencies")).items():
            evidence = self._evidence(pyproject, f"{name} =", f"extra {name}")
            self._add(name, role_of(name, SetRole.EXTRA), strings(lines), evidence, extra=True)
        groups = mapping(self.pyproject.get("dependency-groups"))
        for name in groups:
            evidence = self._evidence(pyproject, f"{name} =", f"dependency group {name}")
            self._add(name, role_of(name, SetRole.EXTRA), _group(groups, name), evidence)

    def _poetry(self, poetry: Mapping[str, Any]) -> None:
        if not poetry:
            return
        pyproject = "pyproject.toml"
        main = mapping(poetry.get("dependencies"))
        required = [line for key, value in main.items() for line in poetry_requirement(key, value, optional=False)]
        self._add("dependencies", SetRole.RUNTIME, required, self._evidence(pyproject, "[tool.poetry.dependencies]"))
        for name, members in mapping(poetry.get("extras")).items():
            wanted = {canonicalize_name(member) for member in strings(members)}
            lines = [
                line
                for key, value in main.items()
                if canonicalize_name(key) in wanted
                for line in poetry_requirement(key, value)
            ]
            evidence = self._evidence(pyproject, f"{name} =", f"extra {name}")
            self._add(name, role_of(name, SetRole.EXTRA), lines, evidence, extra=True)
        groups = {
            name: mapping(mapping(group).get("dependencies")) for name, group in mapping(poetry.get("group")).items()
        }
        if poetry.get("dev-dependencies"):
            groups["dev-dependencies"] = mapping(poetry.get("dev-dependencies"))
        for name, members in groups.items():
            lines = [line for key, value in members.items() for line in poetry_requirement(key, value)]
            evidence = self._evidence(pyproject, f"[tool.poetry.{'' if name == 'dev-dependencies' else 'group.'}{name}")
            self._add(name, role_of(name, SetRole.EXTRA), lines, evidence)

    def _flit(self, metadata: Mapping[str, Any]) -> None:
        if not metadata:
            return
        evidence = self._evidence("pyproject.toml", "[tool.flit.metadata]")
        self._add("dependencies", SetRole.RUNTIME, strings(metadata.get("requires")), evidence)
        for name, lines in mapping(metadata.get("requires-extra")).items():
            self._add(name, role_of(name, SetRole.EXTRA), strings(lines), evidence, extra=True)

    def _tools(self) -> None:
        tool = mapping(self.pyproject.get("tool"))
        pyproject = "pyproject.toml"
        for name, lines in mapping(mapping(tool.get("pdm")).get("dev-dependencies")).items():
            evidence = self._evidence(pyproject, "[tool.pdm.dev-dependencies]", f"pdm group {name}")
            self._add(name, role_of(name, SetRole.DEV), strings(lines), evidence)
        uv = strings(mapping(tool.get("uv")).get("dev-dependencies"))
        self._add("dev-dependencies", SetRole.DEV, uv, self._evidence(pyproject, "dev-dependencies"))
        environments = mapping(mapping(tool.get("hatch")).get("envs"))
        if not environments:
            environments = mapping(load_toml(self.tree, self._path("hatch.toml")).get("envs"))
            pyproject = "hatch.toml" if environments else pyproject
        for name, environment in environments.items():
            values = mapping(environment)
            lines = [*strings(values.get("dependencies")), *strings(values.get("extra-dependencies"))]
            evidence = self._evidence(pyproject, f"envs.{name}", f"hatch environment {name}")
            role = role_of(name, SetRole.DEV if name in ("default", "hatch-test") else SetRole.EXTRA)
            self._add(f"hatch {name}", role, lines, evidence)

    def _setup_cfg(self, options: Mapping[str, str]) -> None:
        file = "setup.cfg"
        self._add(
            "install_requires",
            SetRole.RUNTIME,
            _cfg_lines(options.get("install_requires")),
            self._evidence(file, "install_requires"),
        )
        self._add(
            "tests_require",
            SetRole.TEST,
            _cfg_lines(options.get("tests_require")),
            self._evidence(file, "tests_require"),
        )
        if self.cfg.has_section("options.extras_require"):
            for name, text in self.cfg["options.extras_require"].items():
                evidence = self._evidence(file, name, f"extra {name}")
                self._add(name, role_of(name, SetRole.EXTRA), _cfg_lines(text), evidence, extra=True)

    def _setup_script(self) -> None:
        file = "setup.py"
        for key, role in (("install_requires", SetRole.RUNTIME), ("tests_require", SetRole.TEST)):
            self._add(key, role, strings(self.script.get(key)), self._evidence(file, key))
        for name, lines in mapping(self.script.get("extras_require")).items():
            if isinstance(name, str) and name and not name.startswith(":"):
                evidence = self._evidence(file, name, f"extra {name}")
                self._add(name, role_of(name, SetRole.EXTRA), strings(lines), evidence, extra=True)

    # --- what it offers ---------------------------------------------------------------------------------------------

    def _scripts(
        self, project: Mapping[str, Any], poetry: Mapping[str, Any], flit: Mapping[str, Any]
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for table in (project.get("scripts"), poetry.get("scripts"), flit.get("scripts")):
            found |= {name: target for name, target in mapping(table).items() if isinstance(target, str)}
        lines: list[str] = []
        if self.cfg.has_section("options.entry_points"):
            lines += self.cfg.get("options.entry_points", "console_scripts", fallback="").splitlines()
        if self.cfg.has_section("entry_points"):
            lines += self.cfg.get("entry_points", "console_scripts", fallback="").splitlines()
        points = self.script.get("entry_points")
        if isinstance(points, dict):
            lines += strings(points.get("console_scripts"))
        elif isinstance(points, str):
            section = points.partition("[console_scripts]")[2].partition("[")[0]
            lines += section.splitlines()
        for line in lines:
            name, _, target = line.partition("=")
            if name.strip() and ":" in target:
                found[name.strip()] = target.strip()
        return found

    def _packages(self, name: str) -> tuple[tuple[str, ...], str]:
        """Importable names in the tree, the one most like the distribution's name first, and where they lie."""
        for directory in ("src", "lib", "source", "python", ""):
            base = self._path(directory) if directory else self.root
            if directory and not self.tree.has_directory(base):
                continue
            names = _importable(self.tree, base)
            if directory and not names:
                continue
            wanted = canonicalize_name(name).replace("-", "_") if name else ""
            names.sort(key=lambda item: (item.lower() != wanted, wanted not in item.lower(), item))
            return tuple(names[:20]), base
        return (), self.root


def _importable(tree: Tree, base: str) -> list[str]:
    prefix = f"{base}/" if base else ""
    packages: set[str] = set()
    namespaced: set[str] = set()
    modules: set[str] = set()
    names = frozenset(tree.files)
    for path in tree.files:
        if not path.startswith(prefix):
            continue
        parts = path[len(prefix) :].split("/")
        if len(parts) == 2 and parts[1] == "__init__.py" and parts[0].isidentifier():
            packages.add(parts[0])
        elif len(parts) == 3 and parts[2] == "__init__.py" and f"{prefix}{parts[0]}/__init__.py" not in names:
            if parts[0] not in _NOT_PACKAGES | _SKIPPED and parts[0].isidentifier() and parts[1].isidentifier():
                namespaced.add(f"{parts[0]}.{parts[1]}")
        elif len(parts) == 1 and parts[0].endswith(".py") and parts[0][:-3].isidentifier():
            modules.add(parts[0][:-3])
    packages -= _NOT_PACKAGES
    if not packages:
        packages = {name for name in namespaced if name.split(".")[1] not in _NOT_PACKAGES}
    modules -= {"setup", "conftest", "noxfile", "tasks", "fabfile", "manage", "__init__", "versioneer", "conf"}
    if packages and not base.endswith(("src", "lib")):
        # Beside a package, loose modules at the root of a checkout are scripts rather than part of it.
        modules = {name for name in modules if _is_module(tree, f"{prefix}{name}.py")} if not packages else set()
    return sorted(packages) + sorted(name for name in modules if not name.startswith(("test_", "_")))


def _is_module(tree: Tree, path: str) -> bool:
    try:
        ast.parse(tree.read(path))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _group(groups: Mapping[str, Any], name: str, depth: int = 0) -> list[str]:
    lines: list[str] = []
    members = groups.get(name)
    for member in members if isinstance(members, list) else []:
        if isinstance(member, str):
            lines.append(member)
        elif isinstance(member, dict) and isinstance(member.get("include-group"), str) and depth < 10:
            lines += _group(groups, member["include-group"], depth + 1)
    return lines


def _cfg_lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip() and not line.strip().startswith("#")]


def requirement_files(tree: Tree) -> list[RequirementSet]:
    """Requirement files and conda environments of the checkout by path: for tests, for development, or plain."""
    found: list[RequirementSet] = []
    for path in tree.files:
        if path.count("/") > 3 or _VENDORED & set(path.split("/")[:-1]):
            continue
        name = posixpath.basename(path).lower()
        directory = posixpath.dirname(path).lower()
        listed = name.endswith((".txt", ".in", ".pip")) and (
            "require" in name or "require" in directory or "deps" in name
        )
        # Constraint files and hashed locks of several platforms are no lists of what is needed.
        if not listed or re.search(
            r"constraint|minimum|oldest|lowest|(?:^|[-_])min(?:[-_.]|$)|windows|macos|mac\b|win32", name
        ):
            continue
        if name.endswith(".in") and tree.has(path.removesuffix(".in") + ".txt"):
            continue
        default = SetRole.RUNTIME if name.startswith("requirements.") and "/" not in path else SetRole.EXTRA
        role = role_of(path.rsplit(".", 1)[0], default)
        parsed = parse_file(tree, path)
        if parsed.requirements or parsed.dropped or parsed.paths:
            found.append(
                RequirementSet(
                    name=path,
                    role=role,
                    requirements=tuple(dict.fromkeys(parsed.requirements)),
                    paths=tuple(parsed.paths),
                    dropped=tuple(parsed.dropped),
                    evidence=Evidence(path=path, line=1, text=f"requirements for {role}"),
                )
            )
    return found
