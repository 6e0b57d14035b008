"""Rust: packages and workspaces that cargo builds."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.rust import plan
from autoinstall.agents.rules.ecosystems.rust.goals import candidates
from autoinstall.agents.rules.ecosystems.rust.manifests import project_of
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class RustEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "rust"
    tools = frozenset({"cargo", "rustc", "rustfmt", "rustdoc"})
    suffixes = frozenset({".rs"})

    def detect(self, tree: Tree) -> bool:
        return project_of(tree) is not None

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:  # noqa: ARG002
        """Goals by what the checkout says; no look-up in the sandbox is needed."""
        return candidates(context)

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """Debian's Rust, the crates that the project needs, and a build of it with its tests."""
        return plan.make(context, sandbox)


__all__ = ["RustEcosystem"]
