"""How the product's own cost grows with the length of a night: `python benchmarks/scale.py PLACE [100 1000 …]`.

Nights over so many repositories, each a local one of a few files that becomes an environment in the first attempt;
agents and sandboxes are scripted, everything else is real: git, the flows, the datasets, Prefect's server (a process of
its own, on SQLite or PostgreSQL). Beside each night runs an empty one: as many flow and task runs that do nothing,
artifacts and log lines, so that what Prefect takes in the night's process is told from what the product does there.

own      seconds on a processor for one repository: night's process less that of the empty night, and its git processes
git      the part of them that git takes
client   what Prefect takes in the night's process, that of the empty night
server   what Prefect's server takes
memory   resident mebibytes of the night's process when a tenth of the repositories were done, and at the end
empty    likewise of the empty night

`--list 10000` measures the nights that follow: a list of so many, of which all but the given number were done before.
Their heads are looked up, and only the others are built; `own` is for one repository of the list then.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.parquet as pq

from tests.acceptance.services import postgres, prefect_server

ROOT = Path(__file__).resolve().parents[1]
SIZES = (100, 1000)
CONCURRENCY = 4
LINE = "{:>14} {:>5} {:>5} {:>6} {:>6} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>7} {:>4}"
TASKS = 10
"""Task runs of a repository that is verified in the first attempt."""


def _processor() -> tuple[float, float]:
    """Seconds on a processor: of this process, and of its children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return spent[0].ru_utime + spent[0].ru_stime, spent[1].ru_utime + spent[1].ru_stime


