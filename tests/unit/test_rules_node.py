"""The Node ecosystem: versions, package managers, goals and plans, from small checkouts."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Candidate, Context, Findings
from autoinstall.agents.rules.ecosystems.node import NodeEcosystem, managers, versions
from autoinstall.agents.rules.ecosystems.node.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.node.managers import ManagerKind
from autoinstall.agents.rules.ecosystems.node.manifest import Package, roots
from autoinstall.agents.rules.ecosystems.node.samples import test_files as sample_files
from autoinstall.agents.rules.ecosystems.node.scripts import once, parts
from autoinstall.agents.rules.ecosystems.node.semver import lower_bound, satisfies
from autoinstall.outputs.expectations import read_requirements
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category, CommandResult, Goal

PATH = "/usr/local/bin:/usr/bin:/bin"


class FakeSandbox:
    """Answers the look-ups of a plan."""

    def __init__(self, node: str = "v22.20.0", answers: dict[str, str] | None = None) -> None:
        self.node = node
        self.answers = answers or {}
        self.commands: list[str] = []

    def run(self, command: str, **_: object) -> CommandResult:
        self.commands.append(command)
        if 'printf "node "' in command:
            output = f"node {self.node}\nnpm 10.9.0\npnpm 10.34.8\nyarn 1.22.22\npath {PATH}\n"
            return CommandResult(command=command, exit_code=0, output=output)
        for part, output in self.answers.items():
            if part in command:
                return CommandResult(command=command, exit_code=0, output=output)
        return CommandResult(command=command, exit_code=1, output="")


def checkout(root: Path, files: dict[str, Any]) -> Tree:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return Tree(root)


def context(tree: Tree, day: str = "2024-06-01", **fields: Any) -> Context:
    when = datetime.fromisoformat(day).replace(tzinfo=UTC)
    repository = Repository(url="https://example.com/a/b", commit="0" * 40, commit_date=when)
    return Context(repository=repository, tree=tree, **fields)


def sandbox(**fields: Any) -> Sandbox:
    return cast(Sandbox, FakeSandbox(**fields))


def candidates(tree: Tree) -> list[Candidate]:
    found = NodeEcosystem().candidates(context(tree), sandbox())
    return sorted(found, key=lambda item: -item.weight)


def commands(tree: Tree) -> list[str]:
    return [item.goal.command for item in candidates(tree)]


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("18.20.8", ">=14", True),
        ("18.20.8", "^14.17.0 || ^16.13.0 || >=18.0.0", True),
        ("15.14.0", "^14.17.0 || ^16.13.0 || >=18.0.0", False),
        ("10.24.1", ">=8 <12", True),
        ("12.22.12", ">=8 <12", False),
        ("16.20.2", "16.x", True),
        ("16.20.2", "12 - 14", False),
        ("14.21.3", "12 - 14", True),
        ("20.1.0", "*", True),
        ("0.2.9", "^0.2.3", True),
        ("0.3.0", "^0.2.3", False),
        ("1.3.0", "~1.2.3", False),
        ("8.17.0", "node 8", True),
    ],
)
def test_ranges(version: str, wanted: str, expected: bool) -> None:
    assert satisfies(version, wanted) is expected


def test_lower_bound_of_ranges_tags_and_urls() -> None:
    assert lower_bound("^4.17.1") == (4, 17, 1)
    assert lower_bound("latest") is None
    assert lower_bound("*") is None
    assert lower_bound("git+ssh://git@host/a/b#1.2.3") is None
    assert lower_bound("owner/name#v1") is None


def choice(tree: Tree, day: str, named: tuple[str, ...] = (), base: int = 22) -> int:
    return versions.choose(Package(tree, ""), date.fromisoformat(day), base, named).majors[0]


def test_node_of_a_pin_file_wins(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"package.json": {"engines": {"node": ">=14"}}, ".nvmrc": "lts/gallium\n"})
    assert choice(tree, "2024-06-01", ("18", "20")) == 16


def test_node_of_ci_then_of_engines_then_of_the_date(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"package.json": {"name": "a"}})
    assert choice(tree, "2021-12-01", ("12.x", "14.x")) == 14
    assert choice(tree, "2019-12-01") == 12
    assert choice(tree, "2015-03-01") == 8
    engines = checkout(tmp_path / "e", {"package.json": {"engines": {"node": "^10.13.0 || ^12"}}})
    assert choice(engines, "2023-01-01") == 12


def test_the_sandbox_own_node_is_taken_where_it_is_as_good(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"package.json": {"engines": {"node": ">=18"}}})
    assert choice(tree, "2025-12-01", ("20", "22", "24")) == 22
    assert choice(tree, "2022-12-01", ("14", "16", "18")) == 18


def test_old_native_dependencies_hold_node_back(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"package.json": {"devDependencies": {"gulp": "^3.9.1"}}})
    assert choice(tree, "2022-03-01") == 10


@pytest.mark.parametrize(
    ("files", "kind", "spec"),
    [
        ({"package.json": {}, "package-lock.json": "{}"}, ManagerKind.NPM, ""),
        ({"package.json": {}}, ManagerKind.NPM, ""),
        ({"package.json": {}, "yarn.lock": "# yarn lockfile v1\n"}, ManagerKind.YARN, "yarn@1"),
        ({"package.json": {}, "yarn.lock": "__metadata:\n  version: 6\n"}, ManagerKind.BERRY, "@yarnpkg/cli-dist@3"),
        (
            {"package.json": {"packageManager": "yarn@4.1.0"}, "yarn.lock": "__metadata:\n  version: 8\n"},
            ManagerKind.BERRY,
            "@yarnpkg/cli-dist@4.1.0",
        ),
        ({"package.json": {}, "pnpm-lock.yaml": "lockfileVersion: 5.4\n"}, ManagerKind.PNPM, "pnpm@7"),
        ({"package.json": {}, "pnpm-lock.yaml": "lockfileVersion: '6.0'\n"}, ManagerKind.PNPM, "pnpm@8"),
        ({"package.json": {"packageManager": "pnpm@8.15.1+sha256.aa"}}, ManagerKind.PNPM, "pnpm@8.15.1"),
    ],
)
def test_package_manager(tmp_path: Path, files: dict[str, Any], kind: ManagerKind, spec: str) -> None:
    found = managers.detect(Package(checkout(tmp_path, files), ""), date(2024, 1, 1))
    assert (found.kind, found.spec) == (kind, spec)


def test_a_broken_manifest_is_an_empty_one(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"package.json": "{ not json", "a/package.json": {"scripts": {"test": "jest"}}})
    assert [item.directory for item in roots(tree)] == ["a"]
    odd = checkout(tmp_path / "odd", {"package.json": {"scripts": ["x"], "workspaces": 3, "bin": 4, "main": []}})
    assert list(NodeEcosystem().candidates(context(odd), sandbox())) == []


def test_scripts_are_followed_into_what_they_run(tmp_path: Path) -> None:
    scripts = {
        "pretest": "npm run lint",
        "lint": "eslint . && prettier --check src",
        "test": "run-s build test:*",
        "build": "cross-env NODE_ENV=production rollup -c",
        "test:unit": "nyc --reporter=lcov ./node_modules/.bin/_mocha test/*.js",
        "test:types": "tsc --noEmit",
        "start": "node --test",
    }
    package = Package(checkout(tmp_path, {"package.json": {"scripts": scripts}}), "")
    found = [(part.tool, part.kind) for part in parts(package, "test")]
    assert found == [
        ("eslint", "lint"),
        ("prettier", "lint"),
        ("rollup", "build"),
        ("mocha", "test"),
        ("tsc", "types"),
    ]
    assert [part.tool for part in parts(package, "start")] == ["node:test"]


def test_scripts_that_call_each_other_end(tmp_path: Path) -> None:
    scripts = {"test": "npm run a", "a": "npm run b", "b": "npm run a"}
    assert parts(Package(checkout(tmp_path, {"package.json": {"scripts": scripts}}), ""), "test") == ()


def test_watching_is_left_out() -> None:
    assert once("jest --watch --config a.js") == "jest --config a.js"
    assert once("vitest --dir src") == "vitest run --dir src"
    assert once("vitest run") == "vitest run"
    assert once("mocha test") == "mocha test"


SMALL: dict[str, Any] = {
    "package.json": {
        "name": "small",
        "version": "1.2.3",
        "main": "index.js",
        "bin": "cli.js",
        "scripts": {"test": "xo && nyc ava"},
        "dependencies": {"ms": "^2.0.0"},
        "devDependencies": {"ava": "^3.0.0", "nyc": "^15.0.0", "xo": "^0.38.0"},
    },
    "index.js": "module.exports = 1",
    "cli.js": "console.log('--help')",
    "test.js": "const test = require('ava');",
}


def test_even_a_tiny_package_gives_ten_goals_with_evidence(tmp_path: Path) -> None:
    tree = checkout(tmp_path, SMALL)
    found = candidates(tree)
    assert len({item.goal.command for item in found}) >= 10
    for item in found:
        assert item.goal.evidence is not None
        assert tree.has(item.goal.evidence.path)
        assert item.goal.evidence.line >= 1
        assert not read_requirements(item.goal).trivial


def test_a_linter_does_not_dominate_the_tests(tmp_path: Path) -> None:
    found = {item.goal.command: item.goal for item in candidates(checkout(tmp_path, SMALL))}
    goal = found["npx --no-install nyc ava"]
    assert (goal.category, goal.min_pass_rate, goal.exit_codes) == (Category.TEST, 0.9, (0, 1))
    assert found["npx --no-install xo"].category is Category.LINT
    assert "npm test" not in found
    assert "npx --no-install ava test.js" in found


@pytest.mark.parametrize(
    ("more", "expected"),
    [({"scripts": {"start": "migrate && node app.js"}}, False), ({"private": True}, False), ({}, True)],
)
def test_an_application_that_would_wait_for_requests_is_not_loaded(
    tmp_path: Path, more: dict[str, Any], expected: bool
) -> None:
    manifest = {"name": "a", "main": "app.js", **more}
    found = commands(checkout(tmp_path, {"package.json": manifest, "app.js": "server.listen(80)\n"}))
    assert any("loaded" in command for command in found) is expected


@pytest.mark.parametrize(
    ("main", "other", "expected"),
    [
        ("index.js", "src/index.ts", False),
        ("index.js", "index.js", True),
        ("index.js", "index.ts", True),
        ("dist/index.js", "src/index.ts", True),
    ],
)
def test_a_main_module_that_nothing_makes_is_not_loaded(tmp_path: Path, main: str, other: str, expected: bool) -> None:
    manifest = {"name": "thing", "main": main, "scripts": {"build": "webpack"}}
    found = commands(checkout(tmp_path, {"package.json": manifest, other: ""}))
    assert any("loaded" in command for command in found) is expected


def test_single_files_keep_the_options_of_the_projects_own_command(tmp_path: Path) -> None:
    manifest = {
        "scripts": {"test": "NODE_ENV=test mocha -r ./setup.js --timeout 5000 'test/**/*.js'"},
        "devDependencies": {"mocha": "8"},
    }
    files = {"package.json": manifest, "test/unit/a.js": "describe('a', () => it('b'))", "test/e2e/b.js": "it()"}
    found = commands(checkout(tmp_path, files))
    assert "NODE_ENV=test npx --no-install mocha -r ./setup.js --timeout 5000 test/unit/a.js" in found
    assert "npm test" in found


def test_files_that_wait_for_a_browser_or_a_process_are_samples_of_last_resort(tmp_path: Path) -> None:
    body = "test('a', () => {});\n" * 60
    files = {
        "package.json": {"scripts": {"test": "qunit test/"}, "devDependencies": {"qunit": "2"}},
        "test/a.js": f"if (typeof document == 'undefined') return;\n{body}",
        "test/b.js": f"spawn('x');\n{body}",
        "test/c.js": body,
    }
    package = Package(checkout(tmp_path, files), "")
    runner = next(runner for runner in knowledge().runner if runner.name == "qunit")
    assert sample_files(package, runner)[0] == "test/c.js"


def test_members_of_a_workspace_have_goals_of_their_own(tmp_path: Path) -> None:
    files = {
        "package.json": {"private": True, "workspaces": ["packages/*"], "scripts": {"test": "lerna run test"}},
        "yarn.lock": "# yarn lockfile v1",
        "packages/one/package.json": {"name": "@a/one", "scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}},
        "packages/one/a.test.js": "test('a')",
    }
    found = commands(checkout(tmp_path, files))
    assert "yarn test" in found
    assert "cd packages/one && yarn test" in found
    assert "cd packages/one && npx --no-install jest --ci a.test.js" in found


def test_the_plan_brings_node_and_installs_from_the_lock(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {**SMALL, "package-lock.json": "{}"})
    plan = NodeEcosystem().plan(context(tree, "2020-01-01"), sandbox())
    assert "node-linux-" in plan.steps[0].command
    assert plan.env["PATH"] == f"/opt/node-12/bin:{PATH}"
    assert plan.steps[1].command == "npm ci"
    assert plan.steps[1].fallback
    assert not plan.exhausted
    assert plan.env.items() >= knowledge().env.items()


def test_nothing_is_brought_where_the_sandbox_has_it(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"package.json": {"engines": {"node": ">=20"}, "scripts": {"test": "node --test"}}})
    plan = NodeEcosystem().plan(context(tree, "2025-06-01"), sandbox())
    assert plan.steps[0].command.startswith("npm install --no-save")
    assert "PATH" not in plan.env


def test_later_attempts_differ_until_there_is_nothing_left(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {**SMALL, "package-lock.json": "{}"})
    seen = []
    for attempt in range(1, 6):
        plan = NodeEcosystem().plan(context(tree, "2022-01-01", attempt=attempt), sandbox())
        seen.append([step.command for step in plan.steps])
        if plan.exhausted:
            break
    assert attempt >= 3
    assert all(seen.count(item) == 1 for item in seen)


def test_dates_are_used_only_where_the_registry_has_true_ones(tmp_path: Path) -> None:
    tree = checkout(tmp_path, SMALL)
    probe = knowledge().dated
    true_dates = {"npm view": json.dumps({probe.version: f"{probe.day.isoformat()}T00:00:00Z"})}
    dated = NodeEcosystem().plan(context(tree, "2025-02-01"), sandbox(answers=true_dates))
    assert any("--before=2025-02-02" in step.command for step in dated.steps)
    false_dates = {"npm view": json.dumps({probe.version: "2024-06-25T22:10:13Z"})}
    free = NodeEcosystem().plan(context(tree, "2025-02-01"), sandbox(answers=false_dates))
    assert not any("--before" in step.command for step in free.steps)


def test_a_missing_entry_is_built(tmp_path: Path) -> None:
    manifest = {"main": "dist/index.js", "scripts": {"build": "tsc", "test": "jest"}, "devDependencies": {"jest": "1"}}
    tree = checkout(tmp_path, {"package.json": manifest})
    plan = NodeEcosystem().plan(context(tree), sandbox())
    assert any("npm run build" in step.command for step in plan.steps)
    kept = checkout(tmp_path / "kept", {"package.json": manifest, "dist/index.js": ""})
    assert not any("build" in step.command for step in NodeEcosystem().plan(context(kept), sandbox()).steps)


def test_a_project_in_a_folder_is_set_up_there(tmp_path: Path) -> None:
    tree = checkout(tmp_path, {"web/package.json": {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}})
    goal = Goal(command="cd web && npm test", description="tests")
    plan = NodeEcosystem().plan(context(tree, targets=(goal,), findings=Findings()), sandbox())
    assert any(step.command.startswith("cd web && npm install") for step in plan.steps)


def test_a_folder_beside_the_main_package_is_set_up_where_a_target_works_in_it(tmp_path: Path) -> None:
    main = {"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}
    tree = checkout(tmp_path, {"package.json": main, "web/package.json": main})
    targets = (Goal(command="npm test", description="a"), Goal(command="cd web && npm test", description="b"))
    steps = [step.command for step in NodeEcosystem().plan(context(tree, targets=targets), sandbox()).steps]
    assert any(step.startswith("npm install") for step in steps)
    assert any(step.startswith("cd web && npm install") for step in steps)
    alone = [step.command for step in NodeEcosystem().plan(context(tree, targets=targets[:1]), sandbox()).steps]
    assert not any("cd web" in step for step in alone)


def test_tables_are_sound() -> None:
    table = knowledge()
    majors = [item.major for item in table.release]
    assert majors == sorted(majors)
    assert all(item.since <= item.lts_since for item in table.release)
    assert {item.max_node for item in table.ceiling} <= set(majors)
    assert {linter.name for linter in table.linter} <= table.tools["lint"]
    assert {r.name for r in table.runner if r.name != "node:test"} <= table.tools["test"]


def test_ecosystem_holds_to_the_contract() -> None:
    ecosystem = NodeEcosystem()
    assert ecosystem.name == "node"
    assert {"npm", "npx", "yarn", "pnpm", "node"} <= ecosystem.tools
    assert SimpleNamespace(suffixes=ecosystem.suffixes).suffixes >= {".js", ".ts"}
