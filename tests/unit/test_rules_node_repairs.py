"""Remedies for what Node and its tools report."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.ecosystems.node.knowledge import repairs as repair_table
from autoinstall.agents.rules.repairs.node import NodeRepairer
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import CommandResult

MANIFEST: dict[str, Any] = {
    "name": "a",
    "scripts": {"build": "tsc", "test": "jest"},
    "devDependencies": {"jest": "^29.0.0", "typescript": "~3.9.7", "@types/node": "^12.1.0"},
    "peerDependencies": {"react": ">=16.8"},
}


class FakeSandbox:
    def __init__(self, node: str) -> None:
        self.node = node

    def run(self, command: str, **_: object) -> CommandResult:
        output = f"node {self.node}\nnpm 10.9.0\npnpm 10.1.0\nyarn 1.22.22\npath /usr/local/bin:/usr/bin\n"
        return CommandResult(command=command, exit_code=0, output=output)


def remedies(
    root: Path, output: str, *, command: str = "npm test", node: str = "v22.20.0", files: dict[str, Any] | None = None
) -> list[Repair]:
    for name, content in {"package.json": MANIFEST, **(files or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content if isinstance(content, str) else json.dumps(content))
    repository = Repository(
        url="https://example.com/a/b", commit="0" * 40, commit_date=datetime(2022, 1, 1, tzinfo=UTC)
    )
    context = Context(repository=repository, tree=Tree(root))
    failure = CommandResult(command=command, exit_code=1, output=output)
    return list(NodeRepairer().repairs(context, failure, cast(Sandbox, FakeSandbox(node))))


@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("Error: error:0308010C:digital envelope routines::unsupported\n  code: 'ERR_OSSL_EVP_UNSUPPORTED'", "openssl"),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "heap"),
        ("npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree", "peer-dependencies"),
        ("npm ERR! code EBADENGINE\nnpm ERR! engine Unsupported engine", "engine-strict"),
        ("Error: Could not find Chrome (ver. 121.0). node_modules/puppeteer", "chromium"),
        ("Treating warnings as errors because process.env.CI = true.\nnpm run build", "warnings-as-errors"),
        ("Error: The module 'x.node'\nwas compiled against a different Node.js version", "rebuild-native"),
        ("gyp ERR! find Python Python is not set", "gyp-python"),
        ("gyp ERR! stack Error: not found: make", "gyp-make"),
    ],
)
def test_messages_of_the_table(tmp_path: Path, output: str, key: str) -> None:
    assert remedies(tmp_path, output)[0].key.startswith(f"node:{key}")


def test_an_undeclared_module_is_added_beside_the_manifest(tmp_path: Path) -> None:
    (repair,) = remedies(tmp_path, "Error: Cannot find module 'left-pad/lib/x'\nRequire stack:\n- /workspace/a.js")
    assert repair.key == "node:add::left-pad"
    assert re.search(r"npm install .* left-pad &&", repair.commands[0])
    assert "/workspace/node_modules" in repair.commands[0]


def test_a_declared_range_is_kept(tmp_path: Path) -> None:
    (repair,) = remedies(tmp_path, "Cannot find module 'react' from 'a.js'")
    assert "'react@>=16.8'" in repair.commands[0]


def test_builtins_are_never_installed(tmp_path: Path) -> None:
    assert remedies(tmp_path, "Error: Can't resolve 'fs' in '/workspace/src' (webpack)") == []


def test_a_missing_file_of_the_project_is_built(tmp_path: Path) -> None:
    repairs = remedies(tmp_path, "Error: Cannot find module '../dist/index.js'\nRequire stack:\n- /workspace/t.js")
    assert repairs[0].key == "node:build::build"
    assert repairs[0].commands[0] == "npm run build"


def test_a_member_of_the_workspace_is_built_not_fetched(tmp_path: Path) -> None:
    files = {
        "package.json": {**MANIFEST, "workspaces": ["packages/*"]},
        "packages/core/package.json": {"name": "@a/core", "main": "dist/x.js"},
        "packages/cli/package.json": {"name": "@a/cli", "scripts": {"test": "jest"}},
    }
    repairs = remedies(tmp_path, "Cannot find module '@a/core' from x.ts", command="cd packages/cli && x", files=files)
    assert [repair.key for repair in repairs] == ["node:build::build"]


@pytest.mark.parametrize(
    ("output", "package"),
    [
        ("sh: 1: tsc: not found\nnpm ERR!", "typescript"),
        ("sh: line 1: cross-env: command not found\nnpm error", "cross-env"),
        ('npm error npx canceled due to missing packages and no YES option: ["jest@29.7.0"]', "jest"),
    ],
)
def test_missing_programs(tmp_path: Path, output: str, package: str) -> None:
    keys = [repair.key for repair in remedies(tmp_path, output)]
    assert keys == [f"node:add::{package}"]


def test_an_unknown_program_is_not_guessed_at(tmp_path: Path) -> None:
    assert remedies(tmp_path, "sh: 1: frobnicate: not found\nnpm ERR!") == []


def test_missing_manager_is_installed(tmp_path: Path) -> None:
    (repair,) = remedies(tmp_path, "sh: 1: gulp: not found\nnpm ERR! code 127")
    assert repair.commands == ("npm install -g gulp",)


@pytest.mark.parametrize(
    ("output", "node", "wanted"),
    [
        ("ReferenceError: primordials is not defined\n at fs.js", "v16.20.2", "10"),
        ("SyntaxError: Unexpected token '??='\n at node:internal", "v14.21.3", "16"),
        ("ReferenceError: fetch is not defined\n at a.js", "v16.20.2", "18"),
        ("node: bad option: --test", "v16.20.2", "18"),
        ("error foo: this tool requires Node.js >= 20 to run (npm)", "v18.20.8", "20"),
    ],
)
def test_another_node(tmp_path: Path, output: str, node: str, wanted: str) -> None:
    repairs = remedies(tmp_path, output, node=node)
    assert repairs[-1].key == f"node:line:{wanted}"
    assert repairs[-1].env["PATH"].startswith(f"/opt/node-{wanted}/bin:")
    assert f"@{wanted}" in repairs[-1].commands[0]


def test_a_good_enough_node_is_kept(tmp_path: Path) -> None:
    assert remedies(tmp_path, "ReferenceError: fetch is not defined\n at a.js", node="v20.1.0") == []


def test_dependencies_in_unreachable_repositories_are_replaced(tmp_path: Path) -> None:
    output = "npm ERR! git@github.com: Permission denied (publickey).\nnpm ERR! fatal: Could not read from remote"
    repairs = remedies(tmp_path, output, command="npm ci")
    assert "git checkout -q -- package.json" in repairs[-1].replacement
    assert remedies(tmp_path, output, command="npm test") == []


@pytest.mark.parametrize(
    "output",
    [
        " ERR_PNPM_FETCH_404  GET https://registry.example.org/@a/b/-/b-0.40.6.tgz: Not Found - 404",
        "npm error 404 Not Found - GET https://registry.example.org/@a%2fb - Not found",
        "npm ERR! notarget No matching version found for @a/b@^9.0.0.",
        'error Couldn\'t find any versions for "@a/b" that matches "^9.0.0"',
        'error An unexpected error: "https://registry.example.org/@a/b/-/b-1.tgz: Request failed \\"404 Not Found"',
    ],
)
def test_releases_that_are_gone_are_replaced_one_after_the_other(tmp_path: Path, output: str) -> None:
    repairs = remedies(tmp_path, output, command="npm ci")
    (first,) = (repair for repair in repairs if repair.key.startswith("node:without"))
    assert first.key == "node:without::@a/b"
    assert "npm install --no-save --no-package-lock" in first.replacement
    second = remedies(tmp_path, "npm ERR! notarget No matching version found for c@^1", command=first.replacement)
    assert "node:without::@a/b,c" in [repair.key for repair in second]


def test_an_install_without_the_lock_file_goes_on_without_install_scripts(tmp_path: Path) -> None:
    gone = "npm ERR! notarget No matching version found for c@^1"
    (first,) = (item for item in remedies(tmp_path, gone, command="npm ci") if item.key.startswith("node:without"))
    failed = ".../node_modules/sharp install: sharp: getaddrinfo ENOTFOUND host\n.../node_modules/sharp install: Failed"
    (second,) = (
        item for item in remedies(tmp_path, failed, command=first.replacement) if item.key == "node:install-scripts:"
    )
    assert "npm_config_ignore_scripts=true" in second.replacement
    assert "npm rebuild || true" in second.replacement
    assert second.replacement.endswith(" # without c")  # what else is gone is left out beside it
    assert not [
        item
        for item in (
            *remedies(tmp_path, failed, command=second.replacement),
            *remedies(tmp_path, failed, command="npm ci"),
        )
        if item.key == "node:install-scripts:"
    ]


def test_workspace_protocol_goes_to_pnpm(tmp_path: Path) -> None:
    repairs = remedies(tmp_path, 'npm ERR! code EUNSUPPORTEDPROTOCOL\nnpm ERR! Unsupported URL Type "workspace:"')
    assert any("pnpm install" in command for command in repairs[0].commands)


def test_types_as_old_as_typescript(tmp_path: Path) -> None:
    output = "node_modules/@types/node/fs.d.ts(12,3): error TS1005: ';' expected."
    (repair,) = remedies(tmp_path, output, command="npx --no-install tsc")
    assert "@types/node@ts3.9" in repair.commands[0]
    assert "@types/node@12.1.0" in repair.commands[0]


def test_failures_of_other_kinds_are_left_to_others(tmp_path: Path) -> None:
    assert remedies(tmp_path, "ModuleNotFoundError: No module named 'yaml'", command="pytest") == []


def test_tables_are_sound() -> None:
    table = repair_table()
    names = [rule.name for rule in table.repair]
    assert len(names) == len(set(names))
    for rule in table.repair:
        groups = set(re.compile(rule.pattern).groupindex)
        used = set(re.findall(r"\{(\w+)\}", " ".join(rule.commands))) - {"add", "here"}
        assert used <= groups
        assert rule.commands or rule.env
    for line in table.node_line:
        re.compile(line.pattern)
        assert not (line.floor and line.limit)
