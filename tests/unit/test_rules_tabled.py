"""Languages that a table says all of: R, Elixir, Haskell, and .NET, which is only recognised."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.tabled import TabledEcosystem, tabled_ecosystems
from autoinstall.errors import NothingToSetUp, RegistryUnreachable
from tests.unit.rules_contexts import context_of, goals_of, plan_of

R = {
    "DESCRIPTION": "Package: thing\nVersion: 1.2.3\nDepends: R (>= 3.5), methods\n"
    "Imports:\n    jsonlite (>= 1.0),\n    rlang\n"
    "Suggests: testthat, knitr\n",
    "R/thing.R": "half <- function(n) n / 2\n",
    "tests/testthat/test-half.R": "test_that('it halves', expect_equal(half(4), 2))\n",
}
ELIXIR = {
    "mix.exs": 'defmodule Thing.MixProject do\n  def project do\n    [app: :thing, version: "0.4.1", deps: deps()]\n'
    "  end\n"
    '  defp deps do\n    [\n      {:jason, "~> 1.0"},\n      {:ex_doc, "~> 0.2", only: :dev, runtime: false},\n'
    '      {:inner, path: "x"},\n'
    '      {:dialyxir, "~> 1.0", only: [:dev, :test]}\n    ]\n  end\nend\n',
    "lib/thing.ex": "defmodule Thing do\nend\n",
    "test/thing_test.exs": "defmodule ThingTest do\nend\n",
}
HASKELL = {
    "thing.cabal": "name: thing\nversion: 0.1.0\nbuild-type: Simple\nlibrary\n  exposed-modules: Thing\n"
    "  build-depends: base >= 4, containers,\n    split\n  default-language: Haskell2010\n",
    "Thing.hs": "module Thing where\n",
    "Setup.hs": "import Distribution.Simple\nmain = defaultMain\n",
}
DOTNET = {"Thing.sln": "", "Thing/Thing.csproj": '<Project Sdk="Microsoft.NET.Sdk"/>', "Thing/A.cs": "class A {}\n"}
SILENT = (6, "Could not resolve host")
ASKED = "timeout 15 bash"


def _language(name: str) -> TabledEcosystem:
    return next(item for item in tabled_ecosystems() if item.name == name)


def _policy(*packages: str) -> str:
    return "\n".join(f"{name}:\n  Installed: (none)\n  Candidate: 1.0-1\n  Version table:" for name in packages)


def test_r(tmp_path: Path) -> None:
    answers = {"apt-cache policy": _policy("r-cran-jsonlite", "r-cran-rlang", "r-cran-knitr"), ASKED: SILENT}
    context = context_of(tmp_path, R)
    goals = goals_of(_language("r"), context, answers)
    assert any('filter = "^half$"' in command for command in goals)
    assert any('"thing_1.2.3.tar.gz"' in goal.description for goal in goals.values())
    assert any("{ parse(file)" in command for command in goals)
    plan = plan_of(_language("r"), context, answers)
    assert "r-cran-jsonlite r-cran-rlang r-cran-knitr" in plan.steps[0].command


def test_elixir_and_haskell(tmp_path: Path) -> None:
    goals = goals_of(_language("elixir"), context_of(tmp_path / "e", ELIXIR), {ASKED: ""})
    assert {"mix test", "mix test test/thing_test.exs", "mix compile --force"} <= set(goals)
    answers = {"apt-cache policy": _policy("libghc-split-dev"), ASKED: SILENT}
    plan = plan_of(_language("haskell"), context_of(tmp_path / "h", HASKELL), answers)
    assert plan.steps[0].command.count("libghc-") == 2  # the two ways in which a package is installed
    assert "runhaskell Setup build" in goals_of(_language("haskell"), context_of(tmp_path / "h", HASKELL), answers)


@pytest.mark.parametrize(
    ("name", "files", "lacking"),
    [
        ("r", R, "CRAN .* jsonlite, rlang"),
        ("elixir", ELIXIR, "Hex .* jason, dialyxir from there"),
    ],
)
def test_registries_that_do_not_answer(tmp_path: Path, name: str, files: dict[str, str], lacking: str) -> None:
    language = _language(name)
    context = context_of(tmp_path, files)
    assert language.detect(context.tree)
    with pytest.raises(RegistryUnreachable, match=lacking):
        plan_of(language, context, {ASKED: SILENT})


def test_a_language_that_is_not_to_be_had(tmp_path: Path) -> None:
    context = context_of(tmp_path, DOTNET)
    with pytest.raises(NothingToSetUp, match=r"needs the \.NET SDK"):
        goals_of(_language("dotnet"), context, {"command -v dotnet": 1})
    assert goals_of(_language("dotnet"), context) == {}


def test_what_is_no_project_of_theirs(tmp_path: Path) -> None:
    tree = context_of(tmp_path, {"DESCRIPTION": "A thing.\n", "a.R": "1\n"}).tree
    assert not any(item.detect(tree) for item in tabled_ecosystems())
