"""Repositories that no sandbox of this machine can serve end early, and others do not."""

import json
from pathlib import Path

import pytest
from llm_stage import REPOSITORY, sandbox_of, settings_with

from autoinstall.agents.hardware import architecture, check_hardware
from autoinstall.agents.llm.goal_setter import LlmGoalSetter
from autoinstall.agents.rules.goal_setter import RulesGoalSetter
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.errors import NeedsGpu, NothingToSetUp, UnsupportedArch
from autoinstall.ledger import failure_of
from autoinstall.models.scripted import ScriptedModel, says
from autoinstall.tree import Tree
from autoinstall.values import Outcome
from tests.conftest import written

OTHER = {"amd64": "arm64"}.get(architecture(), "x64")
CUDA = "from torch.utils.cpp_extension import CUDAExtension\nsetup(ext_modules=[CUDAExtension('a', ['a.cu'])])\n"


def tree(root: Path, files: dict[str, str]) -> Tree:
    written(root, files)
    return Tree(root)


@pytest.mark.parametrize("machine", ["x86_64", "amd64"])
def test_architectures_have_the_engines_names(machine: str) -> None:
    assert architecture(machine) == "amd64"
    assert (architecture("aarch64"), architecture("riscv64")) == ("arm64", "riscv64")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"package.json": '{"os": ["darwin"]}'}, "darwin/"),
        ({"package.json": '{"cpu": "arm64"}'}, "linux/arm64"),
        ({"package.json": '{"cpu": ["!x64"]}'}, "package.json"),
        ({"pixi.toml": '[workspace]\nplatforms = ["osx-arm64", "linux-aarch64"]\n'}, "linux/arm64, osx/arm64"),
        ({".cargo/config.toml": '[build]\ntarget = "thumbv7em-none-eabihf"\n'}, "none-eabihf/thumbv7em"),
        ({".cargo/config": '[build]\ntarget = "aarch64-unknown-linux-gnu"\n'}, "linux/arm64"),
    ],
)
def test_repositories_for_other_machines(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(UnsupportedArch, match="sandboxes here are linux/amd64") as raised:
        check_hardware(tree(tmp_path, files), "amd64")
    assert said in raised.value.message


def test_a_machine_of_another_kind_serves_other_repositories(tmp_path: Path) -> None:
    found = tree(tmp_path, {"package.json": '{"cpu": ["x64"]}'})
    check_hardware(found, "amd64")
    with pytest.raises(UnsupportedArch, match="linux/amd64"):
        check_hardware(found, "arm64")


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": "{"},
        {"package.json": "[]"},
        {"package.json": '{"os": ["!win32"], "cpu": ["any"]}'},
        {"package.json": '{"os": ["darwin", "linux"]}'},
        {"pixi.toml": '[project]\nplatforms = ["linux-64"]\n'},
        {"pixi.toml": "["},
        {".cargo/config.toml": '[build]\ntarget = "wasm32-unknown-unknown"\n'},
        {".cargo/config.toml": "[build]\njobs = 2\n"},
        {"fast.cu": "x", "a.c": "x", "b.c": "x"},
        {"a.cu": "x", "setup.py": CUDA + "CppExtension('b', ['b.cpp'])\n"},
        {"setup.py": CUDA},
    ],
)
def test_what_runs_here_is_let_through(tmp_path: Path, files: dict[str, str]) -> None:
    check_hardware(tree(tmp_path, files), "amd64")


@pytest.mark.parametrize("files", [{"a.cu": "x", "b.cuh": "x", "main.cpp": "x"}, {"a.cu": "x", "setup.py": CUDA}])
def test_repositories_that_are_nothing_without_a_gpu(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(NeedsGpu):
        check_hardware(tree(tmp_path, files))


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"a.cu": "x", "b.cuh": "x", "main.cpp": "x"}, NeedsGpu),
        ({"package.json": json.dumps({"cpu": OTHER}), "a.js": "x"}, UnsupportedArch),
    ],
)
def test_either_family_stops_before_anything_runs(
    tmp_path: Path, files: dict[str, str], error: type[NothingToSetUp]
) -> None:
    found = tree(tmp_path / "checkout", files)
    settings = settings_with(tmp_path)
    model = ScriptedModel([])
    for setter in (RulesGoalSetter(settings), LlmGoalSetter(settings, model, RulesJudge())):
        with sandbox_of(found) as sandbox:
            with pytest.raises(error) as raised:
                setter.propose(REPOSITORY, found, sandbox)
            assert sandbox.commands == []
        failure = failure_of(raised.value)
        assert (failure.outcome, failure.code) == (Outcome.NOTHING_TO_SET_UP, error.code)
    assert model.requests == []


@pytest.mark.parametrize(("hardware", "error"), [("gpu", NeedsGpu), ("architecture", UnsupportedArch)])
def test_a_model_may_find_that_the_hardware_is_not_there(
    tmp_path: Path, hardware: str, error: type[NothingToSetUp]
) -> None:
    found = tree(tmp_path / "checkout", {"a.py": "x"})
    model = ScriptedModel([says("", ("give_up", {"reason": "CUDA all over", "no_code": False, "hardware": hardware}))])
    with sandbox_of(found) as sandbox, pytest.raises(error, match="CUDA all over"):
        LlmGoalSetter(settings_with(tmp_path), model, RulesJudge()).propose(REPOSITORY, found, sandbox)
