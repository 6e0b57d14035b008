"""What a line of the log carries."""

import logging

import pytest

from autoinstall.logs import (
    COMMAND_CHARACTERS,
    LINE_CHARACTERS,
    NAME_CHARACTERS,
    about,
    fields_of,
    log_command,
    telling,
)
from autoinstall.redaction import hiding, one_line
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.values import CommandResult

SPEC = SandboxSpec(image="sha256:1", purpose="verify-1")


def logged(caplog: pytest.LogCaptureFixture, command: str, exit_code: int = 0, **ended: bool) -> logging.LogRecord:
    caplog.set_level(logging.INFO, "autoinstall")
    with telling():
        log_command(SPEC, CommandResult(command=command, exit_code=exit_code, output="", duration=3.21, **ended))
    return caplog.records[-1]


def test_a_command_names_its_repository_and_attempt(caplog: pytest.LogCaptureFixture) -> None:
    with about(repository="owner/name"), about(attempt=2):
        record = logged(caplog, "pytest -q", 1)
        fields = fields_of(record)
    assert record.getMessage() == "owner/name, attempt 2, verify-1: exit code 1 after 3.2 s: pytest -q"
    assert fields == {
        "repository": "owner/name",
        "attempt": 2,
        "purpose": "verify-1",
        "command": "pytest -q",
        "exit_code": 1,
        "seconds": 3.2,
    }
    assert "attempt" not in fields_of(record)  # of another context


def test_a_set_up_attempt_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with about(repository="owner/name", attempt=2), telling():
        caplog.set_level(logging.INFO, "autoinstall")
        result = CommandResult(command="make", exit_code=0, output="", duration=1)
        log_command(SandboxSpec(image="sha256:1", purpose="attempt-2"), result)
    assert caplog.messages == ["owner/name, attempt 2: exit code 0 after 1.0 s: make"]


def test_a_command_is_one_line_without_secrets_or_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    said = logged(caplog, "curl https://user:hidden@host/\x1b[2J\nand more\n", timed_out=True).getMessage()
    assert said.startswith("verify-1: exit code 0 (timed out) after 3.2 s: curl https://***@host/")
    assert said.endswith(" …")
    assert "hidden" not in said
    assert "\x1b" not in said
    assert "\n" not in said


def test_a_long_command_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    assert len(str(fields_of(logged(caplog, "x" * 10**6))["command"])) == COMMAND_CHARACTERS


def test_a_command_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert logged(caplog, " \n").getMessage().endswith("after 3.2 s: ")


def test_what_nobody_asked_for_is_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    probe = CommandResult(command="stat /workspace", exit_code=0, output="", duration=0.1)
    caplog.set_level(logging.INFO, "autoinstall")
    log_command(SPEC, probe)
    assert caplog.records == []
    caplog.set_level(logging.DEBUG, "autoinstall")
    log_command(SPEC, probe)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_a_line_is_bounded_whatever_its_parts_are(caplog: pytest.LogCaptureFixture) -> None:
    with about(repository="n" * 10**5):
        said = logged(caplog, "c" * 10**6).getMessage()
    assert len(said) < COMMAND_CHARACTERS + NAME_CHARACTERS + 100
    assert len(one_line("a b\n" * 10**6, LINE_CHARACTERS)) == LINE_CHARACTERS


def test_known_secrets_are_in_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with hiding("open sesame", "pa55"):
        assert logged(caplog, "login --password 'pa55'").getMessage().endswith(": login --password '***'")
        assert one_line("It said: open sesame.", 40) == "It said: ***."
        assert one_line("It said: open sesame.", 14) == "It said: ***."  # and not what a cut would leave of it
    assert one_line("open sesame", 40) == "open sesame"  # of another run
