"""Lua projects: rocks, versions, goals and plans."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.lua import LuaEcosystem
from autoinstall.agents.rules.ecosystems.lua.plan import lua_versions, package_names
from autoinstall.agents.rules.ecosystems.lua.project import lua_constraint, needs_of, project_of
from autoinstall.errors import RegistryUnreachable
from tests.unit.rules_contexts import context_of, goals_of, plan_of

ROCKSPEC = """package = "thing"
dependencies = { "lua >= 5.1, < 5.4", "luafilesystem", "far >= 1.0" }
test_dependencies = { "busted" }
build = { type = "builtin", modules = { thing = "src/thing.lua" } }
"""
FILES = {
    "thing-scm-1.rockspec": ROCKSPEC,
    "rockspecs/thing-1.0-1.rockspec": ROCKSPEC,
    "src/thing.lua": 'local lfs = require "lfs"\nlocal M = { _VERSION = "thing 1.2.3" }\nreturn M\n',
    "src/thing/inner.lua": "return {}\n",
    "spec/thing_spec.lua": 'describe("thing", function() end)\n',
    ".luacheckrc": "std = 'max'\n",
}
POLICY = "\n".join(
    f"{name}:\n  Installed: (none)\n  Candidate: 1.8.0-3\n  Version table:" for name in ("lua-filesystem", "lua-far")
)


def test_needs_and_modules(tmp_path: Path) -> None:
    context = context_of(tmp_path, FILES)
    project = project_of(context.tree)
    assert project is not None
    assert project.rockspec == "thing-scm-1.rockspec"
    assert [name for name, _ in project.modules] == ["thing", "thing.inner"]
    assert project.path == "./src/?.lua;./src/?/init.lua;./?.lua;./?/init.lua;;"
    assert {need.name: need.hard for need in needs_of(context.tree, project)} == {
        "luafilesystem": True,
        "far": True,
        "lfs": False,
    }
    assert lua_constraint(context.tree, project) == ">= 5.1, < 5.4"


@pytest.mark.parametrize(
    ("constraint", "named", "first"),
    [
        ("", (), "5.1"),
        (">= 5.1, < 5.4", (), "5.1"),
        (">= 5.3", (), "5.3"),
        ("~> 5.4", (), "5.4"),
        (">= 5.1", ("5.4",), "5.4"),
        (">= 6", (), "5.1"),
    ],
)
def test_versions(constraint: str, named: tuple[str, ...], first: str) -> None:
    assert lua_versions(constraint, named)[0] == first


def test_names_of_packages() -> None:
    assert list(package_names("luafilesystem")) == ["lua-filesystem"]
    assert "lua-foo" in list(package_names("luafoo"))
    assert "lua-foo" in list(package_names("foo-lua"))


def test_goals(tmp_path: Path) -> None:
    goals = goals_of(LuaEcosystem(), context_of(tmp_path, FILES), {"timeout 15 bash": ""})
    assert {"busted", "busted --list", "busted spec/thing_spec.lua", "luacheck --no-color src lua"} - set(goals) == {
        "luacheck --no-color src lua"
    }
    assert '"thing 1.2.3"' in goals["lua -e 'print(require(\"thing\")._VERSION)'"].description
    assert any(command.startswith("luarocks make --deps-mode none") for command in goals)


def test_scripts_with_tests(tmp_path: Path) -> None:
    files = {
        "json.lua": "local json = {}\nfunction json.decode(text)\nend\nreturn json\n",
        "test/test.lua": 'dofile("../json.lua")\n',
        "test/unit_test.lua": "require('luaunit')\n",
    }
    goals = goals_of(LuaEcosystem(), context_of(tmp_path, files), {"timeout 15 bash": ""})
    assert goals["cd test && lua test.lua && lua -v"].min_pass_rate == 1.0
    assert goals["lua test/unit_test.lua"].min_pass_rate == 0.9
    assert '"decode"' in next(goal.description for command, goal in goals.items() if "pairs(" in command)
    assert "luacheck --no-color ." in goals


def test_the_plan(tmp_path: Path) -> None:
    plan = plan_of(LuaEcosystem(), context_of(tmp_path, FILES), {"apt-cache policy": POLICY})
    assert "lua5.1" in plan.steps[0].command
    assert "lua-filesystem" in plan.steps[0].command
    assert "--set lua-interpreter /usr/bin/lua5.1" in plan.steps[1].command
    assert plan.env["LUA_PATH"].endswith(";;")
    second = plan_of(LuaEcosystem(), context_of(tmp_path, FILES, attempt=2), {"apt-cache policy": POLICY})
    assert "lua5.3" in second.steps[0].command
    assert second.exhausted


def test_a_rock_that_nobody_has(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnreachable, match=r"LuaRocks does not answer.*luafilesystem, far"):
        plan_of(LuaEcosystem(), context_of(tmp_path, FILES), {"timeout 15 bash": (7, "Connection refused")})
