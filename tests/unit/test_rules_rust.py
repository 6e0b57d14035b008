"""Rust projects: manifests, goals, plans and remedies."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.rust import RustEcosystem
from autoinstall.agents.rules.ecosystems.rust.flags import selection
from autoinstall.agents.rules.ecosystems.rust.manifests import project_of
from autoinstall.agents.rules.ecosystems.rust.plan import LOOK_UP
from autoinstall.agents.rules.repairs.missing import Kind, Missing, missing_things
from autoinstall.tree import Tree
from tests.conftest import written
from tests.unit.rules_contexts import context_of, goals_of, plan_of, remedies_of

PACKAGE = {
    "Cargo.toml": '[package]\nname = "thing"\nversion = "1.2.3"\n\n[dependencies]\nclap = "4"\n\n'
    '[[example]]\nname = "asks"\nrequired-features = ["extra"]\n',
    "src/lib.rs": "//! ```\n//! thing::run();\n//! ```\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn inner() {}\n}\n",
    "src/main.rs": "use clap::Parser;\nfn main() {}\n",
    "tests/whole.rs": "#[test]\n#[ignore]\nfn slow() {}\n\n#[test]\nfn quick() {}\n",
    "tests/remote.rs": '#[test]\nfn far() { get("https://forge.net"); }\n',
    "tests/idle.rs": '#[cfg_attr(not(nightly), ignore = "nightly")]\n#[test]\nfn later() {}\n',
    "tests/shared.rs": "pub fn help() {}\n",
    "examples/show.rs": 'fn main() { println!("x"); }\n',
    "examples/asks.rs": "fn main() {}\n",
    "examples/waits.rs": "fn main() { std::io::stdin(); }\n",
    "benches/speed.rs": "fn main() {}\n",
}


def test_goals_cover_every_kind_of_target(tmp_path: Path) -> None:
    goals = goals_of(RustEcosystem(), context_of(tmp_path, PACKAGE))
    assert {"cargo fetch", "cargo build", "cargo doc --no-deps", "cargo fmt --all -- --check"} <= set(goals)
    assert {"cargo test --lib", "cargo test --doc", "cargo test --test whole", "cargo bench --no-run"} <= set(goals)
    assert goals["cargo test --no-fail-fast"].min_pass_rate == 0.9
    assert '"test quick ... ok"' in goals["cargo test --test whole quick -- --exact"].description
    assert "at least 2 lines" in goals["cargo run -q --bin thing -- --help"].description
    assert '"thing v1.2.3"' in goals["cargo tree --package thing --depth 1"].description
    assert goals["cargo clippy --all-targets"].exit_codes == (0, 101)


def test_examples_and_tests_that_need_something_are_left_out(tmp_path: Path) -> None:
    goals = goals_of(RustEcosystem(), context_of(tmp_path, PACKAGE))
    assert "cargo run -q --example show" in goals
    assert not any(word in command for command in goals for word in ("asks", "waits", "remote", "shared", "idle"))


WORKSPACE = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*", "fuzz"]\nexclude = ["crates/old"]\n'
    '[workspace.package]\nversion = "0.3.0"\n',
    "crates/a/Cargo.toml": '[package]\nname = "a"\nversion.workspace = true\n',
    "crates/a/src/lib.rs": "#[test]\nfn one() {}\n",
    "crates/old/Cargo.toml": '[package]\nname = "old"\n',
    "fuzz/Cargo.toml": '[package]\nname = "fuzz"\n',
    "fuzz/src/main.rs": "fn main() {}\n",
}


def test_workspaces(tmp_path: Path) -> None:
    context = context_of(tmp_path, WORKSPACE)
    project = project_of(context.tree)
    assert project is not None
    assert project.virtual
    assert [(package.name, package.version) for package in project.packages] == [("a", "0.3.0"), ("fuzz", "")]
    assert "cargo test --workspace --exclude fuzz --no-fail-fast" in goals_of(RustEcosystem(), context)
    assert "cargo build --workspace --exclude fuzz" in str(plan_of(RustEcosystem(), context).steps)


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("cargo test --verbose", ""),
        ("cargo test --all-features", "--all-features"),
        ("cargo test\n      - run: cargo test --all-features", ""),
        ("cargo test --all --features 'a b'", "--workspace --features 'a b'"),
        ("cargo +nightly test --all-features", ""),
        ("cargo test --target wasm32-wasip1 --all-features", ""),
    ],
)
def test_packages_and_features_as_the_ci_has_them(tmp_path: Path, script: str, options: str) -> None:
    workflow = {".github/workflows/a.yml": f"jobs:\n  a:\n    steps:\n      - run: {script}\n"}
    context = context_of(tmp_path, {**PACKAGE, **workflow})
    project = project_of(context.tree)
    assert project is not None
    assert selection(context, project) == options


def test_combinations_that_the_ci_goes_through_are_goals(tmp_path: Path) -> None:
    workflow = {".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n      - run: cargo check --no-default-features\n"}
    goals = goals_of(RustEcosystem(), context_of(tmp_path, {**PACKAGE, **workflow}))
    evidence = goals["cargo check --no-default-features"].evidence
    assert evidence is not None
    assert evidence.line == 4


def test_a_project_aside_is_run_in_its_directory(tmp_path: Path) -> None:
    files = {f"native/{name}": text for name, text in PACKAGE.items()}
    goals = goals_of(RustEcosystem(), context_of(tmp_path, {**files, "setup.py": ""}))
    assert "cd native && cargo build" in goals


def test_manifests_of_test_data_make_no_project(tmp_path: Path) -> None:
    written(tmp_path, {"tests/data/Cargo.toml": '[package]\nname = "x"\n', "a.py": "", "Cargo.toml": "not toml ["})
    assert not RustEcosystem().detect(Tree(tmp_path))


def test_rust_comes_from_debian_and_pins_of_rustup_are_passed_over(tmp_path: Path) -> None:
    pinned = {**PACKAGE, "rust-toolchain.toml": '[toolchain]\nchannel = "nightly-2020-01-01"\n'}
    plan = plan_of(RustEcosystem(), context_of(tmp_path, pinned))
    assert "rustc-web" in plan.steps[0].command
    assert "rustc cargo" in plan.steps[0].fallback[0]
    assert not any("nightly" in step.command for step in plan.steps)
    later = plan_of(RustEcosystem(), context_of(tmp_path, pinned, attempt=2))
    assert "$version" in later.steps[0].command
    assert later.exhausted


def test_a_rust_that_is_there_is_used(tmp_path: Path) -> None:
    answer = {LOOK_UP: "path /usr/bin\ncargo 1.80.0 (x)\nrustup stable-x86_64-unknown-linux-gnu\n"}
    plan = plan_of(RustEcosystem(), context_of(tmp_path, PACKAGE), answer)
    assert plan.steps[0].command == "cargo fetch"
    assert plan.env["PATH"] == "/root/.cargo/bin:/usr/bin"
    assert plan.env["RUSTUP_TOOLCHAIN"] == "stable-x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("output", "key", "remedy"),
    [
        ("error[E0554]: `#![feature]` may not be used", "rust-nightly", "RUSTC_BOOTSTRAP=1"),
        (
            "error: unused\n  = note: `#[deny(unused)]` implied by `#[deny(warnings)]`",
            "rust-denied-warnings",
            "cap-lints",
        ),
        ("error: could not compile `time` (lib) due to 1 previous error", "rust-old-dependency:time", "cargo update"),
        (
            "error: package `a v1.0.0` cannot be built because it requires rustc 1.99",
            "rust-too-new-for-compiler:a",
            "cargo update",
        ),
        (
            "error: the lock file /workspace/Cargo.lock needs to be updated but --locked was",
            "rust-stale-lock",
            "generate-lockfile",
        ),
        ("error: linker `clang` not found", "rust-linker:clang", "clang lld"),
        ("collect2: fatal error: cannot find 'ld'\n cc -fuse-ld=mold", "rust-linker:mold", "mold"),
        ("Unable to find libclang: \"couldn't find", "rust-libclang", "libclang-dev"),
        ("Could not find `protoc` installation", "rust-protoc", "protobuf-compiler"),
        ("is `cmake` not installed?", "rust-cmake:cmake", "cmake"),
    ],
)
def test_what_cargo_and_build_scripts_say(tmp_path: Path, output: str, key: str, remedy: str) -> None:
    assert remedy in remedies_of("rust_symptoms", context_of(tmp_path, PACKAGE), output)[f"symptom:{key}"]


def test_libraries_that_pkg_config_lacks() -> None:
    output = "The system library `libpq` required by crate `pq-sys` was not found."
    assert list(missing_things(output)) == [Missing(kind=Kind.MODULE, name="libpq")]
