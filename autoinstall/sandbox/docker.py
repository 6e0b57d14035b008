"""Sandboxes on any engine that speaks the Docker API."""

import contextlib
import io
import logging
import secrets
import tarfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import docker.errors
from docker.types import LogConfig, Ulimit

from autoinstall.errors import (
    DiskFull,
    EngineUnavailable,
    ImageUnavailable,
    Infrastructure,
    SandboxBroken,
    SandboxLost,
    ServiceNotReady,
)
from autoinstall.liveness import hold
from autoinstall.logs import log_command
from autoinstall.sandbox import files, images, reaper, registry, services, workspace
from autoinstall.sandbox.boundary import engine_errors
from autoinstall.sandbox.commit import commit, describe
from autoinstall.sandbox.contract import PathStat, Sandbox, SandboxSpec, Snapshot, TreeEntry, WorkspaceSource
from autoinstall.sandbox.egress import Egress
from autoinstall.sandbox.engine import check_disk, connect
from autoinstall.sandbox.exec import Executor, check_variable, script
from autoinstall.sandbox.jvm import TRUST_STORE, trust_store
from autoinstall.sandbox.labels import ATTEMPT_REPOSITORY, Kind
from autoinstall.sandbox.labels import labels as own_labels
from autoinstall.sandbox.network import Neighbourhood, kill_container, remove_container
from autoinstall.sandbox.pass_through import constant_env, mounts, pass_through_env
from autoinstall.sandbox.pool import Pool
from autoinstall.settings import Settings
from autoinstall.values import CommandResult, Recipe, Service, Sidecar

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.api.client import APIClient

CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",  # what apt and dpkg need
    "NET_BIND_SERVICE", "SYS_CHROOT", "AUDIT_WRITE",  # services on low ports, and their changes of user
)  # fmt: skip

STOP_SECONDS = 10
"""How long services may take to end before a commit."""

LOW_DISK_WORKSPACE_DAYS = 1.0
"""How old the image of an initial state must be for a low disk to cost it; a run that is under way needs its own."""

_logger = logging.getLogger(__name__)


