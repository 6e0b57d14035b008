"""Ruby: gems, and libraries and programs with a Gemfile or a Rakefile."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.ruby import plan
from autoinstall.agents.rules.ecosystems.ruby.goals import candidates
from autoinstall.agents.rules.ecosystems.ruby.project import project_of
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class RubyEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "ruby"
    tools = frozenset({"ruby", "rake", "rspec", "bundle", "gem", "rubocop", "minitest"})
    suffixes = frozenset({".rb", ".rake", ".gemspec", ".ru"})

    def detect(self, tree: Tree) -> bool:
        return project_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals by what the checkout says, once it is known that the gems that the project needs can be had."""
        plan.provide(context, sandbox)
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Gems from RubyGems where it answers, or Debian's packages of them with a Gemfile that names these alone."""
        return plan.make(context, sandbox)


__all__ = ["RubyEcosystem"]
