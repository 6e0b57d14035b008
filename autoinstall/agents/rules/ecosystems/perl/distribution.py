"""What a Perl distribution's own files say of it."""

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from autoinstall.agents.rules.ecosystems.needs import Need, merged
from autoinstall.agents.rules.ecosystems.scripting import at, files_of, root_of
from autoinstall.agents.rules.evidence.yaml_marks import mapping
from autoinstall.tree import Tree
from autoinstall.values import Value

MANIFESTS = (r"Makefile\.PL", r"Build\.PL", "cpanfile", r"dist\.ini", r"minil\.toml")
MAX_FILES = 400

_MODULE = r"[A-Za-z_]\w*(?:::\w+)*"
_REQUIRES = re.compile(
    rf"(?m)^(?P<indent>\s*)(?P<kind>test_|build_|configure_|author_)?requires\s*\(?\s*['\"]?(?P<name>{_MODULE})['\"]?"
)
_PHASE = re.compile(r"(?m)^\s*on\s*\(?\s*['\"]?(\w+)['\"]?\s*(?:=>|,)\s*sub")
_KEYS = re.compile(
    r"\b(PREREQ_PM|BUILD_REQUIRES|TEST_REQUIRES|CONFIGURE_REQUIRES|requires|build_requires|test_requires|configure_requires)"
    r"['\"]?\s*(?:=>|=)\s*[{(](?P<body>[^{}]*(?:\{[^{}]*\}[^{}]*)*)[})]"
)
_ENTRY = re.compile(rf"(?m)^[^#\n]*?['\"]?(?P<name>{_MODULE})['\"]?\s*=>")
_SECTION = re.compile(r"(?ms)^\[(?P<name>Prereqs?[^\]]*)\](?P<body>.*?)(?=^\[|\Z)")
_USE = re.compile(r"(?m)^use\s+(?P<name>[A-Z]\w*(?:::\w+)*)\b(?!\s*=>)")
_ELSEWHERE = re.compile(r"(?:Win32|VMS|Mac|MacOS|perl|inc)(?:::|$)")
_OPTIONAL_PHASES = frozenset({"develop", "author", "xt"})


class Distribution(Value):
    """Attributes:
    directory: relative to the root of the checkout, empty for the root.
    builder: `Makefile.PL`, `Build.PL` or empty.
    modules: files below lib (or the directory itself), the main one first.
    tests: of the suite that is for everybody, not for the author.
    """

    directory: str
    manifest: str
    builder: str = ""
    modules: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    compiled: bool = False

    def at(self, path: str) -> str:
        return at(self.directory, path)

    def main(self) -> str:
        """The main module's name, empty where there is none."""
        return module_name(self.modules[0]) if self.modules else ""


def distribution_of(tree: Tree) -> Distribution | None:
    directory = root_of(tree, MANIFESTS, (".pm", ".pl", ".t"))
    if directory is None:
        return None
    names = ("Makefile.PL", "Build.PL", "cpanfile", "dist.ini", "minil.toml")
    manifest = next((name for name in names if tree.has(at(directory, name))), "")
    sources = files_of(tree, directory, ".pm", ".t", ".pl", ".xs")
    modules = [path for path in sources if path.endswith(".pm") and path.startswith("lib/")]
    modules = modules or [path for path in sources if path.endswith(".pm") and "/" not in path]
    tests = [path for path in sources if path.endswith(".t") and re.match(r"t/", path)]
    if not manifest and not (modules and tests):
        return None
    return Distribution(
        directory=directory,
        manifest=at(directory, manifest or (modules + tests)[0]),
        builder=next((name for name in names[:2] if tree.has(at(directory, name))), ""),
        modules=tuple(sorted(modules, key=lambda path: (path.count("/"), len(path), path))),
        tests=tuple(sorted(tests)),
        scripts=tuple(_scripts(tree, directory)),
        compiled=any(path.endswith(".xs") for path in sources),
    )


