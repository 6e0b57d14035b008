import os
import pty
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from dataset_rows import environment, run

import autoinstall
from autoinstall.datasets.reader import load
from autoinstall.datasets.records import Target
from autoinstall.datasets.writer import write_run
from autoinstall.environment import names_registry, open_environment, reverify
from autoinstall.errors import ImageUnavailable, StorageFailed
from autoinstall.sandbox.contract import Snapshot
from autoinstall.settings import Settings
from autoinstall.values import CommandResult, Judgement, Limits, Probe, Service

ROOT = Path(__file__).resolve().parents[2]


class _Sandbox:
    def __init__(self):
        self.calls = []
        self.files = {}

    def run(self, command, *, timeout=None, user=None, env=None):
        self.calls.append((command, timeout))
        return CommandResult(command=command, exit_code=0, output="ok")

    def write_file(self, path, content, *, executable=False, user=None):
        self.files[path] = content

    def read_file(self, path):
        return self.files[path]


class _Provider:
    """Remembers what it was asked for."""

    def __init__(self, *images):
        self.images = set(images)
        self.pulled = []
        self.specs = []
        self.released = set()
        self.opened = 0

    def image_exists(self, reference):
        return reference in self.images

    def ensure_base(self, name=None):
        self.pulled.append(name)
        return Snapshot(reference=name, digest="sha256:x", size_bytes=1)

    def prepare(self, spec):
        del spec

    def release(self, owner):
        self.released.add(owner)

    @contextmanager
    def open(self, spec):
        self.specs.append(spec)
        self.opened += 1
        try:
            yield _Sandbox()
        finally:
            self.opened -= 1


def test_an_environment_starts_from_its_row_alone(tmp_path):
    write_run(tmp_path, run("r1"))
    record = environment("r1")
    provider = _Provider(record.image_digest)
    with open_environment(load(tmp_path, "environments").iloc[0], provider=provider) as env:
        assert provider.opened == 1
        assert env.run("pytest -q", timeout=5).output == "ok"
        assert env.sandbox.calls == [("pytest -q", 5)]
        env.write_file("a.txt", "text")
        assert env.read_file("a.txt") == b"text"
        assert env.record == record
    assert provider.opened == 0
    spec = provider.specs[0]
    assert spec.image == record.image_digest
    assert spec.recipe == record.recipe
    assert spec.limits == record.limits
    assert spec.network


def test_the_image_is_found_by_reference_where_its_digest_is_not():
    provider = _Provider("autoinstall/env:abc")
    with open_environment(environment("r1"), provider=provider, network=False):
        pass
    assert provider.specs[0].image == "autoinstall/env:abc"
    assert not provider.specs[0].network
    assert provider.pulled == []


def test_an_absent_image_is_pulled_from_the_registry_that_it_names():
    provider = _Provider()
    with open_environment(environment("r1", image="registry.example:5000/env:1"), provider=provider):
        pass
    assert provider.pulled == ["registry.example:5000/env:1"]


def test_an_absent_image_without_a_registry_is_a_clear_error():
    with (
        pytest.raises(ImageUnavailable, match="not on this engine") as caught,
        open_environment(environment("r1"), provider=_Provider()),
    ):
        pytest.fail("opened")
    assert "registry" in caught.value.hint


class _Judge:
    name = "fake"

    def __init__(self, *verdicts):
        self.verdicts = list(verdicts)

    def judge(self, goal, result):
        return Judgement(verdict=self.verdicts.pop(0), reason=goal.description)


def test_an_environment_is_verified_again_from_its_row_in_fresh_containers(tmp_path):
    write_run(tmp_path, run("r1"))
    record = autoinstall.environments(tmp_path)[0]
    provider = _Provider(record.image_digest)
    settings = Settings(_env_file=None)
    found = reverify(record, provider=provider, judge=_Judge(*["matches"] * 4), settings=settings)
    assert found.verified
    assert [spec.recipe for spec in provider.specs] == [record.recipe] * settings.verification.runs
    assert [result.goal for result in found.runs[0]] == list(record.goals)
    differing = _Judge("matches", "matches", "mismatch", "matches")
    found = reverify(record, provider=provider, judge=differing, settings=settings)
    assert found.outcome == "flaky"
    assert provider.released == {spec.owner for spec in provider.specs}


