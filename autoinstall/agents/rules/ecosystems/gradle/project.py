"""What the Gradle files of a checkout say, as far as it can be read without running them."""

import posixpath
import re

from autoinstall.agents.rules.ecosystems.jdk import java_version
from autoinstall.tree import Tree
from autoinstall.values import Value

MAX_MODULES = 80
_BUILD = ("build.gradle", "build.gradle.kts")
_SETTINGS = ("settings.gradle", "settings.gradle.kts")
_ASIDE = re.compile(r"(?i)(?:^|/)(?:buildSrc|src|build|testdata|examples?|samples?|it)/")
_COMMENT = re.compile(r"(?s)/\*.*?\*/|(?m:(?<![:'\"\w])//.*$)")
_INCLUDE = re.compile(r"(?m)^\s*include\b\s*\(?((?:\s*['\"][^'\"]+['\"]\s*,?)+)")
_PLACE = re.compile(
    r"project\(\s*['\"](:[^'\"]+)['\"]\s*\)\.projectDir\s*=\s*(?:new File|file)\([^'\"]*['\"]([^'\"]+)['\"]"
)
_ROOT_NAME = re.compile(r"rootProject\.name\s*=\s*['\"]([^'\"]+)['\"]")
_VERSION = re.compile(r"(?m)^\s*version\s*=?\s*['\"]([^'\"$]+)['\"]")
_DISTRIBUTION = re.compile(r"(?m)^\s*distributionUrl\s*=\s*(\S+)")
_LEVEL = re.compile(
    r"(?:sourceCompatibility|targetCompatibility|release(?:\.set\()?|jvmTarget)\s*[=(]?\s*(?:JavaVersion\.VERSION_|JvmTarget\.JVM_)?"
    r"['\"]?(1[._])?(\d+)"
)
_TOOLCHAIN = re.compile(r"JavaLanguageVersion\.of\(\s*['\"]?(\d+)|jvmToolchain\(\s*(\d+)")
_MAIN = re.compile(r"mainClass(?:Name)?(?:\.set\(|\s*=)\s*['\"]([\w.]+)['\"]")


class Module(Value):
    """A project of the build.

    Attributes:
        path: Gradle's, `:core`; empty for the root.
        directory: relative to the root of the checkout, empty for the root.
        build: its build file; empty where it has none of its own.
        main: the class that its program starts, empty where it names none.
    """

    path: str
    directory: str
    build: str = ""
    main: str = ""


class Project(Value):
    """A Gradle build: `modules` has the root first.

    Attributes:
        directory: of the build, relative to the root of the checkout.
        manifest: the file that makes it a build.
        name, version: empty where they are not written down.
        wrapper: path of `gradlew`; empty where there is none.
        distribution: where the wrapper downloads Gradle from, and `gradle`, its version; empty likewise.
        level: the newest Java version that a part is compiled for; 0 where none says.
        toolchains: JDKs that the build asks for by version.
    """

    directory: str
    manifest: str
    modules: tuple[Module, ...]
    name: str = ""
    version: str = ""
    wrapper: str = ""
    distribution: str = ""
    gradle: str = ""
    level: int = 0
    toolchains: tuple[int, ...] = ()

    def inside(self, command: str) -> str:
        """The command as it is run from the root of the checkout."""
        return f"cd {self.directory} && {command}" if self.directory else command


def project_of(tree: Tree) -> Project | None:
    """The main build: the root's, else the shallowest one of the first three directory levels."""
    found = [
        path
        for path in tree.files
        if posixpath.basename(path) in (*_SETTINGS, *_BUILD) and path.count("/") <= 2 and not _ASIDE.search(path)
    ]
    first = min(found, key=lambda path: (path.count("/"), posixpath.basename(path) not in _SETTINGS, path), default="")
    return _read(tree, posixpath.dirname(first), first) if first else None


def text_of(tree: Tree, path: str) -> str:
    """A build file without its comments."""
    return _COMMENT.sub("", tree.read(path)) if path else ""


def _read(tree: Tree, directory: str, manifest: str) -> Project:
    settings = text_of(tree, _first(tree, directory, _SETTINGS))
    modules = _modules(tree, directory, settings)
    texts = [text_of(tree, module.build) for module in modules]
    shared = [text_of(tree, path) for path in tree.files if _is_shared(path, directory)]
    together = "\n".join((settings, *texts, *shared))
    distribution = _DISTRIBUTION.search(tree.read(_inside(directory, "gradle/wrapper/gradle-wrapper.properties")))
    address = distribution[1].replace("\\", "") if distribution else ""
    release = re.search(r"gradle-(\d+(?:\.\d+)+)", address)
    name, version = _ROOT_NAME.search(settings), _VERSION.search(texts[0])
    stated = re.search(r"(?m)^version\s*=\s*(\S+)\s*$", tree.read(_inside(directory, "gradle.properties")))
    levels = [java_version(match[2]) for match in _LEVEL.finditer(together)]
    asked = {int(match[1] or match[2]) for match in _TOOLCHAIN.finditer(together)}
    wrapper = _inside(directory, "gradlew")
    return Project(
        directory=directory,
        manifest=manifest,
        modules=modules,
        name=name[1] if name else "",
        version=version[1] if version else stated[1] if stated else "",
        wrapper=wrapper if tree.has(wrapper) and address else "",
        distribution=address,
        gradle=release[1] if release else "",
        level=max((level for level in levels if level < 100), default=0),
        toolchains=tuple(sorted(asked)),
    )


def _modules(tree: Tree, directory: str, settings: str) -> tuple[Module, ...]:
    places = {match[1]: match[2] for match in _PLACE.finditer(settings)}
    names = [name for match in _INCLUDE.finditer(settings) for name in re.findall(r"['\"]([^'\"$]+)['\"]", match[1])]
    found = []
    for path in dict.fromkeys(("", *(f":{name.lstrip(':').replace('/', ':')}" for name in names))):
        inner = places.get(path, path.strip(":").replace(":", "/"))
        place = posixpath.normpath(_inside(directory, inner)).strip(".")
        own = posixpath.basename(place)
        build = _first(tree, place, (*_BUILD, f"{own}.gradle", f"{own}.gradle.kts"))
        main = _MAIN.search(text_of(tree, build))
        if not path or build or tree.has_directory(place):
            found.append(Module(path=path, directory=place, build=build, main=main[1] if main else ""))
    return tuple(found[:MAX_MODULES])


def _is_shared(path: str, directory: str) -> bool:
    """Build logic that several projects use: convention plugins, scripts beside the wrapper, the version catalogue."""
    inner = path[len(directory) + 1 :] if directory else path
    return inner.startswith(("buildSrc/", "build-logic/", "gradle/")) and inner.endswith((".gradle", ".kts", ".toml"))


def _first(tree: Tree, directory: str, names: tuple[str, ...]) -> str:
    return tree.first(*(_inside(directory, name) for name in names)) or ""


def _inside(directory: str, name: str) -> str:
    return posixpath.join(directory, name) if directory else name
