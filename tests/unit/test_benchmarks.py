"""Benchmarks are no tests, but they have to run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_loop_is_measured_with_scripted_parts() -> None:
    command = [sys.executable, "benchmarks/loop.py", "--steps", "5"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert "own time of a step: median" in done.stdout
