"""What an attempt did to its sandbox, whichever agent made it."""

from collections.abc import Mapping

from pydantic import Field

from autoinstall.sandbox.contract import Sandbox
from autoinstall.sandbox.forwarding import ForwardingSandbox
from autoinstall.values import CommandResult, Service, Value


class Ran(Value):
    """A command that ended by itself.

    Attributes:
        succeeded: its exit code was 0.
        user: as for `Sandbox.run`; None means root.
        env: variables of this command alone.
    """

    command: str
    succeeded: bool
    user: str | None = None
    env: dict[str, str] = Field(default_factory=dict)


class Wrote(Value):
    """A file; relative paths are below /workspace."""

    path: str
    content: bytes
    executable: bool = False
    user: str | None = None


class Set(Value):
    """A variable of every later command."""

    name: str
    value: str


class Started(Value):
    """A service that came up; every later step has it."""

    service: Service


Step = Ran | Wrote | Set | Started


class StepRecorder(ForwardingSandbox):
    """Keeps what is done to a sandbox, in order, in `steps`.

    A command that was ended at its limit is left out: it would only be waited for again.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.steps: list[Step] = []

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        result = super().run(command, timeout=timeout, user=user, env=env)
        if not result.timed_out:
            self.steps.append(Ran(command=command, succeeded=result.exit_code == 0, user=user, env=dict(env or {})))
        return result

    def write_file(self, path: str, content: bytes, *, executable: bool = False, user: str | None = None) -> None:
        super().write_file(path, content, executable=executable, user=user)
        self.steps.append(Wrote(path=path, content=content, executable=executable, user=user))

    def set_env(self, name: str, value: str) -> None:
        super().set_env(name, value)
        self.steps.append(Set(name=name, value=value))

    def start_service(self, service: Service) -> None:
        super().start_service(service)
        self.steps.append(Started(service=service))
