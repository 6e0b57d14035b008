"""The rows that a run becomes, in the five datasets."""

from typing import Any

from autoinstall.agents.hardware import architecture
from autoinstall.attempts import SetupAttempt
from autoinstall.datasets.records import (
    Agents,
    AttemptRecord,
    EnvironmentRecord,
    GoalRecord,
    Observation,
    RepositoryRecord,
    RunRecords,
    Target,
    Timing,
    TrajectoryRecord,
)
from autoinstall.journals import AgentRun, total_usage, trajectory_record
from autoinstall.ledger import Ledger
from autoinstall.redaction import printable, redact, without_userinfo
from autoinstall.sandbox.services import start_script
from autoinstall.values import Limits, Usage

OUTPUT_TAIL = 8000
"""Characters of a failing command's output that an `attempts` row keeps."""

_IDENTITY = ("run_id", "flow_run_id", "night_id", "repository", "commit", "started_at", "finished_at")
_SHARED = (
    *_IDENTITY,
    *("ref", "commit_date", "configuration", "seed", "language", "needs_setup", "image", "targets", "attempts"),
    *("held_out_passed", "held_out_total", "offline_ok", "agents", "team", "stage_seconds", "seconds"),
    *("model_seconds", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "warnings"),
)


def run_records(ledger: Ledger) -> RunRecords:
    """All rows of the run, as things stand."""
    repository = repository_record(ledger)
    return RunRecords(
        repository=repository,
        goals=_goals(ledger, repository),
        attempts=tuple(_attempt(ledger, repository, attempt) for attempt in ledger.attempts),
        trajectories=_trajectories(ledger, repository),
        environment=_environment(ledger, repository) if ledger.environment_id else None,
    )


def repository_record(ledger: Ledger) -> RepositoryRecord:
    """The run's own row, as things stand."""
    checkout, usage = ledger.checkout, _usage(ledger)
    results = ledger.target_results
    held_out = ledger.quality.held_out
    finished_at = ledger.now()
    return RepositoryRecord(
        run_id=ledger.run_id,
        flow_run_id=ledger.flow_run_id,
        night_id=ledger.night_id,
        repository=checkout.repository if checkout else printable(redact(without_userinfo(ledger.spec.url))),
        ref=ledger.spec.ref,
        commit=checkout.commit if checkout else None,
        commit_date=checkout.commit_date if checkout else None,
        started_at=ledger.started_at,
        finished_at=finished_at,
        configuration=ledger.configuration,
        seed=ledger.settings.verification.seed,
        language=ledger.language,
        needs_setup=ledger.selection.needs_setup if ledger.selection else None,
        image=ledger.image.reference if ledger.image else None,
        targets=tuple(map(Target.of, results)) if results else tuple(map(Target.planned, ledger.targets)),
        attempts=len(ledger.attempts),
        held_out_passed=sum(result.matches for result in held_out) if held_out else None,
        held_out_total=len(held_out) or None,
        offline_ok=ledger.quality.offline_ok,
        agents=_agents(ledger),
        team=ledger.team,
        stage_seconds=tuple(Timing(stage=name, seconds=value) for name, value in ledger.stage_seconds.items()),
        seconds=(finished_at - ledger.started_at).total_seconds(),
        **_spent(usage, "steps"),
        warnings=checkout.warnings if checkout else (),
        outcome=ledger.outcome,
        stage=ledger.stage_name,
        code=ledger.code,
        reason=ledger.reason,
        environment_id=ledger.environment_id,
        infrastructure_failures=ledger.infrastructure_failures,
    )


def _environment(ledger: Ledger, repository: RepositoryRecord) -> EnvironmentRecord:
    attempt = ledger.attempts[-1]
    report, image = attempt.report, ledger.image or attempt.snapshot
    return EnvironmentRecord(
        **{name: getattr(repository, name) for name in _SHARED},
        environment_id=repository.environment_id or "",
        image_digest=image.digest if image else None,
        image_size_bytes=image.size_bytes if image else None,
        platform=f"linux/{architecture()}",
        base_image=ledger.base.reference if ledger.base else None,
        base_digest=ledger.base.digest if ledger.base else None,
        dockerfile=ledger.dockerfile,
        rebuild_ok=ledger.rebuilt.ok if ledger.rebuilt else None,
        start_script=start_script(report.recipe.services),
        env=report.recipe.env,
        services=report.recipe.services,
        sidecars=report.recipe.sidecars,
        limits=_effective_limits(ledger),
        mocks=report.mocks,
        modified=ledger.verifications[attempt.number].modified,
    )


