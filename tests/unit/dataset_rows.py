"""Rows for the tests of the datasets and of what reads them."""

from datetime import UTC, datetime

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
    new_environment_id,
)
from autoinstall.values import (
    Category,
    CommandResult,
    Evidence,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Mock,
    Probe,
    Service,
    Sidecar,
    TestCounts,
)

URL = "https://example.org/o/name"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
START = datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
END = datetime(2025, 1, 2, 3, 9, 5, 678901, tzinfo=UTC)

GOAL = Goal(
    command="python -m pytest -q",
    description="all 3 tests pass",
    category=Category.TEST,
    exit_codes=(0, 5),
    min_pass_rate=0.95,
    evidence=Evidence(path="README.md", line=7, text="pytest"),
    timeout=60,
)
OBSERVED = GoalResult(
    goal=GOAL,
    result=CommandResult(command=GOAL.command, exit_code=0, output="3 passed", duration=1.5),
    judgement=Judgement(
        verdict="matches", reason="3 of 3 pass", tests=TestCounts(runner="pytest", passed=3, failed_names=("a",))
    ),
)


def common(run_id, repository=URL, **changes):
    fields = {
        "run_id": run_id,
        "flow_run_id": "f-1",
        "repository": repository,
        "commit": COMMIT,
        "started_at": START,
        "finished_at": END,
    }
    return {**fields, **changes}


def environment(run_id, repository=URL, **changes):
    fields = {
        "environment_id": new_environment_id(repository, COMMIT, run_id),
        "configuration": "c1",
        "commit_date": START,
        "image": "autoinstall/env:abc",
        "image_digest": "sha256:" + "a" * 64,
        "base_digest": "sha256:" + "b" * 64,
        "platform": "linux/amd64",
        "targets": (Target.of(OBSERVED), Target.planned(Goal(command="true", description=""))),
        "start_script": "#!/bin/bash\nserver &\n",
        "env": {"PATH": "/x:/bin", "DATABASE_URL": "postgres://me:pw@db:5432/x"},
        "services": (Service(name="web", command="serve", probe=Probe(kind="tcp", target="8000")),),
        "sidecars": (
            Sidecar(
                alias="db",
                image="postgres@sha256:1",
                command=("postgres", "-c"),
                env={"A": "b"},
                ports=(5432,),
                probe=Probe(kind="tcp", target="db:5432"),
            ),
        ),
        "limits": Limits(command_seconds=30, memory_mb=512),
        "mocks": (Mock(kind="file", path="config.ini", reason="not in git"),),
        "held_out_passed": 5,
        "held_out_total": 7,
        "offline_ok": True,
        "attempts": 1,
        "agents": Agents(goal_setter="rules", installer="rules", judge="rules"),
        "seed": 3,
    }
    return EnvironmentRecord(**{**common(run_id, repository), **fields, **changes})


def run(run_id, *, verified=True, repository=URL, **changes):
    row = common(run_id, repository)
    outcome = "verified" if verified else "mismatch"
    accepted = environment(run_id, repository) if verified else None
    fields = {
        "outcome": outcome,
        "stage": "publishing" if verified else "verification",
        "reason": "",
        "configuration": "c1",
        "environment_id": accepted.environment_id if accepted else None,
        "image": accepted.image if accepted else None,
        "targets": (Target.of(OBSERVED),),
        "attempts": 1 if verified else 5,
        "held_out_passed": 5 if verified else None,
        "held_out_total": 7 if verified else None,
        "offline_ok": True if verified else None,
        "stage_seconds": (Timing(stage="clone", seconds=1.5),),
        "seconds": 300.0,
        "language": "python",
        "warnings": ("submodule left out",),
    }
    return RunRecords(
        repository=RepositoryRecord(**{**row, **fields, **changes}),
        goals=tuple(
            GoalRecord(**row, index=index, baseline=Observation.of(OBSERVED), **GOAL.model_dump())
            for index in range(1, 11)
        ),
        attempts=(AttemptRecord(**row, attempt=1, outcome=outcome, targets=(Target.of(OBSERVED),), lessons=("x",)),),
        trajectories=(
            TrajectoryRecord(
                **row,
                sequence=0,
                role="installer",
                agent="rules",
                attempt=1,
                outcome=outcome,
                messages=({"role": "assistant", "content": "hello", "tool_calls": [{"id": "1"}]},),
            ),
        ),
        environment=accepted,
    )
