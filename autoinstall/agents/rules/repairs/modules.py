"""Missing modules of Perl, Ruby, PHP, Lua and R → the Debian package that has the file, by the archive's index."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.debian import contents
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Value

MAX_MODULES = 6
"""Modules of one failure that are looked up, in one go."""


class ModuleMessage(Value):
    language: str
    pattern: str
    place: str
    own: str = ""


class Extension(Value):
    pattern: str
    package: str


class ModuleTable(Value):
    """The form of `modules.toml`."""

    message: tuple[ModuleMessage, ...]
    extension: tuple[Extension, ...]


class MissingModule(Value):
    """`name` as the language spells it, `path` as its file is named, without the ending."""

    language: str
    name: str
    path: str
    place: str


class ModuleRepairer:
    """Installs the packages that bring what the output names as missing, all of them together."""

    name = "modules"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        repairs = [
            _repair(extension.package, f"A function or class of PHP's extension {extension.package} is missing.")
            for extension in load("modules", ModuleTable).extension
            if re.search(extension.pattern, failure.output)
        ]
        modules = list(missing_modules(failure.output, context.tree))[:MAX_MODULES]
        if not modules:
            return repairs
        entries = contents(sandbox, "|".join(f"({_place(module)})" for module in modules))
        packages: dict[str, None] = {}
        for module in modules:
            found = [entry.package for entry in entries if re.fullmatch(_place(module), entry.path)]
            if found:
                packages[min(found, key=lambda name: (name == "jruby", len(name), name))] = None
        if packages:
            names = ", ".join(module.name for module in modules)
            repairs.append(_repair(" ".join(packages), f"Modules are missing: {names}."))
        return repairs


def missing_modules(output: str, tree: Tree) -> Iterator[MissingModule]:
    """What the output names as missing, each once, without the project's own modules."""
    seen: set[str] = set()
    for message, pattern in _messages():
        for match in pattern.finditer(output):
            name = match[1].strip("\\")
            # The names of the time before namespaces have the directories in them too.
            path = _php_path(name) if message.language == "php" else name
            path = path.replace(".", "/") if message.language == "lua" else path
            if path in seen or (message.own and _is_own(tree, f"{path}{message.own}")):
                continue
            seen.add(path)
            shown = name.replace("/", "::") if message.language == "perl" else name
            yield MissingModule(language=message.language, name=shown, path=path, place=message.place)


def _php_path(name: str) -> str:
    return name.replace("\\", "/") if "\\" in name else name.replace("_", "/")


@cache
def _messages() -> tuple[tuple[ModuleMessage, re.Pattern[str]], ...]:
    return tuple((item, re.compile(item.pattern)) for item in load("modules", ModuleTable).message)


def _place(module: MissingModule) -> str:
    return module.place.replace("{path}", re.escape(module.path).replace(r"\-", "-"))


def _is_own(tree: Tree, path: str) -> bool:
    return any(name == path or name.endswith(f"/{path}") for name in tree.files)


def _repair(packages: str, why: str) -> Repair:
    return Repair(
        key=f"apt:{packages}", why=why, commands=(apt_install(packages),), lesson=f"needs the system package {packages}"
    )
