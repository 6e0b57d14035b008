import base64
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autoinstall.datasets.writer import ensure_writable
from notebooks.sample_nights import write_nights

ROOT = Path(__file__).parents[2]
CHARTS = 11


def notebook():
    return nbformat.read(ROOT / "notebooks/yield.ipynb", as_version=4)


def from_checkout(path):
    return os.path.relpath(path, ROOT)


def executed(data, monkeypatch, kernel_home):
    """The notebook with its outputs, run as Jupyter does: in a kernel of its own, which starts beside the notebook.
    The place of the datasets is given as seen from the checkout."""
    monkeypatch.setenv("AUTOINSTALL_DATA", from_checkout(data))
    monkeypatch.setenv("IPYTHONDIR", str(kernel_home))
    monkeypatch.setenv("MPLCONFIGDIR", str(kernel_home))
    found = notebook()
    NotebookClient(found, timeout=300, resources={"metadata": {"path": str(ROOT / "notebooks")}}).execute()
    return found


def images(found):
    outputs = [output for cell in found.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    return [base64.b64decode(output.data["image/png"]) for output in outputs if "image/png" in output.get("data", {})]


@pytest.mark.slow
def test_every_chart_is_drawn_of_two_weeks_of_nights(tmp_path, monkeypatch):
    write_nights(tmp_path / "data", nights=9, repositories=200)
    found = executed(tmp_path / "data", monkeypatch, tmp_path)
    pictures = images(found)
    assert len(pictures) == CHARTS
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 8000 for picture in pictures)
    (said,) = found.cells[1].outputs
    assert said.name == "stdout"
    assert said.text.startswith(f"{ROOT / from_checkout(tmp_path / 'data')}: 1,800 runs of repositories in 9 nights, ")


@pytest.mark.slow
def test_it_runs_before_the_first_night_has_come(tmp_path, monkeypatch):
    ensure_writable(tmp_path / "data")
    found = executed(tmp_path / "data", monkeypatch, tmp_path)
    assert len(images(found)) == CHARTS
    (said,) = found.cells[1].outputs
    assert said.name == "stderr"
    assert f"NOTHING TO SHOW: {ROOT / from_checkout(tmp_path / 'data')} has no run" in said.text


def test_no_outputs_are_kept_in_the_file():
    cells = [cell for cell in notebook().cells if cell.cell_type == "code"]
    assert cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