@dataclass
class Meter:
    """Memory and processor time of this process while repositories are done.

    Attributes:
        memory: repositories done → resident MiB at that time.
    """

    total: int
    done: int = 0
    memory: dict[int, int] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)
    _before: tuple[float, float] = field(default_factory=_processor)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self) -> None:
        """One more is done."""
        with self._lock:
            self.done += 1
            if self.done % max(self.total // 10, 1) == 0:
                self.memory[self.done] = psutil.Process().memory_info().rss // 2**20
                print(json.dumps(self.result()), file=sys.stderr, flush=True)

    def result(self) -> dict[str, Any]:
        own, children = (now - before for now, before in zip(_processor(), self._before, strict=True))
        return {"seconds": time.monotonic() - self._begun, "self": own, "children": children, "memory": self.memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", type=Path)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--postgres", action="store_true", help="Prefect's server on PostgreSQL instead of SQLite")
    parser.add_argument("--twin", type=int, default=1000, help="repositories of an empty night at most (1000)")
    parser.add_argument("--list", type=int, default=0, help="repositories of the list, where more than are built")
    parser.add_argument("--part", choices=("night", "empty"), help="one of them alone, against PREFECT_API_URL")
    options = parser.parse_args()
    place = options.place.absolute()
    if options.part:
        meter = Meter(options.sizes[0])
        (night if options.part == "night" else empty_night)(place, meter)
        print(json.dumps(meter.result()))
        return
    place.mkdir(parents=True, exist_ok=True)
    with database_of(place, options.postgres) as database, prefect_server(place, database) as api:
        server = psutil.Process().children()[-1]
        head = ("repositories", "own", "git", "client", "server", "memory", "empty", "seconds")
        print(LINE.format(*head, "flow runs", "task runs", "rows", "files", "left"), flush=True)
        for size in options.sizes:
            listed = max(size, options.list)
            print(row(place / f"{listed}-{size}", size, listed, options.twin, api=api, server=server), flush=True)


@contextmanager
def database_of(place: Path, is_postgres: bool) -> Iterator[str]:
    """Where Prefect's server keeps its runs."""
    if not is_postgres:
        yield f"sqlite+aiosqlite:///{place}/prefect.db"
        return
    with postgres(place / "postgres") as database:
        yield database


def row(place: Path, size: int, listed: int, twin: int, *, api: str, server: psutil.Process) -> str:
    """Measure a night and its empty twin."""
    twin = min(size, twin)
    origin(place, listed)
    if listed > size:
        write_list(place, range(size))
        part("night", place, size, api)
        pretend_done(place, size, range(size, listed - size))
        write_list(place, range(listed))
    runs = counts(api)
    spent = processor_of(server)
    full = part("night", place, size, api)
    server_seconds = processor_of(server) - spent
    runs = {name: number - runs[name] for name, number in counts(api).items()}
    empty = part("empty", place, twin, api)
    files = list((place / "data").glob("*/run-*.parquet"))
    left = [path for folder in ("journals", "runs/*") for path in (place / "cache").glob(f"{folder}/*")]
    client = empty["self"] / twin
    own = (full["self"] + full["children"] - client * size) / listed
    cost = (f"{value:.3f}" for value in (own, full["children"] / listed, client, server_seconds / size))
    sizes = (runs["flow_runs"], runs["task_runs"], rows_of(place / "data"), len(files), len(left))
    memory = (grown(full["memory"]), grown(empty["memory"]))
    name = f"{size:,}" if size == listed else f"{size:,} of {listed:,}"
    return LINE.format(name, *cost, *memory, f"{full['seconds']:,.0f}", *(f"{value:,}" for value in sizes))


def grown(memory: Mapping[str, int]) -> str:
    values = [memory[name] for name in sorted(memory, key=int)]
    return f"{values[0]}→{values[-1]}"


def rows_of(data: Path) -> int:
    """Rows of all datasets."""
    from autoinstall.datasets.reader import load_table
    from autoinstall.datasets.schemas import Dataset

    return sum(load_table(data, dataset, ["run_id"]).num_rows for dataset in Dataset)


def part(name: str, place: Path, size: int, api: str) -> dict[str, Any]:
    """Run one of them in a process of its own."""
    environment = {
        **os.environ,
        "PREFECT_API_URL": api,
        "PREFECT_HOME": str(place / "prefect"),
        "PREFECT_LOGGING_LEVEL": "INFO",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, __file__, str(place), str(size), "--part", name]
    with (place / f"{name}.log").open("wb") as log:
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=log, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def counts(api: str) -> dict[str, int]:
    """Runs that the server knows. Task runs arrive there by and by."""
    found: dict[str, int] = {}
    while True:
        before = dict(found)
        for kind in ("flow_runs", "task_runs"):
            found[kind] = httpx.post(f"{api}/{kind}/count", json={}, timeout=60).json()
        if found == before:
            return found
        time.sleep(5)


def processor_of(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def origin(place: Path, size: int) -> None:
    """A list of so many repositories: one, under as many names."""
    shutil.rmtree(place, ignore_errors=True)
    root = place / "origin"
    root.mkdir(parents=True)
    for number in range(20):
        (root / f"part{number}.py").write_text(f"print({number})\n" * 50)
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-qm", "First"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    names = place / "names"
    names.mkdir()
    for number in range(size):
        (names / name_of(number)).symlink_to(root)
    write_list(place, range(size))


def name_of(number: int) -> str:
    return f"repository-{number:05}"


def write_list(place: Path, numbers: Iterable[int]) -> None:
    (place / "list.csv").write_text("url\n" + "".join(f"{place}/names/{name_of(number)}\n" for number in numbers))


def pretend_done(place: Path, size: int, numbers: Sequence[int]) -> None:
    """Rows as of earlier nights, of which each built `size` repositories: those of the night that was, under other
    names."""
    from autoinstall.datasets.schemas import Dataset

    for dataset in (Dataset.REPOSITORIES, Dataset.ENVIRONMENTS):
        rows = pq.read_table(place / "data" / dataset, partitioning=None)
        for start in numbers[::size]:
            renamed = rows
            for column in ("run_id", "environment_id", "repository"):
                texts = [replaced(text, start) for text in rows[column].to_pylist()]
                field = rows.schema.get_field_index(column)
                renamed = renamed.set_column(field, rows.schema.field(column), [texts])
            pq.write_table(renamed, place / "data" / dataset / f"night-{start}.parquet")


def replaced(text: str, start: int) -> str:
    """Repository N is N + `start`; ids that are no repository's get a prefix."""
    moved = re.sub(r"(?<=repository-)\d{5}", lambda found: f"{int(found[0]) + start:05}", text)
    return moved if moved != text else f"{start}-{text}"


def night(place: Path, meter: Meter) -> None:
    """The night itself, in this process."""
    from autoinstall.agents.scripted import ScriptedGoalSetter, ScriptedInstaller, ScriptedJudge
    from autoinstall.runtime import Runtime
    from autoinstall.sandbox.contract import Snapshot
    from autoinstall.sandbox.scripted import ScriptedProvider
    from autoinstall.settings import CloneSettings, Settings
    from flows.nightly import nightly
    from tasks.runtime import use_runtime
    from tests.flows.conftest import INSTALL, installs, ten_goals, works_once_installed

    class Provider(ScriptedProvider):
        """Forgets what an engine would not keep in this process's memory."""

        def tag(self, snapshot: Snapshot, reference: str) -> Snapshot:
            named = super().tag(snapshot, reference)
            self.opened = [sandbox for sandbox in self.opened if not sandbox.closed]
            self.snapshots.clear()
            self.remove_image(reference)
            meter.count()
            return named

    class GoalSetter(ScriptedGoalSetter):
        """Keeps no record of what it was asked."""

        def propose(self, *arguments: Any, **named: Any) -> Any:
            self.asked.clear()
            return super().propose(*arguments, **named)

    runtime = Runtime(
        settings=Settings(data=place / "data", cache=place / "cache", clone=CloneSettings(retries=0)),
        provider=Provider({INSTALL: installs, re.compile(r"^check part"): works_once_installed}),
        goal_setter=GoalSetter(ten_goals()),
        installer=lambda _attempt: ScriptedInstaller([INSTALL]),
        judge=ScriptedJudge(),
    )
    with use_runtime(runtime):
        state: Any = nightly(str(place / "list.csv"), data=place / "data", concurrency=CONCURRENCY, return_state=True)
    if state.name != "Completed" or meter.done != meter.total:
        raise RuntimeError(f"{meter.done} of {meter.total} were done: {state}")


def empty_night(_place: Path, meter: Meter) -> None:
    """As many runs of Prefect's, with as many of its artifacts, labels and log lines, which do nothing."""
    from prefect import flow, get_run_logger, task
    from prefect import runtime as prefect_runtime
    from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
    from prefect.cache_policies import NO_CACHE
    from prefect.context import SyncClientContext
    from prefect.states import Completed
    from prefect.task_runners import ThreadPoolTaskRunner

    options: Any = {"cache_policy": NO_CACHE, "persist_result": False}

    @task(name="stage", **options)
    def stage() -> None:
        return None

    @flow(name="empty-repository", persist_result=False)
    def empty_repository(number: int) -> Any:
        flow_run_id: Any = prefect_runtime.flow_run.id
        with SyncClientContext.get_or_create() as context:
            context.client.update_flow_run_labels(flow_run_id, {"number": str(number)})
        for _ in range(TASKS):
            stage()
        get_run_logger().info("Attempt %d.", number)
        create_markdown_artifact(key=f"empty-{flow_run_id}", markdown="# Nothing\n" * 40)
        return Completed(name="Verified")

    @task(name="repository", **options)
    def one(number: int) -> Any:
        return empty_repository(number, return_state=True)

    @flow(name="empty-night", persist_result=False)
    def whole() -> None:
        progress: Any = create_progress_artifact(0.0)
        numbers = iter(range(meter.total))
        running: set[Any] = set()
        runner: Any
        with ThreadPoolTaskRunner(max_workers=CONCURRENCY) as runner:
            while True:
                for number in next_of(numbers, CONCURRENCY - len(running)):
                    running.add(runner.submit(one, {"number": number}).wrapped_future)
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for _ in finished:
                    meter.count()
                    update_progress_artifact(progress, progress=100.0 * meter.done / meter.total)

    whole()


def next_of(numbers: Any, how_many: int) -> Sequence[int]:
    from itertools import islice

    return list(islice(numbers, how_many))


if __name__ == "__main__":
    main()
