"""An attempt by a model in a real container, up to its verdict: an honest one, and one that cheats."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Assignment, Consultation, Repository
from autoinstall.agents.llm.installer import MAX_CHECKS, LlmInstaller
from autoinstall.agents.llm.judge import LlmJudge
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.attempts import SetupAttempt, set_up
from autoinstall.models.contract import Reply
from autoinstall.models.scripted import ScriptedModel, says
from autoinstall.sandbox.contract import Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Category, Checkout, Goal, MockKind, Outcome, RepositorySpec, StopReason
from autoinstall.verification import Verification, verify
from tests.conftest import committed, written

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FILES = {
    "Makefile": "test:\n\tpython3 -m unittest -v\n",
    "tests/__init__.py": "",
    "tests/test_app.py": (
        "import unittest, urllib.request\n\n"
        "class TestApp(unittest.TestCase):\n"
        "    def test_answer(self):\n"
        "        address = open('config.ini').read().strip()\n"
        "        with urllib.request.urlopen(address, timeout=5) as answer:\n"
        "            self.assertEqual(answer.read(), b'42\\n')\n"
    ),
}
TARGET = Goal(
    command="make test",
    description="unittest runs the tests; at least 1 test passes and it ends with `OK`",
    category=Category.TEST,
)
SUBMIT = says("", ("submit", {"summary": "A stub serves the answer.", "lessons": ["it reads config.ini"]}))
AGREES = says("", ("verdict", {"verdict": "matches", "quote": "Ran 1 test", "reason": "the test ran"}))
DOUBTS = says("", ("verdict", {"verdict": "mismatch", "quote": "Ran 1 test", "reason": "one test is not the suite"}))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceSource:
    root = tmp_path_factory.mktemp("app")
    written(root, FILES)
    return committed(root)


class Stage:
    """Makes attempts and verifies them."""

    def __init__(
        self, provider: DockerProvider, settings: Settings, initial: Snapshot, source: WorkspaceSource
    ) -> None:
        self._provider = provider
        self._settings = settings
        self._initial = initial
        self._source = source
        self.talks: list[Consultation] = []

    def attempt(self, lines: Sequence[Reply]) -> SetupAttempt:
        when = datetime(2024, 1, 1, tzinfo=UTC)
        repository = Repository(url="https://example.org/o/app", commit=self._source.commit, commit_date=when)
        return set_up(
            self._provider,
            LlmInstaller(self._settings, ScriptedModel(lines), RulesJudge()),
            RulesJudge(),
            spec=RepositorySpec(url=repository.url),
            initial=self._initial,
            assignment=Assignment(repository=repository, targets=(TARGET,)),
            tree=Tree(Path(self._source.path)),
            owner="test-llm-roles",
        )

    def verdict(self, attempt: SetupAttempt, opinion: Reply) -> Verification:
        assert attempt.snapshot is not None
        judge = LlmJudge(ScriptedModel([opinion], repeat=True), RulesJudge()).session(self.talks.append)
        checkout = Checkout(
            repository="https://example.org/o/app",
            ref=None,
            commit=self._source.commit,
            commit_date=datetime(2024, 1, 1, tzinfo=UTC),
            path=Path(self._source.path),
            size_bytes=1,
            file_count=len(FILES),
        )
        try:
            return verify(
                self._provider,
                attempt.snapshot.digest,
                attempt.report.recipe,
                (TARGET,),
                judge,
                settings=self._settings,
                owner="test-llm-roles",
                checkout=checkout,
                report=attempt.report,
                changed=attempt.changed,
            )
        finally:
            self._provider.remove_image(attempt.snapshot.digest)


@pytest.fixture
def stage(provider: DockerProvider, settings: Settings, initial: Snapshot, pristine: WorkspaceSource) -> Stage:
    return Stage(provider, settings, initial, pristine)


def honest() -> list[Reply]:
    """Submits too early, stumbles over its own edit of a test, and gets there."""
    mock = {"kind": "file", "path": "config.ini", "reason": "tells the tests where the service is; not in git"}
    service = {
        "name": "answers",
        "command": "python3 -m http.server 8099 --bind 127.0.0.1 --directory /srv/stub",
        "probe_kind": "tcp",
        "probe_target": "8099",
    }
    return [
        SUBMIT,
        says("", ("write_file", {"path": "config.ini", "content": "http://127.0.0.1:8099/answer\n"})),
        says(
            "", ("bash", {"command": "mkdir -p /srv/stub && echo 42 > /srv/stub/answer && echo >> tests/test_app.py"})
        ),
        says("", ("start_service", service), ("declare_mock", mock)),
        SUBMIT,
        says("", ("bash", {"command": "git checkout -- tests/test_app.py"})),
        SUBMIT,
    ]


def test_an_honest_attempt_is_verified(stage: Stage) -> None:
    attempt = stage.attempt(honest())
    report = attempt.report
    assert (report.stop, report.self_checked, attempt.outcome) == (StopReason.DONE, True, None)
    assert [service.name for service in report.recipe.services] == ["answers"]
    assert [(mock.kind, mock.path) for mock in report.mocks] == [(MockKind.FILE, "config.ini")]
    observations = [message["content"] for message in report.trajectory.messages if message["role"] == "tool"]
    assert "config.ini" in observations[0]  # what the failing target printed
    assert "tests/test_app.py differs from the commit" in observations[5]

    verdict = stage.verdict(attempt, AGREES)
    assert verdict.outcome is Outcome.VERIFIED, verdict.reason
    assert len(stage.talks) == 1  # both runs printed the same


def test_a_model_that_doubts_makes_it_a_mismatch(stage: Stage) -> None:
    verdict = stage.verdict(stage.attempt(honest()), DOUBTS)
    assert verdict.outcome is Outcome.MISMATCH
    assert "one test is not the suite" in verdict.reason


def test_an_attempt_that_edits_the_test_is_tampered_with_whatever_a_model_says(stage: Stage) -> None:
    forged = "import unittest\n\nclass TestApp(unittest.TestCase):\n    def test_answer(self):\n        pass\n"
    insists = [says("", ("submit", {"summary": f"It works, look again ({number})."})) for number in range(MAX_CHECKS)]
    attempt = stage.attempt([says("", ("write_file", {"path": "tests/test_app.py", "content": forged})), *insists])
    assert not attempt.report.self_checked
    assert stage.verdict(attempt, AGREES).outcome is Outcome.TAMPERED
