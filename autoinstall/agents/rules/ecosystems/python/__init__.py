"""Python projects, from the setup.py era to uv, Poetry, Hatch, PDM and Flit, with tox, nox and requirement files."""

from collections.abc import Iterable

from autoinstall.agents.rules.contract import Candidate, Context, Plan
from autoinstall.agents.rules.ecosystems.python.goals import candidates
from autoinstall.agents.rules.ecosystems.python.interpreter import allows
from autoinstall.agents.rules.ecosystems.python.knowledge import tools
from autoinstall.agents.rules.ecosystems.python.plan import build_plan
from autoinstall.agents.rules.ecosystems.python.sources import Sources
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree

_MANIFESTS = frozenset(
    ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "Pipfile", "requirements.txt", "noxfile.py")
)


class PythonEcosystem:
    """The `Ecosystem` of Python."""

    name = "python"
    tools = frozenset(("python", "python3", "pip", "uv", "django-admin")) | tools()
    suffixes = frozenset((".py", ".pyx", ".pyi"))

    def detect(self, tree: Tree) -> bool:
        """A manifest, or any Python module, in the first three directory levels."""
        shallow = [path for path in tree.files if path.count("/") <= 2]
        return any(path.rsplit("/", 1)[-1] in _MANIFESTS or path.endswith(".py") for path in shallow)

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:  # noqa: ARG002
        """Goals by what the checkout says; no look-up in the sandbox is needed."""
        return candidates(context, Sources(context))

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """A virtual environment at /opt/venv with all that the targets need."""
        return build_plan(context, Sources(context), sandbox)

    def objection(self, context: Context, base: Base, *, has_interpreters: bool) -> str:
        """Of a base without interpreters of the host: that its own is none that the project runs on."""
        sources = Sources(context)
        wanted = [
            text for text in (sources.main.requires_python, sources.lock and sources.lock.requires_python) if text
        ]
        if has_interpreters or all(allows(text, base.python) for text in wanted):
            return ""
        return f"{sources.main.evidence.path} requires Python {', '.join(wanted)}, and {base.suite} has {base.python}"
