"""Go, Rust and Java in real containers: toolchains that the base lacks come, and goals of small projects are met."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Ecosystem
from autoinstall.agents.rules.ecosystems.go import GoEcosystem
from autoinstall.agents.rules.ecosystems.maven import MavenEcosystem
from autoinstall.agents.rules.ecosystems.rust import RustEcosystem
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.sandbox.jvm import TRUST_STORE
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Verdict
from tests.conftest import committed, written

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FILES = {
    "go/name.go": 'package name\n\nfunc Name() string { return "x" }\n',
    "go/name_test.go": 'package name\n\nimport "testing"\n\nfunc TestName(t *testing.T) {\n\tif Name() != "x" {\n'
    "\t\tt.Fatal()\n\t}\n}\n",
    "go/go.mod": "module example.com/name\n\ngo 1.16\n",
    "rust/Cargo.toml": '[package]\nname = "thing"\nversion = "1.2.3"\nedition = "2021"\n',
    "rust/src/lib.rs": "/// ```\n/// assert_eq!(thing::one(), 1);\n/// ```\npub fn one() -> u8 {\n    1\n}\n\n"
    "#[test]\nfn is_one() {}\n",
    "rust/rust-toolchain.toml": '[toolchain]\nchannel = "1.99.9"\n',
    "java/pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>com.example</groupId>"
    "<artifactId>thing</artifactId><version>1.2.3</version></project>",
    "java/src/main/java/com/example/Main.java": "package com.example;\n\npublic class Main {}\n",
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceSource:
    return committed(written(tmp_path_factory.mktemp("thing"), FILES))


@pytest.fixture
def sandbox(provider: DockerProvider, initial: Snapshot) -> Iterator[Sandbox]:
    with provider.open(SandboxSpec(image=initial.digest, purpose="test")) as sandbox:
        yield sandbox


def _set_up(ecosystem: Ecosystem, pristine: WorkspaceSource, sandbox: Sandbox, steps: int) -> Context:
    repository = Repository(
        url="https://example.com/o/n", commit=pristine.commit, commit_date=datetime(2021, 6, 1, tzinfo=UTC)
    )
    context = Context(repository=repository, tree=Tree(Path(pristine.path)))
    plan = ecosystem.plan(context, sandbox)
    for name, value in plan.env.items():
        sandbox.set_env(name, value)
    for step in plan.steps[:steps]:
        result = sandbox.run(step.command, timeout=600)
        assert result.exit_code == 0, f"{step.command}\n{result.output}"
    return context


def _unmet(ecosystem: Ecosystem, context: Context, sandbox: Sandbox, *commands: str) -> list[str]:
    goals = {item.goal.command: item.goal for item in ecosystem.candidates(context, sandbox)}
    judgements = {command: RulesJudge().judge(goals[command], sandbox.run(command)) for command in commands}
    return [f"{command}: {item.reason}" for command, item in judgements.items() if item.verdict is not Verdict.MATCHES]


def test_a_go_of_the_commits_time(sandbox: Sandbox, pristine: WorkspaceSource) -> None:
    context = _set_up(GoEcosystem(), pristine, sandbox, 1)
    assert "go1.16.15" in sandbox.run("go version").output
    assert _unmet(GoEcosystem(), context, sandbox, "cd go && go test -count=1 -v ./...") == []


def test_a_rust_that_passes_over_a_pin_of_rustup(sandbox: Sandbox, pristine: WorkspaceSource) -> None:
    context = _set_up(RustEcosystem(), pristine, sandbox, 1)
    commands = ("cd rust && cargo test --no-fail-fast", "cd rust && cargo clippy --all-targets")
    assert _unmet(RustEcosystem(), context, sandbox, *commands) == []


def test_a_jdk_with_maven_that_knows_the_bundle(
    sandbox: Sandbox, pristine: WorkspaceSource, settings: Settings
) -> None:
    context = _set_up(MavenEcosystem(), pristine, sandbox, 3)
    assert _unmet(MavenEcosystem(), context, sandbox, "cd java && mvn -B -ntp validate") == []
    if settings.pass_through.ca_bundle is not None:
        listing = sandbox.run(f"keytool -list -keystore {TRUST_STORE} -storetype PKCS12 -storepass ''")
        assert "trustedCertEntry" in listing.output
