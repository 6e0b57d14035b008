"""Databases whose tables are missing."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.contract import Context, EvidenceCommand, Findings, Source
from autoinstall.agents.rules.repairs.migrations import MigrationRepairer, migration_table
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.values import Category, CommandResult, Evidence
from tests.unit.rules_contexts import context_of

SAID = 'asyncpg.exceptions.UndefinedTableError: relation "users" does not exist'


def commands(context: Context, output: str = SAID, known: dict[str, str] | None = None) -> list[str]:
    provider = ScriptedProvider()
    failure = CommandResult(command="pytest", exit_code=1, output=output)
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        for name, value in (known or {}).items():
            sandbox.set_env(name, value)
        found = MigrationRepairer().repairs(context, failure, sandbox)
    return [command for repair in found for command in repair.commands]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"alembic.ini": "[alembic]\n"}, ["alembic upgrade head"]),
        ({"backend/manage.py": ""}, ["cd backend && python manage.py migrate --noinput"]),
        ({"db/schema.rb": ""}, ["bundle exec rake db:schema:load"]),
        ({"main.py": ""}, []),
    ],
)
def test_the_tools_own_command(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    assert commands(context_of(tmp_path, files)) == expected


def test_the_command_that_the_project_names_comes_first(tmp_path: Path) -> None:
    context = context_of(tmp_path, {"alembic.ini": ""})
    where = Evidence(path=".github/workflows/a.yml", line=3)
    named = EvidenceCommand(
        command="poetry run alembic -c alembic.ini upgrade heads",
        source=Source.CI,
        category=Category.OTHER,
        evidence=where,
    )
    context = context.model_copy(update={"findings": Findings(commands=(named,))})
    assert commands(context) == ["alembic -c alembic.ini upgrade heads", "alembic upgrade head"]


def test_it_has_the_variables_of_samples(tmp_path: Path) -> None:
    context = context_of(tmp_path, {"alembic.ini": "", ".env.example": "SECRET_KEY=so secret\nDATABASE_URL=x\n"})
    assert commands(context, known={"DATABASE_URL": "y"}) == [
        "env 'SECRET_KEY=so secret' bash -c 'alembic upgrade head'"
    ]


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (SAID, True),
        ("django.db.utils.OperationalError: no such table: auth_user", True),
        ("(1146, \"Table 'shop.orders' doesn't exist\")", True),
        ("ActiveRecord::PendingMigrationError", True),
        ("FileNotFoundError: table.csv does not exist", False),
    ],
)
def test_what_says_that_tables_are_missing(tmp_path: Path, output: str, found: bool) -> None:
    assert bool(commands(context_of(tmp_path, {"alembic.ini": ""}), output)) is found


def test_tools_have_a_command_for_their_file() -> None:
    assert all(bool(tool.file) is bool(tool.command) for tool in migration_table().tools)