def module_name(path: str) -> str:
    return path.removeprefix("lib/").removesuffix(".pm").replace("/", "::")


def version_of(tree: Tree, path: str) -> str:
    """`$VERSION` of a module, as written; empty where it is computed."""
    match = re.search(
        r"(?m)^\s*(?:our\s+)?\$(?:\w+::)*VERSION\s*=\s*(?P<quote>['\"]?)(?P<text>v?\d+\.\d+(?:\.\d+)*)(?P=quote)\s*;",
        tree.read(path),
    )
    return match["text"] if match else ""


def needs_of(tree: Tree, distribution: Distribution) -> tuple[Need, ...]:
    """Modules that the distribution declares, and, as wishes, those that its sources and tests use; without its own."""
    own = {module_name(path) for path in distribution.modules}
    own |= {
        re.sub(r"^t/(?:lib/)?", "", path).removesuffix(".pm").replace("/", "::")
        for path in tree.files
        if path.endswith(".pm")
    }
    found = [*_declared(tree, distribution), *_used(tree, distribution)]
    return tuple(need for need in merged(found) if need.name not in own and not _ELSEWHERE.match(need.name))


def _declared(tree: Tree, distribution: Distribution) -> Iterator[Need]:
    yield from _of_cpanfile(tree.read(distribution.at("cpanfile")))
    for name in ("Makefile.PL", "Build.PL"):
        text = tree.read(distribution.at(name))
        if "inc::Module::Install" in text:
            yield Need(name="Module::Install")
        if "Module::Build" in text and name == "Build.PL":
            yield Need(name="Module::Build")
        for match in _KEYS.finditer(text):
            for entry in _ENTRY.finditer(match["body"]):
                yield Need(name=entry["name"])
        yield from (Need(name=item["name"]) for item in _REQUIRES.finditer(text) if item["kind"] != "author_")
        yield from (Need(name=item["name"]) for item in _USE.finditer(text))
    for section in _SECTION.finditer(tree.read(distribution.at("dist.ini"))):
        if re.search(r"(?i)develop|suggest|recommend", section["name"] + section["body"].partition("\n\n")[0]):
            continue
        for name in re.findall(rf"(?m)^({_MODULE})\s*=", section["body"]):
            yield Need(name=name)
    yield from _of_meta(tree.read(distribution.at("META.json")))


def _of_cpanfile(text: str) -> Iterator[Need]:
    phases = [(match.start(), match[1]) for match in _PHASE.finditer(text)]
    for match in _REQUIRES.finditer(text):
        before = [phase for start, phase in phases if start < match.start()]
        phase = before[-1] if before and match["indent"].strip("\n") else "runtime"
        if phase not in _OPTIONAL_PHASES and match["kind"] != "author_":
            yield Need(name=match["name"])


def _of_meta(text: str) -> Iterator[Need]:
    try:
        document: Any = json.loads(text) if text else {}
    except ValueError:
        return
    for phase, kinds in mapping(mapping(document).get("prereqs")).items():
        if phase in {"runtime", "test", "build", "configure"}:
            for name in mapping(mapping(kinds).get("requires")):
                yield Need(name=name)


def _used(tree: Tree, distribution: Distribution) -> Iterator[Need]:
    for path in (*distribution.modules, *distribution.tests, *distribution.scripts)[:MAX_FILES]:
        for match in _USE.finditer(tree.read(distribution.at(path)).partition("\n__END__")[0]):
            yield Need(name=match["name"], hard=False)


def _scripts(tree: Tree, directory: str) -> Iterator[str]:
    prefix = f"{directory}/" if directory else ""
    for path in tree.files:
        if not path.startswith(prefix):
            continue
        name = path.removeprefix(prefix)
        if posixpath.dirname(name) not in {"", "bin", "script", "scripts"} or posixpath.splitext(name)[1] not in {
            "",
            ".pl",
        }:
            continue
        if re.match(r"#!.*\bperl\b", tree.read(path)):
            yield name
