"""What people see in the Prefect UI: progress and outcomes of a night, and a page for each repository."""

from collections import Counter
from typing import Self, cast
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.settings import PREFECT_UI_URL

from autoinstall.datasets.location import Location
from autoinstall.datasets.nights import RunFacts, facts_of_runs
from autoinstall.datasets.records import RepositoryRecord, RunRecords
from autoinstall.datasets.store import Store
from autoinstall.values import Outcome, Value

_OUTPUT_TAIL = 1500
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
    def held_out(self) -> str:
        """`6/7`, or empty where none was run."""
        return f"{self.held_out_passed}/{self.held_out_total}" if self.held_out_total else ""


class NightReport:
    """The night's progress artifact while it runs, and its table of outcomes at the end."""

    def __init__(self, night_id: str, total: int) -> None:
        self.rows: list[NightRow] = []
        self._night_id = night_id
        self._total = total
        # Prefect's artifact functions are coroutines only inside an event loop, and flows here run outside of one.
        self._progress = cast(
            UUID, create_progress_artifact(0.0, key=f"night-{night_id}", description=f"0 of {total} repositories")
        )

    def add(self, row: NightRow) -> None:
        """Count one more repository."""
        self.rows.append(row)
        self.note("")

    def note(self, text: str) -> None:
        """Say beside the progress what else is to be known now, such as what the night waits for."""
        progress = f"{len(self.rows)} of {self._total} repositories: {self.summary()}"
        update_progress_artifact(
            self._progress,
            progress=100.0 * len(self.rows) / max(self._total, 1),
            description=f"{progress}; {text}" if text else progress,
        )

    @property
    def left(self) -> int:
        """Repositories that have not ended."""
        return self._total - len(self.rows)

    def summary(self) -> str:
        """`5 verified, 1 mismatch, 2 skipped`, the most frequent first."""
        counts = Counter(row.outcome.value if row.outcome else "skipped" for row in self.rows)
        return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "nothing to do"

    def complete(self, store: Store) -> None:
        """Take from the datasets what other processes did: a flow run's state tells of the outcome alone."""
        known = facts_of_runs(store, {row.flow_run_id for row in self.rows if row.flow_run_id})
        self.rows = [NightRow.of(known[row.flow_run_id]) if row.flow_run_id in known else row for row in self.rows]

    def finish(self) -> None:
        """Publish the table."""
        if not self.rows:
            return
        create_table_artifact(
            key=f"outcomes-{self._night_id}",
            description=self.summary(),
            table=[
                {
                    "outcome": row.outcome.value if row.outcome else "skipped",
                    "repository": "/".join(row.repository.rstrip("/").split("/")[-2:]),
                    "held-out": row.held_out,
                    "tries": row.attempts,
                    "seconds": round(row.seconds),
                    "reason": row.reason[:120],
                    "environment": row.environment_id or "",
                    "commit": (row.commit or "")[:12],
                    "url": row.repository,
                    "run": flow_run_link(row.flow_run_id),
                }
                for row in self.rows
            ],
        )


def flow_run_link(flow_run_id: str | None) -> str:
    """Address of a flow run's page; relative where the UI's own address is not known."""
    if flow_run_id is None:
        return ""
    return f"{(PREFECT_UI_URL.value() or '').rstrip('/')}/runs/flow-run/{flow_run_id}"


def publish_repository_report(records: RunRecords, data: Location) -> None:
    """Publish the page of one repository: outcome, goals with their verdicts, attempts, and how to open it."""
    create_markdown_artifact(
        key=f"repository-{records.repository.run_id}", description="Outcome", markdown=repository_report(records, data)
    )


def repository_report(records: RunRecords, data: Location) -> str:
    """The page as markdown."""
    row, environment = records.repository, records.environment
    lines = [f"# {row.repository}", "", f"**{row.outcome}**" + (f": {_one_line(row.reason)}" if row.reason else ""), ""]
    lines += [
        f"- commit `{row.commit or 'unknown'}`" + (f" (`{row.ref}`)" if row.ref else ""),
        f"- {row.attempts} attempt(s), {row.seconds:.0f} s, stage reached: {row.stage}",
    ]
    if environment is not None:
        offline = {True: "yes", False: "no", None: "not tried"}[row.offline_ok]
        lines += [
            f"- held-out goals passed: {row.held_out_passed} of {row.held_out_total}",
            f"- works without a network: {offline}",
            f"- image `{environment.image}`",
            "",
            "Open a shell in it:",
            "",
            "```",
            f"autoinstall shell {environment.environment_id} --data {data}",
            "```",
        ]
    if row.warnings:
        lines += ["", "## Warnings", "", *(f"- {_one_line(warning)}" for warning in row.warnings)]
    if records.goals:
        # A list and not a table: the page is narrow, and a table's last columns would be cut off.
        lines += ["", "## Goals", ""]
        for goal in records.goals:
            kind = f"{'**target**, ' if goal.target else ''}{goal.category}{', trivial' if goal.trivial else ''}"
            mark = _MARKS[goal.result.verdict] if goal.result else "–"
            seen = f" *{_one_line(goal.result.reason)}*" if goal.result else ""
            lines.append(f"1. {mark} `{_one_line(goal.command)}` ({kind}): {_one_line(goal.description)}{seen}")
    if environment is not None and environment.mocks:
        lines += ["", "## Mocks", "", *(f"- {mock.kind} `{mock.path}`: {mock.reason}" for mock in environment.mocks)]
    for attempt in records.attempts:
        lines += ["", f"## Attempt {attempt.attempt}: {attempt.outcome}", "", attempt.summary or attempt.reason]
        if attempt.failing_command:
            tail = (attempt.output_tail or "")[-_OUTPUT_TAIL:]
            lines += ["", f"`{attempt.failing_command}` gave exit code {attempt.exit_code}:", "", _fenced(tail)]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
