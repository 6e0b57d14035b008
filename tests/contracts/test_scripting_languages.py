"""Perl, PHP and Ruby in real containers: Debian's packages serve where no registry does."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Ecosystem
from autoinstall.agents.rules.ecosystems.perl import PerlEcosystem
from autoinstall.agents.rules.ecosystems.php import PhpEcosystem
from autoinstall.agents.rules.ecosystems.ruby import RubyEcosystem
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.tree import Tree
from autoinstall.values import Verdict
from tests.conftest import committed, written

pytestmark = [pytest.mark.docker, pytest.mark.slow]

PERL = {
    "cpanfile": "requires 'File::Next';\nrequires 'HTTP::Headers';\n",
    "lib/Thing.pm": "package Thing;\nuse strict;\nuse File::Next;\nuse HTTP::Headers;\nour $VERSION = '1.02';\n1;\n",
    "t/thing.t": "use Test::More tests => 2;\nuse_ok('Thing');\nok(File::Next->can('files'));\n",
}
PHP = {
    "composer.json": '{"name": "o/thing", "require": {"php": ">=7", "ext-mbstring": "*", "psr/log": "^1.0"},\n'
    '"require-dev": {"phpunit/phpunit": "^9"},\n'
    '"autoload": {"psr-4": {"O\\\\": "src/"}}}\n',
    "phpunit.xml.dist": '<phpunit bootstrap="vendor/autoload.php"><testsuites><testsuite name="all">'
    "<directory>tests</directory></testsuite></testsuites></phpunit>\n",
    "src/Thing.php": "<?php\nnamespace O;\n\nclass Thing extends \\Psr\\Log\\NullLogger {}\n",
    "tests/ThingTest.php": "<?php\nclass ThingTest extends PHPUnit\\Framework\\TestCase\n{\n"
    "    public function testLog(): void\n    {\n        (new O\\Thing())->info('x');\n"
    "        $this->assertTrue(true);\n    }\n}\n",
}
RUBY = {
    "thing.gemspec": "require_relative 'lib/thing/version'\nGem::Specification.new do |s|\n  s.name = 'thing'\n"
    "  s.version = Thing::VERSION\n  s.summary = 'x'\n  s.authors = ['x']\n  s.files = Dir['lib/**/*.rb']\n"
    "  s.add_dependency 'tilt', '~> 2.0'\n  s.add_development_dependency 'nobody-has-this'\nend\n",
    "Gemfile": "source 'https://gems.example.org'\ngemspec\n",
    "Rakefile": "require 'bundler/gem_tasks'\nrequire 'rake/testtask'\nRake::TestTask.new(:test)\n",
    "lib/thing.rb": "require 'tilt'\nrequire 'thing/version'\n",
    "lib/thing/version.rb": "module Thing\n  VERSION = '1.4.2'\nend\n",
    "test/test_thing.rb": "require 'bundler/setup'\nrequire 'minitest/autorun'\nrequire 'thing'\n"
    "class TestThing < Minitest::Test\n  def test_version\n    assert_equal '1.4.2', Thing::VERSION\n  end\nend\n",
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceSource:
    projects = {"perl": PERL, "php": PHP, "ruby": RUBY}
    files = {f"{name}/{path}": text for name, project in projects.items() for path, text in project.items()}
    return committed(written(tmp_path_factory.mktemp("thing"), files))


@pytest.fixture
def sandbox(provider: DockerProvider, initial: Snapshot) -> Iterator[Sandbox]:
    with provider.open(SandboxSpec(image=initial.digest, purpose="test")) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("ecosystem", "wanted"),
    [
        (PerlEcosystem(), r"prove -l|VERSION|syntax OK"),
        (PhpEcosystem(), r"phpunit|php -l|dump-autoload|Reflection|loaded"),
        (RubyEcosystem(), r"rake test|test_thing|ruby -c|VERSION|gem build|bundle check"),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_debian_serves(
    ecosystem: Ecosystem, wanted: str, sandbox: Sandbox, pristine: WorkspaceSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the language's own registry does not answer, whether it does here or not."""
    module = f"autoinstall.agents.rules.ecosystems.{ecosystem.name}.plan"
    monkeypatch.setattr(f"{module}.answers", lambda *_: False)
    repository = Repository(
        url="https://example.com/o/n", commit=pristine.commit, commit_date=datetime(2023, 6, 1, tzinfo=UTC)
    )
    context = Context(repository=repository, tree=Tree(Path(pristine.path)))
    candidates = list(ecosystem.candidates(context, sandbox))
    plan = ecosystem.plan(context, sandbox)
    for name, value in plan.env.items():
        sandbox.set_env(name, value)
    for step in plan.steps:
        result = sandbox.run(step.command, timeout=600)
        assert result.exit_code == 0 or step.optional, f"{step.command}\n{result.output}"
    goals = [item.goal for item in candidates if re.search(wanted, item.goal.command)]
    assert len(goals) >= 4
    judgements = {goal.command: RulesJudge().judge(goal, sandbox.run(goal.command)) for goal in goals}
    assert [
        f"{command}: {item.reason}" for command, item in judgements.items() if item.verdict is not Verdict.MATCHES
    ] == []
