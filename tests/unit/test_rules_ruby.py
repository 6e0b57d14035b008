"""Ruby projects: gems, Debian's packages of them, goals and plans."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.needs import Need, fits
from autoinstall.agents.rules.ecosystems.ruby import RubyEcosystem
from autoinstall.agents.rules.ecosystems.ruby.goals import _test_task
from autoinstall.agents.rules.ecosystems.ruby.plan import GEMFILE, package_name, served
from autoinstall.agents.rules.ecosystems.ruby.project import needs_of, project_of
from autoinstall.errors import RegistryUnreachable
from tests.unit.rules_contexts import context_of, goals_of, plan_of, scripted

FILES = {
    "thing.gemspec": "Gem::Specification.new do |s|\n  s.name = 'thing'\n  s.version = Thing::VERSION\n"
    "  s.add_dependency 'rack', '~> 2.2', '>= 2.2.4'\n  s.add_development_dependency 'minitest', '~> 6.0'\nend\n",
    "Gemfile": "source 'https://gems.example.org'\ngemspec\ngem 'rake'\ngroup :development do\n  gem 'pry'\nend\n",
    "Rakefile": "require 'bundler/gem_tasks'\nrequire 'rake/testtask'\nRake::TestTask.new(:test)\n",
    "lib/thing.rb": "require 'thing/version'\nmodule Thing\nend\n",
    "lib/thing/version.rb": "module Thing\n  VERSION = '1.4.2'\nend\n",
    "test/test_thing.rb": "require 'test_helper'\nrequire 'minitest/autorun'\nclass TestThing < Minitest::Test\nend\n",
    "test/test_helper.rb": "require 'rack/test'\nrequire 'json'\n",
    "exe/thing": "#!/usr/bin/env ruby\nrequire 'optparse'\n",
}
POLICY = "\n".join(
    f"{name}:\n  Installed: (none)\n  Candidate: {version}\n  Version table:"
    for name, version in (("ruby-rack", "2.2.6.4-1"), ("ruby-minitest", "5.17.0-1"), ("rake", "13.0.6-3"))
)


def test_needs(tmp_path: Path) -> None:
    context = context_of(tmp_path, FILES)
    project = project_of(context.tree)
    assert project is not None
    needs = {need.name: need for need in needs_of(context.tree, project)}
    assert needs["rack"] == Need(name="rack", constraint="~> 2.2, >= 2.2.4")
    assert needs["minitest"].tool
    assert not needs["minitest"].hard
    assert not needs["pry"].hard
    assert not needs["rake"].hard
    assert not needs["rack-test"].hard
    assert "thing" not in needs
    assert "json" not in needs


def test_an_application_needs_what_its_gemfile_names(tmp_path: Path) -> None:
    files = {"Gemfile": "gem 'rails', '~> 7.0'\ngem 'pg'\ngroup :test do\n  gem 'capybara'\nend\n", "app/a.rb": "1\n"}
    context = context_of(tmp_path, files)
    project = project_of(context.tree)
    assert project is not None
    assert {need.name: need.hard for need in needs_of(context.tree, project)} == {
        "rails": True,
        "pg": True,
        "capybara": False,
    }


@pytest.mark.parametrize(
    ("constraint", "version", "tool", "expected"),
    [
        ("", "1.0", False, True),
        ("~> 2.2, >= 2.2.4", "2.2.3", False, True),
        (">= 4.1.0, < 5.1", "6.1.7", False, False),
        ("< 2", "2.1", False, False),
        ("~> 5.0.0", "6.1.7", False, False),
        ("~> 1.2", "3.0.0", False, False),
        ("~> 1", "3.0.0", False, True),
        ("^10.5 || ^11.0", "9.6.7", True, False),
        ("^4.8.35", "9.6.7", True, True),
        ("~3.7|~4.0", "9.6.7", True, True),
        ("^2.0 || ^3.0", "1.1.4", False, False),
        ("^1.0|^2.0", "2.5", False, True),
        ("dev-master", "2.5", False, True),
        ("1.*", "2.0", False, False),
    ],
)
def test_generations(constraint: str, version: str, tool: bool, expected: bool) -> None:
    assert fits(Need(name="x", constraint=constraint, tool=tool), version) is expected


def test_gems_are_found_by_name_then_by_specification() -> None:
    needs = (
        Need(name="rack", constraint="~> 2.2"),
        Need(name="odd_name"),
        Need(name="far"),
        Need(name="wish", hard=False),
    )
    index = "usr/share/rubygems-integration/all/specifications/odd_name-1.0.1.gemspec ruby/odd-package\n"
    with scripted({"apt-cache policy": POLICY, "_Contents-": index}) as sandbox:
        provision = served(needs, sandbox)
        outdated = served((Need(name="rack", constraint="~> 3.0"),), sandbox)
    assert provision.packages == ("ruby-rack", "odd-package")
    assert provision.unserved == ("far",)
    assert outdated.unserved == ("rack ~> 3.0 (Debian has 2.2.6.4)",)
    assert package_name("a_gem") == "ruby-a-gem"


def test_goals(tmp_path: Path) -> None:
    goals = goals_of(RubyEcosystem(), context_of(tmp_path, FILES), {"timeout 15 bash": ""})
    assert {"bundle exec rake test", "bundle check", "bundle exec ruby -Ilib -Itest test/test_thing.rb"} <= set(goals)
    assert any('"./test/**/{test_*}.rb"' in command for command in goals)
    version = goals['bundle exec ruby -Ilib -e \'require "thing"; require "thing/version"; puts Thing::VERSION\'']
    assert '"1.4.2"' in version.description
    assert "bundle exec ruby -Ilib exe/thing --help" in goals
    assert '"thing-1.4.2"' in next(goal.description for command, goal in goals.items() if "full_name" in command)


def test_specs_of_rspec_and_of_minitest(tmp_path: Path) -> None:
    rspec = {"Gemfile": "gem 'rspec'\n", "lib/a.rb": "1\n", "spec/a_spec.rb": "describe 'x' do\nend\n"}
    goals = goals_of(RubyEcosystem(), context_of(tmp_path / "rspec", rspec), {"timeout 15 bash": ""})
    assert {"bundle exec rspec", "bundle exec rspec spec/a_spec.rb"} <= set(goals)
    helper = "require 'minitest/autorun'\n"
    left_out = {**rspec, "spec/spec_helper.rb": helper}
    goals = goals_of(RubyEcosystem(), context_of(tmp_path / "left-out", left_out), {"timeout 15 bash": ""})
    assert "bundle exec ruby -Ilib -Ispec -r ./spec/spec_helper.rb spec/a_spec.rb" in goals
    minitest = {**left_out, "spec/a_spec.rb": "require 'spec_helper'\n"}
    goals = goals_of(RubyEcosystem(), context_of(tmp_path / "minitest", minitest), {"timeout 15 bash": ""})
    assert "bundle exec rspec" not in goals
    assert "bundle exec ruby -Ilib -Ispec spec/a_spec.rb" in goals


def test_a_rakefile_that_needs_more_than_is_there(tmp_path: Path) -> None:
    context = context_of(tmp_path, {**FILES, "Rakefile": "require 'exotic/task'\nRake::TestTask.new\n"})
    goals = goals_of(RubyEcosystem(), context, {"timeout 15 bash": ""})
    assert "bundle exec rake --tasks --all" not in goals


def test_a_gemfile_of_what_debian_has(tmp_path: Path) -> None:
    answers = {"apt-cache policy": POLICY, "timeout 15 bash": (28, "Connection timed out")}
    plan = plan_of(RubyEcosystem(), context_of(tmp_path, FILES), answers)
    assert plan.env == {"BUNDLE_GEMFILE": GEMFILE}
    assert "ruby-rack" in plan.steps[0].command
    assert GEMFILE in plan.steps[1].command
    online = plan_of(RubyEcosystem(), context_of(tmp_path, FILES), {"apt-cache policy": POLICY, "timeout 15 bash": ""})
    assert any("bundle install" in step.command and "--local" not in step.command for step in online.steps)


def test_gems_of_the_same_repository(tmp_path: Path) -> None:
    files = {**FILES, "inner/inner.gemspec": "", "inner/lib/inner.rb": "1\n"}
    answers = {"apt-cache policy": POLICY, "timeout 15 bash": (1, "no answer")}
    plan = plan_of(RubyEcosystem(), context_of(tmp_path, files), answers)
    assert plan.env["RUBYLIB"] == "/workspace/inner/lib"


def test_gems_that_nobody_has(tmp_path: Path) -> None:
    answers = {"apt-cache policy": "", "_Contents-": "", "timeout 15 bash": (6, "Could not resolve host")}
    with pytest.raises(RegistryUnreachable, match=r"RubyGems does not answer.*rack ~> 2\.2"):
        goals_of(RubyEcosystem(), context_of(tmp_path, FILES), answers)


def test_tests_that_start_servers_do_not_stop_the_others(tmp_path: Path) -> None:
    context = context_of(tmp_path, {**FILES, "test/test_integration.rb": "1\n"})
    goals = goals_of(RubyEcosystem(), context, {"timeout 15 bash": ""})
    assert any("sort.grep_v(/integration/)" in command for command in goals)


@pytest.mark.parametrize(
    ("rakefile", "task"),
    [
        ("t = Rake::TestTask.new do |t|\nend\n", "test"),
        ("Rake::TestTask.new(:unit)\n", "unit"),
        ("Rake::TestTask.new('test:regular') do |t|\nend\ntask test: 'test:regular'\n", "test"),
        ("Minitest::TestTask.create\nMinitest::TestTask.create(:'test:core')\n", "test"),
        ("task :default\n", ""),
    ],
)
def test_the_task_that_runs_the_tests(rakefile: str, task: str) -> None:
    assert _test_task(rakefile) == task


def test_specs_of_gems_within_are_not_the_projects(tmp_path: Path) -> None:
    files = {**FILES, "inner/spec/a_spec.rb": "describe 'x' do\nend\n"}
    goals = goals_of(RubyEcosystem(), context_of(tmp_path, files), {"timeout 15 bash": ""})
    assert not any("rspec" in command for command in goals)
