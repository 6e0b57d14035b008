"""What agent runs leave on disk as they go, and what becomes of it where the process was killed.

Below `cache/journals` lie, for each run that has not written its rows yet, a head (`RUN.json`: whose run it is) and one
file an agent run, of one JSON object a line: who is at work, each message, and what each answer consumed. They are
removed once the rows are in the datasets.
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from autoinstall.agents.llm.recording import chat_message
from autoinstall.datasets.location import Location
from autoinstall.datasets.reader import load_table
from autoinstall.datasets.records import RepositoryRecord, RunRecords, TrajectoryRecord, new_environment_id
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import Store, store_of
from autoinstall.datasets.writer import has_run, secrets_of, write_run
from autoinstall.errors import AutoinstallError, StorageFailed
from autoinstall.liveness import is_dead
from autoinstall.models.contract import Message
from autoinstall.sandbox.labels import ENVIRONMENT_REPOSITORY, current_process
from autoinstall.settings import Settings
from autoinstall.values import Outcome, Role, Trajectory, Usage, Value

INTERRUPTED = "interrupted"
"""Code of a run whose process was killed."""

_logger = logging.getLogger(__name__)


class AgentRun(Value):
    """One agent run that left more than its messages alone.

    Attributes:
        attempt: of an installer; None for other roles.
        outcome: how it ended; None where it ended as the whole run did.
    """

    trajectory: Trajectory
    usage: Usage = Usage()
    attempt: int | None = None
    outcome: Outcome | None = None


class RunHead(Value):
    """Whose journals they are: the process that writes them, where its rows would have gone, and their identity.

    Attributes:
        process: as `autoinstall.sandbox.labels.Process` writes itself.
        data: what the datasets are below.
        row: what is known of the repository's row so far.
    """

    process: str
    data: Location
    row: RepositoryRecord


class RunJournal:
    """The journal of one agent run, in memory and in a file that is flushed line by line.

    Raises:
        StorageFailed: by every method, where the file cannot be written.
    """

    def __init__(self, path: Path, attempt: int | None = None) -> None:
        self._path = path
        self._attempt = attempt
        self._file: IO[str] | None = None
        self._head: Trajectory | None = None
        self._messages: list[dict[str, Any]] = []
        self._usage = Usage()

    def begin(self, trajectory: Trajectory) -> None:
        """As the contract says. Called again it starts the file anew."""
        self._head = trajectory
        self._messages.clear()
        head = trajectory.model_dump(mode="json", exclude={"messages"})
        self.put([{"attempt": self._attempt, "begin": head}], "w")

    def write(self, message: Message) -> None:
        found = chat_message(message)
        self._messages.append(found)
        self.put([{"message": found}])

    def spend(self, usage: Usage) -> None:
        self._usage = total_usage(self._usage, usage)
        self.put([{"usage": usage.model_dump(exclude_defaults=True)}])

    def agent_run(self, outcome: Outcome | None = None) -> AgentRun | None:
        """What was written so far; None where the agent left nothing."""
        if self._head is None:
            return None
        trajectory = self._head.model_copy(update={"messages": tuple(self._messages)})
        return AgentRun(trajectory=trajectory, usage=self._usage, attempt=self._attempt, outcome=outcome)

    def close(self) -> None:
        """Close the file; what is in it stays. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def put(self, lines: Sequence[Mapping[str, Any]], mode: str = "a") -> None:
        """Write lines of the file's form; `w` starts it anew."""
        try:
            if self._file is None or mode == "w":
                self.close()
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = open(  # noqa: SIM115 - open as long as the agent run
                    self._path, mode, encoding="utf-8", errors="backslashreplace", opener=_open_private
                )
            # Flushed to the system, not to the disk: it is the process that gets killed, not the machine.
            self._file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            self._file.flush()
        except OSError as error:
            raise _not_written(self._path, error) from error


def keep_run(path: Path, run: AgentRun) -> None:
    """Write an agent run that is over as its journal.

    Raises:
        StorageFailed: it cannot be written.
    """
    head = run.trajectory.model_dump(mode="json", exclude={"messages"})
    lines: list[Mapping[str, Any]] = [{"attempt": run.attempt, "begin": head}]
    lines += [{"message": message} for message in run.trajectory.messages]
    lines.append({"usage": run.usage.model_dump(exclude_defaults=True)})
    journal = RunJournal(path)
    try:
        journal.put(lines, "w")
    finally:
        journal.close()


def total_usage(*spent: Usage) -> Usage:
    """The sum of several."""
    return Usage(**{name: sum(getattr(usage, name) for usage in spent) for name in Usage.model_fields})


