"""What the scripts of a package.json are about, taken apart into their single commands."""

import re
import shlex

from autoinstall.agents.rules.ecosystems.node.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.node.manifest import Package
from autoinstall.agents.rules.evidence.script import split_chain, words
from autoinstall.values import Value

_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_RUN = re.compile(r"^(?:npm|yarn|pnpm|bun|npm-run|nps)$")
_SERIES = frozenset({"npm-run-all", "npm-run-all2", "run-s", "run-p", "concurrently", "npm-run-series"})
_WATCH = frozenset(
    {"--watch", "-w", "--watchAll", "--watch-all", "--inspect", "--inspect-brk", "--ui", "--update", "-u"}
)
_MAX_DEPTH = 5


class Part(Value):
    """One command of a script.

    Attributes:
        command: as written, or with its wrappers in place.
        tool: the program that does the work, without wrappers and environment.
        kind: `test`, `lint`, `build`, `many` (a runner of scripts in all members), `types`, or empty.
        script: the name of the script that it stands in.
    """

    command: str
    tool: str
    kind: str
    script: str


def parts(package: Package, script: str, *, hooks: bool = True, depth: int = 0) -> tuple[Part, ...]:
    """The commands that running `script` amounts to, hooks and scripts that it calls included."""
    if depth > _MAX_DEPTH or script not in package.scripts:
        return ()
    found: list[Part] = []
    names = (f"pre{script}", script, f"post{script}") if hooks else (script,)
    for name in names:
        for command in split_chain(package.scripts.get(name, "")):
            for piece in re.split(r"\s+\|\|\s+|\s+&\s+|\s+\|\s+", command)[:1]:
                found += _expand(package, name, piece.strip(" ()"), depth)
    return tuple(found)


def _expand(package: Package, script: str, command: str, depth: int) -> list[Part]:
    split = words(command)
    bare = _unwrapped(split)
    if not bare:
        return []
    tool = _tool(bare[0])
    called: list[str] = []
    if _RUN.match(tool) and len(bare) > 1:
        rest = [word for word in bare[1:] if not word.startswith("-")]
        if rest and rest[0] in ("run", "run-script"):
            rest = rest[1:]
        called = rest[:1]
    elif tool in _SERIES:
        called = [word.removeprefix("npm:").removeprefix("npm run ") for word in bare[1:] if not word.startswith("-")]
    targets = [name for item in called for name in _named(package, item) if name != script]
    if targets:
        return [part for name in targets for part in parts(package, name, depth=depth + 1)]
    return [Part(command=command, tool=tool, kind=_kind(tool, bare), script=script)]


def _named(package: Package, pattern: str) -> list[str]:
    if "*" not in pattern:
        return [pattern] if pattern in package.scripts else []
    regex = re.compile(re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^:]*"))
    return [name for name in package.scripts if regex.fullmatch(name)]


def _tool(word: str) -> str:
    """`node_modules/.bin/mocha` and `./node_modules/mocha/bin/_mocha` are mocha."""
    name = word.rsplit("/", 1)[-1].removesuffix(".js").removesuffix(".cmd").removesuffix(".mjs")
    return "mocha" if name == "_mocha" else name


def _unwrapped(split: list[str]) -> list[str]:
    wrappers = knowledge().tools["wrapper"]
    rest = split
    for _ in range(8):
        while rest and _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
        if not rest or _tool(rest[0]) not in wrappers:
            return rest
        after = rest[1:]
        tool = _tool(rest[0])
        if tool == "node" and ("--test" in after or any(item.startswith("--test-") for item in after)):
            return ["node:test", *after]
        inner = next(
            (index for index, word in enumerate(after) if not word.startswith("-") and not _ASSIGNMENT.match(word)),
            None,
        )
        known = next((index for index, word in enumerate(after) if knowledge().kind_of(_tool(word))), None)
        if tool in ("nyc", "c8", "istanbul") and inner is not None and after[inner] in ("report", "check-coverage"):
            return rest
        if known is None and tool in ("node", "tsx", "ts-node", "istanbul"):
            return rest
        start = known if known is not None else inner
        if start is None:
            return rest
        rest = after[start:]
    return rest


def _kind(tool: str, bare: list[str]) -> str:
    if tool == "node:test":
        return "test"
    if tool in ("tsc", "vue-tsc") and ("--noEmit" in bare or "--no-emit" in bare):
        return "types"
    if tool in ("react-scripts", "react-app-rewired", "craco", "kcd-scripts", "tsdx", "vue-cli-service", "ng", "aegir"):
        word = bare[1] if len(bare) > 1 else ""
        return "test" if word.startswith("test") else "lint" if word == "lint" else "build" if word == "build" else ""
    if tool in ("vite", "next", "nuxt", "parcel") and "build" not in bare[1:2]:
        return ""
    if tool in ("gulp", "grunt", "make", "cake"):
        goal = bare[1] if len(bare) > 1 else ""
        return "test" if "test" in goal else "lint" if "lint" in goal else "build" if tool != "make" else ""
    if tool in ("node", "tsx", "ts-node") and len(bare) > 1:
        target = next((word for word in bare[1:] if not word.startswith("-")), "")
        return "test" if re.search(r"(^|[/_.-])(tests?|spec|run-?tests?)([/_.-]|$)", target) else ""
    return knowledge().kind_of(tool)


def once(command: str) -> str:
    """The command without what makes it watch, stop for a debugger or rewrite its snapshots."""
    split = words(command)
    tool = next((_tool(word) for word in split if knowledge().kind_of(_tool(word)) == "test"), "")
    if not _WATCH & set(split) and not (tool == "vitest" and "run" not in split):
        return command
    kept = [word for word in split if word not in _WATCH]
    if tool == "vitest" and "run" not in kept:
        kept.insert(next(index for index, word in enumerate(kept) if _tool(word) == "vitest") + 1, "run")
    return " ".join(word if _ASSIGNMENT.match(word) else shlex.quote(word) for word in kept)
