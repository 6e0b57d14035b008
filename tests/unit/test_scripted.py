import re

import pytest

from autoinstall.errors import EngineUnavailable
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.settings import LimitSettings
from autoinstall.values import CommandResult


def test_responses_are_results_outputs_codes_or_functions() -> None:
    def tests(call: Call) -> str | tuple[int, str]:
        return "1 passed" if "pip install ." in call.sandbox.commands else (1, "No module named x")

    provider = ScriptedProvider(
        {
            "make": (2, "no rule"),
            "true": 0,
            re.compile(r"^echo "): lambda call: call.command.removeprefix("echo "),
            "pytest": tests,
            "slow": CommandResult(command="", exit_code=0, output="", timed_out=True),
        },
        default=127,
    )
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        assert (sandbox.run("make").exit_code, sandbox.run("make").output) == (2, "no rule")
        assert sandbox.run("true").exit_code == 0
        assert sandbox.run("echo hi").output == "hi"
        assert sandbox.run("pytest").exit_code == 1
        sandbox.run("pip install .")
        assert sandbox.run("pytest").output == "1 passed"
        assert sandbox.run("unknown").exit_code == 127
        slow = sandbox.run("slow")
        assert (slow.command, slow.exit_code, slow.timed_out) == ("slow", 124, True)
    assert provider.opened[0].commands[0] == "make"
    assert provider.opened[0].closed


def test_a_response_may_be_an_error() -> None:
    provider = ScriptedProvider({"x": EngineUnavailable("gone")})
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        with pytest.raises(EngineUnavailable):
            sandbox.run("x")
        assert sandbox.run("y").exit_code == 0
    assert provider.opened[0].closed


def test_output_is_bounded_as_the_settings_say() -> None:
    provider = ScriptedProvider(default="x" * 100, limits=LimitSettings(output_head_bytes=5, output_tail_bytes=5))
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        assert sandbox.run("any").dropped_bytes == 90


def test_images_keep_their_files_and_labels() -> None:
    provider = ScriptedProvider({"touch made": lambda call: call.sandbox.write_file("made", b"") or 0})
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        sandbox.run("touch made")
        snapshot = sandbox.snapshot(labels={"a": "b"})
    assert provider.snapshots == [snapshot]
    assert "/workspace/made" in provider.files(snapshot.digest)
    assert provider.labels(snapshot.reference) == {"a": "b"}
