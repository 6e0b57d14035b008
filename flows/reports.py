"""What people see in the Prefect UI: progress and outcomes of a night, and a page for each repository."""

import hashlib
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Self, cast
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.settings import PREFECT_UI_URL

from autoinstall.datasets.location import Location
from autoinstall.datasets.nights import RunFacts, facts_of_runs
from autoinstall.datasets.records import AttemptRecord, GoalRecord, RepositoryRecord, RunRecords, Target
from autoinstall.datasets.store import Store
from autoinstall.outputs.cleaning import clean
from autoinstall.redaction import one_line, redact
from autoinstall.values import Outcome, Role, Value
from flows.excerpts import excerpt

WORDS = 600
"""Characters of any one text on a page or in a cell."""

ENTRIES = 50
"""Of a list on a page; the datasets have the whole of it."""

PROGRESS_SECONDS = 1.0
"""Between two updates of a night's progress, at least: each is a request."""

TABLE_ROWS = 1000
"""Of a night's table: the UI is given all of them at once."""

KEY_CHARACTERS = 80
"""Of a name in an artifact's key, from its end."""

_OUTPUT_TAIL = 1500
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")
_MARKDOWN = re.compile(r"[\\`*_\[\]<>#|!~&$]")
_LEGEND = (
    "The targets decide; the others are held out from the set-up agent. "
    "Verdicts: ✓ matches, ✗ does not, ? undecided, – none."
)
_MARKS = {"matches": "✓", "mismatch": "✗", "unknown": "?"}


class NightRow(Value):
    """One repository of a night. `outcome` is None where it was skipped."""

    repository: str
    ref: str | None = None
    commit: str | None = None
    outcome: Outcome | None
    code: str = ""
    reason: str = ""
    environment_id: str | None = None
    attempts: int = 0
    seconds: float = 0.0
    held_out_passed: int | None = None
    held_out_total: int | None = None
    flow_run_id: str | None = None

    @classmethod
    def of(cls, row: RepositoryRecord | RunFacts) -> Self:
        """The line of a repository that has its row in the datasets."""
        return cls(**{name: getattr(row, name) for name in cls.model_fields})

    @property
    def word(self) -> str:
        """The outcome for people."""
        return self.outcome.value if self.outcome else "skipped"

    def cells(self) -> dict[str, str | int]:
        """The line of a table whose cells the UI renders as markdown."""
        return {
            "outcome": self.word,
            "repository": _link(short_name(self.repository), flow_run_link(self.flow_run_id)),
            "held-out": self.held_out,
            "tries": self.attempts,
            "seconds": round(self.seconds),
            "reason": plain(self.reason[:120]),
            "environment": self.environment_id or "",
            "commit": (self.commit or "")[:12],
            "url": plain(self.repository),
        }

    @property
    def held_out(self) -> str:
        """`6/7`, or empty where none was run."""
        return f"{self.held_out_passed}/{self.held_out_total}" if self.held_out_total else ""


