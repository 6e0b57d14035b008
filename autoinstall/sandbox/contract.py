"""What a sandbox is: the product's only place for untrusted code.

Two implementations: `docker` (any engine that speaks the Docker API) and `scripted` (a fake that ships, for tests and
dry runs). One suite, tests/contracts/test_sandbox.py, is run against both.

The shell rule: every command is a fresh `bash -c` in /workspace, as `user`, with stdin closed, no terminal, and the
environment's env file sourced. `cd` and `export` do not outlive a call; `set_env` sets a variable for good.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import Protocol

from autoinstall.values import CommandResult, Limits, Recipe, Service, Sidecar, Value

WORKSPACE = PurePosixPath("/workspace")
"""Where the checkout lies in every sandbox."""

STATE_DIR = PurePosixPath("/opt/autoinstall")
"""The product's own files in an environment: env.sh, start.sh, entrypoint."""


class SandboxSpec(Value):
    """What to start.

    Attributes:
        image: image id or reference; must exist on the engine (`Engine.ensure_image` sees to that).
        recipe: env variables set for good, services that the start script starts, sidecars. They are started, and
            waited for, before the sandbox is handed out.
        limits: None fields take the settings' defaults.
        network: False cuts every route out; sidecars and the sandbox's own services stay reachable.
        purpose: a word for labels and container names: baseline, goal-setting, attempt-2, verify-1, shell …
        owner: the run that the sandbox belongs to; the reaper removes what no live owner holds.
    """

    image: str
    recipe: Recipe = Recipe()
    limits: Limits = Limits()
    network: bool = True
    purpose: str = "sandbox"
    owner: str = ""


class Snapshot(Value):
    """A committed image. `digest` is its content id (`sha256:…`), stable on one engine."""

    reference: str
    digest: str
    size_bytes: int


