"""What the rockspec, the CI and the sources of a Lua project say."""

import posixpath
import re
from collections.abc import Iterator

from autoinstall.agents.rules.ecosystems.lua.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.needs import Need, merged
from autoinstall.agents.rules.ecosystems.scripting import at, files_of, root_of
from autoinstall.tree import Tree
from autoinstall.values import Value

MANIFESTS = (r"[\w.-]+\.rockspec", r"\.busted", r"\.luacheckrc")

_LIST = re.compile(r"\b(?P<kind>(?:build_|test_)?dependencies)\s*=\s*\{(?P<body>[^}]*)\}")
_STRINGS = re.compile(r"""["']([^"']+)["']""")
_REQUIRE = re.compile(r"""(?m)^[^-\n]*\brequire\s*\(?\s*["'](?P<name>[\w.-]+)["']""")
_GUARDED = re.compile(r"pcall\s*\(\s*require")


class Project(Value):
    """Attributes:
    directory: relative to the root of the checkout, empty for the root.
    rockspec: the one to build by, relative to the directory; empty where there is none.
    roots: where its modules lie (`src`, `lua`, …), empty string for the directory itself.
    modules: names by which its modules are required, the main one first.
    specs: files of busted. tests: scripts with tests of other kinds.
    luaunit: whether those tests use LuaUnit.
    """

    directory: str
    manifest: str
    rockspec: str = ""
    roots: tuple[str, ...] = ("",)
    modules: tuple[tuple[str, str], ...] = ()
    specs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    luaunit: bool = False

    def at(self, path: str) -> str:
        return at(self.directory, path)

    @property
    def path(self) -> str:
        """LUA_PATH for commands that are run in the project's directory: absolute places would not move with it."""
        places = [f"{root}/" if root else "" for root in self.roots]
        return ";".join([*(f"./{place}?.lua;./{place}?/init.lua" for place in places), ";"])


def project_of(tree: Tree) -> Project | None:
    directory = root_of(tree, MANIFESTS, (".lua",))
    if directory is None:
        return None
    if posixpath.basename(directory) in {"rockspec", "rockspecs"}:
        directory = posixpath.dirname(directory)
    lua = files_of(tree, directory, ".lua")
    rockspecs = files_of(tree, directory, ".rockspec")
    specs = [path for path in lua if path.endswith("_spec.lua")]
    specs = specs or [path for path in lua if path.startswith("spec/") and "describe" in tree.read(at(directory, path))]
    tests = [path for path in lua if re.search(r"^tests?/(?:.*/)?[\w-]*test[\w-]*\.lua$|^[\w-]*test[\w-]*\.lua$", path)]
    if not lua or not (rockspecs or specs or tests):
        return None
    roots = [root for root in ("src", "lua", "lib") if any(path.startswith(f"{root}/") for path in lua)]
    rockspec = _best_rockspec(rockspecs)
    return Project(
        directory=directory,
        manifest=at(directory, rockspec or (specs + tests)[0]),
        rockspec=rockspec,
        roots=(*roots, ""),
        modules=tuple(_modules(lua, roots)),
        specs=tuple(specs),
        tests=tuple(tests),
        luaunit=any(re.search(r"""require\s*\(?\s*["']luaunit""", tree.read(at(directory, path))) for path in tests),
    )


def needs_of(tree: Tree, project: Project) -> tuple[Need, ...]:
    """Rocks that the rockspec names, and, as wishes, what sources and tests require; without the project's own."""
    own = {name.split(".")[0] for name, _ in project.modules}
    own |= {posixpath.basename(path).removesuffix(".lua") for path in tree.files if path.endswith(".lua")}
    found = [*_declared(tree, project), *_required(tree, project)]
    known = knowledge()
    return tuple(
        need
        for need in merged(found)
        if need.name not in own and need.name.lower() not in known.standard and need.name != "lua"
    )


def lua_constraint(tree: Tree, project: Project) -> str:
    """What the rockspec says of Lua's version: `>= 5.1, < 5.4`; empty where it says nothing."""
    for match in _LIST.finditer(tree.read(project.at(project.rockspec)) if project.rockspec else ""):
        for text in _STRINGS.findall(match["body"]):
            if re.match(r"lua\s*(?:[<>=~!]|\d|$)", text):
                return str(text).removeprefix("lua").strip()
    return ""


def version_of(tree: Tree, project: Project, path: str) -> str:
    """`_VERSION` of a module's table, as written."""
    text = tree.read(project.at(path))
    match = re.search(r"""\b_VERSION\s*=\s*["'](?P<text>[^"'\n]*\d+\.\d+[^"'\n]*)["']""", text)
    return match["text"] if match and "%" not in match["text"] else ""


def _declared(tree: Tree, project: Project) -> Iterator[Need]:
    text = tree.read(project.at(project.rockspec)) if project.rockspec else ""
    for match in _LIST.finditer(text):
        for entry in _STRINGS.findall(match["body"]):
            name, _, constraint = entry.partition(" ")
            yield Need(name=name.rsplit("/", 1)[-1], constraint=constraint, hard=match["kind"] == "dependencies")
    if project.luaunit:
        yield Need(name="luaunit", hard=not any(path.endswith("luaunit.lua") for path in tree.files))


def _required(tree: Tree, project: Project) -> Iterator[Need]:
    for path in (*(path for _, path in project.modules), *project.specs, *project.tests)[:300]:
        text = tree.read(project.at(path))
        if _GUARDED.search(text):
            continue
        for match in _REQUIRE.finditer(text):
            yield Need(name=match["name"].split(".")[0], hard=False)


def _modules(lua: list[str], roots: list[str]) -> Iterator[tuple[str, str]]:
    """(name, path), the shallow first."""
    found: dict[str, str] = {}
    for path in lua:
        root = next((root for root in roots if path.startswith(f"{root}/")), "")
        inner = path.removeprefix(f"{root}/") if root else path
        if not root and "/" in path and not path.endswith("/init.lua"):
            continue
        if re.search(r"(?i)(?:^|/)(?:tests?|spec|examples?|bench\w*|rockspecs?)(?:/|\.lua$|_)|_spec\.lua$|test", inner):
            continue
        name = inner.removesuffix(".lua").removesuffix("/init").replace("/", ".")
        if re.fullmatch(r"[\w-]+(?:\.[\w-]+)*", name) and name not in {"init", "config", "run", "main"}:
            found.setdefault(name, path)
    yield from sorted(found.items(), key=lambda item: (item[0].count("."), item[1].count("/"), len(item[0]), item[0]))


def _best_rockspec(rockspecs: list[str]) -> str:
    """That of the working tree (scm, dev, git), else the latest; one that cannot be read without running it is fine."""

    def order(path: str) -> tuple[bool, tuple[int, ...], str]:
        numbers = tuple(int(item) for item in re.findall(r"\d+", posixpath.basename(path)))
        return bool(re.search(r"-(?:scm|dev|git|master)-", path)), numbers, path

    return max(rockspecs, key=order, default="")
