"""Lua: rocks and modules tested by busted, LuaUnit or scripts of their own."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.lua import plan
from autoinstall.agents.rules.ecosystems.lua.goals import candidates
from autoinstall.agents.rules.ecosystems.lua.project import project_of
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class LuaEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "lua"
    tools = frozenset({"lua", "luac", "luajit", "busted", "luacheck", "luarocks"})
    suffixes = frozenset({".lua", ".rockspec"})

    def detect(self, tree: Tree) -> bool:
        return project_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals by what the checkout says, once it is known that the rocks that the project needs can be had."""
        plan.provide(context, sandbox)
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """A Lua that the project is written for, with Debian's packages of rocks, or LuaRocks' where it answers."""
        return plan.make(context, sandbox)


__all__ = ["LuaEcosystem"]
