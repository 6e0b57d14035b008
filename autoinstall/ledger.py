"""What is known of one repository's run so far.

The stages are pure: they return values. The ledger is where a run keeps them, so that a run that ends anywhere, for
any reason, still becomes rows that say how far it came (`autoinstall.rows`).
"""

import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from autoinstall.agents import models_of, plays_llm, team_of
from autoinstall.agents.contract import Consultation, ConsultingJudge, Judge, Repository
from autoinstall.agents.llm.contract import journal_path
from autoinstall.agents.llm.prompting import digest_of_prompts
from autoinstall.attempts import SetupAttempt
from autoinstall.datasets.records import new_environment_id, product_version
from autoinstall.errors import AutoinstallError, Cancelled
from autoinstall.journals import AgentRun, RunJournal, keep_run
from autoinstall.rebuild.rebuild import Rebuilt
from autoinstall.redaction import redact
from autoinstall.sandbox.contract import Snapshot
from autoinstall.selection import Selection
from autoinstall.settings import Settings
from autoinstall.values import Checkout, Goal, GoalResult, Outcome, Proposal, RepositorySpec, Role, Value
from autoinstall.verification import Verification

MAX_LESSON = 600
"""Characters of what the next attempt is told of how an earlier one ended."""


class Failure(Value):
    """Why a run ended before, or beside, a verdict."""

    outcome: Outcome
    code: str
    reason: str


class Quality(Value):
    """What is measured of an environment after it was accepted; None where the settings say not to."""

    held_out: tuple[GoalResult, ...] = ()
    offline_ok: bool | None = None


def configuration_of(spec: RepositorySpec, settings: Settings) -> str:
    """Fingerprint of all that a result depends on beside repository and commit; 16 hexadecimal digits."""
    relevant = {
        "product": product_version(),
        "base": spec.base_image or [settings.base_image, *sorted(settings.bases.items())],
        "agents": _agents_of(settings),
        "verification": settings.verification.model_dump(mode="json"),
        "limits": settings.limits.model_dump(mode="json"),
        "spec": spec.model_dump(mode="json", include={"goals", "env", "limits"}),
    }
    return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()[:16]


def _agents_of(settings: Settings) -> dict[str, Any]:
    """What of the agents' settings a result depends on. What only says how an endpoint is reached does not count, and
    where no model is asked, neither does anything that models are told."""
    roles = settings.agents.model_dump(mode="json", include={"goal_setter", "installer", "judge"})
    if not plays_llm(settings):
        return roles
    counts = {"name", "context_tokens", "max_output_tokens", "temperature", "extra"}
    return {
        **settings.agents.model_dump(mode="json"),
        "models": [model.model_dump(mode="json", include=counts) for model in models_of(settings)],
        "search": settings.search.model_dump(mode="json", exclude={"url", "seconds"}),
        "prompts": digest_of_prompts(),
    }


def failure_of(error: BaseException) -> Failure:
    """The outcome that an error means for a repository; what is not ours to raise counts as infrastructure."""
    if isinstance(error, AutoinstallError):
        reason = redact(str(error))
        # A kind of error that has no outcome of its own has that of the kind that it belongs to.
        codes = (kind.code for kind in type(error).__mro__ if issubclass(kind, AutoinstallError))
        outcome = next((Outcome(code) for code in codes if code in set(Outcome)), Outcome.UNKNOWN)
        return Failure(outcome=outcome, code=error.code, reason=reason)
    if not isinstance(error, Exception):  # an interrupt, an exit, an orchestrator's signal to end
        return Failure(outcome=Outcome.CANCELLED, code=Cancelled.code, reason="The run was interrupted.")
    reason = redact(f"Unexpected {type(error).__name__}: {error}")
    return Failure(outcome=Outcome.INFRASTRUCTURE, code="internal_error", reason=reason)


