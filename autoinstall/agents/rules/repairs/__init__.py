"""The repairers, in the order in which they are asked. A new one is a file and a line in `all_repairers`."""

from autoinstall.agents.rules.contract import Repairer
from autoinstall.agents.rules.repairs.apt import AptRepairer
from autoinstall.agents.rules.repairs.environment import EnvironmentRepairer
from autoinstall.agents.rules.repairs.generic import GenericRepairer
from autoinstall.agents.rules.repairs.migrations import MigrationRepairer
from autoinstall.agents.rules.repairs.mocks import MockRepairer
from autoinstall.agents.rules.repairs.modules import ModuleRepairer
from autoinstall.agents.rules.repairs.node import NodeRepairer
from autoinstall.agents.rules.repairs.python import PythonRepairer
from autoinstall.agents.rules.repairs.services import ServiceRepairer
from autoinstall.agents.rules.repairs.web import WebRepairer


def all_repairers() -> tuple[Repairer, ...]:
    """Every repairer, the most exact first: what a language's own messages name before what looks like a symptom."""
    return (
        WebRepairer(),
        PythonRepairer(),
        NodeRepairer(),
        ModuleRepairer(),
        GenericRepairer("go_symptoms"),
        GenericRepairer("rust_symptoms"),
        GenericRepairer("maven_symptoms"),
        GenericRepairer("scripting_symptoms"),
        AptRepairer(),
        ServiceRepairer(),
        MigrationRepairer(),
        MockRepairer(),
        EnvironmentRepairer(),
        GenericRepairer(),
    )
