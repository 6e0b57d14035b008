"""Sandboxes without containers: files in memory, commands that answer by script. For tests and dry runs."""

import contextlib
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from autoinstall.errors import Cancelled, EngineFailed, ImageUnavailable, Infrastructure, SandboxLost, ServiceNotReady
from autoinstall.logs import log_command
from autoinstall.sandbox.contract import (
    WORKSPACE,
    PathStat,
    Sandbox,
    SandboxSpec,
    Snapshot,
    TreeEntry,
    WorkspaceSource,
)
from autoinstall.sandbox.exec import TIMED_OUT, check_variable
from autoinstall.sandbox.files import absolute
from autoinstall.sandbox.stream import BoundedOutput
from autoinstall.settings import LimitSettings
from autoinstall.values import CommandResult, Recipe, Service, Sidecar


@dataclass(frozen=True)
class File:
    """A file or link of a scripted sandbox; a link's content is its target, `user` its owner."""

    content: bytes = b""
    executable: bool = False
    kind: Literal["file", "symlink"] = "file"
    user: str = "root"


@dataclass(frozen=True)
class Call:
    """One command, as a response sees it.

    Attributes:
        env: the recipe's variables, and over them the call's own.
        sandbox: to look at its files and at the commands before, or to change files as the command would.
    """

    command: str
    user: str
    env: Mapping[str, str]
    timeout: float
    sandbox: "ScriptedSandbox"


Answer = CommandResult | str | int | tuple[int, str]
"""A result; or its output (exit code 0), its exit code (no output), or both."""

Response = Answer | Exception | Callable[[Call], Answer]
"""An answer, an error to raise, or a function that gives the answer."""


@dataclass(frozen=True)
class _Image:
    files: dict[str, File]
    snapshot: Snapshot
    labels: dict[str, str]