class Ledger:
    """One repository's run. Not shared between threads.

    Attributes:
        broken: agent runs that came to nothing: interrupted ones, and proposals that could not be used.
        consultations: what the judge asked a model.

    Args:
        run_id: unique; the same id rewrites the same rows. None makes one.
        flow_run_id, night_id: ids of the orchestrator's runs, to link to.
    """

    def __init__(
        self,
        spec: RepositorySpec,
        settings: Settings,
        *,
        run_id: str | None = None,
        flow_run_id: str | None = None,
        night_id: str | None = None,
    ) -> None:
        self.spec = spec
        self.settings = settings
        self.run_id = run_id or uuid.uuid4().hex
        self.flow_run_id = flow_run_id
        self.night_id = night_id
        self.configuration = configuration_of(spec, settings)
        self.team = team_of(settings)
        self.started_at = self.now()
        self.stage_name = "clone"
        self.failure: Failure | None = None

        self.checkout: Checkout | None = None
        self.language: str | None = None
        self.base: Snapshot | None = None
        self.initial: Snapshot | None = None
        self.proposals: list[Proposal] = []
        self.broken: list[AgentRun] = []
        self.consultations: list[Consultation] = []
        self._judge: tuple[Judge, Judge] | None = None
        self._agent_runs = 0
        self.baseline: tuple[GoalResult, ...] = ()
        self.selection: Selection | None = None
        self.attempts: list[SetupAttempt] = []
        self.verifications: dict[int, Verification] = {}
        self.quality = Quality()
        self.dockerfile: str | None = None
        self.rebuilt: Rebuilt | None = None
        self.image: Snapshot | None = None
        self.infrastructure_failures = 0
        self.stage_seconds: dict[str, float] = {}

    @staticmethod
    def now() -> datetime:
        """The time that rows carry."""
        return datetime.now(UTC)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; the name of the last one entered says where a run ended."""
        self.stage_name = name
        begun = monotonic()
        try:
            yield
        finally:
            self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + monotonic() - begun

    @contextmanager
    def agent_run(self, role: Role, attempt: int | None = None) -> Iterator[RunJournal]:
        """A journal for one agent run. Where the run is interrupted, what is in it becomes one of `broken`.

        Raises:
            StorageFailed: it cannot be written.
        """
        journal = RunJournal(self._journal_path(role), attempt)
        try:
            yield journal
        except BaseException as error:
            left = journal.agent_run(failure_of(error).outcome)
            if left is not None:
                self.broken.append(left)
            raise
        finally:
            journal.close()

    def judge(self, judge: Judge) -> Judge:
        """`judge` for this run: what it asks a model is noted here, and one answer serves for the same question."""
        if not isinstance(judge, ConsultingJudge):
            return judge
        if self._judge is None or self._judge[0] is not judge:
            self._judge = judge, judge.session(self._consulted)
        return self._judge[1]

    def _consulted(self, talk: Consultation) -> None:
        self.consultations.append(talk)
        keep_run(self._journal_path(Role.JUDGE), AgentRun(trajectory=talk.trajectory, usage=talk.usage))

    def _journal_path(self, role: Role) -> Path:
        """A path for one more journal."""
        self._agent_runs += 1
        return journal_path(self.settings.cache, self.run_id, role, self._agent_runs)

    @property
    def known_checkout(self) -> Checkout:
        """The checkout; a stage that needs it comes after the one that makes it."""
        if self.checkout is None:
            raise RuntimeError("the repository is not cloned yet")
        return self.checkout

    @property
    def known_initial(self) -> Snapshot:
        """The image of the initial state."""
        if self.initial is None:
            raise RuntimeError("the initial state is not built yet")
        return self.initial

    @property
    def repository(self) -> Repository:
        """What agents are told of the repository."""
        checkout = self.known_checkout
        return Repository(
            url=checkout.repository,
            commit=checkout.commit,
            commit_date=checkout.commit_date,
            left_out=checkout.warnings,
        )

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The ten, or the user's own."""
        if self.spec.goals is not None:
            return self.spec.goals
        return self.proposals[-1].goals if self.proposals else ()

    @property
    def targets(self) -> tuple[Goal, ...]:
        """The selected goals."""
        return tuple(self.goals[index] for index in self.selection.targets) if self.selection else ()

    @property
    def held_out(self) -> tuple[Goal, ...]:
        """The goals that the installer never sees."""
        if self.selection is None:
            return ()
        return tuple(goal for index, goal in enumerate(self.goals) if index not in self.selection.targets)

    @property
    def lessons(self) -> tuple[str, ...]:
        """What the attempts so far learnt, and how each of them ended, oldest first, each once."""
        found: list[str] = []
        for attempt in self.attempts:
            found += attempt.report.lessons
            verdict = self.verifications.get(attempt.number)
            if verdict is not None and verdict.outcome is not Outcome.VERIFIED:
                found.append(f"Attempt {attempt.number} did not verify: {verdict.reason}")
            elif attempt.outcome is not None and not any(attempt.reason in lesson for lesson in found):
                found.append(f"Attempt {attempt.number} ended as {attempt.outcome}: {attempt.reason}"[:MAX_LESSON])
        return tuple(dict.fromkeys(found))

    @property
    def outcome(self) -> Outcome:
        """How the run ended, as far as it has come."""
        if self.failure is not None:
            return self.failure.outcome
        if not self.attempts:
            return Outcome.UNKNOWN
        return self.attempt_outcome(self.attempts[-1])

    def fail(self, error: BaseException) -> None:
        """Note the error that ends the run."""
        self.failure = failure_of(error)

    def attempt_outcome(self, attempt: SetupAttempt) -> Outcome:
        """How one attempt ended: by its verdict where it came that far."""
        verdict = self.verifications.get(attempt.number)
        if verdict is not None:
            return verdict.outcome
        # One that was never judged ended by what ended the run.
        return attempt.outcome or (self.failure.outcome if self.failure else Outcome.UNKNOWN)

    @property
    def reason(self) -> str:
        """One sentence on why the run ended as it did; empty for a verified one."""
        if self.failure is not None:
            return self.failure.reason
        if not self.attempts:
            return ""
        last = self.attempts[-1]
        verdict = self.verifications.get(last.number)
        return verdict.reason if verdict is not None else last.reason

    @property
    def code(self) -> str:
        """Stable name of what was wrong, beside the outcome; empty where nothing more is known."""
        if self.failure is not None:
            return self.failure.code
        if not self.attempts:
            return ""
        last = self.attempts[-1]
        verdict = self.verifications.get(last.number)
        return verdict.code if verdict is not None else last.report.code

    @property
    def target_results(self) -> tuple[GoalResult, ...]:
        """The targets as the last attempt's deciding run, or else its cheap check, saw them."""
        if not self.attempts:
            return ()
        last = self.attempts[-1]
        verdict = self.verifications.get(last.number)
        return verdict.results if verdict is not None and verdict.results else last.live

    @property
    def environment_id(self) -> str | None:
        """The name of the accepted environment; None where there is none."""
        if self.outcome is not Outcome.VERIFIED or self.checkout is None:
            return None
        return new_environment_id(self.checkout.repository, self.checkout.commit, self.run_id)
