"""Perl: distributions with Makefile.PL, Build.PL, cpanfile or dist.ini, and modules with tests beside them."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.perl import plan
from autoinstall.agents.rules.ecosystems.perl.distribution import distribution_of
from autoinstall.agents.rules.ecosystems.perl.goals import candidates
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class PerlEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "perl"
    tools = frozenset({"perl", "prove", "cpanm", "make", "./Build", "perlcritic", "podchecker"})
    suffixes = frozenset({".pm", ".pl", ".t", ".PL"})

    def detect(self, tree: Tree) -> bool:
        return distribution_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals by what the checkout says, once it is known that what the distribution needs can be had."""
        plan.provide(context, sandbox)
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Modules from Debian's packages, or from CPAN where it answers, and a build."""
        return plan.make(context, sandbox)


__all__ = ["PerlEcosystem"]
