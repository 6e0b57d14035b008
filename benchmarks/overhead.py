"""Pipeline time ÷ time of the same commands run by hand in one container, and what the product itself takes.

    .venv/bin/python benchmarks/overhead.py LIST.csv [--data DIR]

Runs every repository of the list through the flow, then takes the commands that it ran from the datasets (baseline,
set-up, targets in each fresh container, held-out, offline) and runs them again with `docker exec`-like calls in one
container of the initial state. Ratios of one run on one machine; absolute seconds mean little elsewhere.

`own` is taken within the run itself: its wall time without goals, set-up commands and control runs while they run, and
without the commit of the image. Questions that the product asks inside a sandbox count as its own.
"""

import argparse
import functools
import json
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from autoinstall.datasets.location import Location
from cli.progress import flow_session

OWN_QUESTION = re.compile(r"/tmp/\.autoinstall-|^/usr/bin/find |^git ls-files --modified|^for p in |^printf ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--data")
    options = parser.parse_args()
    with flow_session(verbose=False), tempfile.TemporaryDirectory() as scratch:
        return measure(options.list, Location(options.data or scratch))


def measure(path: Path, data: Location) -> int:
    """Print a row for each repository: pipeline seconds, seconds by hand, ratio, difference, runs of commands."""
    from autoinstall.repository_list import read_list
    from autoinstall.settings import Settings
    from flows.build_environment import run_build

    settings = Settings(data=data)
    head = ("repository", "outcome", "pipeline", "by hand", "ratio", "commit", "own", "commands")
    print("{:40} {:12} {:>9} {:>9} {:>6} {:>7} {:>6} {:>9}".format(*head))
    for spec in read_list(path):
        clock = Clock()
        with clock.running():
            records = run_build(spec, data=data, settings=settings)
        row = records.repository
        commands = commands_of(records.repository.run_id, data, settings.verification.runs)
        by_hand = run_by_hand(spec, commands, settings)
        ratio = row.seconds / by_hand if by_hand else float("nan")
        own = row.seconds - clock.commands - clock.commit
        print(
            f"{row.repository[-40:]:40} {row.outcome:12} {row.seconds:9.1f} {by_hand:9.1f} {ratio:6.2f} "
            f"{clock.commit:7.1f} {own:6.1f} {len(commands):9}"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {peak:.0f} MiB")
    return 0


class Clock:
    """Seconds that a run spends in commands and in commits."""

    def __init__(self) -> None:
        self.commands = self.commit = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure while the block runs. Questions of the product's own, known by their paths, are left out."""
        from autoinstall.sandbox.docker import DockerSandbox

        run, snapshot = DockerSandbox.run, DockerSandbox.snapshot

        @functools.wraps(run)
        def timed_run(sandbox: Any, command: str, **options: Any) -> Any:
            result = run(sandbox, command, **options)
            self.commands += 0.0 if OWN_QUESTION.search(command) else result.duration
            return result

        @functools.wraps(snapshot)
        def timed_snapshot(sandbox: Any, **options: Any) -> Any:
            begun = monotonic()
            try:
                return snapshot(sandbox, **options)
            finally:
                self.commit += monotonic() - begun

        DockerSandbox.run, DockerSandbox.snapshot = timed_run, timed_snapshot  # type: ignore[method-assign]
        try:
            yield
        finally:
            DockerSandbox.run, DockerSandbox.snapshot = run, snapshot  # type: ignore[method-assign]


def commands_of(run_id: str, data: Location, runs: int) -> list[tuple[str, float | None]]:
    """Every command that the run executed, in an order that works in one container, with its limit."""
    from autoinstall.datasets.reader import load

    def rows(dataset: str) -> list[dict[str, object]]:
        frame = load(data, dataset)
        return list(frame[frame.run_id == run_id].to_dict("records"))

    goals = rows("goals")
    commands: list[tuple[str, float | None]] = [
        (str(goal["command"]), 180.0) for goal in goals if goal["category"] != "setup" and goal["baseline"] is not None
    ]
    calls = (
        call["function"]
        for trajectory in rows("trajectories")
        for message in json.loads(str(trajectory["messages"]))
        for call in message.get("tool_calls") or ()
    )
    commands += [(json.loads(call["arguments"])["command"], None) for call in calls if call["name"] == "bash"]
    targets = [(str(goal["command"]), None) for goal in goals if goal["target"] and goal["result"] is not None]
    held_out = [(str(goal["command"]), None) for goal in goals if not goal["target"] and goal["result"] is not None]
    return commands + targets * (runs + 1) + held_out


def run_by_hand(spec: object, commands: list[tuple[str, float | None]], settings: object) -> float:
    """Seconds for the commands alone, one after the other in one container."""
    from autoinstall.checkout import checkout
    from autoinstall.sandbox.contract import SandboxSpec, WorkspaceSource
    from autoinstall.sandbox.docker import DockerProvider

    provider = DockerProvider(settings)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as scratch:
        source = checkout(spec, Path(scratch) / "checkout", settings)  # type: ignore[arg-type]
        base = provider.ensure_base()
        image = provider.build_workspace_image(
            base.digest, WorkspaceSource(path=str(source.path), commit=source.commit), labels={}
        )
    with provider.open(SandboxSpec(image=image.digest, purpose="by-hand")) as sandbox:
        begun = monotonic()
        for command, limit in commands:
            sandbox.run(command, timeout=limit)
        return monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
