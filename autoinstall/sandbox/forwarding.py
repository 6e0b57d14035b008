"""A sandbox that hands every call on: what the recorders of calls build on."""

from collections.abc import Iterator, Mapping, Sequence

from autoinstall.sandbox.contract import PathStat, Sandbox, Snapshot, TreeEntry
from autoinstall.values import CommandResult, Recipe, Service, Sidecar


class ForwardingSandbox:
    """Behaves as the sandbox that it is given, whose contract holds for it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return self._sandbox.id

    @property
    def recipe(self) -> Recipe:
        return self._sandbox.recipe

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        return self._sandbox.run(command, timeout=timeout, user=user, env=env)

    def write_file(self, path: str, content: bytes, *, executable: bool = False, user: str | None = None) -> None:
        self._sandbox.write_file(path, content, executable=executable, user=user)

    def read_file(self, path: str, *, max_bytes: int = 16 * 2**20) -> bytes:
        return self._sandbox.read_file(path, max_bytes=max_bytes)

    def set_env(self, name: str, value: str) -> None:
        self._sandbox.set_env(name, value)

    def start_service(self, service: Service) -> None:
        self._sandbox.start_service(service)

    def start_sidecar(self, sidecar: Sidecar) -> None:
        self._sandbox.start_sidecar(sidecar)

    def changed_paths(self) -> frozenset[str]:
        return self._sandbox.changed_paths()

    def read_tree(self, paths: Sequence[str], *, max_bytes: int | None = None) -> Iterator[TreeEntry]:
        return self._sandbox.read_tree(paths, max_bytes=max_bytes)

    def stat(self, paths: Sequence[str]) -> tuple[PathStat | None, ...]:
        return self._sandbox.stat(paths)

    def snapshot(self, *, labels: Mapping[str, str] | None = None) -> Snapshot:
        return self._sandbox.snapshot(labels=labels)

    def close(self) -> None:
        self._sandbox.close()