class NightReport:
    """The night's progress artifact while it runs, and its table of outcomes at the end. What Prefect does not take of
    it is missing there, and nowhere else."""

    def __init__(self, repositories: str, total: int) -> None:
        self.rows: list[NightRow] = []
        self._counts: Counter[str] = Counter()
        self._list = PurePath(repositories).stem
        self.total = total
        self._told = 0.0
        self._note = ""
        self._progress: UUID | None = None
        with _if_prefect_takes("the progress"):
            # Prefect's artifact functions are coroutines only in an event loop, and flows here run outside of one.
            self._progress = cast(
                UUID,
                create_progress_artifact(
                    0.0, key=artifact_key("night", self._list), description=f"0 of {total} repositories"
                ),
            )

    def add(self, row: NightRow) -> None:
        """Count one more repository."""
        self.rows.append(row)
        self._counts[row.word] += 1
        if time.monotonic() - self._told >= PROGRESS_SECONDS:
            self._tell()

    def note(self, text: str) -> None:
        """Say beside the progress what else is to be known now, such as what the night waits for."""
        self._note = text
        self._tell()

    def _tell(self) -> None:
        if self._progress is None:
            return
        progress = f"{len(self.rows)} of {self.total} repositories: {self.summary()}"
        with _if_prefect_takes("the progress"):
            update_progress_artifact(
                self._progress,
                progress=100.0 * len(self.rows) / max(self.total, 1),
                description=f"{progress}; {self._note}" if self._note else progress,
            )
        self._told = time.monotonic()

    @property
    def left(self) -> int:
        """Repositories that have not ended."""
        return self.total - len(self.rows)

    def summary(self) -> str:
        """`3 verified, 4 mismatch, 2 skipped`: what came out, and then the most frequent first."""
        ordered = sorted(self._counts.most_common(), key=lambda entry: entry[0] != Outcome.VERIFIED)
        return ", ".join(f"{count} {name}" for name, count in ordered) or (
            "none ended" if self.total else "nothing to do"
        )

    def complete(self, store: Store) -> None:
        """Take from the datasets what other processes did: a flow run's state tells of the outcome alone."""
        known = facts_of_runs(store, {row.flow_run_id for row in self.rows if row.flow_run_id})
        self.rows = [NightRow.of(known[row.flow_run_id]) if row.flow_run_id in known else row for row in self.rows]
        self._counts = Counter(row.word for row in self.rows)

    def finish(self) -> None:
        """Publish the table: what was done, and of what was skipped as much as there is room for."""
        self._tell()
        shown = sorted(self.rows, key=lambda row: row.outcome is None)[:TABLE_ROWS]
        if not shown:
            return
        rest = f"; {TABLE_ROWS} of {len(self.rows)} are shown" if len(self.rows) > TABLE_ROWS else ""
        with _if_prefect_takes("the table of outcomes"):
            create_table_artifact(
                key=artifact_key("outcomes", self._list),
                description=self.summary() + rest,
                table=[row.cells() for row in shown],
            )


@contextmanager
def _if_prefect_takes(what: str) -> Iterator[None]:
    """Prefect's client has tried several times when it gives up; what is shown there is not worth a run."""
    try:
        yield
    except httpx.HTTPError as error:
        get_run_logger().warning("Prefect did not take %s: %s", what, redact(str(error)))


def artifact_key(kind: str, name: str) -> str:
    """Of an artifact: the same every night, so that the UI has its history under one entry."""
    words = _NOT_IN_KEYS.sub("-", redact(name).lower())[-KEY_CHARACTERS:].strip("-")
    return f"{kind}-{words or hashlib.sha256(name.encode()).hexdigest()[:12]}"


def short_name(url: str) -> str:
    """`owner/name` of a repository's URL."""
    return "/".join(url.rstrip("/").split("/")[-2:])


def plain(text: str) -> str:
    """`text` as markdown that shows it as it is: what a repository prints must not become links, images or headings.
    Where it is long, its beginning."""
    return _MARKDOWN.sub(r"\\\g<0>", one_line(text, WORDS))


def _link(text: str, address: str) -> str:
    return f"[{plain(text)}]({address})" if address else plain(text)


def flow_run_link(flow_run_id: str | None) -> str:
    """Address of a flow run's page; relative where the UI's own address is not known."""
    if flow_run_id is None:
        return ""
    return f"{(PREFECT_UI_URL.value() or '').rstrip('/')}/runs/flow-run/{flow_run_id}"


def publish_repository_report(records: RunRecords, data: Location) -> None:
    """Publish the page of one repository: outcome, goals with their verdicts, attempts, and how to open it."""
    row = records.repository
    with _if_prefect_takes("the repository's page"):
        create_markdown_artifact(
            key=artifact_key("repository", row.repository.partition("://")[2] or row.repository),
            description=f"{row.outcome}: {plain(short_name(row.repository))}",
            markdown=redact(repository_report(records, data)),
        )


