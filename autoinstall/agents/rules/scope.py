"""Whether there is anything here that could be set up on Linux at all, decided from the tree alone and early."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath

from autoinstall.agents.rules.evidence.yaml_marks import mapping, read_yaml
from autoinstall.agents.rules.knowledge import load
from autoinstall.tree import Tree
from autoinstall.values import Value

_WINDOWS_PROJECT = re.compile(r"\.(?:sln|vcxproj|vbproj|dsp|dsw)$")
_APPLE_PROJECT = re.compile(r"\.(?:xcodeproj|xcworkspace)/|(?:^|/)Podfile$")
_PORTABLE = frozenset(
    {"CMakeLists.txt", "configure.ac", "configure.in", "configure", "autogen.sh", "meson.build", "Cargo.toml", "go.mod"}
    | {"pyproject.toml", "setup.py", "package.json", "Makefile", "makefile", "GNUmakefile", "pom.xml", "build.gradle"}
    | {"Package.swift", "Gemfile", "composer.json", "SConstruct", "BUILD.bazel", "build.gradle.kts"}
)
_ANDROID = re.compile(
    r"(?m)^(?!.*\bapply[ (]*false).*(?:com\.android\.(?:application|library)|\bplugins\.android[.A-Z]\w*)"
)
_TESTS = re.compile(r"(?i)(?:^|/)(?:tests?|spec|__tests__)/|(?:^|/)test_\w+\.|[._-](?:test|spec)\.\w+$|\.(?:bats|t)$")


class Scope(Value):
    """The form of `scope.toml`."""

    code: frozenset[str]
    markup: frozenset[str]
    manifests: frozenset[str]
    dotfiles: frozenset[str]


def out_of_scope(tree: Tree) -> str:
    """Why nothing can be set up here, in one sentence; empty where something may."""
    table = load("scope", Scope)
    checks: tuple[Callable[[Tree, Scope], str], ...] = (
        _no_code,
        _dotfiles,
        _kernel_module,
        _windows_only,
        _apple_only,
        _android,
        _firmware,
        _data_package,
        _documents,
    )
    return next((reason for check in checks if (reason := check(tree, table))), "")


def _no_code(tree: Tree, table: Scope) -> str:
    own = [path for path in tree.files if not path.startswith((".github/", ".circleci/", ".gitlab/"))]
    programs = [path for path in own if _suffix(path) in table.code - table.markup or _is_script(tree, path)]
    if programs or any(_name(path) in table.manifests for path in own):
        return ""
    kinds = Counter(_suffix(path) or "no suffix" for path in own).most_common(3)
    held = ", ".join(f"{count} × {kind}" for kind, count in kinds) or "nothing"
    return f"The repository has no code: it holds {held}."


def _dotfiles(tree: Tree, table: Scope) -> str:
    found = [path for path in tree.files if _name(path) in table.dotfiles or f".{_name(path)}" in table.dotfiles]
    if len(found) >= 4 and not _root_manifests(tree, table, "Makefile"):
        return f"The repository is a collection of personal settings ({', '.join(found[:4])}, …), not a program."
    return ""


def _kernel_module(tree: Tree, _: Scope) -> str:
    for path in ("Makefile", "Kbuild", "src/Makefile", "driver/Makefile"):
        line = next((n for n, text in tree.lines(path) if re.match(r"\s*obj-(?:m|\$\(\w+\))\s*[:+]?=", text)), 0)
        if line:
            return (
                f"The repository is a Linux kernel module ({path}:{line}): it needs the kernel's headers and hardware."
            )
    return ""


def _windows_only(tree: Tree, _: Scope) -> str:
    project = next((path for path in tree.files if _WINDOWS_PROJECT.search(path)), "")
    if project and not _portable_build(tree) and not _dotnet_core(tree) and _systems(tree) <= {"windows"}:
        return f"The repository builds on Windows only ({project}, and no build file for Linux)."
    return ""


def _apple_only(tree: Tree, _: Scope) -> str:
    project = next((path for path in tree.files if _APPLE_PROJECT.search(path)), "")
    apple = sum(_suffix(path) in {".swift", ".m", ".mm"} for path in tree.files)
    if project and apple and not _portable_build(tree) and _systems(tree) <= {"macos"}:
        return f"The repository builds with Apple's tools only ({project}, and no build file for Linux)."
    return ""


def _android(tree: Tree, table: Scope) -> str:
    manifests = [path for path in tree.files if _name(path) in table.manifests and path.count("/") <= 2]
    builds = [path for path in manifests if _name(path).startswith("build.gradle")]
    android = [path for path in builds if _ANDROID.search(tree.read(path))]
    modules = sum("/" in path for path in builds) or len(builds)
    # A library for every JVM may have a module or a sample for Android, which its build leaves out without the SDK.
    if android and len(builds) == len(manifests) and 2 * len(android) >= modules:
        return f"The repository is built with the Android SDK ({android[0]}), which is in no package registry."
    return ""


def _firmware(tree: Tree, _: Scope) -> str:
    sketch = next((path for path in tree.files if path.endswith(".ino")), "")
    if (tree.has("platformio.ini") or sketch) and not _portable_build(tree):
        return f"The repository is firmware ({sketch or 'platformio.ini'}): it needs a device."
    return ""


def _data_package(tree: Tree, table: Scope) -> str:
    package = tree.first("datapackage.json", "datapackage.yml", "datapackage.yaml")
    if package and not _root_manifests(tree, table, "Makefile") and not any(_TESTS.search(path) for path in tree.files):
        return f"The repository is a data set ({package}) without tests or a program to install."
    return ""


def _documents(tree: Tree, table: Scope) -> str:
    """Mostly prose, no manifest and no tests: the few scripts serve the text."""
    if any(_name(path) in table.manifests and path.count("/") <= 2 for path in tree.files):
        return ""
    if any(_TESTS.search(path) for path in tree.files):
        return ""
    prose = sum(_suffix(path) in {".md", ".rst", ".txt", ".adoc", ".tex"} for path in tree.files)
    programs = sum(_suffix(path) in table.code - table.markup for path in tree.files if not path.startswith("."))
    if prose >= 5 and programs * 5 <= prose:
        return f"The repository is made of documents ({prose} files of text, {programs} of code and no project file)."
    return ""


def _systems(tree: Tree) -> set[str]:
    """Operating systems that the CI's jobs run on; empty where no CI says so."""
    systems: set[str] = set()
    for path in tree.match(".github/workflows/*.y*ml"):
        for job in mapping(mapping(read_yaml(tree, path)).get("jobs")).values():
            text = str(mapping(job).get("runs-on", "")) + str(mapping(mapping(job).get("strategy")).get("matrix", ""))
            steps = str(mapping(job).get("steps", ""))
            if not re.search(r"(?i)\bbuild|test|make|msbuild|xcodebuild", steps):
                continue
            systems.update(name for name in ("windows", "macos", "ubuntu") if name in text.lower())
    return systems


def _portable_build(tree: Tree) -> bool:
    return any(name in _PORTABLE for name in tree.files)


def _dotnet_core(tree: Tree) -> bool:
    """Projects in the SDK style build with `dotnet` on Linux too."""
    projects = [path for path in tree.files if path.endswith((".csproj", ".fsproj"))]
    return any("Sdk=" in tree.read(path) for path in projects[:20])


def _root_manifests(tree: Tree, table: Scope, *ignored: str) -> list[str]:
    return [path for path in tree.files if path in table.manifests and path not in ignored]


def _is_script(tree: Tree, path: str) -> bool:
    return not _suffix(path) and tree.read(path).startswith("#!")


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix


def _name(path: str) -> str:
    return PurePosixPath(path).name