class DockerSandbox:
    """One container with what lies beside it. Made by `DockerProvider.open`; its calls are one at a time."""

    def __init__(
        self,
        client: "DockerClient",
        settings: Settings,
        spec: SandboxSpec,
        egress: Egress,
        left: "list[DockerSandbox]",
    ) -> None:
        self._left = left
        self._api: APIClient = client.api
        self._client = client
        self._settings = settings
        self._spec = spec
        self._recipe = spec.recipe.model_copy(update={"services": (), "sidecars": ()})
        # Named before it is made, so that it can be removed even if the answer to its making never comes.
        self._name = f"autoinstall-{spec.purpose}-{secrets.token_hex(4)}"
        self._neighbourhood = Neighbourhood(
            self._api, self._name, spec.purpose, spec.owner, open=spec.network, egress=egress
        )
        self._lock = threading.RLock()
        self._closing = threading.Lock()
        self._is_closing = False
        self._begun = False
        self._committed = False
        limits = settings.limits
        self._executor = Executor(
            self._api,
            self._name,
            constant_env() | pass_through_env(settings.pass_through),
            limits.output_head_bytes,
            limits.output_tail_bytes,
            limits.idle_seconds,
        )

    @property
    def id(self) -> str:
        return self._name

    @property
    def recipe(self) -> Recipe:
        return self._recipe

    def begin(self) -> None:
        """Start the container on its network, guarded. Does nothing the second time."""
        if self._begun:
            return
        spec, beside = self._spec, self._neighbourhood
        if not (spec.network or spec.recipe.sidecars):
            self._start_container("none")
        elif beside.connects_later:
            with ThreadPoolExecutor(1) as meanwhile:  # making a network takes as long as starting a container
                made = meanwhile.submit(beside.make)
                self._start_container("none")
                made.result()
            beside.attach(self._name)
        else:
            self._start_container(beside.make())
            beside.attach(self._name, connected=True)
        bundle = self._settings.pass_through.ca_bundle
        if bundle is not None and spec.network:
            files.write_file(self._api, self._name, TRUST_STORE, trust_store(bundle), executable=False, user="root")
        self._begun = True

    def start(self) -> None:
        """Start what `begin` starts, then the sidecars, then the services of the spec's recipe."""
        self.begin()
        for sidecar in self._spec.recipe.sidecars:
            self.start_sidecar(sidecar)
        for service in self._spec.recipe.services:
            self.start_service(service)

    def is_running(self) -> bool:
        """Whether the container is there and runs."""
        with engine_errors("look at the sandbox", sandbox=True):
            return bool(cast(Any, self._api).inspect_container(self._name)["State"]["Running"])

    def _start_container(self, network: str) -> None:
        with engine_errors("start a sandbox"):
            self._api.create_container(
                self._spec.image,
                entrypoint=["bash", "-c", script("keep_alive.sh"), "autoinstall"],
                command=[],
                name=self._name,
                use_config_proxy=False,  # the host's proxies, which may hold credentials
                user="root",
                labels=own_labels(Kind.SANDBOX, self._spec.purpose, self._spec.owner),
                stdin_open=False,
                tty=False,
                host_config=self._api.create_host_config(
                    **self._bounds(),
                    network_mode=network,
                    shm_size="1g",
                    binds=mounts(self._settings.pass_through),
                    log_config=LogConfig(type="none", config={}),
                ),
            )
            self._api.start(self._name)

    def _bounds(self) -> dict[str, Any]:
        """What a sandbox and its sidecars are held to."""
        limits, default = self._spec.limits, self._settings.limits
        memory = f"{limits.memory_mb or default.memory_mb}m"
        return {
            "mem_limit": memory,
            "memswap_limit": memory,
            "nano_cpus": int((limits.cpus or default.cpus) * 1e9),
            "pids_limit": limits.pids or default.pids,
            "cap_drop": ["ALL"],
            "cap_add": list(CAPABILITIES),
            "security_opt": ["no-new-privileges"],
            # Only lowered: raising a limit is beyond an engine that is itself confined.
            "ulimits": [Ulimit(name="core", soft=0, hard=0)],
            "runtime": self._settings.engine.runtime or None,
        }

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        limit = timeout or self._spec.limits.command_seconds or self._settings.limits.command_seconds
        with self._serving():
            variables = self._recipe.env | dict(env or {})
            try:
                result = self._executor.run(command, timeout=limit, user=user or "root", variables=variables)
            except SandboxBroken:
                if self._is_closing:
                    raise SandboxLost("The sandbox was closed while a command ran.") from None
                raise
        log_command(self._spec, result)
        return result

    def write_file(self, path: str, content: bytes, *, executable: bool = False, user: str | None = None) -> None:
        with self._serving():
            files.write_file(self._api, self._name, path, content, executable=executable, user=user or "root")

    def read_file(self, path: str, *, max_bytes: int = 16 * 2**20) -> bytes:
        with self._serving():
            return files.read_file(self._api, self._name, path, max_bytes=max_bytes)

    def set_env(self, name: str, value: str) -> None:
        check_variable(name, value)
        self._update(env=self._recipe.env | {name: value})

    def start_service(self, service: Service) -> None:
        with self._serving():
            result = self.run(services.start_services([service]), timeout=service.probe.timeout + 60)
            if result.exit_code != 0:
                self._stop_processes([service.name], others=False)
                raise ServiceNotReady(f"Service {service.name} is not ready.\n{result.output.strip()[-4500:]}")
            kept = tuple(other for other in self._recipe.services if other.name != service.name)
            self._update(services=(*kept, service))

    def start_sidecar(self, sidecar: Sidecar) -> None:
        with self._serving():
            image = images.ensure_base(self._client, self._settings, sidecar.image)
            self._neighbourhood.attach(self._name)
            self._neighbourhood.stop(sidecar.alias)
            self._neighbourhood.start(sidecar, image.digest, self._bounds())
            result = self.run(services.probe_script(sidecar.alias, sidecar.probe), timeout=sidecar.probe.timeout + 60)
            if result.exit_code != 0:
                error = self._neighbourhood.not_ready(sidecar, result.output.strip()[-500:])
                self._neighbourhood.stop(sidecar.alias)
                raise error
            kept = tuple(other for other in self._recipe.sidecars if other.alias != sidecar.alias)
            self._update(sidecars=(*kept, sidecar))

    def changed_paths(self) -> frozenset[str]:
        with self._lock:
            return files.changed_paths(self._api, self._name)

    def read_tree(self, paths: Sequence[str], *, max_bytes: int | None = None) -> Iterator[TreeEntry]:
        yield from files.read_tree(self._api, self._name, paths, max_bytes=max_bytes)

    def stat(self, paths: Sequence[str]) -> tuple[PathStat | None, ...]:
        return files.stat(self._api, self._name, paths)

    def snapshot(self, *, labels: Mapping[str, str] | None = None) -> Snapshot:
        with self._serving():
            self._stop_processes([service.name for service in self._recipe.services], others=True)
            self._committed = True
            state = {
                services.ENV_FILE: services.env_file(self._recipe.env),
                services.START_FILE: services.start_script(self._recipe.services),
                services.ENTRYPOINT_FILE: services.entrypoint(),
            }
            with engine_errors("write the start script", sandbox=True):
                self._api.put_archive(
                    self._name, "/", _archive({str(path): text.encode() for path, text in state.items()})
                )
            return commit(
                self._api,
                self._name,
                repository=ATTEMPT_REPOSITORY,
                tag=secrets.token_hex(8),
                labels={**own_labels(Kind.ENVIRONMENT, self._spec.purpose, self._spec.owner), **(labels or {})},
                entrypoint=(str(services.ENTRYPOINT_FILE),),
                env=self._recipe.env,
            )

    def stop(self) -> None:
        """End all that runs in the container and beside it. Idempotent; never raises."""
        try:
            kill_container(self._api, self._name)
            self._neighbourhood.kill()
        except Infrastructure as error:
            _logger.warning("Sandbox %s is not stopped: %s", self._name, error)

    def close(self) -> None:
        # Not under the lock of the calls: closing is how another thread ends a command that is under way.
        self._is_closing = True
        with self._closing:
            try:
                remove_container(self._api, self._name)
                self._neighbourhood.close()
            except Infrastructure as error:
                # The provider tries again; and what is left carries our labels, for the reaper after this process.
                _logger.warning("Sandbox %s is not removed entirely: %s", self._name, error)
                self._left.append(self)

    def _stop_processes(self, names: Sequence[str], *, others: bool) -> None:
        argv = [
            "bash",
            "-c",
            script("stop.sh", "lib.sh"),
            "autoinstall",
            str(STOP_SECONDS),
            "all" if others else "named",
            *names,
        ]
        if b"stopped 0" not in self._executor.capture(argv, timeout=STOP_SECONDS + 60):
            raise SandboxLost("Processes of the sandbox outlive being killed.")

    def _update(self, **fields: Any) -> None:
        self._recipe = self._recipe.model_copy(update=fields)

    @contextlib.contextmanager
    def _serving(self) -> Iterator[None]:
        with self._lock:
            if self._committed:
                raise SandboxLost("The sandbox was committed to an image, and serves nothing else.")
            yield


