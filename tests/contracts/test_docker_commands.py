"""Real processes: limits, output, background processes, prompts, and what a command cannot break."""

import contextlib
import resource
import threading
import time
from collections.abc import Iterator

import pytest

from autoinstall.errors import SandboxBroken, SandboxLost
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.sandbox.exec import Executor
from autoinstall.settings import LimitSettings, Settings
from autoinstall.values import Limits

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def sandbox(provider: DockerProvider, workspace_image: Snapshot) -> Iterator[Sandbox]:
    spec = SandboxSpec(image=workspace_image.digest, limits=Limits(memory_mb=512, pids=256), purpose="test")
    with provider.open(spec) as sandbox:
        yield sandbox


def processes(sandbox: Sandbox, marker: str) -> str:
    """Command lines of live processes that have `marker` in their environment."""
    listing = f"cd /proc; for p in [0-9]*; do grep -qs {marker}=1 $p/environ && tr '\\0' ' ' <$p/cmdline; done; true"
    return sandbox.run(listing).output


def test_at_its_limit_the_whole_tree_is_dead_and_the_sandbox_serves(sandbox: Sandbox) -> None:
    sandbox.run("sleep 1001 &", env={"EARLIER": "1"})
    tree = """
    trap '' TERM INT HUP
    setsid sleep 1002 &
    (setsid bash -c 'trap "" TERM; (sleep 1003; true) & disown; exec sleep 1004' &) &
    nohup bash -c 'while true; do (sleep 0.01 &); done' >/dev/null 2>&1 &
    echo printed
    while true; do sleep 1005; done
    """
    started = time.monotonic()
    result = sandbox.run(tree, timeout=2, env={"TREE": "1"})
    assert time.monotonic() - started < 2 + 5
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert "printed" in result.output
    assert processes(sandbox, "TREE") == ""
    assert "sleep 1001" in processes(sandbox, "EARLIER")
    assert sandbox.run("echo still here").output == "still here\n"


