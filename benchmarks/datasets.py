"""How long a year takes to read: a million attempts into the tables of the notebook.

    .venv/bin/python benchmarks/datasets.py [--attempts 1000000] [--data DIR]

Prints seconds, those on a processor, and the highest resident memory: of reading, of the tables, and of putting files
of runs together.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from autoinstall.datasets import questions
from autoinstall.datasets.compaction import compact, file_count
from notebooks.sample_nights import write_nights

ATTEMPTS_A_ROW = 2.6
NIGHTS = 365
RUNS = 2000
"""Runs whose files are put together."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, help="a directory that was measured before, to read it again")
    parser.add_argument("--read", action="store_true", help="only read")
    options = parser.parse_args()
    if options.read:
        read(options.data)
        return
    with tempfile.TemporaryDirectory() as scratch:
        data = options.data or Path(scratch) / "year"
        if not data.exists():
            each = round(options.attempts / ATTEMPTS_A_ROW / NIGHTS)
            timed("writing", lambda: write_nights(data, nights=NIGHTS, repositories=each))
        # In a process of its own, whose memory is then that of reading alone.
        subprocess.run([sys.executable, __file__, "--read", "--data", str(data)], check=True)
        put_together(Path(scratch) / "runs")


def read(data: Path) -> None:
    frames = timed("reading", lambda: questions.frames_of(data))
    rows = frames.repositories
    print(f"{len(frames.attempts):,} attempts, {len(rows):,} repositories, {len(frames.stages):,} stages")
    timed(
        "tables",
        lambda: (
            questions.by_night(rows),
            questions.by(rows, "language"),
            questions.by(rows, "model"),
            questions.failure_classes(rows),
            questions.stage_outcomes(rows),
            questions.attempts_to_success(rows),
            questions.cost_per_environment(rows, "model"),
            questions.held_out_quality(rows),
            questions.flakiness(frames.attempts),
            questions.slowest_stages(frames.stages),
            questions.funnel(rows),
        ),
    )


def put_together(data: Path) -> None:
    """Files as nights leave them, one for each run, made one."""
    write_nights(data, nights=1, repositories=RUNS)
    for dataset in ("repositories", "attempts"):
        _split(data / dataset)
    print(f"{file_count(data):,} files of runs")
    timed("reading before", lambda: questions.frames_of(data))
    timed("compaction", lambda: compact(data, min_age=timedelta(0)))
    timed("reading after", lambda: questions.frames_of(data))


def _split(folder: Path) -> None:
    """A file of one row for each run."""
    import pyarrow.parquet as pq

    (path,) = folder.glob("compact-*.parquet")
    frame, metadata = pq.read_table(path), pq.read_schema(path).metadata
    for number, run_id in enumerate(frame.column("run_id").unique().to_pylist()):
        pq.write_table(frame.slice(number, 1).replace_schema_metadata(metadata), folder / f"run-{run_id}.parquet")
    path.unlink()


def timed(name: str, work: Callable[[], Any]) -> Any:
    begun, processor = monotonic(), process_time()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    spent = f"{monotonic() - begun:.1f} s, {process_time() - processor:.1f} s of them on a processor"
    print(f"{name}: {spent}, at most {peak:,} MiB so far", flush=True)
    return result


if __name__ == "__main__":
    main()
