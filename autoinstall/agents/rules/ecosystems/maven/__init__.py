"""Java and Kotlin projects that Maven builds."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.jdk import ANY, lacks
from autoinstall.agents.rules.ecosystems.maven import plan
from autoinstall.agents.rules.ecosystems.maven.goals import candidates
from autoinstall.agents.rules.ecosystems.maven.pom import project_of
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class MavenEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "maven"
    tools = frozenset({"mvn", "mvnw", "java", "javac", "javap", "jar"})
    suffixes = frozenset({".java", ".kt"})

    def detect(self, tree: Tree) -> bool:
        return project_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:  # noqa: ARG002
        """Goals by what the checkout says; no look-up in the sandbox is needed."""
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Debian's JDK and Maven, and one run of what the targets need, so that all plugins are there."""
        return plan.make(context, sandbox)

    def objection(self, context: Context, base: Base, *, has_interpreters: bool) -> str:  # noqa: ARG002
        project = project_of(context.tree)
        return lacks(base, project.level, ANY, project.root.manifest) if project is not None else ""


__all__ = ["MavenEcosystem"]
