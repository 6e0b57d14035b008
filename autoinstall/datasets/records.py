"""What a row of each dataset says, as frozen values.

A record is built from the values of the pipeline, checked when it is built, and turned into a row by
`autoinstall.datasets.schemas`. Columns that a later version added and this one does not know are kept in `extra`.

Units: seconds, bytes, US dollars; timestamps are aware and kept in UTC. Of the tokens, cached ones are part of the
input and reasoning ones part of the output; `model_seconds` is the part of the time that a model's answers took.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from autoinstall.redaction import redact, without_userinfo
from autoinstall.values import (
    Category,
    CommandResult,
    Evidence,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Mock,
    Outcome,
    Recipe,
    Role,
    Service,
    Sidecar,
    TestCounts,
    Value,
    Verdict,
)

SCHEMA_VERSION = 3

RETRIED_OUTCOMES = frozenset({Outcome.INFRASTRUCTURE, Outcome.CANCELLED})
"""Outcomes that say nothing of the repository: a later night tries it again."""


@cache
def product_version() -> str:
    """The installed version; `unknown` where the package is used without being installed."""
    try:
        return version("autoinstall")
    except PackageNotFoundError:
        return "unknown"


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a timestamp must say its time zone")
    return moment.astimezone(UTC)


Utc = Annotated[datetime, AfterValidator(_utc)]


def repository_key(url: str) -> str:
    """`url` as rows carry it; what is not even a URL is kept as it is, save for what looks like a credential."""
    try:
        return without_userinfo(url)
    except ValueError:
        return redact(url)


Repository = Annotated[str, AfterValidator(repository_key)]


class Agents(Value):
    """Which agent, and behind it which model, played each role; a model is empty for agents without one."""

    goal_setter: str = ""
    goal_setter_model: str = ""
    installer: str = ""
    installer_model: str = ""
    judge: str = ""
    judge_model: str = ""


class Timing(Value):
    """Seconds that a stage took."""

    stage: str
    seconds: float


class Observation(Value):
    """What one run of a goal's command gave, and what the judge made of it. `output` is its end."""

    exit_code: int
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    timed_out: bool = False
    tests: TestCounts | None = None

    @classmethod
    def of(cls, observed: GoalResult) -> Self:
        result, judgement = observed.result, observed.judgement
        return cls(
            exit_code=result.exit_code,
            verdict=judgement.verdict,
            reason=judgement.reason,
            seconds=result.duration,
            output=result.output,
            timed_out=result.timed_out,
            tests=judgement.tests,
        )


class Target(Value):
    """A target with what the deciding run of it gave; all that is needed to run and judge it again."""

    command: str
    description: str
    category: Category = Category.OTHER
    exit_codes: tuple[int, ...] = (0,)
    min_pass_rate: float = 1.0
    timeout: float | None = None
    evidence: Evidence | None = None
    exit_code: int | None = None
    verdict: Verdict | None = None
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    tests: TestCounts | None = None

    @classmethod
    def of(cls, observed: GoalResult) -> Self:
        seen = Observation.of(observed)
        return cls.planned(observed.goal).model_copy(
            update={
                "exit_code": seen.exit_code,
                "verdict": seen.verdict,
                "reason": seen.reason,
                "seconds": seen.seconds,
                "output": seen.output,
                "tests": seen.tests,
            }
        )

    @classmethod
    def planned(cls, goal: Goal) -> Self:
        """A target that was selected but not run to a verdict."""
        return cls(**goal.model_dump())

    @property
    def goal(self) -> Goal:
        return Goal(**self.model_dump(include=set(Goal.model_fields)))

    @property
    def goal_result(self) -> GoalResult | None:
        """The recorded run; None where there was none."""
        if self.exit_code is None or self.verdict is None:
            return None
        return GoalResult(
            goal=self.goal,
            result=CommandResult(
                command=self.command, exit_code=self.exit_code, output=self.output, duration=self.seconds
            ),
            judgement=Judgement(verdict=self.verdict, reason=self.reason, tests=self.tests),
        )


