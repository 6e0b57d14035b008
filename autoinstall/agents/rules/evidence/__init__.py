"""Reads what a repository says about itself. `collect` gathers everything; each reader is a file of its own."""

from autoinstall.agents.rules.contract import Findings
from autoinstall.agents.rules.evidence.ci import merge, read_ci
from autoinstall.agents.rules.evidence.containers import read_containers
from autoinstall.agents.rules.evidence.makefile import read_makefiles
from autoinstall.agents.rules.evidence.packages import apt_requirements
from autoinstall.agents.rules.evidence.readme import read_documents
from autoinstall.tree import Tree

MAX_COMMANDS = 2000


def collect(tree: Tree) -> Findings:
    """All findings of the tree; commands at most once for each file, in the readers' order of trust."""
    found = merge([read_ci(tree), read_makefiles(tree), read_containers(tree), read_documents(tree)])
    commands = {
        (command.command, command.working_directory, command.evidence.path): command for command in found.commands
    }
    kept = tuple(commands.values())[:MAX_COMMANDS]
    requirements = {item.name: item for command in kept for item in apt_requirements(command)}
    return found.model_copy(update={"commands": kept, "requirements": tuple(requirements.values())})
