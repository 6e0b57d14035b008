"""Programs that a project's build makes, as targets."""

import json
import re
from pathlib import Path

import pytest

from autoinstall.integrity import check_integrity
from autoinstall.sandbox.contract import SandboxSpec, WorkspaceSource
from autoinstall.sandbox.scripted import Call, File, ScriptedProvider, ScriptedSandbox
from autoinstall.values import Category, Goal
from tests.conftest import written

MADE = b"console.log('usage: thing [options]')\n"
PLACE = "/workspace/dist/cli.cjs"
TARGET = Goal(command="node dist/cli.cjs --help", description="shows the usage", category=Category.RUN)
NODE = File(b"\x7fELF", executable=True)


def tampered(
    tmp_path: Path, scripts: dict[str, str], made: bytes | None, files: dict[str, File] | None = None
) -> tuple[list[str], ScriptedSandbox]:
    """What is found where `dist/cli.cjs` was removed and the build made `made` in its place."""

    def build(call: Call) -> int:
        call.sandbox.files.pop(PLACE, None)
        if made is not None:
            call.sandbox.write_file(PLACE, made)
        return 0

    written(tmp_path, {"package.json": json.dumps({"scripts": scripts}), "src/cli.ts": "1\n", "scripts/build.js": ""})
    provider = ScriptedProvider({re.compile("^/usr/bin/find"): "", re.compile(r"npm run build$"): build})
    source = WorkspaceSource(path=str(tmp_path), commit="a" * 40)
    image = provider.build_workspace_image(provider.ensure_base().digest, source, labels={})
    with provider.open(SandboxSpec(image=image.digest)) as sandbox:
        assert isinstance(sandbox, ScriptedSandbox)
        sandbox.files |= {PLACE: File(MADE), **(files or {})}
        report = check_integrity(sandbox, tmp_path, (TARGET,), sandbox.changed_paths())
        return [violation.path for violation in report.tampered], sandbox


BUILD = {"build": "node scripts/build.js"}


@pytest.mark.parametrize(
    ("scripts", "made", "found"),
    [
        (BUILD, MADE, []),
        (BUILD, b"console.log('usage: other')\n", [PLACE]),
        (BUILD, None, [PLACE]),
        ({"test": "mocha"}, MADE, [PLACE]),
    ],
)
def test_what_the_build_makes_again_is_the_projects(
    tmp_path: Path, scripts: dict[str, str], made: bytes | None, found: list[str]
) -> None:
    assert tampered(tmp_path, scripts, made)[0] == found


def test_a_builder_of_the_set_ups_own_makes_nothing_good(tmp_path: Path) -> None:
    own = {"/usr/local/bin/npm": File(b"#!/bin/sh\ncp /opt/cli.cjs dist\n", executable=True)}
    found, sandbox = tampered(tmp_path, BUILD, MADE, own)
    assert PLACE in found
    assert not any("npm run" in command for command in sandbox.commands)


def test_nothing_is_built_where_something_else_speaks_against_the_attempt(tmp_path: Path) -> None:
    found, sandbox = tampered(tmp_path, BUILD, MADE, {"/workspace/src/cli.ts": File(b"2\n")})
    assert "src/cli.ts" in found
    assert not any("npm run" in command for command in sandbox.commands)
