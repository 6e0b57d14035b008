"""What the rules know of Ruby: `ruby.toml`."""

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class RubyTable(Value):
    """The form of `ruby.toml`.

    Attributes:
        standard: features of Ruby itself and of what the set-up always installs.
        tools: gems that run tests.
        gems: feature → gem, where they are named differently.
        packages: gem → Debian package, where it is not `ruby-GEM`.
        helpers: programs in bin/ that serve the project's developers alone.
    """

    standard: frozenset[str]
    tools: frozenset[str]
    gems: dict[str, str]
    packages: dict[str, str]
    helpers: frozenset[str]


def knowledge() -> RubyTable:
    table: RubyTable = load("ruby", RubyTable)
    return table
