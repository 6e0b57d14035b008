"""Made-up nights, to try the notebook on and to measure with: no repository of them exists.

python -m notebooks.sample_nights DIR [--nights 14] [--repositories 300]
"""

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa

from autoinstall.datasets.evolution import conform, file_schema
from autoinstall.datasets.questions import STAGES
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import DataPlace, store_of
from autoinstall.datasets.writer import ensure_writable, parquet

FIRST_NIGHT = datetime(2026, 3, 2, 1, 0, tzinfo=UTC)

LANGUAGES: Mapping[str, tuple[float, float]] = {
    "python": (0.38, 1.0),
    "javascript": (0.2, 0.9),
    "typescript": (0.14, 0.8),
    "go": (0.09, 1.05),
    "c": (0.08, 0.55),
    "rust": (0.07, 0.95),
    "java": (0.04, 0.6),
}
"""Share of the list, and how much easier or harder than others it is to set up."""

MODELS: Mapping[str, tuple[float, float]] = {"": (0.34, 0.0), "coder-8b": (0.42, 0.35), "coder-70b": (0.62, 2.4)}
"""Chance of an attempt at an average repository, and dollars for a million tokens; without a name it is the rules."""

FAILURES: Mapping[str, tuple[float, str, Sequence[str]]] = {
    "mismatch": (0.56, "verification", ("", "", "control_passed")),
    "gave_up": (0.14, "setup", ("nothing_left", "missing_system_library", "needs_gpu")),
    "timeout": (0.1, "verification", ("",)),
    "budget": (0.09, "setup", ("budget", "context_exhausted")),
    "flaky": (0.02, "verification", ("",)),
    "tampered": (0.05, "verification", ("test_changed", "stub")),
    "agent_loop": (0.04, "setup", ("",)),
}
"""How an attempt fails: share, the stage where the run ends, codes."""

EARLY: Mapping[str, tuple[float, str]] = {
    "auth_or_not_found": (0.035, "clone"),
    "commit_not_found": (0.01, "clone"),
    "too_large": (0.015, "clone"),
    "bad_proposal": (0.03, "goal_setting"),
    "infrastructure": (0.025, "setup"),
    "cancelled": (0.005, "setup"),
}
"""What ends a repository before any attempt: share of the list, stage."""

_SECONDS = {"clone": 9, "goal_setting": 70, "selection": 0.1, "setup": 240, "verification": 110, "quality": 95}


def write_nights(data: DataPlace, *, nights: int = 14, repositories: int = 300, seed: int = 0) -> None:
    """Write `repositories` and `attempts` of so many nights, each on a list of so many repositories; the models take
    turns from night to night. The other datasets stay empty.

    Raises:
        StorageFailed: they cannot be written.
    """
    store = store_of(data)
    ensure_writable(store)
    chance = np.random.default_rng(seed)
    for night in range(nights):
        rows, attempts = _night(chance, night, repositories)
        for dataset, frame in ((Dataset.REPOSITORIES, rows), (Dataset.ATTEMPTS, attempts)):
            table = conform(pa.Table.from_pandas(frame, preserve_index=False), dataset, file_schema(dataset))
            store.put(f"{dataset}/compact-sample-{night:04}.parquet", parquet(table))