def _goals(ledger: Ledger, repository: RepositoryRecord) -> tuple[GoalRecord, ...]:
    baseline = {result.goal.command: result for result in ledger.baseline}
    results = {result.goal.command: result for result in (*ledger.target_results, *ledger.quality.held_out)}
    targets = ledger.selection.targets if ledger.selection else ()
    trivial = ledger.selection.trivial if ledger.selection else ()
    return tuple(
        GoalRecord(
            **_identity(repository),
            **goal.model_dump(),
            index=index + 1,
            trivial=index in trivial,
            target=index in targets,
            baseline=Observation.of(baseline[goal.command]) if goal.command in baseline else None,
            result=Observation.of(results[goal.command]) if goal.command in results else None,
        )
        for index, goal in enumerate(ledger.goals)
    )


def _attempt(ledger: Ledger, repository: RepositoryRecord, attempt: SetupAttempt) -> AttemptRecord:
    verdict = ledger.verifications.get(attempt.number)
    report = attempt.report
    results = verdict.results if verdict is not None else attempt.live
    failed = next((result for result in results if not result.matches), None)
    return AttemptRecord(
        **_identity(repository),
        attempt=attempt.number,
        outcome=ledger.attempt_outcome(attempt),
        code=verdict.code if verdict is not None else report.code,
        reason=verdict.reason if verdict is not None else attempt.reason,
        agent=report.trajectory.agent,
        model=report.trajectory.model,
        failing_command=failed.goal.command if failed else None,
        exit_code=failed.result.exit_code if failed else None,
        output_tail=failed.result.output[-OUTPUT_TAIL:] if failed else None,
        targets=tuple(map(Target.of, results)),
        summary=report.summary,
        lessons=report.lessons,
        mocks=report.mocks,
        seconds=attempt.seconds,
        **_spent(report.usage),
    )


def _trajectories(ledger: Ledger, repository: RepositoryRecord) -> tuple[TrajectoryRecord, ...]:
    return tuple(
        trajectory_record(repository, sequence, run, ledger.outcome) for sequence, run in enumerate(_agent_runs(ledger))
    )


def _agent_runs(ledger: Ledger) -> tuple[AgentRun, ...]:
    """Every agent run there was, whatever came of it."""
    proposals = (AgentRun(trajectory=proposal.trajectory, usage=proposal.usage) for proposal in ledger.proposals)
    attempts = (
        AgentRun(
            trajectory=attempt.report.trajectory,
            usage=attempt.report.usage,
            attempt=attempt.number,
            outcome=ledger.attempt_outcome(attempt),
        )
        for attempt in ledger.attempts
    )
    judged = (AgentRun(trajectory=talk.trajectory, usage=talk.usage) for talk in ledger.consultations)
    return (*proposals, *attempts, *ledger.broken, *judged)


def _agents(ledger: Ledger) -> Agents:
    installer = ledger.attempts[-1].report.trajectory if ledger.attempts else None
    proposer = ledger.proposals[-1].trajectory if ledger.proposals else None
    return Agents(
        goal_setter=proposer.agent if proposer else "",
        goal_setter_model=proposer.model if proposer else "",
        installer=installer.agent if installer else "",
        installer_model=installer.model if installer else "",
        judge=ledger.settings.agents.judge if ledger.verifications else "",
        judge_model=ledger.consultations[-1].trajectory.model if ledger.consultations else "",
    )


def _usage(ledger: Ledger) -> Usage:
    return total_usage(*(run.usage for run in _agent_runs(ledger)))


def _effective_limits(ledger: Ledger) -> Limits:
    defaults = ledger.settings.limits
    return Limits(
        **{
            name: getattr(ledger.spec.limits, name) if getattr(ledger.spec.limits, name) is not None else default
            for name in Limits.model_fields
            if (default := getattr(defaults, name)) is not None
        }
    )


def _identity(repository: RepositoryRecord) -> dict[str, Any]:
    return {name: getattr(repository, name) for name in _IDENTITY}


def _spent(usage: Usage, *left_out: str) -> dict[str, Any]:
    """All but the seconds: a row's own span more than the agent's."""
    return usage.model_dump(exclude={"seconds", *left_out})
