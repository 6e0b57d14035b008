"""Fixtures of the tests that need a container engine, and which tests may run beside each other.

Where no engine answers its tests fail, and say what to do.
"""

import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import docker
import pytest
from xdist.scheduler import LoadScopeScheduling

from autoinstall.sandbox.contract import Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.settings import Settings


class Lanes(LoadScopeScheduling):
    """What needs the engine runs one by one, so does what needs Prefect's server; of the rest, each file.

    (pytest-xdist's own groups are lost: since pytest 9 an item's id no longer takes the suffix that names its group.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return _lane(nodeid.partition("::")[0])


@cache
def _lane(path: str) -> str:
    text = (Path(__file__).parents[1] / path).read_text(encoding="utf-8")
    return next((need for need in ("docker", "prefect") if f"mark.{need}" in text), path)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    """Where pytest is started with `-n`."""
    return Lanes(config, log)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of this machine, with the data in a place of its own."""
    return Settings(data=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def provider(settings: Settings) -> Iterator[DockerProvider]:
    """Sandboxes on the engine of this machine."""
    provider = DockerProvider(settings)
    yield provider
    provider.close()


@pytest.fixture(scope="session")
def engine(provider: DockerProvider) -> docker.DockerClient:
    """The engine's client."""
    return provider.client


@pytest.fixture(scope="session")
def base(provider: DockerProvider) -> Snapshot:
    """The default base image; made if absent, which takes minutes once."""
    return provider.ensure_base()


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceSource:
    """A small checkout on the host."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "src").mkdir()
    (root / "README.md").write_text("A sample\n", encoding="utf-8")
    (root / "src/main.py").write_text("print('hello')\n", encoding="utf-8")
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    (root / "run.sh").chmod(0o700)
    (root / "link").symlink_to("src/main.py")
    return committed(root)


@pytest.fixture(scope="module")
def initial(provider: DockerProvider, base: Snapshot, pristine: WorkspaceSource) -> Iterator[Snapshot]:
    """The initial state of attempts at `pristine`, the checkout that a module brings itself."""
    snapshot = provider.build_workspace_image(base.digest, pristine, labels={"autoinstall.test": "1"})
    yield snapshot
    provider.remove_image(snapshot.reference)


def written(root: Path, files: Mapping[str, str]) -> Path:
    """`root`, with the files of these texts in it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def committed(root: Path) -> WorkspaceSource:
    """What lies in `root`, as the only commit of a new repository there."""
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        _git(root, *arguments)
    return WorkspaceSource(path=str(root), commit=_git(root, "rev-parse", "HEAD"))


def _git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def workspace_image(provider: DockerProvider, base: Snapshot, source: WorkspaceSource) -> Iterator[Snapshot]:
    """The sample checkout on the default base."""
    snapshot = provider.build_workspace_image(base.digest, source, labels={"autoinstall.test": "1"})
    yield snapshot
    provider.remove_image(snapshot.reference)
