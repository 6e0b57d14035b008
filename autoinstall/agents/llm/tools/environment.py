"""Tools that make what an environment has beside its files: variables, services, sidecars, mocks."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from autoinstall.agents.llm.contract import Desk, Observation
from autoinstall.agents.llm.tools.base import TypedTool, explain, failure, seconds_left
from autoinstall.errors import ImageUnavailable, ServiceNotReady
from autoinstall.integrity.table import integrity_table
from autoinstall.outputs.cleaning import clean
from autoinstall.values import Mock, MockKind, NonEmpty, Probe, ProbeKind, Service, Sidecar, Value

MAX_PROBE_SECONDS = 600

_FORBIDDEN = (
    "{name} was not set: it makes every shell or interpreter run something of the set-up's choosing, and verification "
    "calls an environment that has it tampered with."
)


class SetEnvArguments(Value):
    name: Annotated[NonEmpty, Field(description="name of the variable")]
    value: Annotated[str, Field(description="literal value; nothing in it is expanded")]


class SetEnv(TypedTool[SetEnvArguments]):
    """Sets a variable of the environment."""

    def __init__(self) -> None:
        super().__init__("set_env", SetEnvArguments)

    def carry_out(self, arguments: SetEnvArguments, desk: Desk) -> Observation:
        table = integrity_table().environment
        if arguments.name in table.forbidden or arguments.name.startswith(table.prefixes):
            return failure(_FORBIDDEN.format(name=arguments.name))
        try:
            desk.sandbox.set_env(arguments.name, arguments.value)
        except ValueError as error:
            return failure(f"It was not set: {error}")
        unexpanded = " `$` in it stays as it is." if "$" in arguments.value else ""
        return Observation(text=f"{arguments.name}={arguments.value}\nis set for good.{unexpanded}")


class ProbeArguments(Value):
    probe_kind: Annotated[
        Literal["tcp", "http", "command"],
        Field(
            description="how readiness is found out: a port that accepts, a URL that answers, a command that exits 0"
        ),
    ]
    probe_target: Annotated[NonEmpty, Field(description="port or host:port, URL, or command, by the kind")]
    probe_timeout: Annotated[float, Field(gt=0, le=MAX_PROBE_SECONDS, description="seconds until it must be ready")] = (
        60
    )

    def probe(self, desk: Desk) -> Probe:
        """The probe, within the time that is left."""
        seconds = seconds_left(desk, self.probe_timeout)
        return Probe(kind=ProbeKind(self.probe_kind), target=self.probe_target, timeout=seconds)


class ServiceArguments(ProbeArguments):
    name: Annotated[str, Field(description="short name: lower-case letters, digits, - and _")]
    command: Annotated[NonEmpty, Field(description="command line that stays in the foreground")]
    user: Annotated[NonEmpty, Field(description="user that it runs as")] = "root"


class StartService(TypedTool[ServiceArguments]):
    """Starts a service and puts it into the environment."""

    def __init__(self) -> None:
        super().__init__("start_service", ServiceArguments)

    def carry_out(self, arguments: ServiceArguments, desk: Desk) -> Observation:
        try:
            probe = arguments.probe(desk)
            service = Service(name=arguments.name, command=arguments.command, probe=probe, user=arguments.user)
            desk.sandbox.start_service(service)
        except ValidationError as error:
            return failure(f"Nothing was started: {explain(error)}")
        except ServiceNotReady as error:
            return failure(f"{clean(error.message)}\n[It was stopped, and is no part of the environment.]")
        return Observation(
            text=f"Service {service.name} is ready. It is started again whenever the environment is used."
        )


class SidecarArguments(ProbeArguments):
    alias: Annotated[str, Field(description="host name that it is reached by: lower-case letters, digits and -")]
    image: Annotated[NonEmpty, Field(description="image reference, with a tag or digest")]
    env: Annotated[dict[str, str], Field(description="its environment variables")] = {}  # noqa: RUF012  (pydantic copies)
    command: Annotated[list[str], Field(description="words of its command; none for the image's own")] = []  # noqa: RUF012
    ports: Annotated[list[int], Field(description="ports that it listens on")] = []  # noqa: RUF012


class StartSidecar(TypedTool[SidecarArguments]):
    """Starts a container beside the environment and puts it into the environment."""

    def __init__(self) -> None:
        super().__init__("start_sidecar", SidecarArguments)

    def carry_out(self, arguments: SidecarArguments, desk: Desk) -> Observation:
        try:
            sidecar = Sidecar(
                alias=arguments.alias,
                image=arguments.image,
                env=arguments.env,
                command=tuple(arguments.command),
                ports=tuple(arguments.ports),
                probe=arguments.probe(desk),
            )
            desk.sandbox.start_sidecar(sidecar)
        except ValidationError as error:
            return failure(f"Nothing was started: {explain(error)}")
        except ServiceNotReady as error:
            return failure(f"{clean(error.message)}\n[It was removed, and is no part of the environment.]")
        except ImageUnavailable as error:
            return failure(
                f"{error.message}\n[Check the image's name. Where no registry answers, install the program inside the "
                "environment (apt, pip, npm) and use start_service.]"
            )
        return Observation(text=f"Sidecar {sidecar.alias} is ready, and is reached as {sidecar.alias}.")


class MockArguments(Value):
    kind: Literal["file", "data", "service", "credential", "package", "other"]
    path: Annotated[NonEmpty, Field(description="path of it, or its name where it is no file")]
    reason: Annotated[NonEmpty, Field(description="what it stands in for, and why that is not to be had")]


class DeclareMock(TypedTool[MockArguments]):
    """Puts a stand-in on record."""

    def __init__(self) -> None:
        super().__init__("declare_mock", MockArguments)

    def carry_out(self, arguments: MockArguments, desk: Desk) -> Observation:
        desk.mocks.append(Mock(kind=MockKind(arguments.kind), path=arguments.path, reason=arguments.reason))
        return Observation(text=f"Recorded; {len(desk.mocks)} so far.")
