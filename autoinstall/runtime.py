"""What a process needs to build environments: its settings, where sandboxes come from, and who plays which role."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from autoinstall import agents
from autoinstall.agents.contract import GoalSetter, Installer, Judge
from autoinstall.sandbox.contract import SandboxProvider
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.settings import Settings


@dataclass(frozen=True)
class Runtime:
    """One a process, shared by the threads of a night.

    Attributes:
        installer: attempt number (1-based) → the agent that makes it.
        ended: set once somebody has asked for the end; what fails from then on was cancelled.
    """

    settings: Settings
    provider: SandboxProvider
    goal_setter: GoalSetter
    installer: Callable[[int], Installer]
    judge: Judge
    ended: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        """Close every sandbox, whichever thread has it, so that all that runs comes to its end."""
        self.ended.set()
        self.provider.shutdown()


def build_runtime(settings: Settings) -> Runtime:
    """The runtime that the settings describe. Nothing is started; the engine is first asked when it is needed.

    Raises:
        BadInput: a role is to be played by a model, and none is configured.
    """
    agents.check_models(settings)
    return Runtime(
        settings=settings,
        provider=DockerProvider(settings),
        goal_setter=agents.goal_setter(settings),
        installer=lambda attempt: agents.installer(settings, attempt),
        judge=agents.judge(settings),
    )