def test_a_shell_that_ends_with_its_sandbox_is_nobodys_fault(
    workspace_image: Snapshot, provider: DockerProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:

        def broken(*_: object, **__: object) -> None:
            raise SandboxBroken("No shell can be started in the sandbox any more.")

        monkeypatch.setattr(Executor, "run", broken)
        with pytest.raises(SandboxBroken):
            sandbox.run("true")
        sandbox.close()  # as another thread does when a night is ended
        with pytest.raises(SandboxLost) as caught:
            sandbox.run("true")
        assert not isinstance(caught.value, SandboxBroken)


def test_a_command_that_does_nothing_any_more_is_ended_before_its_limit(workspace_image: Snapshot) -> None:
    provider = DockerProvider(Settings(limits=LimitSettings(idle_seconds=4)))
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        hung = sandbox.run("echo begun; sleep 1008 | cat", timeout=120, env={"HUNG": "1"})
        assert (hung.idle, hung.timed_out, hung.exit_code, hung.output) == (True, True, 124, "begun\n")
        assert hung.duration < 60
        assert processes(sandbox, "HUNG") == ""
        talking = "for i in 1 2 3 4; do sleep 2; echo $i; done"
        assert sandbox.run(f"timeout 8 sh -c 'while :; do :; done' & {talking} >/dev/null; wait $!").duration > 7
        result = sandbox.run(talking, timeout=120)
        assert (result.exit_code, result.idle) == (0, False)
        short = sandbox.run("sleep 1009", timeout=1)
        assert (short.timed_out, short.idle) == (True, False)


def test_a_flood_of_output_costs_little_memory(sandbox: Sandbox) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = sandbox.run("echo head; head -c 1G /dev/zero; echo tail", timeout=300)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.exit_code == 0
    assert result.output.startswith("head\n")
    assert result.output.endswith("tail\n")
    assert result.dropped_bytes == 2**30 + 10 - 256 * 1024
    assert grown_kib < 64 * 1024


@pytest.mark.parametrize(
    ("command", "code"),
    [("nonexistent-command", 127), ("/etc/passwd", 126), ("kill -SEGV $$", 139), ("kill -9 $$", 137), ("exit 300", 44)],
)
def test_exit_codes_keep_their_meaning(sandbox: Sandbox, command: str, code: int) -> None:
    assert sandbox.run(command).exit_code == code


def test_both_streams_come_in_order_and_whole(sandbox: Sandbox) -> None:
    result = sandbox.run("for i in 1 2 3; do echo out$i; echo err$i >&2; done; printf 'no newline é€😀'")
    assert result.output == "out1\nerr1\nout2\nerr2\nout3\nerr3\nno newline é€😀"


def test_a_background_process_does_not_hold_the_call(sandbox: Sandbox) -> None:
    started = time.monotonic()
    result = sandbox.run("(while true; do echo noise; done) & echo $! >/tmp/noisy; sleep 0.2; echo done", timeout=60)
    assert time.monotonic() - started < 10
    assert result.exit_code == 0
    assert "done" in result.output
    # It neither blocks nor dies because nobody listens any more.
    ticks = "cut -d' ' -f14 /proc/$(cat /tmp/noisy)/stat"
    first = int(sandbox.run(ticks).output)
    time.sleep(0.5)
    assert int(sandbox.run(ticks).output) > first
    sandbox.run("kill -9 $(cat /tmp/noisy)")


def test_everything_printed_before_the_end_is_delivered(sandbox: Sandbox) -> None:
    result = sandbox.run("sleep 60 & seq 20000; echo last")
    assert result.output.splitlines() == [*map(str, range(1, 20001)), "last"]


@pytest.mark.parametrize(
    "command",
    [
        "read x </dev/tty",
        "read x && echo got",
        "python3 -c 'input()'",
        "cat /dev/stdin && false",
        "ssh-keygen -y -f /dev/tty",
    ],
)
def test_questions_fail_at_once(sandbox: Sandbox, command: str) -> None:
    result = sandbox.run(command, timeout=20)
    assert not result.timed_out
    assert result.exit_code != 0


def test_packages_are_configured_without_questions(sandbox: Sandbox) -> None:
    result = sandbox.run("dpkg-reconfigure tzdata", timeout=60)
    assert (result.exit_code, result.timed_out) == (0, False), result.output


def test_memory_is_limited_and_a_kill_for_it_is_told(sandbox: Sandbox) -> None:
    hog = "python3 -c 'x = bytearray(2 * 2**30)'"
    result = sandbox.run(f"{hog}; echo survived; exit 5", timeout=60)
    assert (result.out_of_memory, result.exit_code) == (True, 5)
    assert "survived" in result.output
    assert not sandbox.run("true").out_of_memory


def test_a_fork_bomb_hits_the_limit_and_is_cleared(provider: DockerProvider, workspace_image: Snapshot) -> None:
    limits = Limits(pids=64, cpus=0.5)
    with provider.open(SandboxSpec(image=workspace_image.digest, limits=limits, purpose="test")) as sandbox:
        result = sandbox.run("bomb() { bomb | bomb & }; bomb; sleep 100", timeout=1)
        assert result.timed_out
        assert sandbox.run("echo fine").output == "fine\n"


@pytest.mark.parametrize("command", ["kill -9 $PPID; sleep 0.2", "kill -9 -1; sleep 5", "pkill -9 bash; sleep 5"])
def test_a_command_that_kills_in_all_directions_ends_itself_only(
    provider: DockerProvider, workspace_image: Snapshot, command: str
) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        started = time.monotonic()
        result = sandbox.run(command, timeout=20)
        assert time.monotonic() - started < 10
        assert isinstance(result.exit_code, int)
        assert result.exit_code != 0
        assert sandbox.run("echo fine").output == "fine\n"


def test_directory_and_exports_do_not_outlive_a_call(sandbox: Sandbox) -> None:
    sandbox.run("cd /tmp; export LEAKED=1; python3 -m venv --without-pip /tmp/v && . /tmp/v/bin/activate; alias x=y")
    result = sandbox.run('pwd; echo "[${LEAKED-}${VIRTUAL_ENV-}]"')
    assert result.output == "/workspace\n[]\n"


def test_git_works_whoever_runs_it(sandbox: Sandbox) -> None:
    assert "nothing to commit" in sandbox.run("git status").output
    assert sandbox.run("git log --oneline", user="nobody").exit_code == 0


def test_orphans_are_reaped(sandbox: Sandbox) -> None:
    sandbox.run("for i in 1 2 3; do (setsid sleep 0.1 &); done; sleep 0.5")
    assert "Z" not in sandbox.run("cut -d' ' -f3 /proc/[0-9]*/stat | sort -u").output


def test_commands_that_cannot_start_are_results(sandbox: Sandbox) -> None:
    absent = sandbox.run("true", user="nosuchuser")
    assert absent.exit_code != 0
    assert "nosuchuser" in absent.output
    assert sandbox.run("echo " + "x" * 200_000).exit_code == 126
    assert sandbox.run("echo a\0b").exit_code == 126


@pytest.mark.parametrize(
    "command",
    [
        "rm -f /bin/bash /usr/bin/bash",
        "printf '#!/bin/sh\\nexit 0\\n' > /opt/bash && chmod +x /opt/bash && mv /opt/bash /usr/bin/bash",
        "rm /lib/*-linux-gnu/libc.so.6",
    ],
)
def test_a_sandbox_whose_shell_was_broken_is_told_from_one_that_is_gone(
    provider: DockerProvider, workspace_image: Snapshot, command: str
) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        with contextlib.suppress(SandboxBroken):
            sandbox.run(command)
        with pytest.raises(SandboxBroken):
            sandbox.run("true")


def test_a_sandbox_that_is_gone_is_no_result(provider: DockerProvider, workspace_image: Snapshot) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        assert sandbox.run("true").duration < 2
        provider.client.api.kill(sandbox.id)
        with pytest.raises(SandboxLost):
            sandbox.run("true")
        with pytest.raises(SandboxLost):
            sandbox.write_file("x", b"")


@pytest.mark.parametrize("end", ["kill", "close"])
def test_a_sandbox_that_ends_in_the_middle_is_no_result(
    provider: DockerProvider, workspace_image: Snapshot, end: str
) -> None:
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test")) as sandbox:
        ends = {"kill": lambda: provider.client.api.kill(sandbox.id), "close": sandbox.close}
        ender = threading.Timer(1, ends[end])
        ender.start()
        started = time.monotonic()
        with pytest.raises(SandboxLost):
            sandbox.run("sleep 60", timeout=120)
        assert time.monotonic() - started < 30
        ender.join()
