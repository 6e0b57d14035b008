"""PHP: libraries and programs with a composer.json, and sources with tests of PHPUnit."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.php import plan
from autoinstall.agents.rules.ecosystems.php.goals import candidates
from autoinstall.agents.rules.ecosystems.php.project import project_of
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class PhpEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "php"
    tools = frozenset({"php", "composer", "phpunit", "pest"})
    suffixes = frozenset({".php", ".phpt", ".inc"})

    def detect(self, tree: Tree) -> bool:
        return project_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals by what the checkout says, once it is known that the packages that the project needs can be had."""
        plan.provide(context, sandbox)
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Packages from Packagist where it answers, or Debian's, and an autoloader of composer's for all."""
        return plan.make(context, sandbox)


__all__ = ["PhpEcosystem"]
