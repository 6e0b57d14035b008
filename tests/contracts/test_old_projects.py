"""Projects of an older time, whose set-up no longer works the way it did: in real containers, with a real index."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context
from autoinstall.agents.rules.ecosystems.python import PythonEcosystem
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.tree import Tree
from tests.conftest import committed, written

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FILES = {
    "setup.py": "from setuptools import setup\nsetup(name='thing', version='1.0', py_modules=['thing'])\n",
    "thing.py": "",
    "old/setup.py": "import pkg_resources\nfrom setuptools import setup\n"
    "setup(name='old', version='1.0', py_modules=['old'])\n",
    "old/old.py": "",
}
WHEN = datetime(2021, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceSource:
    root = tmp_path_factory.mktemp("thing")
    written(root, FILES)
    return committed(root)


@pytest.fixture
def sandbox(provider: DockerProvider, initial: Snapshot) -> Iterator[Sandbox]:
    with provider.open(SandboxSpec(image=initial.digest, purpose="test")) as sandbox:
        yield sandbox


def test_a_build_script_that_wants_pkg_resources_is_isolated_with_a_setuptools_that_has_it(
    sandbox: Sandbox, pristine: WorkspaceSource
) -> None:
    repository = Repository(url="https://example.org/a/b", commit=pristine.commit, commit_date=WHEN)
    plan = PythonEcosystem().plan(Context(repository=repository, tree=Tree(Path(pristine.path))), sandbox)
    for name, value in plan.env.items():
        sandbox.set_env(name, value)
    for step in plan.steps[:2]:
        result = sandbox.run(step.command)
        assert result.exit_code == 0, result.output
    undated = "sed -i '/exclude-newer/,$d' $UV_CONFIG_FILE"
    assert sandbox.run(f"{undated} && uv pip install ./old").exit_code == 0
    without = sandbox.run("uv pip install --reinstall --no-cache ./old", env={"UV_BUILD_CONSTRAINT": ""})
    assert "pkg_resources" in without.output
