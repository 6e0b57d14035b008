"""What the Gemfile, the gemspec, the Rakefile and the sources of a Ruby project say."""

import posixpath
import re
from collections.abc import Iterator

from autoinstall.agents.rules.ecosystems.needs import Need, merged
from autoinstall.agents.rules.ecosystems.ruby.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.scripting import at, files_of, root_of
from autoinstall.tree import Tree
from autoinstall.values import Value

MANIFESTS = ("Gemfile", r"[\w.-]+\.gemspec", "Rakefile", r"gems\.rb")
MAX_FILES = 400

_STRINGS = re.compile(r"""['"]([^'"]+)['"]""")
_GEM = re.compile(r"""(?m)^(?P<indent>[ \t]*)gem[ (]+['"](?P<name>[\w.-]+)['"](?P<rest>[^\n]*)""")
_DEPENDENCY = re.compile(
    r"""(?m)^[^#\n]*\.add_(?P<kind>(?:runtime_|development_)?dependency)"""
    r"""[ (]+['"](?P<name>[\w.-]+)['"](?P<rest>[^\n]*)"""
)
_GROUP = re.compile(r"(?m)^(?P<indent>[ \t]*)group[ (]+(?P<names>[^\n]*?)\)? do\b")
_REQUIRE = re.compile(r"""(?m)^require[ (]+['"](?P<name>[\w/.-]+)['"]""")
_VERSION = re.compile(r"""\bVERSION\s*=\s*['"](?P<version>\d+(?:\.\w+)+)['"]""")
_MODULE = re.compile(r"(?m)^\s*(?:module|class)\s+(?P<name>[A-Z]\w*(?:::\w+)*)")


class Project(Value):
    """Attributes:
    directory: relative to the root of the checkout, empty for the root.
    gemspec: of the main gem, relative to the directory; empty where there is none.
    name: of the gem, or what its library is required by.
    specs, tests: files of RSpec, and of Minitest or test-unit.
    siblings: directories of further gems of the same repository, relative to the root of the checkout.
    """

    directory: str
    manifest: str
    gemspec: str = ""
    gemfile: bool = False
    rakefile: str = ""
    name: str = ""
    library: str = ""
    specs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()

    def at(self, path: str) -> str:
        return at(self.directory, path)

    @property
    def prefix(self) -> str:
        return "bundle exec " if self.gemfile else ""


def project_of(tree: Tree) -> Project | None:
    directory = root_of(tree, MANIFESTS, (".rb",))
    if directory is None:
        return None
    ruby = files_of(tree, directory, ".rb")
    prefix = f"{directory}/" if directory else ""
    specs_here = sorted(
        path.removeprefix(prefix)
        for path in tree.files
        if path.endswith(".gemspec") and posixpath.dirname(path) == directory
    )
    here = [name for name in ("Gemfile", "gems.rb", *specs_here, "Rakefile") if tree.has(at(directory, name))]
    if not ruby or not (here or any(path.startswith("lib/") for path in ruby)):
        return None
    gemspec = _main_gemspec(specs_here, directory)
    name = _name(tree, directory, gemspec, ruby)
    uses_rspec = any(path.endswith("_spec.rb") for path in ruby) and not _is_minitest_spec(tree, directory, ruby)
    siblings = {
        posixpath.dirname(path) for path in tree.files if path.endswith(".gemspec") and 1 <= path.count("/") <= 2
    }
    return Project(
        directory=directory,
        manifest=at(directory, here[0] if here else ruby[0]),
        gemspec=gemspec,
        gemfile=any(item in here for item in ("Gemfile", "gems.rb")),
        rakefile="Rakefile" if "Rakefile" in here else "",
        name=name,
        library=next((path for path in _libraries(name) if f"lib/{path}.rb" in ruby), ""),
        specs=tuple(path for path in ruby if uses_rspec and re.match(r"spec/.*_spec\.rb$", path)),
        tests=tuple(
            path
            for path in ruby
            if re.match(r"(?:tests?|spec)/", path)
            and re.search(r"(?:^|/)(?:test_\w[\w-]*|\w[\w-]*_test|spec_\w[\w-]*)\.rb$|(?:^|/)\w[\w-]*_spec\.rb$", path)
            and not (uses_rspec and path.endswith("_spec.rb"))
            and not re.search(r"(?:^|/)(?:test_helper|spec_helper)\.rb$", path)
        ),
        programs=tuple(_programs(tree, directory)),
        siblings=tuple(sorted(item for item in siblings if item != directory and tree.has_directory(f"{item}/lib"))),
        extensions=tuple(
            path.removeprefix(prefix)
            for path in tree.files
            if path.startswith(f"{prefix}ext/") and path.endswith("/extconf.rb")
        ),
    )


