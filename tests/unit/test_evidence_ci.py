"""What the readers of CI configurations find."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.evidence.ci import bare_image, combinations, read_ci
from autoinstall.tree import Tree
from autoinstall.values import Category

WORKFLOW = """\
name: CI
on: push
env:
  LOG: plain
  KEY: ${{ secrets.KEY }}
jobs:
  test:
    runs-on: ${{ matrix.os }}
    strategy:
      matrix:
        os: [ubuntu-latest, windows-latest]
        python: ["3.9", "3.12"]
    services:
      postgres:
        image: docker.io/library/postgres:15
        env:
          POSTGRES_USER: app
        ports: ["5432:5432"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: sudo apt-get install -y libpq-dev=1.2 \\
            pkg-config
      - name: Tests
        working-directory: ./server
        run: |
          # the tests
          pip install -e .
          cd sub && pytest -q
          if [ -n "$X" ]; then
            echo no
          fi
  windows:
    runs-on: windows-latest
    steps:
      - run: nmake test
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    path = tmp_path / ".github" / "workflows"
    path.mkdir(parents=True)
    (path / "ci.yml").write_text(WORKFLOW)
    return Tree(tmp_path)


def test_steps_become_commands_with_their_lines(tree: Tree) -> None:
    found = {command.command: command for command in read_ci(tree).commands}
    tests = found["pytest -q"]
    assert tests.category is Category.TEST
    assert tests.working_directory == "server/sub"
    assert tests.env == {"LOG": "plain"}
    lines = WORKFLOW.splitlines()
    assert "cd sub && pytest" in lines[tests.evidence.line - 1]
    assert tests.section == "test: Tests"


def test_jobs_of_other_systems_and_conditional_blocks_are_left_out(tree: Tree) -> None:
    commands = [command.command for command in read_ci(tree).commands]
    assert not any("nmake" in command or "echo" in command for command in commands)


def test_services_versions_and_packages(tree: Tree) -> None:
    findings = collect(tree)
    (service, *_) = findings.services
    assert (service.image, service.ports, service.env) == ("postgres", (5432,), {"POSTGRES_USER": "app"})
    assert findings.versions["python"] == ("3.12", "3.9")
    assert [item.name for item in findings.requirements] == ["libpq-dev", "pkg-config"]
    assert "KEY" not in findings.env


def test_matrix_keeps_linux_and_is_bounded() -> None:
    found = combinations({"os": ["ubuntu", "macos"], "v": [str(number) for number in range(50)]})
    assert found[0] == {"os": "ubuntu", "v": "49"}
    assert len(found) <= 4


def test_matrix_includes_stand_alone() -> None:
    assert combinations({"include": [{"env": "py39", "os": "ubuntu"}]}) == [{"env": "py39", "os": "ubuntu"}]


@pytest.mark.parametrize(
    ("reference", "image"),
    [("redis:7", "redis"), ("ghcr.io/owner/name:tag@sha256:12", "name"), ("localhost:5000/postgres", "postgres")],
)
def test_bare_image(reference: str, image: str) -> None:
    assert bare_image(reference) == image


def test_travis_and_gitlab(tmp_path: Path) -> None:
    (tmp_path / ".travis.yml").write_text(
        "language: c\naddons:\n  apt:\n    packages: [libssl-dev]\nscript:\n  - make check\n"
    )
    (tmp_path / ".gitlab-ci.yml").write_text("test:\n  services: [redis:6]\n  script:\n    - npm test\n")
    findings = collect(Tree(tmp_path))
    found = {command.command: command.evidence.line for command in findings.commands}
    assert found["make check"] == 6
    assert found["npm test"] == 4
    assert [service.image for service in findings.services] == ["redis"]
    assert [item.name for item in findings.requirements] == ["libssl-dev"]


@pytest.mark.parametrize("text", ["", "a: [", "x: &a [*a]\n", "- 1\n- 2\n", "jobs: [1]\n", "jobs:\n  a: 1\n"])
def test_malformed_files_give_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".github" / "workflows"
    path.mkdir(parents=True)
    (path / "a.yml").write_text(text)
    assert read_ci(Tree(tmp_path)).commands == ()


def test_expanding_aliases_are_refused(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / ".github" / "workflows"
    path.mkdir(parents=True)
    (path / "a.yml").write_text("\n".join(levels))
    assert read_ci(Tree(tmp_path)).commands == ()
