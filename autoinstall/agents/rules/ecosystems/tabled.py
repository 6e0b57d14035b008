"""Languages that `languages.toml` says all of: R, Elixir, Haskell and .NET."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from autoinstall.agents.rules.contract import Candidate, Context, Plan, Step
from autoinstall.agents.rules.debian import versions
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES, SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.ecosystems.scripting import at, calm_first, files_of, inside
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.registries import answers, unreachable
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.errors import NothingToSetUp
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category, Value

MAX_EACH = 3
"""Goals that are made of one entry with `each`."""


class GoalEntry(Value):
    """`when`: a file that must be there; `each`: files that a goal is made of each; both are patterns of paths."""

    command: str
    description: str
    category: Category
    weight: int
    when: str = ""
    each: str = ""
    fails: tuple[int, ...] = (0,)
    rate: float = 1.0


class Language(Value):
    """One entry of `languages.toml`, which describes the fields."""

    name: str
    tools: frozenset[str]
    suffixes: frozenset[str]
    manifest: str
    command: str
    text: str = ""
    title: str = ""
    number: str = ""
    what: str = ""
    packages: str = ""
    needs: tuple[str, ...] = ()
    wishes: tuple[str, ...] = ()
    names: str = ""
    package: str = ""
    provided: frozenset[str] = frozenset()
    steps: tuple[str, ...] = ()
    goal: tuple[GoalEntry, ...] = ()


class LanguageTable(Value):
    """The form of `languages.toml`."""

    language: tuple[Language, ...]


class TabledEcosystem:
    """Implements `Ecosystem` by an entry of the table."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.name = language.name
        self.tools = language.tools
        self.suffixes = language.suffixes

    def detect(self, tree: Tree) -> bool:
        return bool(self._manifest(tree)) and any(path.endswith(tuple(self.suffixes)) for path in tree.files)

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals of the table, once it is known that what the project needs can be had."""
        self._packages(context.tree, sandbox)
        tree, manifest = context.tree, self._manifest(context.tree)
        directory = posixpath.dirname(manifest)
        files = files_of(tree, directory, "")
        sources = [path for path in files if path.endswith(tuple(self.suffixes)) and not re.match(r"tests?/", path)]
        text = tree.read(manifest)
        values = {
            "name": _first(self._language.title, text),
            "version": _first(self._language.number, text),
            "count": str(max(len([path for path in sources if path.startswith("R/")] or sources) * 9 // 10, 1)),
        }
        where = evidence_at(tree, manifest, values["name"])
        for entry in self._language.goal:
            if entry.when and not any(re.search(entry.when, path) for path in files):
                continue
            for index, more in enumerate(_each(entry, tree, directory, files)):
                known = {**values, **more}
                named = {key for key in known if f"{{{key}}}" in entry.command + entry.description}
                if all(known[key] for key in named):
                    yield candidate(
                        inside(directory, entry.command.format(**known).strip()),
                        entry.description.format(**known),
                        entry.category,
                        entry.weight - 3 * index,
                        evidence_at(tree, at(directory, known["file"])) if "file" in known else where,
                        exit_codes=entry.fails,
                        rate=entry.rate,
                        timeout=SUITE_SECONDS,
                    )

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Debian's packages of the language and of what the project needs, then the table's steps."""
        packages = self._packages(context.tree, sandbox)
        directory = posixpath.dirname(self._manifest(context.tree))
        steps = [SUBMODULES] if context.tree.has(".gitmodules") else []
        if packages:
            steps.append(Step(command=apt_install(" ".join(packages)), why="Debian's packages of it", timeout=1200))
        steps += [
            Step(command=inside(directory, step), why="Builds the project", optional=True, timeout=1200)
            for step in self._language.steps
        ]
        return Plan(steps=tuple(steps), exhausted=True)

    def _packages(self, tree: Tree, sandbox: Sandbox) -> list[str]:
        """Debian's packages that the project needs.

        Raises:
            NothingToSetUp: the language itself is not to be had.
            RegistryUnreachable: the project needs more, and the registry does not answer.
        """
        language = self._language
        text = tree.read(self._manifest(tree))
        hard, wishes = self._named(language.needs, text), self._named(language.wishes, text)
        named = {need: language.package.replace("{need}", need.lower()) for need in (*hard, *wishes)}
        known = versions(sandbox, named.values())
        lacking = [need for need in hard if named[need] not in known]
        if not language.packages and sandbox.run(f"command -v {language.command}", timeout=30).exit_code != 0:
            raise NothingToSetUp(
                f"The project needs {language.what}, which neither the base image nor Debian has.",
                hint="A base image that has it can be named in the list.",
            )
        if lacking and not answers(language.name, sandbox):
            raise unreachable(language.name, lacking)
        return [*language.packages.split(), *(package for package in named.values() if package in known)]

    def _named(self, patterns: Sequence[str], text: str) -> list[str]:
        parts = [part for pattern in patterns for part in re.findall(pattern, text)]
        own = {self._language.name, _first(self._language.title, text)}
        names = (name for part in parts for name in re.findall(self._language.names, part))
        return [name for name in dict.fromkeys(names) if name not in self._language.provided | own]

    def _manifest(self, tree: Tree) -> str:
        found = [
            path
            for path in tree.files
            if path.count("/") <= 1 and re.fullmatch(self._language.manifest, posixpath.basename(path))
            if not self._language.text or re.search(self._language.text, tree.read(path))
        ]
        return min(found, key=lambda path: (path.count("/"), len(path), path), default="")


def tabled_ecosystems() -> tuple[TabledEcosystem, ...]:
    return tuple(TabledEcosystem(language) for language in load("languages", LanguageTable).language)


def _each(entry: GoalEntry, tree: Tree, directory: str, files: list[str]) -> Iterator[dict[str, str]]:
    if not entry.each:
        yield {}
        return
    matching = [path for path in files if re.search(entry.each, path)]
    for path in calm_first(tree, directory, matching)[:MAX_EACH]:
        match = re.search(entry.each, path)
        yield {"file": path, "stem": (match.groupdict().get("stem") or "") if match else ""}


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text) if pattern else None
    return str(match[1]) if match else ""