class Sandbox(Protocol):
    """A running sandbox. Had only through `SandboxProvider.open`, which closes it on every way out."""

    @property
    def id(self) -> str:
        """The engine's name for it, for logs."""
        ...

    @property
    def recipe(self) -> Recipe:
        """The env, services and sidecars as they stand now, with all that was set or started since the start."""
        ...

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run one command by the shell rule and wait for its shell, not for what it left in the background.

        At `timeout` (seconds; None means the limits' `command_seconds`) every process that the command started,
        whatever session or parent it has now, is killed and the sandbox still serves; services live on. Output costs
        bounded memory however much there is.

        Raises:
            SandboxLost: the container is gone, or the engine's answer has no exit code.
            EngineUnavailable: the engine does not answer.
        """
        ...

    def write_file(self, path: str, content: bytes, *, executable: bool = False, user: str | None = None) -> None:
        """Write `content` byte-exact, where a command of `user` sees it, owned by that user; parents are made.

        Relative paths are below /workspace. Follows symbolic links as a shell would.

        Raises:
            OSError: the path cannot be written inside the sandbox (a directory, a read-only file system).
            SandboxLost: as for `run`.
        """
        ...

    def read_file(self, path: str, *, max_bytes: int = 16 * 2**20) -> bytes:
        """The file's bytes, exactly.

        Raises:
            FileNotFoundError: there is no such regular file.
            OSError: it is larger than `max_bytes`, or cannot be read.
            SandboxLost: as for `run`.
        """
        ...

    def set_env(self, name: str, value: str) -> None:
        """Set a variable for every later command, and for the environment that a snapshot becomes.

        Raises:
            ValueError: `name` is not a shell variable name.
        """
        ...

    def start_service(self, service: Service) -> None:
        """Start a process that outlives the call, wait until its probe passes, and record it in the recipe.

        Raises:
            ServiceNotReady: the probe did not pass in time; the message ends with the tail of the service's log, and
                the service is stopped and not recorded.
        """
        ...

    def start_sidecar(self, sidecar: Sidecar) -> None:
        """Start a container beside this one, wait until its probe passes, and record it in the recipe.

        Raises:
            ServiceNotReady: as for `start_service`.
            ImageUnavailable: its image can be neither found nor pulled.
        """
        ...

    def changed_paths(self) -> frozenset[str]:
        """Absolute paths that were added, changed or deleted since the sandbox's image, as the *engine* sees them.

        Nothing inside the sandbox takes part, so nothing inside can lie about it. Serves after `snapshot` too, and then
        names exactly what the image holds beyond the one before it.
        """
        ...

    def read_tree(self, paths: Sequence[str], *, max_bytes: int | None = None) -> Iterator["TreeEntry"]:
        """Entries below `paths` (absolute), as the *engine* sees them, streamed; absent paths are left out.

        Nothing inside the sandbox takes part, so nothing inside can lie about it. Memory: one file, of which
        `max_bytes` cuts the content.
        """
        ...

    def stat(self, paths: Sequence[str]) -> "tuple[PathStat | None, ...]":
        """What lies at each of `paths` (absolute), as the *engine* sees it, without content; None where nothing does.

        Links on the way are followed, one at the end is not. Several times cheaper than `read_tree`.
        """
        ...

    def snapshot(self, *, labels: Mapping[str, str] | None = None) -> Snapshot:
        """Commit the sandbox to an image, with services stopped first.

        The image carries the declared spec (working directory /workspace, root, the entrypoint that runs the start
        script, the recipe's env) and not what kept the sandbox alive. After it the sandbox serves only
        `changed_paths` and `close`.

        Raises:
            EngineFailed: the commit failed, and no image of it is found afterwards either.
            DiskFull: the engine ran out of disk.
        """
        ...

    def close(self) -> None:
        """Remove the container, its sidecars, network and anonymous volumes. Idempotent; never raises."""
        ...


class TreeEntry(Value):
    """One path of `Sandbox.read_tree`.

    Attributes:
        path: absolute, without a trailing slash.
        kind: `file`, `symlink`, `directory` or `other`.
        executable: any execute bit is set.
        content: a file's bytes, or a link's target; empty otherwise.
    """

    path: str
    kind: str
    executable: bool = False
    content: bytes = b""


class PathStat(Value):
    """One path of `Sandbox.stat`.

    Attributes:
        kind, executable: as in `TreeEntry`.
        size: in bytes; of a link or a directory it means nothing.
        target: where a link leads in the end, absolute, every link on the way followed; empty otherwise.
    """

    kind: str
    executable: bool = False
    size: int = 0
    target: str = ""


class SandboxProvider(Protocol):
    """Where sandboxes come from; one a process, shared by threads."""

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """Start a sandbox, its sidecars and its services. On exit all of them go, without anybody waiting for it:
        `settle` does, and `remove_image`, `reap` and `shutdown` come after it.

        Raises:
            EngineUnavailable, EngineFailed, ImageUnavailable, DiskFull, ServiceNotReady.
            Cancelled: after `shutdown`; commands that were under way then raise SandboxLost.
        """
        ...

    def prepare(self, spec: SandboxSpec) -> None:
        """Start in the background what a later `open` of an equal spec needs, services and sidecars aside.

        A hint, to have the time that an engine takes overlap with what runs meanwhile: it never raises, and `open` does
        without where it failed. What nobody opens goes with `release` or `shutdown`.
        """
        ...

    def release(self, owner: str) -> None:
        """Remove what was prepared for `owner` and was not opened. Idempotent; does not wait."""
        ...

    def settle(self) -> None:
        """Wait until all that is on its way out is gone."""
        ...

    def build_workspace_image(self, base: str, source: "WorkspaceSource", *, labels: Mapping[str, str]) -> Snapshot:
        """The initial state of every attempt: `base` with the checkout at /workspace, owned by root.

        Named by content (base digest and commit), so it is made once.

        Raises:
            EngineUnavailable, EngineFailed, DiskFull.
        """
        ...

    def ensure_base(self, name: str | None = None) -> Snapshot:
        """Resolve a name of the catalogue (None: the default) or an image reference to an image on the engine,
        pulling or building it where it is absent.

        Raises:
            ImageUnavailable, RegistryRateLimited, EngineUnavailable, DiskFull.
        """
        ...

    def tag(self, snapshot: Snapshot, reference: str) -> Snapshot:
        """Give an image a name, so that the engine's own clean-up leaves it; returns the snapshot under that name.

        Raises:
            EngineFailed: the image is gone.
        """
        ...

    def push(self, snapshot: Snapshot, tag: str) -> Snapshot:
        """Push an image to the settings' registry, so that other hosts have it too; the snapshot that comes back is
        named by its digest there. Without a registry it comes back as it was.

        Raises:
            RegistryRateLimited, EngineFailed: the registry did not take it.
        """
        ...

    def image_exists(self, reference: str) -> bool:
        """Whether the engine has the image (by id, digest or tag)."""
        ...

    def remove_image(self, reference: str) -> None:
        """Remove an image; one that is absent or in use is left alone without an error."""
        ...

    def check(self) -> None:
        """See whether sandboxes can be started now. Where disk is low, what nobody needs is removed first.

        Raises:
            EngineUnavailable: the engine does not answer.
            DiskFull: too little room is left.
        """
        ...

    def reap(self, keep: Collection[str] | None = None) -> tuple[str, ...]:
        """Remove containers, networks and images that processes left which are certainly dead; the names of what went.

        Args:
            keep: digests and references of environment images that somebody needs; None keeps all that have a name.
        """
        ...

    def shutdown(self) -> None:
        """Close every open sandbox now, whichever thread has it, and refuse new ones with `Cancelled`. Idempotent."""
        ...


class WorkspaceSource(Value):
    """The host directory that becomes /workspace (with its .git), and the commit it is at."""

    path: str
    commit: str