def repository_report(records: RunRecords, data: Location) -> str:
    """The page as markdown."""
    row, environment = records.repository, records.environment
    lines = [f"# {plain(row.repository)}", "", f"**{row.outcome}**" + (f": {plain(row.reason)}" if row.reason else "")]
    lines += [
        "",
        f"- commit {code(row.commit or 'unknown')}"
        + (f" ({code(row.ref)})" if row.ref and row.ref != row.commit else ""),
        f"- {_counted(row.attempts, 'attempt')}, {row.seconds:.0f} s, stage reached: {row.stage}",
    ]
    if environment is not None:
        told = {True: "yes", False: "no", None: "not tried"}
        lines += [
            f"- held-out goals passed: {row.held_out_passed} of {row.held_out_total}",
            f"- works without a network: {told[row.offline_ok]}",
            f"- its Dockerfile makes an image that passes too: {told[environment.rebuild_ok]}",
            f"- image {code(environment.image or 'unknown')}",
            "",
            "Open a shell in it:",
            "",
            _fenced(f"autoinstall shell {environment.environment_id} --data {shlex.quote(str(data))}"),
        ]
    if row.warnings:
        lines += ["", "## Warnings", "", *_listed([plain(warning) for warning in row.warnings])]
    if records.goals:
        # Not a table: the page is narrow, and its last columns would be cut off. Nor numbered: the numbers would be.
        lines += ["", "## Goals", "", _LEGEND, ""]
        seen = {target.command: target for attempt in records.attempts for target in attempt.targets}
        lines += [f"- {_goal(goal, seen.get(goal.command))}" for goal in records.goals]
    if environment is not None and environment.mocks:
        lines += ["", "## Mocks", ""]
        lines += _listed([f"{mock.kind} {code(mock.path)}: {plain(mock.reason)}" for mock in environment.mocks])
    for attempt in records.attempts:
        lines += ["", *_attempt(attempt, records)]
    return "\n".join(lines) + "\n"


def _listed(entries: Sequence[str]) -> list[str]:
    more = [f"… and {len(entries) - ENTRIES} more"] if len(entries) > ENTRIES else []
    return [f"- {entry}" for entry in (*entries[:ENTRIES], *more)]


def _goal(goal: GoalRecord, target: Target | None) -> str:
    result = goal.result or target
    kind = f"{'**target**, ' if goal.target else ''}{goal.category}{', trivial' if goal.trivial else ''}"
    mark = _MARKS[result.verdict] if result and result.verdict else "–"
    seen = f" *{plain(result.reason)}*" if result and result.reason else ""
    found = goal.evidence if goal.evidence and goal.evidence.path != "." else None
    where = f" — {code(f'{found.path}:{found.line}' if found.line else found.path)}" if found is not None else ""
    return f"{mark} {code(goal.command)} ({kind}): {plain(goal.description)}{where}{seen}"


def _attempt(attempt: AttemptRecord, records: RunRecords) -> Iterator[str]:
    yield f"## Attempt {attempt.attempt}: {attempt.outcome}"
    spent = f", {attempt.input_tokens + attempt.output_tokens} tokens" if attempt.input_tokens else ""
    by = " ".join(filter(None, (attempt.agent, attempt.model)))
    yield from ("", f"By {plain(by)}, {_counted(attempt.steps, 'step')}, {attempt.seconds:.0f} s{spent}.")
    for text in dict.fromkeys(filter(None, (attempt.reason, attempt.summary))):
        yield from ("", plain(text))
    if attempt.failing_command:
        tail = redact(clean(attempt.output_tail or ""))[-_OUTPUT_TAIL:].strip()
        yield from ("", f"{code(attempt.failing_command)} gave exit code {attempt.exit_code}:", "", _fenced(tail))
    for trajectory in records.trajectories:
        if trajectory.role is Role.INSTALLER and trajectory.attempt == attempt.attempt:
            shown = excerpt(trajectory)
            if shown:
                yield from ("", "What the agent did:", "", _fenced(shown))


def code(text: str) -> str:
    """`text` as a code span, whatever backticks it has. Where it is long, its beginning."""
    line = one_line(text, WORDS)
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{line}{space}{fence}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
