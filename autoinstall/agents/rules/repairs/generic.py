"""Symptoms with remedies that a table gives: of any tool (locale, warnings as errors, …) or of one language."""

import re
from collections.abc import Sequence

from pydantic import Field

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.knowledge import load
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import CommandResult, Value


class Symptom(Value):
    """One entry of the table. In `commands`, `{1}` stands for the pattern's first group."""

    key: str
    pattern: str
    why: str
    commands: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)


class SymptomTable(Value):
    """The form of `symptoms.toml`."""

    symptoms: tuple[Symptom, ...]


class GenericRepairer:
    """Args: the table's name; every one of them has the form of `symptoms.toml`."""

    name = "generic"

    def __init__(self, table: str = "symptoms") -> None:
        self._table = table

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        del context, sandbox
        repairs: list[Repair] = []
        for symptom in load(self._table, SymptomTable).symptoms:
            match = re.search(symptom.pattern, failure.output)
            if not match:
                continue
            first = match[1] if match.re.groups and match[1] else ""
            commands = tuple(command.replace("{1}", first) for command in symptom.commands)
            key = f"symptom:{symptom.key}:{first}" if first else f"symptom:{symptom.key}"
            repairs.append(Repair(key=key, why=symptom.why, commands=commands, env=symptom.env, lesson=symptom.why))
        return repairs
