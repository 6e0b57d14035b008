"""Hints beside the outputs of commands that failed."""

import pytest

from autoinstall.agents.llm.tools.bash import _FRAME
from autoinstall.agents.llm.tools.hints import MOST, hint_table, hints_for

OUTPUTS = {
    "pep668": "error: externally-managed-environment\n\n× This environment is externally managed",
    "apt_end_of_life": "E: The repository 'http://deb.example.org/debian buster Release' does not have a Release file.",
    "apt_expired": "E: Release file for http://deb.example.org/debian/dists/x/InRelease is expired (invalid since 3d).",
    "pkg_resources": "ModuleNotFoundError: No module named 'pkg_resources'",
    "newer_than_commit": "ImportError: cannot import name 'escape' from 'jinja2' (/opt/venv/jinja2/__init__.py)",
    "unreachable": "fatal: unable to access 'https://git.example.org/': Could not resolve host: git.example.org",
    "interactive": "EOFError: EOF when reading a line",
    "missing_header": "src/a.c:1:10: fatal error: libpq-fe.h: No such file or directory",
    "gpu": "RuntimeError: Found no NVIDIA driver on your system.",
}


@pytest.mark.parametrize(("name", "output"), OUTPUTS.items())
def test_a_class_of_failure_has_its_remedy(name: str, output: str) -> None:
    table = {hint.name: hint.text for hint in hint_table()}
    assert table[name] in hints_for(output)


def test_every_hint_is_tried_and_the_common_outputs_have_none() -> None:
    assert {hint.name for hint in hint_table()} == set(OUTPUTS)
    assert hints_for("3 failed, 12 passed in 1.2s\nFAILED tests/test_a.py::test_b - assert 1 == 2") == ()


def test_hints_leave_room_for_the_output() -> None:
    assert len(hints_for("\n".join(OUTPUTS.values()))) == MOST
    assert sum(sorted((len(hint.text) + 3 for hint in hint_table()), reverse=True)[:MOST]) < _FRAME - 400
