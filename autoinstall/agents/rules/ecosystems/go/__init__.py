"""Go: modules, workspaces of several modules, and repositories of the time before modules."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.go import plan
from autoinstall.agents.rules.ecosystems.go.goals import candidates
from autoinstall.agents.rules.ecosystems.go.modules import modules_of
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class GoEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "go"
    tools = frozenset({"go", "gofmt", "goimports", "golint", "staticcheck", "golangci-lint"})
    suffixes = frozenset({".go"})

    def detect(self, tree: Tree) -> bool:
        return bool(modules_of(tree))

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:  # noqa: ARG002
        """Goals by what the checkout says; no look-up in the sandbox is needed."""
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """A toolchain at /opt/go, the modules that the packages and their tests need, and a build of both."""
        return plan.make(context, sandbox)


__all__ = ["GoEcosystem"]
