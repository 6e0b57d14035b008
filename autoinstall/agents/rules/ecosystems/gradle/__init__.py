"""Java, Kotlin and Groovy projects that Gradle builds."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.gradle import plan
from autoinstall.agents.rules.ecosystems.gradle.goals import candidates
from autoinstall.agents.rules.ecosystems.gradle.project import project_of
from autoinstall.agents.rules.ecosystems.jdk import lacks
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class GradleEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "gradle"
    tools = frozenset({"gradle", "gradlew", "java", "javac", "javap", "jar"})
    suffixes = frozenset({".java", ".kt", ".groovy"})

    def detect(self, tree: Tree) -> bool:
        return project_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals by what the checkout says.

        Raises:
            RegistryUnreachable: the wrapper's Gradle cannot be had, which is found out within seconds.
        """
        project = project_of(context.tree)
        if project is not None:
            plan.check_reach(project, sandbox)
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Debian's JDK, the wrapper's Gradle or Debian's, and one build, so that libraries and plugins are there."""
        return plan.make(context, sandbox)

    def objection(self, context: Context, base: Base, *, has_interpreters: bool) -> str:  # noqa: ARG002
        project = project_of(context.tree)
        if project is None or not project.wrapper:
            return ""
        oldest, newest = plan.bounds(project)
        return lacks(base, oldest, newest, f"Gradle {project.gradle}")


__all__ = ["GradleEcosystem"]
