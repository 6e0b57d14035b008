"""Prefect's own server, and pipelines whose agents and sandboxes are scripted."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prefect.testing.utilities import prefect_test_harness

from autoinstall.agents.scripted import ScriptedGoalSetter, ScriptedInstaller, ScriptedJudge
from autoinstall.runtime import Runtime
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.settings import CloneSettings, Settings, VerificationSettings
from autoinstall.values import Category, Goal

INSTALLED = "/opt/installed"
INSTALL = "install everything"
CATEGORIES = (Category.TEST, Category.BUILD, Category.RUN, Category.LINT, Category.OTHER)


@pytest.fixture(scope="session", autouse=True)
def prefect_server() -> Iterator[None]:
    """A server with a database of its own, for all tests here: it takes long to start."""
    with prefect_test_harness(server_startup_timeout=300):
        yield


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A local git repository with one commit."""
    root = tmp_path / "origin" / "sample"
    root.mkdir(parents=True)
    (root / "main.py").write_text("print('hello')\n")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-qm", "First"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the datasets of a test go."""
    return tmp_path / "data"


@pytest.fixture
def settings(tmp_path: Path, data: Path) -> Settings:
    """Settings of a test, with its own directories."""
    return Settings(
        data=data,
        cache=tmp_path / "cache",
        clone=CloneSettings(retries=0, timeout=60),
        verification=VerificationSettings(),
    )


def ten_goals(prefix: str = "check") -> tuple[Goal, ...]:
    """Ten goals that match where `INSTALL` has run."""
    return tuple(
        Goal(
            command=f"{prefix} part {index}",
            description=f"reports that part number {index} works as its authors say",
            category=CATEGORIES[index % len(CATEGORIES)],
        )
        for index in range(10)
    )


def installs(call: Call) -> int:
    """What the scripted install command does."""
    call.sandbox.write_file(INSTALLED, b"yes")
    return 0


def works_once_installed(call: Call) -> int:
    """What the scripted goals give."""
    return 0 if INSTALLED in call.sandbox.files else 1


@pytest.fixture
def provider() -> ScriptedProvider:
    """Sandboxes in which the goals fail until the install command has run."""
    return ScriptedProvider({INSTALL: installs, re.compile(r"^check part"): works_once_installed})


@pytest.fixture
def make_runtime(settings: Settings, provider: ScriptedProvider) -> Callable[..., Runtime]:
    """A runtime whose parts are scripted; keyword arguments replace them."""

    def make(**parts: object) -> Runtime:
        installer = ScriptedInstaller([INSTALL])
        runtime = Runtime(
            settings=settings,
            provider=provider,
            goal_setter=ScriptedGoalSetter(ten_goals()),
            installer=lambda _attempt: installer,
            judge=ScriptedJudge(),
        )
        return replace(runtime, **parts)  # type: ignore[arg-type]

    return make
