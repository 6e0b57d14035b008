"""Using an accepted environment again: what a trainer calls, and what tells whether it still holds."""

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autoinstall.agents.contract import Judge
from autoinstall.datasets.reader import environment_from
from autoinstall.datasets.records import EnvironmentRecord
from autoinstall.errors import ImageUnavailable
from autoinstall.sandbox.contract import Sandbox, SandboxProvider, SandboxSpec
from autoinstall.settings import Settings, get_settings
from autoinstall.values import CommandResult
from autoinstall.verification import Verification, verify

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Environment:
    """A started environment: its sidecars are up, its start script has run, its services are ready."""

    record: EnvironmentRecord
    sandbox: Sandbox

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command in a fresh shell in /workspace, with the environment's variables.

        A non-zero exit is a result. At `timeout` (seconds; None means the environment's own limit) the command and
        all that it started are killed, and the environment serves on.

        Raises:
            SandboxLost: the container is gone.
            EngineUnavailable: the engine does not answer.
        """
        return self.sandbox.run(command, timeout=timeout, user=user, env=env)

    def read_file(self, path: str) -> bytes:
        """The bytes of a file; relative paths are below /workspace.

        Raises:
            FileNotFoundError: there is no such file.
        """
        return self.sandbox.read_file(path)

    def write_file(self, path: str, content: bytes | str, *, executable: bool = False) -> None:
        """Write a file, parents included; relative paths are below /workspace.

        Raises:
            OSError: the path cannot be written.
        """
        encoded = content.encode() if isinstance(content, str) else content
        self.sandbox.write_file(path, encoded, executable=executable)


@contextmanager
def open_environment(
    row: "EnvironmentRecord | Mapping[Any, Any] | pd.Series",
    *,
    settings: Settings | None = None,
    provider: SandboxProvider | None = None,
    network: bool = True,
    purpose: str = "environment",
) -> Iterator[Environment]:
    """Start an environment in a fresh container; on leaving, all of it is gone.

        with open_environment(row) as env:
            print(env.run("pytest -q").output)

    Args:
        row: a record, or a row of the `environments` dataset as any reader gives it.
        settings: None means the process's.
        provider: where the container comes from; None means the engine of the settings.
        network: False cuts every route out; services and sidecars stay reachable.

    Raises:
        StorageFailed: `row` is no row of that dataset.
        ImageUnavailable: the image is not on the engine, and no registry has it.
        ServiceNotReady: a service or sidecar did not come up.
        EngineUnavailable, EngineFailed, DiskFull.
    """
    record = row if isinstance(row, EnvironmentRecord) else environment_from(row)
    provider = provider or default_provider(settings or get_settings())
    spec = SandboxSpec(
        image=ensure_image(record, provider),
        recipe=record.recipe,
        limits=record.limits,
        network=network,
        purpose=purpose,
        owner=f"{purpose}-{uuid.uuid4().hex[:12]}",
    )
    with provider.open(spec) as sandbox:
        yield Environment(record, sandbox)


def reverify(
    record: EnvironmentRecord,
    *,
    provider: SandboxProvider | None = None,
    judge: Judge | None = None,
    settings: Settings | None = None,
) -> Verification:
    """Run the targets again as the acceptance did, from the row alone: in fresh containers, which must agree.

    Raises:
        ImageUnavailable: the image is not on the engine, and no registry has it.
        Infrastructure: a sandbox failed; that is no verdict.
    """
    settings = settings or get_settings()
    provider = provider or default_provider(settings)
    owner = f"reverify-{uuid.uuid4().hex[:12]}"
    try:
        return verify(
            provider,
            ensure_image(record, provider),
            record.recipe,
            record.goals,
            judge or default_judge(settings),
            settings=settings,
            limits=record.limits,
            owner=owner,
        )
    finally:
        provider.release(owner)


def default_judge(settings: Settings) -> Judge:
    """The judge that the settings name."""
    from autoinstall import agents

    return agents.judge(settings)


def default_provider(settings: Settings) -> SandboxProvider:
    """The provider of the engine that the settings name; the engine is first asked when it is needed."""
    from autoinstall.sandbox.docker import DockerProvider

    return DockerProvider(settings)


def ensure_image(record: EnvironmentRecord, provider: SandboxProvider) -> str:
    """The environment's image on this engine, pulled where it is absent and its reference names a registry.

    Raises:
        ImageUnavailable: it is absent and cannot be pulled.
        EngineUnavailable, EngineFailed, RegistryRateLimited, DiskFull.
    """
    for known in (record.image_digest, record.image):
        if known and provider.image_exists(known):
            return known
    if record.image and names_registry(record.image):
        return provider.ensure_base(record.image).reference
    raise ImageUnavailable(
        f"The image {record.image or record.image_digest} of {record.environment_id} is not on this engine.",
        hint="Environments move between machines through a registry: set AUTOINSTALL_REGISTRY__REPOSITORY where they "
        "are built. An image can also be carried over by `docker save` and `docker load`.",
    )


def names_registry(reference: str) -> bool:
    """Whether an image reference says which registry it is in, rather than being local or of a default one."""
    host, slash, _ = reference.partition("/")
    return bool(slash) and (host == "localhost" or re.search(r"[.:]", host) is not None)
