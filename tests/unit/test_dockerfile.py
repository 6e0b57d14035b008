"""The Dockerfile of an attempt: what it says, and that it says the same when it is read back."""

import subprocess
from pathlib import Path

import pytest

from autoinstall.rebuild.dockerfile import Word, dockerfile, instructions, only_looks, variables_of
from autoinstall.rebuild.steps import Ran, Set, Started, Step, StepRecorder, Wrote
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.values import CommandResult, Probe, Recipe, Service

SERVICE = Service(name="queue", command="queue-server", probe=Probe(kind="tcp", target="5672"))


def text_of(*steps: Step, recipe: Recipe | None = None) -> str:
    return dockerfile("https://example.org/o/n", "c" * 40, "base:1", steps, recipe or Recipe())


def runs(*steps: Step) -> list[str]:
    """The commands of the steps, without those that write the environment's own files at the end."""
    return [item.text for item in instructions(text_of(*steps)) if item.word is Word.RUN][:-3]


def test_a_checkout_on_the_base() -> None:
    lines = text_of(Ran(command="make", succeeded=True)).splitlines()
    assert lines[1] == (
        f"# git clone https://example.org/o/n workspace && git -C workspace checkout {'c' * 40} "
        "&& docker build -f Dockerfile ."
    )
    assert lines[2:6] == ["FROM base:1", 'SHELL ["/bin/bash", "-c"]', "COPY workspace /workspace", "WORKDIR /workspace"]
    assert 'TZ="UTC"' in lines[6]
    assert lines[7] == "RUN make"
    assert lines[-2:] == ['ENTRYPOINT ["/opt/autoinstall/entrypoint"]', 'CMD ["bash"]']


@pytest.mark.parametrize(
    "command",
    [
        "pip install -e '.[test]'",
        "cat > a.txt <<'END'\nline $x \"quoted\" \\\nEND\n",
        "cat <<< word > a",
        "[ -e a ] || touch a",
        "--help || true",
        "touch a \\",
        "  touch a",
        "printf 'ü\\t\u2028' > a",
        "echo " + "x" * 100_000 + " > a",
    ],
)
def test_commands_are_read_back_as_they_were(tmp_path: Path, command: str) -> None:
    step = Ran(command=command, succeeded=True)
    assert max(len(line.encode()) for line in text_of(step).splitlines()) < 65_535
    found = runs(step)
    if len(command) < 60_000:
        assert found == [command]
    else:  # by way of a file
        for part in found:
            subprocess.run(["bash", "-c", part.replace("/opt/autoinstall", str(tmp_path))], cwd=tmp_path, check=True)
        assert (tmp_path / "a").stat().st_size == 100_001


@pytest.mark.parametrize("value", ["plain", 'a "b" $HOME \\ `c`', "", "ü = b"])
def test_variables_are_read_back_as_they_were(value: str) -> None:
    text = text_of(Set(name="SAID", value=value))
    found = [variables_of(item.text) for item in instructions(text) if item.word is Word.ENV]
    assert found[-1] == {"SAID": value}


def test_a_value_with_line_breaks_goes_with_each_command() -> None:
    (command,) = runs(Set(name="KEY", value="a\nb"), Ran(command='test "$KEY" = "a\nb"', succeeded=True))
    subprocess.run(["bash", "-c", command], check=True)


@pytest.mark.parametrize("content", [b"text\nof 'two' lines\n", b"\0\xff", b"", b"x" * 200_000])
@pytest.mark.parametrize("executable", [True, False])
def test_files_are_written_byte_for_byte(tmp_path: Path, content: bytes, executable: bool) -> None:
    path = tmp_path / "a b" / "file"
    for command in runs(Wrote(path=str(path), content=content, executable=executable)):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert path.read_bytes() == content
    assert bool(path.stat().st_mode & 0o100) is executable


def test_what_failed_is_tried_unless_it_was_run_again() -> None:
    failed, other = Ran(command="make it's", succeeded=False), Ran(command="apt-get install x", succeeded=True)
    assert runs(failed) == ["bash -c 'make it'\"'\"'s' || true"]
    assert runs(failed, other, failed.model_copy(update={"succeeded": True})) == [other.command, failed.command]


def test_checks_are_left_out() -> None:
    steps = [Ran(command="pytest -q", succeeded=False), Ran(command="make", succeeded=True)]
    text = dockerfile("https://example.org/o/n", "c" * 40, "base:1", steps, Recipe(), checks=["pytest -q"])
    assert "pytest" not in text
    assert "RUN make\n" in text


def test_users_and_variables_of_one_command() -> None:
    text = text_of(Ran(command="make check", succeeded=True, user="nobody", env={"A": "b c"}))
    assert "USER nobody\nRUN env 'A=b c' bash -c 'make check'\nUSER root\n" in text


def test_steps_have_the_services_that_came_before(tmp_path: Path) -> None:
    found = runs(Started(service=SERVICE), Ran(command="createdb x", succeeded=True))
    assert [command for command in found if "with-services" not in command and "start.sh" not in command] == []
    assert found[-1] == "/opt/autoinstall/with-services 'createdb x'"
    assert any("queue-server" in command and "start.sh" in command for command in found)


@pytest.mark.parametrize(
    ("command", "looks"),
    [
        ("cat a | grep b", True),
        ("ls -la; find . -name x 2>/dev/null", True),
        ("node --version", True),
        ("command -v mvn && mvn -v", True),
        ("cat a > b", False),
        ("find . -name x -delete", False),
        ("grep -q a b || make", False),
        ("echo $(make)", False),
        ("python setup.py install", False),
        ("", False),
    ],
)
def test_what_only_looks(command: str, looks: bool) -> None:
    assert only_looks(command) is looks
    assert (runs(Ran(command=command, succeeded=True)) == []) is looks


def test_what_is_done_to_a_sandbox_is_kept() -> None:
    late = CommandResult(command="sleep", exit_code=124, output="", timed_out=True)
    provider = ScriptedProvider({"make": 0, "fail": 2, "sleep": late})
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        recorder = StepRecorder(sandbox)
        recorder.run("make", user="nobody", env={"A": "b"})
        recorder.run("fail")
        recorder.run("sleep")
        recorder.write_file("a", b"x")
        recorder.set_env("B", "c")
        recorder.read_file("a")
        recorder.start_service(SERVICE)
    assert recorder.steps == [
        Ran(command="make", succeeded=True, user="nobody", env={"A": "b"}),
        Ran(command="fail", succeeded=False),
        Wrote(path="a", content=b"x"),
        Set(name="B", value="c"),
        Started(service=SERVICE),
    ]
