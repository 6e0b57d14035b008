"""What the rules know of Lua: `lua.toml`."""

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class LuaTable(Value):
    """The form of `lua.toml`.

    Attributes:
        versions: that Debian has, the one that suits most first.
        standard: modules of Lua itself.
        packages: rock or module → Debian package, where it is not `lua-NAME`.
    """

    versions: tuple[str, ...]
    standard: frozenset[str]
    packages: dict[str, str]


def knowledge() -> LuaTable:
    table: LuaTable = load("lua", LuaTable)
    return table
