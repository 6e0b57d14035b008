"""Registries that do not answer: asked within seconds, told by name, and no reason to go on trying."""

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Assignment, Repository
from autoinstall.agents.rules.contract import Candidate, Context, Plan, Step
from autoinstall.agents.rules.ecosystems import all_ecosystems
from autoinstall.agents.rules.goal_setter import RulesGoalSetter
from autoinstall.agents.rules.installer import RulesInstaller
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.registries import (
    ANSWER_SECONDS,
    QUICK_SECONDS,
    RegistryTable,
    Survey,
    answers,
    is_network_failure,
    probe,
    registry_of,
    survey,
)
from autoinstall.agents.rules.repairs.modules import ModuleRepairer, ModuleTable, missing_modules
from autoinstall.agents.scripted import ScriptedJudge
from autoinstall.errors import RegistryUnreachable
from autoinstall.ledger import failure_of
from autoinstall.sandbox.contract import Sandbox, SandboxSpec
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import Category, CommandResult, Goal, Outcome, SetupReport, StopReason
from tests.conftest import written
from tests.unit.rules_contexts import Answers, context_of, scripted

REPOSITORY = Repository(url="https://example.com/o/n", commit="0" * 40, commit_date=datetime(2024, 1, 1, tzinfo=UTC))
SILENT = {"timeout 15 bash": (6, "curl: (6) Could not resolve host")}


def test_every_registry_belongs_to_ecosystems() -> None:
    known = {item.name for item in all_ecosystems()}
    for registry in load("registries", RegistryTable).registry:
        assert set(registry.ecosystems) <= known


def test_the_question_is_bounded_and_asked_with_the_tools_own_settings() -> None:
    registry = registry_of("python")
    assert registry is not None
    assert f"timeout {ANSWER_SECONDS} bash -c 'pip download" in probe(registry)
    assert all("://" not in item.question for item in load("registries", RegistryTable).registry)
    with scripted(SILENT) as sandbox:
        assert not answers("ruby", sandbox)
        assert answers("c", sandbox)
    with scripted({"timeout 15 bash": ""}) as sandbox:
        assert answers("ruby", sandbox)


class Slow:
    """Answers of a sandbox in which all questions together fail, and one alone does so as often as told."""

    def __init__(self, together: str, failures: int, seconds: float = 15.0) -> None:
        self.together, self.failures, self.seconds, self.alone = together, failures, seconds, 0

    def __call__(self, call: Call) -> CommandResult:
        if "\nwait" in call.command:
            return CommandResult(command=call.command, exit_code=0, output=self.together)
        self.alone += 1
        code = 124 if self.alone <= self.failures else 0
        return CommandResult(command=call.command, exit_code=code, output="", duration=self.seconds)


def asked_of(slow: Slow) -> AbstractContextManager[Sandbox]:
    provider = ScriptedProvider({re.compile("timeout 15 bash"): slow})
    return provider.open(SandboxSpec(image=provider.ensure_base().reference))


@pytest.mark.parametrize(("failures", "answered", "questions"), [(0, True, 1), (1, True, 2), (2, False, 2)])
def test_an_answer_that_is_slow_is_asked_for_once_more(failures: int, answered: bool, questions: int) -> None:
    slow = Slow("", failures)
    with asked_of(slow) as sandbox:
        assert answers("python", sandbox) is answered
    assert slow.alone == questions


def test_a_quick_refusal_is_not_asked_for_again() -> None:
    refused = Slow("", 9, seconds=QUICK_SECONDS - 1)
    with asked_of(refused) as sandbox:
        assert not answers("python", sandbox)
    assert refused.alone == 1


def test_all_are_asked_at_once_and_those_that_took_long_alone() -> None:
    names = [item.name for item in load("registries", RegistryTable).registry]
    ended = dict.fromkeys(range(len(names)), (0, 1)) | {1: (6, 0), 3: (124, 15), 4: (1, 8)}
    del ended[5]  # was under way when the time was over
    slow = Slow("".join(f"{index} {code} {seconds}\n" for index, (code, seconds) in ended.items()), failures=1)
    with asked_of(slow) as sandbox:
        assert survey(sandbox) == Survey(silent=(names[1], names[3]), slow=(names[4], names[5]))
    assert slow.alone == 3


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Could not fetch specs from https://x/ due to underlying error <Net::OpenTimeout: Failed to open TCP", True),
        ("curl error 6 while downloading https://x/packages.json: Could not resolve host: x", True),
        ("npm error code EAI_AGAIN", True),
        ("dial tcp: lookup x: no such host", True),
        ("invalid peer certificate: UnknownIssuer", True),
        (
            "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: x'))",
            True,
        ),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN", True),
        ("tls: failed to verify certificate: x509: certificate signed by unknown authority", True),
        ("PKIX path building failed: unable to find valid certification path", True),
        ("error: could not compile `x`", False),
        ("No module named 'x'", False),
    ],
)
def test_messages_of_networks(output: str, expected: bool) -> None:
    assert is_network_failure(output) is expected


def test_it_is_no_fault_of_the_repository() -> None:
    failure = failure_of(RegistryUnreachable("x"))
    assert (failure.outcome, failure.code) == (Outcome.INFRASTRUCTURE, "registry_unreachable")


