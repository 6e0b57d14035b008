"""What the rules know of PHP: `php.toml`."""

from autoinstall.agents.rules.knowledge import load
from autoinstall.values import Value


class PhpTable(Value):
    """The form of `php.toml`.

    Attributes:
        platform: packages that composer itself, or PHP, stands in for.
        runners: packages that run tests.
        packages: package → Debian package, where the usual names do not lead there.
        extensions: extension → Debian package; empty where PHP always has it.
    """

    platform: frozenset[str]
    runners: frozenset[str]
    packages: dict[str, str]
    extensions: dict[str, str]


def knowledge() -> PhpTable:
    table: PhpTable = load("php", PhpTable)
    return table