class ScriptedSandbox:
    """A sandbox in memory.

    Attributes:
        spec: what it was opened with.
        commands: all that was run, in order.
        files: absolute path → file; what is put here is there for the commands' responses and for every reader.
        closed: whether `close` was called.
    """

    def __init__(self, provider: "ScriptedProvider", spec: SandboxSpec, name: str, files: Mapping[str, File]) -> None:
        self._provider = provider
        self._name = name
        self._initial = dict(files)
        self._recipe = spec.recipe.model_copy(update={"services": (), "sidecars": ()})
        self._committed = False
        self.spec = spec
        self.files = dict(files)
        self.commands: list[str] = []
        self.closed = False

    @property
    def id(self) -> str:
        return self._name

    @property
    def recipe(self) -> Recipe:
        return self._recipe

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        self._check()
        for name, value in (env or {}).items():
            check_variable(name, value)
        limit = timeout or self.spec.limits.command_seconds or self._provider.limits.command_seconds
        call = Call(command, user or "root", {**self._recipe.env, **(env or {})}, limit, self)
        self.commands.append(command)
        result = self._bounded(command, self._provider.respond(call))
        log_command(self.spec, result)
        return result

    def _bounded(self, command: str, answer: Answer) -> CommandResult:
        match answer:
            case CommandResult():
                result = answer
            case int():
                result = CommandResult(command=command, exit_code=answer, output="")
            case str():
                result = CommandResult(command=command, exit_code=0, output=answer)
            case (code, text):
                result = CommandResult(command=command, exit_code=code, output=text)
        output = BoundedOutput(self._provider.limits.output_head_bytes, self._provider.limits.output_tail_bytes)
        output.add(result.output.encode("utf-8", "replace"))
        bounded = {"command": command, "output": output.text(), "dropped_bytes": result.dropped_bytes + output.dropped}
        if result.timed_out:
            bounded["exit_code"] = TIMED_OUT
        return result.model_copy(update=bounded)

    def write_file(self, path: str, content: bytes, *, executable: bool = False, user: str | None = None) -> None:
        self._check()
        path = self._resolve(os.path.normpath(absolute(path)))
        parents = {str(parent) for parent in PurePosixPath(path).parents}
        if path in _directories(self.files):
            raise OSError(f"{path} cannot be written: it is a directory")
        if any(parent in self.files and self.files[parent].kind == "file" for parent in parents):
            raise OSError(f"{path} cannot be written: a parent is no directory")
        earlier = self.files.get(path)
        owner = earlier.user if earlier else user or "root"
        self.files[path] = File(content, executable or bool(earlier and earlier.executable), user=owner)

    def read_file(self, path: str, *, max_bytes: int = 16 * 2**20) -> bytes:
        self._check()
        path = self._resolve(os.path.normpath(absolute(path)))
        file = self.files.get(path)
        if file is None or file.kind != "file":
            raise FileNotFoundError(f"{path} is no regular file of the sandbox")
        if len(file.content) > max_bytes:
            raise OSError(f"{path} is larger than {max_bytes} bytes")
        return file.content

    def _resolve(self, path: str) -> str:
        for _ in range(40):
            file = self.files.get(path)
            if file is None or file.kind != "symlink":
                return path
            path = os.path.normpath(PurePosixPath(path).parent / os.fsdecode(file.content))
        raise OSError(f"{path} cannot be used: too many levels of symbolic links")

    def set_env(self, name: str, value: str) -> None:
        self._check()
        check_variable(name, value)
        self._update(env={**self._recipe.env, name: value})

    def start_service(self, service: Service) -> None:
        self._check()
        if service.name in self._provider.not_ready:
            raise ServiceNotReady(f"Service {service.name} is not ready.")
        kept = tuple(other for other in self._recipe.services if other.name != service.name)
        self._update(services=(*kept, service))

    def start_sidecar(self, sidecar: Sidecar) -> None:
        self._check()
        self._provider.ensure_base(sidecar.image)
        if sidecar.alias in self._provider.not_ready:
            raise ServiceNotReady(f"Sidecar {sidecar.alias} is not ready.")
        kept = tuple(other for other in self._recipe.sidecars if other.alias != sidecar.alias)
        self._update(sidecars=(*kept, sidecar))

    def changed_paths(self) -> frozenset[str]:
        if self.closed:
            raise SandboxLost("The sandbox serves nothing any more.")
        names = self.files.keys() | self._initial.keys()
        changed = {name for name in names if self.files.get(name) != self._initial.get(name)}
        parents = {str(parent) for name in changed for parent in PurePosixPath(name).parents}
        return frozenset(changed | parents - {"/"})

    def read_tree(self, paths: Sequence[str], *, max_bytes: int | None = None) -> Iterator[TreeEntry]:
        self._check()
        directories = _directories(self.files)
        for root in (path.rstrip("/") or "/" for path in paths):
            for path in sorted(self.files.keys() | directories):
                if path == root or path.startswith(root.rstrip("/") + "/"):
                    entry = self._entry(path)
                    yield entry.model_copy(update={"content": entry.content[:max_bytes]})

    def stat(self, paths: Sequence[str]) -> tuple[PathStat | None, ...]:
        self._check()
        directories = _directories(self.files)
        return tuple(self._stat(path) if path in self.files or path in directories else None for path in paths)

    def _stat(self, path: str) -> PathStat:
        entry = self._entry(path)
        target = self._resolve(path) if entry.kind == "symlink" else ""
        return PathStat(kind=entry.kind, executable=entry.executable, size=len(entry.content), target=target)

    def _entry(self, path: str) -> TreeEntry:
        file = self.files.get(path)
        if file is None:
            return TreeEntry(path=path, kind="directory", executable=True)
        return TreeEntry(path=path, kind=file.kind, executable=file.executable, content=file.content)

    def snapshot(self, *, labels: Mapping[str, str] | None = None) -> Snapshot:
        self._check()
        self._committed = True
        return self._provider.commit(self, labels or {})

    def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.closed or self._committed:
            raise SandboxLost("The sandbox serves nothing any more.")

    def _update(self, **fields: object) -> None:
        self._recipe = self._recipe.model_copy(update=fields)