def write_head(cache: Path, data: Location, row: RepositoryRecord) -> None:
    """Say whose journals those of `row.run_id` are; again, where more is known.

    Raises:
        StorageFailed: it cannot be written.
    """
    path = _head_path(cache, row.run_id)
    head = RunHead(process=str(current_process()), data=data, row=row)
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(head.model_dump_json(), encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise _not_written(path, error) from error


def remove_journals(cache: Path, run_id: str) -> None:
    """Remove what a run left here: its rows are written. The head goes last, so that nothing is left without one."""
    for path in (*_journals_of(cache, run_id), _head_path(cache, run_id)):
        path.unlink(missing_ok=True)


def recover_journals(cache: Path, alive: Callable[[str], bool] | None = None) -> Iterator[tuple[RunHead, RunRecords]]:
    """The runs whose process is gone without having written its rows, as the rows that they would have become.

    Args:
        alive: whether the process that a head names may still be at work; by default as the engine's reaper sees it.
    """
    alive = alive or (lambda process: not is_dead(process, cache))
    for path in sorted((cache / "journals").glob("*.json")):
        try:
            head = RunHead.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue  # somebody else has just dealt with it
        except (OSError, ValidationError) as error:
            _logger.warning("%s is left alone: %s", path, error)
            continue
        if not alive(head.process):
            yield head, _records(cache, head)


def write_lost_runs(
    settings: Settings,
    alive: Callable[[str], bool] | None = None,
    discard: Callable[[str], None] = lambda _: None,
) -> tuple[str, ...]:
    """Give every run that `recover_journals` finds its rows, and remove its journals; the ids of those runs.

    A run whose rows cannot be written now keeps its journals, and the next start tries again.

    Args:
        discard: is told the name that the image of such a run would have, for one that was named and never got a row.
    """
    written: list[str] = []
    for head, records in recover_journals(settings.cache, alive):
        run_id = head.row.run_id
        try:
            # One that was killed while it cleaned up has its rows already, and they say more.
            store = store_of(head.data, settings.storage)
            if not _is_written(store, run_id):
                write_run(store, records, secrets=secrets_of(settings))
                written.append(run_id)
                if head.row.commit:
                    name = new_environment_id(head.row.repository, head.row.commit, run_id)
                    discard(f"{ENVIRONMENT_REPOSITORY}:{name}")
        except AutoinstallError as error:
            _logger.warning("The rows of the interrupted run %s are not written yet: %s", run_id, error)
            continue
        remove_journals(settings.cache, run_id)
    return tuple(written)


def _is_written(store: Store, run_id: str) -> bool:
    """Whether all rows of a run are there. That of its environment is the last one, and a verified run without it is
    none."""
    if not has_run(store, run_id):
        return False
    # Its rows may be in a compacted file, and then only reading tells.
    rows = load_table(store, Dataset.REPOSITORIES, ["run_id", "outcome"])
    outcomes = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    if outcomes.get(run_id) != Outcome.VERIFIED:
        return run_id in outcomes
    return run_id in load_table(store, Dataset.ENVIRONMENTS, ["run_id"]).column(0).to_pylist()


def _records(cache: Path, head: RunHead) -> RunRecords:
    runs = [run for path in _journals_of(cache, head.row.run_id) if (run := _read(path)) is not None]
    spent = total_usage(*(run.usage for run in runs))
    row = head.row.model_copy(
        update={
            "outcome": Outcome.CANCELLED,
            "code": INTERRUPTED,
            "reason": "The process that ran it was killed.",
            **spent.model_dump(exclude={"seconds", "steps"}),
        }
    )
    return RunRecords(
        repository=row,
        trajectories=tuple(trajectory_record(row, index, run, Outcome.CANCELLED) for index, run in enumerate(runs)),
    )


def trajectory_record(row: RepositoryRecord, sequence: int, run: AgentRun, outcome: Outcome) -> TrajectoryRecord:
    """The row of one agent run. `outcome` is for one that has none of its own."""
    identity = ("run_id", "flow_run_id", "night_id", "repository", "commit", "started_at", "finished_at")
    trajectory = run.trajectory
    return TrajectoryRecord(
        **{name: getattr(row, name) for name in identity},
        sequence=sequence,
        role=trajectory.role,
        agent=trajectory.agent,
        model=trajectory.model,
        attempt=run.attempt,
        outcome=run.outcome or outcome,
        messages=trajectory.messages,
        tools=trajectory.tools,
        stop=trajectory.stop,
        **run.usage.model_dump(),
    )


def _read(path: Path) -> AgentRun | None:
    """A journal; None where there is nothing in it. The line that a killed process was writing may be incomplete."""
    head: Trajectory | None = None
    attempt: int | None = None
    messages: list[dict[str, Any]] = []
    usage = Usage()
    for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            line = json.loads(text or "{}")
            if "begin" in line:
                head, attempt = Trajectory.model_validate(line["begin"]), line.get("attempt")
            elif "message" in line:
                messages.append(line["message"])
            elif "usage" in line:
                usage = total_usage(usage, Usage.model_validate(line["usage"]))
        except (ValueError, TypeError):  # pydantic's errors are ValueErrors too
            break
    if head is None:
        return None
    trajectory = head.model_copy(update={"messages": tuple(messages)})
    return AgentRun(trajectory=trajectory, usage=usage, attempt=attempt)


def _journals_of(cache: Path, run_id: str) -> list[Path]:
    """The journals of a run, oldest first."""
    folder = cache / "journals"
    found = [path for role in Role for path in folder.glob(f"{escape(run_id)}-{role}-*.jsonl")]
    return sorted(found, key=lambda path: int(path.stem.rpartition("-")[2]))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _head_path(cache: Path, run_id: str) -> Path:
    return cache / "journals" / f"{run_id}.json"


def _not_written(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"The journal {path} cannot be written: {error.strerror or error}.",
        hint="See that AUTOINSTALL_CACHE is a directory that can be written, with room on its disk.",
    )
