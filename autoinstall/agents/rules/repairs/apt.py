"""Missing headers, libraries and commands → system packages: first a table, then apt-file's index in the sandbox."""

import re
import shlex
from collections.abc import Iterator, Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.repairs.missing import Kind, Missing, missing_things
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import CommandResult, Value

MAX_LOOKUPS = 4
"""Things that are looked up in the index for one failure: one look-up takes seconds."""

MAX_PACKAGES = 3
"""Packages tried for one thing."""

LOOKUP_SECONDS = 120.0

_NOT_PACKAGES = frozenset(
    {"configure", "autogen.sh", "bootstrap", "python", "pip", "npm", "node", "npx", "yarn", "pnpm"}
)
"""Commands that are no system package's, or that an ecosystem answers better."""


class AptTable(Value):
    """The form of `apt.toml`: for each kind of thing, its name → packages separated by blanks."""

    commands: dict[str, str]
    headers: dict[str, str]
    libraries: dict[str, str]
    shared_libraries: dict[str, str]
    modules: dict[str, str]
    cmake: dict[str, str]
    macros: dict[str, str]
    words: dict[str, str]


class AptRepairer:
    """Installs the package that brings what the output names as missing."""

    name = "apt"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        own = {path.rsplit("/", 1)[-1] for path in context.tree.files}
        # A header of the project's own is missing for other reasons: a build that is incomplete, a submodule.
        things = [
            missing
            for missing in missing_things(failure.output)
            if not (missing.kind is Kind.HEADER and missing.name.rsplit("/", 1)[-1] in own)
        ]
        known = {missing: list(known_packages(missing)) for missing in things}
        unknown = [missing for missing in things if not known[missing] and _in_index(missing)][:MAX_LOOKUPS]
        repairs = [_repair(missing, packages) for missing in things for packages in known[missing][:MAX_PACKAGES]]
        for missing in unknown:
            repairs += [_repair(missing, package) for package in _look_up(missing, sandbox)[:MAX_PACKAGES]]
        return repairs


def _in_index(missing: Missing) -> bool:
    """Whether apt-file can know the thing: it has a path."""
    return missing.kind not in (Kind.WORD, Kind.MACRO) and missing.name not in _NOT_PACKAGES


def known_packages(missing: Missing) -> Iterator[str]:
    """Packages of the table for the thing, likeliest first."""
    table = load("apt", AptTable)
    if missing.kind is Kind.MACRO:
        starts = sorted((start for start in table.macros if missing.name.startswith(start)), key=len, reverse=True)
        yield from (table.macros[start] for start in starts[:1])
        return
    if missing.kind is Kind.WORD:
        for word, packages in table.words.items():
            if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w])", missing.name, re.IGNORECASE):
                yield packages
        return
    tables = {
        Kind.COMMAND: table.commands,
        Kind.HEADER: table.headers,
        Kind.LIBRARY: table.libraries,
        Kind.SHARED_LIBRARY: table.shared_libraries,
        Kind.MODULE: table.modules,
        Kind.CMAKE: table.cmake,
        Kind.DATA: {},
    }
    if packages := tables[missing.kind].get(missing.name):
        yield packages


def search_pattern(missing: Missing) -> str:
    """The regular expression over paths that apt-file is asked with."""
    name = re.escape(missing.name)
    patterns = {
        Kind.HEADER: rf"^/usr/include/(.+/)?{name}$",
        Kind.LIBRARY: rf"^/usr/lib/([^/]+/)?lib{name}\.(so|a)$",
        Kind.SHARED_LIBRARY: rf"^/usr/lib/([^/]+/)?{name}(\.[0-9.]+)?$",
        Kind.COMMAND: rf"^/(usr/)?s?bin/{name}$",
        Kind.MODULE: rf"^/usr/(lib/[^/]+|share|lib)/pkgconfig/{name}\.pc$",
        Kind.CMAKE: rf"/cmake/.*({name}Config|{name.lower()}-config)\.cmake$",
        Kind.DATA: rf"^{name}$",
    }
    return patterns[missing.kind]


def rank(missing: Missing, lines: Sequence[str]) -> list[str]:
    """Packages of apt-file's `package: path` lines, the most direct first.

    A path that is nearer to the plain place is better, then a development package, then one whose name has to do with
    the thing, then the shorter name.
    """
    stem = re.sub(r"\W", "", missing.name.rsplit("/", 1)[-1].removesuffix(".h").lower())
    scored: dict[str, tuple[int, int, int, int, str]] = {}
    for line in lines:
        package, _, path = line.partition(": ")
        package = package.strip()
        if not path or re.search(
            r"-(?:cross|mingw|avr|arm64|armhf|i386|dbg|dbgsym|doc)\b|-cross$|^lib(?:32|x32|n32)", package
        ):
            continue
        development = missing.kind in (Kind.HEADER, Kind.LIBRARY, Kind.MODULE, Kind.CMAKE)
        score = (
            path.count("/"),
            0 if not development or package.endswith("-dev") else 1,
            0 if stem in re.sub(r"\W", "", package) else 1,
            len(package),
            package,
        )
        scored[package] = min(score, scored.get(package, score))
    return sorted(scored, key=lambda package: scored[package])


def _look_up(missing: Missing, sandbox: Sandbox) -> list[str]:
    pattern = shlex.quote(search_pattern(missing))
    result = sandbox.run(f"apt-file search --regexp {pattern} | head -n 200", timeout=LOOKUP_SECONDS)
    return rank(missing, result.output.splitlines()) if result.exit_code == 0 else []


def _repair(missing: Missing, packages: str) -> Repair:
    return Repair(
        key=f"apt:{packages}",
        why=f"The {missing.kind.value.replace('_', ' ')} {missing.name} is missing; {packages} brings it.",
        commands=(apt_install(packages),),
        lesson=f"needs the system package {packages}",
    )