class ScriptedProvider:
    """Sandboxes in memory, whose commands answer as told.

    Args:
        responses: command → response. A string is the whole command; a compiled pattern is searched for in it. The
            first that fits serves.
        default: for a command that none fits.
        limits: bounds of output, as in the settings.
        not_ready: names of services and aliases of sidecars that do not become ready.
        missing: images that can be neither found nor pulled.

    Attributes:
        opened: every sandbox, in the order of opening.
        prepared: what was prepared and is neither opened nor released.
        snapshots: every committed environment image, in order.
        obstacle: what `check` raises.
    """

    def __init__(
        self,
        responses: Mapping[str | re.Pattern[str], Response] | None = None,
        *,
        default: Response = 0,
        limits: LimitSettings | None = None,
        not_ready: Collection[str] = (),
        missing: Collection[str] = (),
    ) -> None:
        self.responses: dict[str | re.Pattern[str], Response] = dict(responses or {})
        self.default = default
        self.limits = limits or LimitSettings()
        self.not_ready = frozenset(not_ready)
        self.missing = frozenset(missing)
        self.opened: list[ScriptedSandbox] = []
        self.prepared: list[SandboxSpec] = []
        self.snapshots: list[Snapshot] = []
        self._images: dict[str, _Image] = {}
        self._numbers = itertools.count(1)
        self._shut_down = False
        self.obstacle: Infrastructure | None = None

    def respond(self, call: Call) -> Answer:
        """The answer to a command."""
        found = (
            response
            for pattern, response in self.responses.items()
            if (pattern == call.command if isinstance(pattern, str) else pattern.search(call.command))
        )
        response = next(found, self.default)
        if isinstance(response, Exception):
            raise response
        return response(call) if callable(response) else response

    @contextlib.contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        if self._shut_down:
            raise Cancelled("The run was cancelled.")
        with contextlib.suppress(ValueError):  # by another thread, or never prepared
            self.prepared.remove(spec)
        image = self._images.get(spec.image)
        if image is None:
            raise ImageUnavailable(f"The engine has no image {spec.image}.")
        sandbox = ScriptedSandbox(self, spec, f"scripted-{spec.purpose}-{next(self._numbers)}", image.files)
        self.opened.append(sandbox)
        try:
            for sidecar in spec.recipe.sidecars:
                sandbox.start_sidecar(sidecar)
            for service in spec.recipe.services:
                sandbox.start_service(service)
            yield sandbox
        finally:
            sandbox.close()

    def prepare(self, spec: SandboxSpec) -> None:
        if not self._shut_down and spec.image in self._images and spec not in self.prepared:
            self.prepared.append(spec)

    def release(self, owner: str) -> None:
        self.prepared = [spec for spec in self.prepared if spec.owner != owner]

    def settle(self) -> None:
        """Nothing is ever on its way out."""

    def build_workspace_image(self, base: str, source: WorkspaceSource, *, labels: Mapping[str, str]) -> Snapshot:
        image = self._images.get(base)
        if image is None:
            raise ImageUnavailable(f"The engine has no image {base}.")
        key = hashlib.sha256(f"{image.snapshot.digest}\n{source.commit}".encode()).hexdigest()
        reference = f"autoinstall/workspace:{key[:24]}"
        if reference not in self._images:
            self._add(reference, image.files | _host_files(Path(source.path)), labels)
        return self._images[reference].snapshot

    def ensure_base(self, name: str | None = None) -> Snapshot:
        reference = name or "default"
        if reference in self.missing:
            raise ImageUnavailable(f"Image {reference} can be neither found nor pulled.")
        if reference not in self._images:
            self._add(reference, {}, {})
        return self._images[reference].snapshot

    def image_exists(self, reference: str) -> bool:
        return reference in self._images

    def remove_image(self, reference: str) -> None:
        image = self._images.get(reference)
        if image is not None and not any(reference == box.spec.image and not box.closed for box in self.opened):
            for name in (image.snapshot.reference, image.snapshot.digest):
                self._images.pop(name, None)

    def files(self, reference: str) -> Mapping[str, File]:
        """What an image holds."""
        return self._images[reference].files

    def labels(self, reference: str) -> Mapping[str, str]:
        """What an image was labelled with."""
        return self._images[reference].labels

    def tag(self, snapshot: Snapshot, reference: str) -> Snapshot:
        image = self._images.get(snapshot.digest)
        if image is None:
            raise EngineFailed(f"The engine has no image {snapshot.digest}.")
        named = snapshot.model_copy(update={"reference": reference})
        self._images.pop(snapshot.reference, None)
        self._images[reference] = self._images[snapshot.digest] = replace(image, snapshot=named)
        return named

    def push(self, snapshot: Snapshot, tag: str) -> Snapshot:
        del tag  # there is no registry
        return snapshot

    def check(self) -> None:
        if self.obstacle is not None:
            raise self.obstacle

    def reap(self, keep: Collection[str] | None = None) -> tuple[str, ...]:
        del keep  # one process owns all of it, and it is alive
        return ()

    def shutdown(self) -> None:
        self._shut_down = True
        self.prepared.clear()
        for sandbox in self.opened:
            sandbox.close()

    def commit(self, sandbox: ScriptedSandbox, labels: Mapping[str, str]) -> Snapshot:
        """Keep a sandbox's files as an image."""
        snapshot = self._add(f"autoinstall/environment:{next(self._numbers):016x}", sandbox.files, labels)
        self.snapshots.append(snapshot)
        return snapshot

    def _add(self, reference: str, files: Mapping[str, File], labels: Mapping[str, str]) -> Snapshot:
        digest = "sha256:" + hashlib.sha256(reference.encode()).hexdigest()
        size = sum(len(file.content) for file in files.values())
        snapshot = Snapshot(reference=reference, digest=digest, size_bytes=size)
        self._images[reference] = self._images[digest] = _Image(dict(files), snapshot, dict(labels))
        return snapshot


def _directories(files: Mapping[str, File]) -> set[str]:
    return {str(WORKSPACE)} | {str(parent) for name in files for parent in PurePosixPath(name).parents} - {"/"}


def _host_files(root: Path) -> dict[str, File]:
    found: dict[str, File] = {}
    for directory, names, files in os.walk(root, followlinks=False):
        for name in [*names, *files]:
            path = Path(directory) / name
            inside = str(WORKSPACE / path.relative_to(root).as_posix())
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[inside] = File(os.fsencode(os.readlink(path)), kind="symlink")
            elif stat.S_ISREG(status.st_mode):
                found[inside] = File(path.read_bytes(), bool(status.st_mode & 0o111))
    return found
