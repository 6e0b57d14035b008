"""A sandbox for somebody who may not need it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from autoinstall.sandbox.contract import Sandbox, SandboxProvider, SandboxSpec


@contextmanager
def deferred(provider: SandboxProvider, spec: SandboxSpec) -> Iterator[Sandbox]:
    """As `provider.open(spec)`, but started when it is first used, which then raises what `open` raises."""
    with ExitStack() as stack:
        yield cast(Sandbox, _Deferred(provider, spec, stack))


class _Deferred:
    def __init__(self, provider: SandboxProvider, spec: SandboxSpec, stack: ExitStack) -> None:
        self._provider = provider
        self._spec = spec
        self._stack = stack
        self._sandbox: Sandbox | None = None

    def __getattr__(self, name: str) -> Any:
        if self._sandbox is None:
            self._sandbox = self._stack.enter_context(self._provider.open(self._spec))
        return getattr(self._sandbox, name)
