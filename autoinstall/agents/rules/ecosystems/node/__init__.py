"""JavaScript and TypeScript projects: npm, pnpm, Yarn 1 and later, workspaces."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.node import goals, managers, plan, toolchain
from autoinstall.agents.rules.ecosystems.node.manifest import roots
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree


class NodeEcosystem:
    """See the module; implements `Ecosystem`."""

    name = "node"
    tools = frozenset(
        {"node", "npm", "npx", "pnpm", "pnpx", "yarn", "corepack", "lerna", "nx", "turbo", "tsc", "tsx", "ts-node"}
        | {
            "jest",
            "vitest",
            "mocha",
            "ava",
            "tap",
            "jasmine",
            "karma",
            "nyc",
            "c8",
            "eslint",
            "prettier",
            "xo",
            "standard",
        }
    )
    suffixes = frozenset({".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte"})

    def detect(self, tree: Tree) -> bool:
        return bool(roots(tree))

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:  # noqa: ARG002 (all that goals need is in the tree)
        for index, package in enumerate(roots(context.tree)):
            manager = managers.detect(package, context.repository.commit_date.date())
            for candidate in goals.candidates(package, manager):
                yield candidate.model_copy(update={"weight": max(candidate.weight - 10 * index, 1)})

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        return plan.make(context, toolchain.look_up(sandbox), sandbox)


__all__ = ["NodeEcosystem"]
