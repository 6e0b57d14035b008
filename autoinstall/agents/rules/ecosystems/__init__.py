"""The ecosystems that the rules know; one file each. A new one is a file and a line in `all_ecosystems`."""

from autoinstall.agents.rules.contract import Ecosystem


def all_ecosystems() -> tuple[Ecosystem, ...]:
    """Every ecosystem, those with their own package manager first: where two are equally at home, the first leads."""
    return ()
