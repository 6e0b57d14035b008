"""What the worker of a week of nights loads: the flows, with agents by script and containers for real.

Its directory is named by the environment variable `WEEK_OF_NIGHTS`. While a file `stop-at` there names a repository,
an installer at that one says which sandbox it has, in `stopped`, and waits in a command until /tmp/go-on exists there.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autoinstall.agents.contract import Assignment
from autoinstall.agents.scripted import ScriptedGoalSetter, ScriptedInstaller, ScriptedJudge
from autoinstall.runtime import Runtime
from autoinstall.sandbox.contract import Sandbox
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.settings import CloneSettings, EngineSettings, LimitSettings, NightSettings, Settings
from autoinstall.values import Category, Goal, SetupReport
from flows.nightly import nightly
from flows.recovery import recover
from tasks.runtime import use_runtime

__all__ = ["nightly", "recover"]

PLACE = "WEEK_OF_NIGHTS"
MIN_FREE_MB = 512
HOPELESS = "hopeless"
GO_ON = "/tmp/go-on"
INSTALLED = "/opt/installed"
INSTALL = f"seq --format='part %g' 10 >{INSTALLED}"
WAIT = f"while [ ! -e {GO_ON} ]; do sleep 0.2; done"
CATEGORIES = (Category.TEST, Category.BUILD, Category.RUN, Category.LINT, Category.OTHER)


def goals() -> Sequence[Goal]:
    """Ten that match where `INSTALL` has run."""
    return [
        Goal(
            command=f"grep -x 'part {number}' {INSTALLED}",
            description=f"prints the line `part {number}` of what was installed",
            category=CATEGORIES[number % len(CATEGORIES)],
        )
        for number in range(1, 11)
    ]


class Installer(ScriptedInstaller):
    """Waits where it is told to, and gives up at the hopeless repository."""

    def __init__(self, place: Path) -> None:
        super().__init__([INSTALL])
        self._place = place
        self._giving_up = ScriptedInstaller(["false"], exhausted=True)

    def install(self, assignment: Assignment, tree: Any, sandbox: Sandbox, **options: Any) -> SetupReport:
        name = Path(assignment.repository.url).name
        stop = self._place / "stop-at"
        if stop.exists() and stop.read_text() == name:
            (self._place / "stopped").write_text(sandbox.id)
            sandbox.run(WAIT)
        if name == HOPELESS:
            return self._giving_up.install(assignment, tree, sandbox, **options)
        return super().install(assignment, tree, sandbox, **options)


def settings_of(place: Path) -> Settings:
    """The night's settings; those of the engine's address come from the environment."""
    return Settings(
        data=place / "data",
        cache=place / "cache",
        clone=CloneSettings(retries=0),
        limits=LimitSettings(memory_mb=512, cpus=1),
        engine=EngineSettings(host=os.environ.get("DOCKER_HOST", ""), min_free_mb=MIN_FREE_MB),
        night=NightSettings(wait_seconds=10, poll_seconds=1),
    )


def runtime_of(place: Path) -> Runtime:
    settings = settings_of(place)
    installer = Installer(place)
    return Runtime(
        settings=settings,
        provider=DockerProvider(settings),
        goal_setter=ScriptedGoalSetter(goals()),
        installer=lambda _attempt: installer,
        judge=ScriptedJudge(),
    )


if PLACE in os.environ:
    # A worker's process knows nothing but the module that it loads.
    _entered = use_runtime(runtime_of(Path(os.environ[PLACE])))
    _entered.__enter__()