def test_something_else_than_a_row():
    with pytest.raises(StorageFailed), open_environment({"a": 1}, provider=_Provider()):
        pytest.fail("opened")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("autoinstall/env:1", False),
        ("debian", False),
        ("localhost/env", True),
        ("host:5000/env", True),
        ("ghcr.io/o/env@sha256:1", True),
    ],
)
def test_whether_a_reference_names_its_registry(reference, expected):
    assert names_registry(reference) is expected


def test_importing_the_package_is_cheap():
    heavy = "pandas", "pyarrow", "docker", "prefect"
    code = f"import autoinstall, sys; sys.exit(', '.join(n for n in {heavy} if n in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert autoinstall.open_environment is open_environment
    with pytest.raises(AttributeError):
        _ = autoinstall.nothing


# --- with an engine


@pytest.fixture(scope="module")
def row(workspace_image, tmp_path_factory):
    """A directory whose datasets hold one environment with a service, as another machine would find it."""
    data = tmp_path_factory.mktemp("data")
    record = environment(
        "r1",
        image=workspace_image.reference,
        image_digest=workspace_image.digest,
        env={"GREETING": "hello there"},
        services=(
            Service(
                name="web",
                command="python3 -m http.server 8123",
                probe=Probe(kind="http", target="http://localhost:8123/README.md"),
            ),
        ),
        sidecars=(),
        limits=Limits(command_seconds=60, memory_mb=512),
        targets=(
            Target(command="curl -fsS localhost:8123/README.md", description='prints "A sample"'),
            Target(command="python3 src/main.py; exit 3", description='prints "hello"', exit_codes=(3,)),
        ),
    )
    write_run(data, run("r1").model_copy(update={"environment": record}))
    return data


def _autoinstall(data, *arguments, **options):
    command = [sys.executable, "-m", "cli.main", *arguments, "--data", str(data)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300, **options)


@pytest.mark.docker
def test_a_row_alone_is_verified_again(row, provider):
    record = autoinstall.find_environment(row, "name-")
    judge = _Judge(*["matches"] * 4)
    found = reverify(record, provider=provider, judge=judge, settings=Settings(_env_file=None))
    assert found.verified, found.reason
    assert [result.result.exit_code for result in found.runs[0]] == [0, 3]
    assert found.runs[0][0].result.output == "A sample\n"


@pytest.mark.docker
def test_an_environment_serves_a_trainer(row, provider):
    with open_environment(load(row, "environments").iloc[0], provider=provider) as env:
        assert env.run("echo $GREETING").output == "hello there\n"
        assert env.run("curl -fsS localhost:8123/README.md").output == "A sample\n"
        env.write_file("new/file.txt", "text")
        assert env.read_file("/workspace/new/file.txt") == b"text"
        assert env.run("sleep 30", timeout=1).timed_out
        assert env.run("exit 4").exit_code == 4


@pytest.mark.docker
def test_a_command_in_a_shell(row):
    done = _autoinstall(row, "shell", "name-", "-c", "echo $GREETING; exit 5")
    assert (done.stdout, done.returncode) == ("hello there\n", 5), done.stderr


@pytest.mark.docker
def test_an_interactive_shell(row):
    command = [sys.executable, "-m", "cli.main", "shell", "name-", "--data", str(row)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        seen = b""
        try:
            seen = _until(ours, b"# ")
            os.write(ours, b'tty; pwd; echo "$GREETING" | tr a-z A-Z; exit 6\n')
            seen = _until(ours, b"HELLO THERE")
            assert process.wait(timeout=60) == 6
        finally:
            process.kill()
            os.close(ours)
    assert b"/dev/pts/" in seen
    assert b"/workspace" in seen


def _until(descriptor, expected, seconds=90):
    seen = b""
    deadline = time.monotonic() + seconds
    while expected not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"no {expected!r} in {seconds} s: {seen!r}"
        try:
            seen += os.read(descriptor, 4096)
        except OSError:  # the other side is closed
            pytest.fail(f"it ended before {expected!r}: {seen!r}")
    return seen
