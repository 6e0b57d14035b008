"""The ecosystems that the rules know; one file or folder each. A new one is a line in `all_ecosystems`."""

from autoinstall.agents.rules.contract import Ecosystem
from autoinstall.agents.rules.ecosystems.c import CEcosystem
from autoinstall.agents.rules.ecosystems.go import GoEcosystem
from autoinstall.agents.rules.ecosystems.gradle import GradleEcosystem
from autoinstall.agents.rules.ecosystems.lua import LuaEcosystem
from autoinstall.agents.rules.ecosystems.make import MakeEcosystem
from autoinstall.agents.rules.ecosystems.maven import MavenEcosystem
from autoinstall.agents.rules.ecosystems.node import NodeEcosystem
from autoinstall.agents.rules.ecosystems.perl import PerlEcosystem
from autoinstall.agents.rules.ecosystems.php import PhpEcosystem
from autoinstall.agents.rules.ecosystems.python import PythonEcosystem
from autoinstall.agents.rules.ecosystems.ruby import RubyEcosystem
from autoinstall.agents.rules.ecosystems.rust import RustEcosystem
from autoinstall.agents.rules.ecosystems.shell import ShellEcosystem
from autoinstall.agents.rules.ecosystems.tabled import tabled_ecosystems


def all_ecosystems() -> tuple[Ecosystem, ...]:
    """Every ecosystem, those with their own package manager first: where two are equally at home, the first leads."""
    return (
        PythonEcosystem(),
        NodeEcosystem(),
        GoEcosystem(),
        RustEcosystem(),
        MavenEcosystem(),
        GradleEcosystem(),
        PerlEcosystem(),
        PhpEcosystem(),
        RubyEcosystem(),
        LuaEcosystem(),
        *tabled_ecosystems(),
        CEcosystem(),
        MakeEcosystem(),
        ShellEcosystem(),
    )