class Language:
    """An ecosystem that needs its registry: `main` or only beside another."""

    tools = frozenset({"gem"})

    def __init__(self, name: str, suffix: str, plan: Plan | None) -> None:
        self.name = name
        self.suffixes = frozenset({suffix})
        self._plan = plan

    def detect(self, tree: Tree) -> bool:
        return True

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        if self._plan is None:
            raise RegistryUnreachable("far away")
        goal = Goal(command=f"{self.name} test", description="runs the tests; 3 tests pass", category=Category.TEST)
        return (Candidate(goal=goal, weight=50),)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        if self._plan is None:
            raise RegistryUnreachable("far away")
        return self._plan


def _install(root: Path, languages: list[Language], answers: Answers, files: Mapping[str, str]) -> SetupReport:
    targets = (Goal(command="gem test", description="runs the tests; 3 tests pass"),)
    judge = ScriptedJudge()
    installer = RulesInstaller(Settings(), judge, ecosystems=languages, repairers=[ModuleRepairer()])
    with scripted(answers) as sandbox:
        return installer.install(
            Assignment(repository=REPOSITORY, targets=targets), Tree(written(root, files)), sandbox
        )


def test_goal_setting_ends_where_the_main_language_needs_it(tmp_path: Path) -> None:
    tree = Tree(written(tmp_path, {"a.rb": "1", "b.rb": "1", "c.sh": "1"}))
    far, near = Language("ruby", ".rb", None), Language("shell", ".sh", Plan(steps=()))
    with scripted() as sandbox:
        with pytest.raises(RegistryUnreachable):
            RulesGoalSetter(Settings(), [far, near]).propose(REPOSITORY, tree, sandbox)
        beside = Language("ruby", ".sh", None)
        assert RulesGoalSetter(Settings(), [Language("shell", ".rb", Plan(steps=())), beside]).propose(
            REPOSITORY, tree, sandbox
        )


def test_a_step_that_fails_for_the_network_is_neither_repaired_nor_tried_again(tmp_path: Path) -> None:
    plan = Plan(steps=(Step(command="gem install"),))
    failing = {"gem install": (1, "Could not resolve host: x")}
    with pytest.raises(RegistryUnreachable, match="`gem install`"):
        _install(tmp_path, [Language("ruby", ".rb", plan)], {**failing, **SILENT}, {"a.rb": "1"})
    answering = _install(tmp_path, [Language("ruby", ".rb", plan)], {**failing, "timeout 15 bash": ""}, {"a.rb": "1"})
    assert answering.stop is StopReason.DONE


def test_a_plan_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnreachable):
        _install(tmp_path, [Language("ruby", ".rb", None)], {}, {"a.rb": "1"})


def test_a_target_that_misses_what_only_the_registry_has(tmp_path: Path) -> None:
    missing = {"gem test": (1, "cannot load such file -- far/away (LoadError)")}
    language = Language("ruby", ".rb", Plan(steps=()))
    with pytest.raises(RegistryUnreachable, match="far/away"):
        _install(tmp_path, [language], {**missing, **SILENT}, {"a.rb": "1"})
    own = _install(tmp_path, [language], {**missing, **SILENT}, {"lib/far/away.rb": "1"})
    assert own.stop is StopReason.GAVE_UP


@pytest.mark.parametrize(
    ("output", "language", "name"),
    [
        ("Can't locate Foo/Bar.pm in @INC (you may need to install the Foo::Bar module)", "perl", "Foo::Bar"),
        ("<internal:x>:85:in `require': cannot load such file -- foo/bar (LoadError)", "ruby", "foo/bar"),
        ("Could not find gem 'foo' in locally installed gems.", "ruby", "foo"),
        ('PHP Fatal error:  Uncaught Error: Class "Foo\\Bar" not found in x.php:1', "php", "Foo\\Bar"),
        ('Error: Class "Foo_Bar_Test" not found', "php", "Foo_Bar_Test"),
        ("lua: x.lua:1: module 'foo.bar' not found:", "lua", "foo.bar"),
        ("there is no package called ‘foo’", "r", "foo"),
    ],
)
def test_missing_modules(tmp_path: Path, output: str, language: str, name: str) -> None:
    found = list(missing_modules(output, Tree(written(tmp_path, {"a": "1"}))))
    assert [(item.language, item.name) for item in found] == [(language, name)]


def test_packages_of_missing_modules(tmp_path: Path) -> None:
    context = context_of(tmp_path, {"lib/Own.pm": "1"})
    output = (
        "Can't locate Foo/Bar.pm in @INC\nCan't locate Own.pm in @INC\n"
        "Call to undefined function O\\mb_strlen()\nmodule 'foo.bar' not found"
    )
    index = "usr/share/perl5/Foo/Bar.pm perl/libfoo-bar-perl\nusr/share/lua/5.1/foo/bar.lua interpreters/lua-foo\n"
    with scripted({"_Contents-": index}) as sandbox:
        failure = CommandResult(command="x", exit_code=1, output=output)
        keys = [repair.key for repair in ModuleRepairer().repairs(context, failure, sandbox)]
        assert keys == ["apt:php-mbstring", "apt:libfoo-bar-perl lua-foo"]
    assert "{path}" in load("modules", ModuleTable).message[0].place