class DockerProvider:
    """Sandboxes, workspace images and bases on the engine that the settings lead to."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._pool = Pool(self._make)
        self._left: list[DockerSandbox] = []  # what the engine did not remove when it was asked to
        self._connecting = threading.Lock()
        self._client: DockerClient | None = None
        self._egress: Egress | None = None

    @property
    def client(self) -> "DockerClient":
        """The engine's client; connects on first use.

        Raises:
            EngineUnavailable: no engine answers.
        """
        with self._connecting:
            if self._client is None:
                hold(self._settings.cache)  # before anything carries this process's label
                self._client = connect(self._settings)
            return self._client

    @contextlib.contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        self.check()
        sandbox = self._pool.take(spec)
        try:
            sandbox.start()
            yield sandbox
        finally:
            self._pool.retire(sandbox)

    def prepare(self, spec: SandboxSpec) -> None:
        with contextlib.suppress(EngineUnavailable):  # `open` says so
            self._pool.prepare(spec)

    def release(self, owner: str) -> None:
        self._pool.release(owner)

    def settle(self) -> None:
        self._pool.settle()

    def _make(self, spec: SandboxSpec) -> DockerSandbox:
        return DockerSandbox(self.client, self._settings, spec, self._guard(), self._left)

    def build_workspace_image(self, base: str, source: WorkspaceSource, *, labels: Mapping[str, str]) -> Snapshot:
        self.check()
        locks = self._settings.cache / "locks"
        return workspace.build(self.client.api, base, source, labels=labels, locks=locks)

    def ensure_base(self, name: str | None = None) -> Snapshot:
        return images.ensure_base(self.client, self._settings, name)

    def image_exists(self, reference: str) -> bool:
        try:
            describe(self.client.api, reference, reference)
        except ImageUnavailable:
            return False
        return True

    def remove_image(self, reference: str) -> None:
        self._pool.settle()  # a container on its way out still holds its image
        with engine_errors(f"remove image {reference}"):
            try:
                self.client.api.remove_image(reference)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise

    def _guard(self) -> Egress:
        with self._lock:
            if self._egress is None:
                self._egress = Egress(self.client, self._settings)
            return self._egress

    def check(self) -> None:
        """As the contract says. What goes is what dead runs left, and the initial states of earlier nights."""
        try:
            check_disk(self.client, self._settings)
        except DiskFull:
            # Asked again and again while a night waits: only what has changed is worth a line.
            if removed := self._reap(workspace_days=LOW_DISK_WORKSPACE_DAYS):
                _logger.warning("Disk is low; removed what dead runs left: %s", ", ".join(removed))
            check_disk(self.client, self._settings)
        left = tuple(self._left)
        self._left.clear()
        for sandbox in left:
            sandbox.close()

    def tag(self, snapshot: Snapshot, reference: str) -> Snapshot:
        repository, _, tag = reference.rpartition(":")
        with engine_errors(f"name image {reference}"):
            self.client.api.tag(snapshot.digest, repository, tag, force=True)
        if snapshot.reference not in (reference, snapshot.digest):
            self.remove_image(snapshot.reference)
        return snapshot.model_copy(update={"reference": reference})

    def push(self, snapshot: Snapshot, tag: str) -> Snapshot:
        return registry.push(self._settings, snapshot, tag) if self._settings.registry.repository else snapshot

    def reap(self, keep: Collection[str] | None = None) -> tuple[str, ...]:
        return self._reap(keep=keep)

    def _reap(self, **options: Any) -> tuple[str, ...]:
        self._pool.settle()
        kept = {"workspace_days": self._settings.retention.workspace_days}
        report = reaper.reap(self.client, self._settings.cache, **(kept | options))
        return (*report.containers, *report.networks, *report.images)

    def shutdown(self) -> None:
        self._pool.shutdown()

    def close(self) -> None:
        """Wait for sandboxes that are on their way out, and close the connections to the engine. Idempotent."""
        self._pool.settle()
        with self._connecting:
            if self._client is not None:
                self._client.close()
                self._client = self._egress = None


def _archive(contents: Mapping[str, bytes]) -> bytes:
    """A tar of executable files, by absolute path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in contents.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode, info.size = 0o755, len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
