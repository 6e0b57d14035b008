"""What the pom.xml files of a checkout say."""

import posixpath
import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from pydantic import Field

from autoinstall.agents.rules.ecosystems.jdk import java_version
from autoinstall.tree import Tree
from autoinstall.values import Value

MAX_MODULES = 80
_ASIDE = re.compile(r"(?i)(?:^|/)(?:src|target|testdata|examples?|samples?|archetype-resources|it)/")
_REFERENCE = re.compile(r"\$\{([\w.-]+)\}")
_OWN_GROUP = ("${project.groupId}", "${pom.groupId}")
_LEVELS = ("maven.compiler.release", "maven.compiler.target", "maven.compiler.source", "java.version", "jdk.version")


class Pom(Value):
    """One pom.xml.

    Attributes:
        directory: relative to the root of the checkout, empty for the root.
        group, artifact, version, packaging: as written, the parent's where the project has none.
        properties: name → text.
        modules: directories of the modules that it builds, relative to the root of the checkout.
        level: the Java version that it compiles for, 0 where it does not say.
        maven: the least version of Maven that it names, empty where it names none.
        main: the class that its jar starts, empty where it names none.
        plugins: artifact ids of the plugins that it configures.
        classified: group ids of the dependencies that are other than the plain jar of an artifact.
    """

    directory: str
    group: str = ""
    artifact: str = ""
    version: str = ""
    packaging: str = "jar"
    properties: dict[str, str] = Field(default_factory=dict)
    modules: tuple[str, ...] = ()
    level: int = 0
    maven: str = ""
    main: str = ""
    plugins: frozenset[str] = frozenset()
    classified: frozenset[str] = frozenset()

    @property
    def manifest(self) -> str:
        return posixpath.join(self.directory, "pom.xml")


class Project(Value):
    """What is built together.

    Attributes:
        poms: the root's and those of its modules, in the order of building, roots first.
        jars: whether modules need the jars of others, where most are content with the compiled classes.
    """

    poms: tuple[Pom, ...]
    jars: bool = False

    @property
    def root(self) -> Pom:
        return self.poms[0]

    @property
    def testing(self) -> str:
        """The phase that runs the tests, by which all that they need of other modules is there."""
        return "package" if self.jars else "test"

    @property
    def level(self) -> int:
        """The newest Java version that a part is compiled for; 0 where none says."""
        return max(pom.level for pom in self.poms)

    def inside(self, command: str) -> str:
        """The command as it is run from the root of the checkout."""
        return f"cd {self.root.directory} && {command}" if self.root.directory else command


def project_of(tree: Tree) -> Project | None:
    """The main project: the root's, else the shallowest one of the first three directory levels."""
    found = [
        path
        for path in tree.files
        if (path == "pom.xml" or path.endswith("/pom.xml")) and path.count("/") <= 2 and not _ASIDE.search(path)
    ]
    for path in sorted(found, key=lambda item: (item.count("/"), -len(tree.read(item)), item)):
        root = read(tree, posixpath.dirname(path))
        if root is not None:
            poms = tuple(_with_modules(tree, root))[:MAX_MODULES]
            return Project(poms=poms, jars=_needs_jars(tree, poms))
    return None


def _needs_jars(tree: Tree, poms: tuple[Pom, ...]) -> bool:
    """Whether the phases before `package` fail: Maven takes other modules' `target/classes` in them, where neither an
    artifact with a classifier is found, nor a module descriptor that is compiled apart, into META-INF/versions.
    """
    if len(poms) == 1:
        return False
    main = tuple(posixpath.join(pom.directory, "src/main/") for pom in poms)
    descriptors = (path for path in tree.files if path.endswith("/module-info.java") and path.startswith(main))
    apart = any(not path.endswith("src/main/java/module-info.java") for path in descriptors)
    return apart or any(pom.classified & {other.group for other in poms} for pom in poms)


def read(tree: Tree, directory: str) -> Pom | None:
    """The pom.xml of a directory; None where it is none that can be read."""
    text_of_file = tree.read(posixpath.join(directory, "pom.xml"))
    if "<!DOCTYPE" in text_of_file or "<!ENTITY" in text_of_file:
        return None
    try:
        document = Xml.fromstring(text_of_file)  # noqa: S314 (without a document type there are no entities to grow)
    except Xml.ParseError:
        return None
    for element in document.iter():
        element.tag = element.tag.rpartition("}")[2]
    if document.tag != "project":
        return None
    properties = {item.tag: (item.text or "").strip() for item in document.findall("properties/*")}

    def text(path: str) -> str:
        value = (document.findtext(path) or "").strip()
        return _REFERENCE.sub(lambda match: properties.get(match[1], match[0]), value)

    group = text("groupId") or text("parent/groupId")
    compiler = "build//plugin[artifactId='maven-compiler-plugin']//configuration/"
    named = [properties.get(name, "") for name in _LEVELS] + [
        text(f"{compiler}{name}") for name in ("release", "target", "source")
    ]
    return Pom(
        directory=directory,
        group=group,
        artifact=text("artifactId"),
        version=text("version") or text("parent/version"),
        packaging=text("packaging") or "jar",
        properties=properties,
        modules=tuple(_module(directory, item.text or "") for item in document.findall("modules/module")),
        level=max((number for value in named if (number := java_version(_filled(value, properties)))), default=0),
        maven=_least(text("prerequisites/maven") or text(".//requireMavenVersion/version")),
        main=next((item.text.strip() for item in document.findall("build//mainClass") if item.text), ""),
        plugins=frozenset((item.text or "").strip() for item in document.findall(".//plugin/artifactId")),
        classified=frozenset(
            group if (name := (item.findtext("groupId") or "").strip()) in _OWN_GROUP else name
            for item in document.findall("dependencies/dependency[classifier]")
        ),
    )


def _with_modules(tree: Tree, root: Pom) -> Iterator[Pom]:
    waiting, seen = [root], {root.directory}
    while waiting and len(seen) <= MAX_MODULES:
        pom = waiting.pop(0)
        yield pom
        for directory in pom.modules:
            module = read(tree, directory) if directory not in seen else None
            seen.add(directory)
            if module is not None:
                waiting.append(module)


def _module(directory: str, text: str) -> str:
    place = posixpath.normpath(posixpath.join(directory, text.strip().removesuffix("/pom.xml")))
    return "" if place == "." else place


def _filled(text: str, properties: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: properties.get(match[1], ""), text)


def _least(text: str) -> str:
    match = re.search(r"\d+(?:\.\d+)+", text)
    return match[0] if match else ""