def _night(chance: np.random.Generator, night: int, count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    model = list(MODELS)[night % len(MODELS)]
    skill, price = MODELS[model]
    agent = "llm" if model else "rules"
    languages = chance.choice(list(LANGUAGES), count, p=[share for share, _ in LANGUAGES.values()])
    ease = np.array([LANGUAGES[name][1] for name in languages]) * chance.beta(5, 2.5, count) * 1.5
    tries = chance.random((count, 5)) < np.clip(ease * skill, 0.02, 0.95)[:, None] * np.array([1, 0.45, 0.3, 0.2, 0.15])
    verified = tries.any(axis=1)
    attempts = np.where(verified, tries.argmax(axis=1) + 1, 5)
    outcome = np.where(verified, "verified", _choose(chance, FAILURES, count))
    early = chance.choice(
        ["", *EARLY], count, p=[1 - sum(s for s, _ in EARLY.values()), *(s for s, _ in EARLY.values())]
    )
    outcome = np.where(early != "", early, outcome)
    attempts = np.where(early != "", 0, attempts)
    stage = np.array([_stage(name) for name in outcome])
    ids = np.array([f"n{night:04}r{index:06}" for index in range(count)])
    begun = FIRST_NIGHT + timedelta(days=night)
    seconds = {name: chance.lognormal(np.log(typical), 0.7, count) for name, typical in _SECONDS.items()}
    seconds["setup"] *= np.maximum(attempts, 1) * (2.2 if model else 1)
    timings = [
        [{"stage": name, "seconds": float(seconds[name][row])} for name in _SECONDS if _reached(name, stage[row])]
        for row in range(count)
    ]
    took = np.array([sum(item["seconds"] for item in items) for items in timings])
    tokens = np.where(attempts > 0, chance.lognormal(np.log(180_000), 0.6, count) * attempts, 0) * bool(model)
    held_out = np.where(outcome == "verified", chance.binomial(7, np.clip(0.72 + 0.2 * ease, 0, 0.97)), -1)
    started = [begun + timedelta(seconds=20 * index) for index in range(count)]
    common = {"schema_version": 2, "product_version": "0.1.0", "night_id": f"night-{night:04}"}
    rows = pd.DataFrame(
        {
            **common,
            "run_id": ids,
            "repository": [f"https://example.org/made-up/{name}-{index}" for index, name in enumerate(languages)],
            "commit": [f"{night // 3:08x}{index:032x}" for index in range(count)],
            "started_at": started,
            "finished_at": [
                start + timedelta(seconds=float(spent)) for start, spent in zip(started, took, strict=True)
            ],
            "configuration": f"configuration-{night % len(MODELS)}",
            "outcome": outcome,
            "stage": stage,
            "code": [_code(chance, name) for name in outcome],
            "reason": np.where(outcome == "verified", "", "made up"),
            "language": languages,
            "attempts": attempts,
            "held_out_passed": pd.array(np.where(held_out < 0, None, held_out), dtype="Int64"),
            "held_out_total": pd.array(np.where(held_out < 0, None, 7), dtype="Int64"),
            "agents": [{"goal_setter": agent, "installer": agent, "installer_model": model, "judge": "rules"}] * count,
            "team": f"{agent}:{model}" if model else agent,
            "stage_seconds": timings,
            "seconds": took,
            "input_tokens": (tokens * 0.95).astype(int),
            "output_tokens": (tokens * 0.05).astype(int),
            "cost_usd": tokens * price / 1e6,
        }
    )
    run, number = np.repeat(np.arange(count), attempts), np.concatenate([np.arange(1, n + 1) for n in attempts])
    last = number == attempts[run]
    ended = np.where(last, outcome[run], _choose(chance, FAILURES, len(run)))
    tried = pd.DataFrame(
        {
            **common,
            "run_id": ids[run],
            "repository": rows["repository"].to_numpy()[run],
            "commit": rows["commit"].to_numpy()[run],
            "started_at": rows["started_at"].to_numpy()[run],
            "finished_at": rows["finished_at"].to_numpy()[run],
            "attempt": number,
            "outcome": ended,
            "agent": agent,
            "model": model,
            "failing_command": np.where(ended == "verified", None, "python -m pytest -q"),
            "output_tail": np.where(
                ended == "verified", None, "E   ModuleNotFoundError: No module named 'made_up'\n" * 4
            ),
            "seconds": seconds["setup"][run] / attempts[run],
            "cost_usd": rows["cost_usd"].to_numpy()[run] / attempts[run],
        }
    )
    return rows, tried


def _choose(
    chance: np.random.Generator, failures: Mapping[str, tuple[float, str, Sequence[str]]], count: int
) -> np.ndarray:
    return chance.choice(list(failures), count, p=[share for share, _, _ in failures.values()])


def _stage(outcome: str) -> str:
    if outcome in FAILURES:
        return FAILURES[outcome][1]
    return EARLY[outcome][1] if outcome in EARLY else "publishing"


def _code(chance: np.random.Generator, outcome: str) -> str:
    if outcome in FAILURES:
        return str(chance.choice(FAILURES[outcome][2]))
    return outcome if outcome in EARLY else ""


def _reached(name: str, stage: str) -> bool:
    return STAGES.index(name) <= STAGES.index(stage)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--nights", type=int, default=14)
    parser.add_argument("--repositories", type=int, default=300)
    options = parser.parse_args()
    write_nights(options.data, nights=options.nights, repositories=options.repositories)


if __name__ == "__main__":
    main()
