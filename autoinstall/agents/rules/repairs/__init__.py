"""The repairers, in the order in which they are asked. A new one is a file and a line in `all_repairers`."""

from autoinstall.agents.rules.contract import Repairer


def all_repairers() -> tuple[Repairer, ...]:
    """Every repairer, the most exact first: what a language's own messages name before what looks like a symptom."""
    return ()