class Record(Value):
    """What every row has.

    Attributes:
        run_id: of the repository's run; unique, and what makes a rewrite replace rather than double.
        flow_run_id: Prefect's id of the flow run, to link to.
        night_id: the flow run of the list that this run was part of; empty for a single run.
        repository: URL as the user wrote it, without credentials.
        commit: full SHA; None where the run ended before it was known.
        extra: columns of a later version of the schema.
    """

    schema_version: int = SCHEMA_VERSION
    product_version: str = Field(default_factory=product_version)
    run_id: Annotated[str, Field(min_length=1)]
    flow_run_id: str | None = None
    night_id: str | None = None
    repository: Repository
    commit: str | None = None
    started_at: Utc
    finished_at: Utc
    extra: dict[str, Any] = Field(default_factory=dict)


class GoalRecord(Record):
    """One of the ten goals.

    Attributes:
        index: 1-based place in the proposal.
        trivial: it already matched on the untouched sandbox, so it proves nothing.
        target: it was selected; otherwise it is held out.
        baseline: its run on the untouched sandbox.
        result: its deciding run after set-up; None where the run did not come that far.
    """

    index: int
    command: str
    description: str
    category: Category = Category.OTHER
    exit_codes: tuple[int, ...] = (0,)
    min_pass_rate: float = 1.0
    timeout: float | None = None
    evidence: Evidence | None = None
    trivial: bool = False
    target: bool = False
    baseline: Observation | None = None
    result: Observation | None = None


class AttemptRecord(Record):
    """One set-up attempt.

    Attributes:
        attempt: 1-based; infrastructure failures have the number of the attempt that they interrupted.
        code: stable name of what was wrong, beside the outcome: an error's, a kind of tampering, what an agent gave
            up for; empty where nothing more is known.
        failing_command, exit_code, output_tail: the first target that kept it from being verified.
        summary, lessons: the installer's own, as the next attempt saw them.
    """

    attempt: int
    outcome: Outcome
    code: str = ""
    reason: str = ""
    agent: str = ""
    model: str = ""
    failing_command: str | None = None
    exit_code: int | None = None
    output_tail: str | None = None
    targets: tuple[Target, ...] = ()
    summary: str = ""
    lessons: tuple[str, ...] = ()
    mocks: tuple[Mock, ...] = ()
    seconds: float = 0.0
    steps: int = 0
    model_seconds: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0


class TrajectoryRecord(Record):
    """The messages of one agent run, in the OpenAI chat format; `messages` and `tools` are JSON columns.

    Attributes:
        sequence: 0-based place among the run's trajectories.
        attempt: of the installer; None for other roles.
        outcome: how the attempt, or for other roles the run, ended; of an agent run that was interrupted, by what.
        stop: why the agent itself stopped, in its family's words (`submitted`, `tokens`, `repetition`, …); empty where
            it was interrupted, and for agents that do not say.
        shortened: a message was longer than the writer's cap and lost its middle.
    """

    sequence: int
    role: Role
    agent: str
    model: str = ""
    attempt: int | None = None
    outcome: Outcome
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    stop: str = ""
    shortened: bool = False
    seconds: float = 0.0
    steps: int = 0
    model_seconds: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0


class _Judged(Record):
    """What a repository's row and an environment's row share.

    Attributes:
        configuration: fingerprint of the settings and the spec that the result depends on.
        seed: of the selection.
        attempts: set-up attempts charged to the agent.
        needs_setup: False where the targets already matched on the untouched sandbox.
        agents: who played each role; of the installer, in the last attempt.
        team: who was to play them, as `team_of` writes it: the same for every run of one configuration of agents.
        held_out_passed, held_out_total: goals never shown to the installer, run once after acceptance.
        offline_ok: the targets match with no network too; None where that was not tried.
        warnings: what the checkout or the verification left out, and why.
    """

    ref: str | None = None
    commit_date: Utc | None = None
    configuration: str = ""
    seed: int = 0
    language: str | None = None
    needs_setup: bool | None = None
    image: str | None = None
    targets: tuple[Target, ...] = ()
    attempts: int = 0
    held_out_passed: int | None = None
    held_out_total: int | None = None
    offline_ok: bool | None = None
    agents: Agents = Agents()
    team: str = ""
    stage_seconds: tuple[Timing, ...] = ()
    seconds: float = 0.0
    model_seconds: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def held_out_rate(self) -> float | None:
        """Fraction of the held-out goals that pass; None where none was run."""
        if not self.held_out_total or self.held_out_passed is None:
            return None
        return self.held_out_passed / self.held_out_total


