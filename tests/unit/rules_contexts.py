"""Small checkouts for the tests of single ecosystems."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Ecosystem, Plan
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.repairs.generic import GenericRepairer
from autoinstall.proposals import check_goal
from autoinstall.sandbox.contract import Sandbox, SandboxSpec
from autoinstall.sandbox.scripted import Response, ScriptedProvider
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Goal
from tests.conftest import written

Answers = Mapping[str, str | int | tuple[int, str]]
"""What a sandbox prints (exit code 0), or exit code and output, by a part of the command."""


def context_of(
    root: Path,
    files: Mapping[str, str],
    *targets: str,
    when: datetime = datetime(2022, 6, 1, tzinfo=UTC),
    url: str = "https://example.com/owner/name",
    attempt: int = 1,
) -> Context:
    written(root, files)
    tree = Tree(root)
    return Context(
        repository=Repository(url=url, commit="0" * 40, commit_date=when),
        tree=tree,
        targets=tuple(Goal(command=command, description="prints at least 1 line") for command in targets),
        findings=collect(tree),
        attempt=attempt,
    )


@contextmanager
def scripted(answers: Answers | None = None) -> Iterator[Sandbox]:
    """A sandbox in which what `answers` does not know succeeds and prints nothing."""
    responses: dict[str | re.Pattern[str], Response] = {
        re.compile(re.escape(part)): answer for part, answer in (answers or {}).items()
    }
    provider = ScriptedProvider(responses)
    with provider.open(SandboxSpec(image=provider.ensure_base().reference)) as sandbox:
        yield sandbox


def goals_of(ecosystem: Ecosystem, context: Context, answers: Answers | None = None) -> dict[str, Goal]:
    """The candidates by command; each of them fit to be proposed, with evidence that is there."""
    with scripted(answers) as sandbox:
        found = {item.goal.command: item.goal for item in ecosystem.candidates(context, sandbox)}
    for goal in found.values():
        assert check_goal(goal) == "", goal.command
        assert goal.evidence is not None
        assert context.tree.has(goal.evidence.path), goal.command
    return found


def plan_of(ecosystem: Ecosystem, context: Context, answers: Answers | None = None) -> Plan:
    with scripted(answers) as sandbox:
        return ecosystem.plan(context, sandbox)


def remedies_of(table: str, context: Context, output: str, command: str = "x") -> dict[str, str]:
    """Key → commands and variables of the remedies that the table has for the output."""
    failure = CommandResult(command=command, exit_code=1, output=output)
    with scripted() as sandbox:
        repairs = GenericRepairer(table).repairs(context, failure, sandbox)
    return {repair.key: " ".join((*repair.commands, *map("=".join, repair.env.items()))) for repair in repairs}
