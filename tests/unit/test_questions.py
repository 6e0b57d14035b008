from datetime import timedelta

import pandas as pd
import pytest
from dataset_rows import END, START, run

from autoinstall.datasets import questions
from autoinstall.datasets.records import Agents, Timing
from autoinstall.datasets.writer import ensure_writable, write_run

TIMES = (Timing(stage="clone", seconds=10.0), Timing(stage="setup", seconds=90.0))


def at(days, **hours):
    return {"started_at": START + timedelta(days=days, **hours), "finished_at": END + timedelta(days=days, **hours)}


@pytest.fixture
def frames(tmp_path):
    """Two nights on one date, and a single run between: seven runs of five repositories."""
    model = Agents(installer="llm", installer_model="m1")
    write = [
        run("a1", repository="https://h/a", night_id="n1", seconds=600.0, stage_seconds=TIMES, cost_usd=1.0),
        run("b1", repository="https://h/b", night_id="n1", verified=False, agents=model, code="control_passed"),
        run("c1", repository="https://h/c", night_id="n1", verified=False, outcome="infrastructure", stage="setup"),
        run("d1", repository="https://h/d", night_id="n1", verified=False, outcome="too_large", stage="clone"),
        run("b2", repository="https://h/b", night_id="n2", agents=model, attempts=3, **at(0, hours=5)),
        run("e1", repository="https://h/e", held_out_passed=7, language=None, **at(1)),
        run("a2", repository="https://h/a", night_id="n3", seconds=60.0, **at(2)),
    ]
    for records in write:
        write_run(tmp_path, records)
    return questions.frames_of(tmp_path)


def test_rows_are_described(frames):
    rows = frames.repositories.set_index("run_id")
    assert dict(rows["night"]) == {
        **dict.fromkeys(("a1", "b1", "c1", "d1"), "2025-01-02"),
        "b2": "2025-01-02.2",
        "e1": "single",
        "a2": "2025-01-04",
    }
    assert rows.loc["b1", "model"] == "m1"
    assert rows.loc["a1", "model"] == "none"
    assert rows.loc["a1", "held_out"] == pytest.approx(5 / 7)
    assert pd.isna(rows.loc["b1", "held_out"])
    assert not rows.loc["c1", "decided"]
    assert rows.loc["e1", "language"] == "unknown"


def test_nights_count_all_of_their_runs(frames):
    table = questions.by_night(frames.repositories)
    assert list(table.index) == ["2025-01-02", "2025-01-02.2", "single", "2025-01-04"]
    first = table.iloc[0]
    assert (first["runs"], first["decided"], first["verified"]) == (4, 3, 1)
    assert first["yield_rate"] == pytest.approx(1 / 3)
    assert first["hours"] == pytest.approx(1500 / 3600)


def test_repositories_count_by_their_last_run(frames):
    table = questions.by(frames.repositories, "language")
    assert table.loc["python", "runs"] == 4
    assert (table.loc["python", "decided"], table.loc["python", "verified"]) == (3, 2)
    assert table.loc["unknown", "held_out"] == 1
    assert questions.by(frames.repositories, "model").loc["m1", "verified"] == 1
    assert questions.held_out_quality(frames.repositories).tolist() == pytest.approx([5 / 7, 1.0, 5 / 7])


def test_failures_by_stage_outcome_and_code(frames):
    classes = questions.failure_classes(frames.repositories)
    assert set(zip(classes["stage"], classes["outcome"], strict=True)) == {
        ("setup", "infrastructure"),
        ("clone", "too_large"),
    }
    assert classes["share"].tolist() == [0.2, 0.2]
    assert questions.stage_outcomes(frames.repositories).index.tolist() == ["clone", "setup"]


def test_attempts_add_up(frames):
    table = questions.attempts_to_success(frames.repositories)
    assert table["verified"].to_dict() == {1: 2, 3: 1}
    assert table["yield_rate"].tolist() == [0.5, 0.75]


def test_costs_include_what_was_discarded_and_have_no_value_without_an_environment(frames):
    table = questions.cost_per_environment(frames.repositories, "night")
    assert table.loc["2025-01-02", "minutes"] == pytest.approx(1500 / 60)
    assert table.loc["2025-01-02", "cost_usd"] == 1.0
    alone = frames.repositories[frames.repositories["run_id"] == "b1"]
    assert questions.cost_per_environment(alone, "model")["minutes"].isna().all()


def test_stages_and_the_funnel(frames):
    stages = questions.slowest_stages(frames.stages)
    assert stages.index.tolist() == ["setup", "clone"]
    assert stages.loc["setup", "share"] == pytest.approx(90 / (90 + 10 + 6 * 1.5))
    assert stages.loc["clone", "runs"] == 7
    funnel = questions.funnel(frames.repositories)["repositories"]
    assert funnel.tolist() == [5, 4, 3, 3, 3, 3, 1]


def test_what_was_cancelled_has_not_failed(tmp_path):
    write_run(tmp_path, run("a", repository="https://h/a", verified=False))
    write_run(tmp_path, run("b", repository="https://h/b", verified=False, outcome="cancelled", stage="setup"))
    rows = questions.frames_of(tmp_path).repositories
    assert questions.failure_classes(rows)["outcome"].tolist() == ["mismatch"]
    assert questions.stage_outcomes(rows).to_dict() == {"mismatch": {"verification": 1}}
    funnel = questions.funnel(rows)["repositories"]
    assert (funnel["on the list"], funnel["decided"], funnel["cloned"], funnel["set up"]) == (2, 1, 1, 1)


def test_flaky_ones_are_held_against_verdicts(tmp_path):
    for number, outcome in enumerate(("verified", "flaky", "mismatch", "verified")):
        base = run(f"r{number}")
        attempt = base.attempts[0].model_copy(update={"outcome": outcome, "model": "m1"})
        write_run(tmp_path, base.model_copy(update={"attempts": (attempt,)}))
    frames = questions.frames_of(tmp_path)
    assert questions.flakiness(frames.attempts).loc["m1"].tolist() == [3, 1, pytest.approx(1 / 3)]
    assert questions.attempt_outcomes(frames.attempts).loc[1].to_dict() == {"verified": 2, "flaky": 1, "mismatch": 1}


def test_before_the_first_row_every_table_is_empty(tmp_path):
    ensure_writable(tmp_path)
    frames = questions.frames_of(tmp_path)
    rows = frames.repositories
    for table in (
        questions.by_night(rows),
        questions.by(rows, "language"),
        questions.by(rows, "model"),
        questions.failure_classes(rows),
        questions.stage_outcomes(rows),
        questions.attempts_to_success(rows),
        questions.cost_per_environment(rows, "night"),
        questions.held_out_quality(rows),
        questions.flakiness(frames.attempts),
        questions.attempt_outcomes(frames.attempts),
        questions.slowest_stages(frames.stages),
    ):
        assert len(table) == 0
    assert questions.funnel(rows)["repositories"].sum() == 0