class RepositoryRecord(_Judged):
    """One repository of one run, whatever became of it.

    Attributes:
        stage: where the run ended: clone, goal_setting, selection, setup, verification, publishing.
        code: stable name of what was wrong, beside the outcome: an error's, a kind of tampering, what an agent gave
            up for; empty where nothing more is known.
        infrastructure_failures: retries that were ours or the host's fault.
    """

    outcome: Outcome
    stage: str
    code: str = ""
    reason: str = ""
    environment_id: str | None = None
    infrastructure_failures: int = 0


class EnvironmentRecord(_Judged):
    """An accepted environment: enough, alone, to start and to re-verify it on another machine.

    Attributes:
        image: reference that a machine without the image pulls; a local tag where no registry is configured.
        image_digest: content id (`sha256:…`).
        base_digest: of the base image that the workspace was put on.
        env, services, sidecars: the recipe; env holds what the environment needs, never a secret of the host.
        start_script: text of the script in the image that starts the services.
        dockerfile: makes the image of the base and a checkout; null with sidecars, which no build has beside it.
        rebuild_ok: whether the targets match in an image that is made by it; null where that was not tried or a judge
            could not tell.
        modified: tracked files that differ from the commit as policy allows.
    """

    environment_id: Annotated[str, Field(min_length=1)]
    image_digest: str | None = None
    image_size_bytes: int | None = None
    platform: str | None = None
    base_image: str | None = None
    base_digest: str | None = None
    dockerfile: str | None = None
    rebuild_ok: bool | None = None
    start_script: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    services: tuple[Service, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    limits: Limits = Limits()
    mocks: tuple[Mock, ...] = ()
    modified: tuple[str, ...] = ()

    @property
    def recipe(self) -> Recipe:
        return Recipe(env=self.env, services=self.services, sidecars=self.sidecars)

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The targets as goals, ready to be run and judged again."""
        return tuple(target.goal for target in self.targets)


class RunRecords(Value):
    """All rows of one repository's run; they are written together.

    Raises ValueError where the rows are not all of the same run.
    """

    repository: RepositoryRecord
    goals: tuple[GoalRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    trajectories: tuple[TrajectoryRecord, ...] = ()
    environment: EnvironmentRecord | None = None

    def model_post_init(self, _context: object, /) -> None:
        rows = (*self.goals, *self.attempts, *self.trajectories, *((self.environment,) if self.environment else ()))
        if any(row.run_id != self.repository.run_id for row in rows):
            raise ValueError("the rows of a run must have its run_id")


def new_environment_id(repository: str, commit: str, run_id: str) -> str:
    """A name for an environment: the repository's last path part, for people, and 12 digits that make it unique.

    The same run gives the same name, so a rewrite is still the same environment.
    """
    digest = hashlib.sha256(f"{repository_key(repository)}\n{commit}\n{run_id}".encode()).hexdigest()[:12]
    last = re.split(r"[/:]", repository.rstrip("/"))[-1].removesuffix(".git").lower()
    name = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:40].strip("-")
    return f"{name or 'repository'}-{digest}"


def summary_of(record: RepositoryRecord) -> Mapping[str, Any]:
    """What `--json` prints: the row without outputs and bookkeeping, JSON values only."""
    dumped = record.model_dump(mode="json", exclude={"extra", "schema_version", "stage_seconds", "targets"})
    shown = ("command", "description", "category", "exit_code", "verdict", "reason")
    dumped["targets"] = [
        {name: value for name, value in target.model_dump(mode="json").items() if name in shown}
        for target in record.targets
    ]
    return dumped
