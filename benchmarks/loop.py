"""What the loop of a model agent costs by itself: time of a step beyond model and command, and the host's memory.

    .venv/bin/python benchmarks/loop.py [--steps N] [--docker]

A scripted model that answers at once asks for a command a step, each with a long output. Without --docker the sandbox
is scripted too, so all the time is the loop's. With it the commands run in a container of the default base, and the
time of the same commands without any agent is taken off. On a busy machine the processor's time says more than the
clock's.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autoinstall.agents.llm.contract import Budget, Desk, LoopResult
from autoinstall.agents.llm.loop import run_loop
from autoinstall.agents.llm.tools import GiveUp, installing_tools
from autoinstall.models.contract import Message, Reply, TokenUsage
from autoinstall.models.scripted import Recorded, ScriptedModel, says
from autoinstall.sandbox.contract import Sandbox, SandboxSpec
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Value

START = (Message(role="system", content="s" * 8000), Message(role="user", content="u" * 8000))
OUTPUT = "".join(f"line {number} of what a build prints\n" for number in range(6000))
CONTEXT_TOKENS = 131_072


class Reason(Value):
    """What ends the work."""

    reason: str


class TimedModel(ScriptedModel):
    """Notes when it is asked and when it has answered. Keeps no requests: their memory is not the loop's."""

    def __init__(self, lines: list[Reply]) -> None:
        super().__init__(lines, context_tokens=CONTEXT_TOKENS)
        self.asked: list[float] = []
        self.answered: list[float] = []
        self.busy: list[float] = []
        self.shared = 0
        self._processor = time.process_time()
        self._before: tuple[Message, ...] = ()

    def complete(self, messages, **options) -> Reply:  # type: ignore[no-untyped-def]
        self.asked.append(time.monotonic())
        self.busy.append(time.process_time() - self._processor)
        reply = super().complete(messages, **options)
        request: Recorded = self.requests.pop()
        self.shared += request.messages[: len(self._before)] == self._before
        self._before = request.messages
        self.answered.append(time.monotonic())
        self._processor = time.process_time()
        return reply


class Nowhere:
    """A journal that goes nowhere."""

    def write(self, message: Message) -> None:
        del message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--docker", action="store_true")
    options = parser.parse_args()
    commands = [f"seq {number} {number + 40_000}" for number in range(options.steps)]
    at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as scratch, opened(options.docker, Path(scratch)) as sandbox:
        bare = [timed(sandbox, command) for command in commands] if options.docker else [0.0] * len(commands)
        tracemalloc.start()
        model, result = work(sandbox, Path(scratch), commands)
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        again, _ = work(sandbox, Path(scratch), commands)
    report(again, result, bare)
    print(f"requests that begin with the one before: {model.shared - 1} of {len(model.asked) - 1}")
    print(f"memory of the run: {held / 2**20:.1f} MiB at its end, {peak / 2**20:.1f} MiB at its peak")
    at_end = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"resident memory of this process: {at_start:.0f} MiB before, {at_end:.0f} MiB at its peak")
    return 0


@contextmanager
def opened(docker: bool, scratch: Path) -> Iterator[Sandbox]:
    """A sandbox: scripted, with long outputs, or of the default base."""
    if not docker:
        scripted = ScriptedProvider(default=OUTPUT)
        with scripted.open(SandboxSpec(image=scripted.ensure_base().digest)) as sandbox:
            yield sandbox
        return
    provider = DockerProvider(Settings(data=scratch))
    with provider.open(SandboxSpec(image=provider.ensure_base().digest, purpose="benchmark")) as sandbox:
        yield sandbox
    provider.close()


def timed(sandbox: Sandbox, command: str) -> float:
    begun = time.monotonic()
    sandbox.run(command)
    return time.monotonic() - begun


def work(sandbox: Sandbox, scratch: Path, commands: list[str]) -> tuple[TimedModel, LoopResult]:
    usage = TokenUsage(input_tokens=1000, output_tokens=10, estimated=True)
    replies = [says("Next.", ("bash", {"command": command}), usage=usage) for command in commands]
    model = TimedModel([*replies, says("", ("give_up", {"reason": "done"}), usage=usage)])
    desk = Desk(sandbox, Tree(scratch), 12_000, 900, time.monotonic() + 3600)
    budget = Budget(deadline=desk.deadline, steps=10_000, tokens=10**9)
    return model, run_loop(
        model, START, (*installing_tools(), GiveUp(Reason, "Ends the work.")), desk, budget, Nowhere()
    )


def report(model: TimedModel, result: LoopResult, bare: list[float]) -> None:
    """Seconds from an answer to the next question, less those of the command alone."""
    steps = [asked - answered for answered, asked in zip(model.answered, model.asked[1:], strict=False)]
    own = sorted((step - command) * 1000 for step, command in zip(steps, bare, strict=True))
    print(f"stop: {result.stop}; {len(steps)} steps, {len(result.messages)} messages")
    print(f"own time of a step: median {statistics.median(own):.1f} ms, 95% {own[int(len(own) * 0.95)]:.1f} ms")
    busy = sorted(seconds * 1000 for seconds in model.busy[1:])
    print(
        f"processor's time of a step: median {statistics.median(busy):.1f} ms, 95% {busy[int(len(busy) * 0.95)]:.1f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