def version_of(tree: Tree, project: Project) -> tuple[str, str, str]:
    """(version, the constant that has it, its file) as the sources state it; empty strings where they compute it."""
    library = project.library or project.name
    paths = [
        path
        for path in files_of(tree, project.directory, ".rb")
        if path.startswith(f"lib/{library}") and path.count("/") <= library.count("/") + 3
    ]
    for path in sorted(paths, key=lambda item: (not item.endswith("/version.rb"), item.count("/"), item))[:60]:
        text = tree.read(project.at(path))
        match = _VERSION.search(text)
        if match:
            names = [item["name"] for item in _MODULE.finditer(text[: match.start()])]
            return (match["version"], "::".join([*names, "VERSION"]), path) if names else ("", "", "")
    return "", "", ""


def needs_of(tree: Tree, project: Project) -> tuple[Need, ...]:
    """Gems that running the project or its tests takes, and, as wishes, what is for its developers or is optional."""
    own = {posixpath.basename(path).removesuffix(".gemspec") for path in tree.files if path.endswith(".gemspec")}
    own |= {project.name}
    needs = [*_of_gemfile(tree, project), *_of_gemspec(tree, project), *_required(tree, project)]
    return tuple(need for need in merged(needs) if need.name not in own)


def undeclared(tree: Tree, project: Project, path: str) -> tuple[str, ...]:
    """Features that a file requires without a condition and that are neither Ruby's, the tests' nor the project's."""
    known = knowledge()
    own = {item.removeprefix("lib/").removesuffix(".rb") for item in files_of(tree, project.directory, ".rb")}
    found = (match["name"] for match in _REQUIRE.finditer(tree.read(project.at(path))))
    return tuple(
        name
        for name in found
        if name.split("/")[0] not in known.standard and name not in own and not name.startswith(".")
    )


def _of_gemfile(tree: Tree, project: Project) -> Iterator[Need]:
    text = tree.read(project.at("Gemfile")) or tree.read(project.at("gems.rb"))
    groups = [(match.start(), match["indent"], match["names"]) for match in _GROUP.finditer(text)]
    for match in _GEM.finditer(text):
        around = [
            names for start, indent, names in groups if start < match.start() and len(indent) < len(match["indent"])
        ]
        names = (around[-1] if around else "") + (match["rest"] if "group" in match["rest"] else "")
        inner = bool(match["indent"].strip("\n"))
        yield Need(
            name=match["name"],
            constraint=_constraint(match["rest"]),
            hard=not project.gemspec and not inner and not names,
            tool=match["name"] in knowledge().tools or "test" in names,
        )


def _of_gemspec(tree: Tree, project: Project) -> Iterator[Need]:
    files = [project.gemspec] if project.gemspec else [project.rakefile] if project.rakefile else []
    for path in files:
        for match in _DEPENDENCY.finditer(tree.read(project.at(path))):
            runtime = "development" not in match["kind"]
            yield Need(
                name=match["name"],
                constraint=_constraint(match["rest"]),
                hard=runtime,
                tool=not runtime,
            )


def _required(tree: Tree, project: Project) -> Iterator[Need]:
    """What helpers of the tests require at their top: without it no test runs."""
    for path in ("test/test_helper.rb", "test/helper.rb", "spec/spec_helper.rb", "test_helper.rb"):
        for name in undeclared(tree, project, path):
            yield Need(name=knowledge().gems.get(name, name.replace("/", "-")), hard=False)


def _constraint(rest: str) -> str:
    quoted = [text for text in _STRINGS.findall(re.split("#|=>", rest)[0]) if re.match(r"[~<>=!^ ]*\d", text)]
    return ", ".join(quoted)


def _main_gemspec(names: list[str], directory: str) -> str:
    wanted = f"{posixpath.basename(directory)}.gemspec"
    return wanted if wanted in names else min(names, key=lambda item: (len(item), item), default="")


def _name(tree: Tree, directory: str, gemspec: str, ruby: list[str]) -> str:
    text = tree.read(at(directory, gemspec)) if gemspec else ""
    match = re.search(r"""\.name\s*=\s*['"]([\w.-]+)['"]""", text)
    if match:
        return match[1]
    if gemspec:
        return gemspec.removesuffix(".gemspec")
    top = sorted(path for path in ruby if re.fullmatch(r"lib/[\w-]+\.rb", path))
    return top[0].removeprefix("lib/").removesuffix(".rb") if top else ""


def _libraries(name: str) -> Iterator[str]:
    yield from dict.fromkeys((name, name.replace("-", "/"), name.replace("-", "_")))


def _is_minitest_spec(tree: Tree, directory: str, ruby: list[str]) -> bool:
    helpers = [path for path in ruby if path in {"spec/spec_helper.rb", "spec/helper.rb", "test/helper.rb"}]
    text = "\n".join(tree.read(at(directory, path)) for path in helpers)
    return "minitest" in text and "rspec" not in text.lower()


def _programs(tree: Tree, directory: str) -> Iterator[str]:
    prefix = f"{directory}/" if directory else ""
    for path in tree.files:
        name = path.removeprefix(prefix)
        if not path.startswith(prefix) or not re.fullmatch(r"(?:exe|bin)/[\w.-]+", name):
            continue
        if re.match(r"#!.*\bruby\b", tree.read(path)) and posixpath.basename(name) not in knowledge().helpers:
            yield name
