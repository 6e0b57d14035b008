"""A table that is not there → the project's own migrations, by the command that it names or that its tool has."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.evidence.classify import unwrap
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.repairs.environment import sample_values
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import CommandResult, Value


class Tool(Value):
    """One entry of the table; `file` and `command` are empty where no command can be made up."""

    name: str
    pattern: re.Pattern[str]
    file: str = ""
    command: str = ""


class MigrationTable(Value):
    """The form of `migrations.toml`."""

    missing: tuple[re.Pattern[str], ...]
    tools: tuple[Tool, ...]


def migration_table() -> MigrationTable:
    """The table; it is read once."""
    table: MigrationTable = load("migrations", MigrationTable)
    return table


class MigrationRepairer:
    """Makes the tables of a database that is there and empty."""

    name = "migrations"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        said = next((match for words in migration_table().missing if (match := words.search(failure.output))), None)
        if said is None:
            return []
        return [
            Repair(
                key=f"migrate:{command}",
                why=f"The database lacks tables ({said[0]}); the project's migrations make them.",
                commands=(command,),
                lesson=f"needs its tables made: {command}",
            )
            for command in dict.fromkeys(_commands(context, sandbox.recipe.env))
        ]


def _commands(context: Context, known: Mapping[str, str]) -> Iterator[str]:
    sample = {**sample_values(context.tree), **context.findings.env}
    for tool in migration_table().tools:
        named = [found for found in context.findings.commands if tool.pattern.search(unwrap(found.command))]
        for found in named:
            if "$" not in found.command and "docker" not in found.command:
                yield _with({**sample, **found.env}, known, _inside(found.working_directory, unwrap(found.command)))
    for tool in migration_table().tools:
        for path in sorted(context.tree.match(tool.file) if tool.file else (), key=lambda path: path.count("/"))[:1]:
            directory = posixpath.dirname(path) if tool.file.startswith("**/") else ""
            yield _with(sample, known, _inside(directory, tool.command))


def _with(sample: Mapping[str, str], known: Mapping[str, str], command: str) -> str:
    """The command with the variables that samples and CI have and the environment lacks: unlike the tests, it is run as
    in production."""
    more = [f"{name}={value}" for name, value in sample.items() if name not in known]
    return f"{shlex.join(['env', *more])} bash -c {shlex.quote(command)}" if more else command


def _inside(directory: str, command: str) -> str:
    return f"cd {shlex.quote(directory)} && {command}" if directory else command
