"""The deployments that deployments/prefect.yaml describes."""

import asyncio
import json
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from prefect import Flow
from prefect.exceptions import ParameterTypeError
from prefect.server.schemas.schedules import CronSchedule
from prefect.utilities.callables import parameter_schema
from prefect.utilities.importtools import import_object

from autoinstall.values import Outcome
from deployments import apply
from flows import examination

DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(apply.FILE.read_text())["deployments"]
BY_NAME = {deployment["name"]: deployment for deployment in DEPLOYMENTS}


def flow_of(deployment: dict[str, Any]) -> Flow[..., Any]:
    return import_object(deployment["entrypoint"])


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=list(BY_NAME))
def test_entry_points_are_modules_and_their_flows_take_the_parameters(deployment: dict[str, Any]) -> None:
    assert ":" not in deployment["entrypoint"]  # with one, a worker would look for a file
    flow = flow_of(deployment)
    given = deployment.get("parameters", {})
    assert set(given) <= set(parameter_schema(flow.fn).properties)
    if given:
        flow.validate_parameters(given)


def test_what_is_applied_is_what_is_looked_for() -> None:
    assert {f"{flow_of(one).name}/{one['name']}" for one in DEPLOYMENTS} == set(examination.DEPLOYMENTS)
    assert {Path(apply.ROOT / name).is_file() for name in apply.FLOWS} == {True}


def test_the_commands_of_the_readme_start_what_there_is() -> None:
    commands = re.findall(r"prefect deployment run ([\w/-]+) -p (.+)", (apply.ROOT / "README.md").read_text())
    assert len(commands) == 2
    for name, parameter in commands:
        flow, deployment = name.split("/")
        assert flow_of(BY_NAME[deployment]).name == flow
        given, _, value = parameter.strip("'").partition("=")
        fixed = BY_NAME[deployment].get("parameters", {})
        flow_of(BY_NAME[deployment]).validate_parameters({**fixed, given: json.loads(value)})


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=list(BY_NAME))
def test_every_parameter_of_a_form_says_what_it_is(deployment: dict[str, Any]) -> None:
    schema = parameter_schema(flow_of(deployment).fn)
    silent = [name for name, field in schema.properties.items() if len(field.get("description", "")) < 10]
    assert silent == []


def test_the_form_of_a_repository_describes_its_fields() -> None:
    schema = parameter_schema(flow_of(BY_NAME["repository"]).fn)
    for shown in ("RepositorySpec", "Limits"):
        fields = schema.definitions[shown]["properties"]
        assert {name for name, field in fields.items() if not field.get("description")} == set()


def test_outcomes_to_retry_are_chosen_from_a_list() -> None:
    schema = parameter_schema(flow_of(BY_NAME["retry-failures"]).fn)
    assert schema.properties["only"]["items"] == {"$ref": "#/definitions/Outcome"}
    assert schema.definitions["Outcome"]["enum"] == list(Outcome)


@pytest.mark.parametrize("name", ["nightly", "retry-failures"])
def test_a_night_of_no_repository_at_once_is_refused_by_the_form(name: str) -> None:
    flow = flow_of(BY_NAME[name])
    assert parameter_schema(flow.fn).properties["concurrency"]["minimum"] == 1
    with pytest.raises(ParameterTypeError, match="greater than or equal to 1"):
        flow.validate_parameters({"repositories": "list.csv", "concurrency": 0})


def test_nights_do_not_overlap_and_none_is_dropped_for_another() -> None:
    assert BY_NAME["nightly"]["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Etc/UTC", date(2026, 3, 27)),
        ("Europe/Berlin", date(2026, 3, 27)),
        ("Europe/Berlin", date(2026, 10, 23)),
        ("America/New_York", date(2026, 3, 6)),
        ("America/New_York", date(2026, 10, 30)),
        ("Australia/Lord_Howe", date(2026, 4, 3)),  # by half an hour
    ],
)
@pytest.mark.parametrize("cron", ["", "30 2 * * *"])
def test_every_night_is_due_once_whenever_the_clocks_change(zone: str, cron: str, first: date) -> None:
    """The server asks for the next dates again and again, so every moment to ask at has to give the same ones."""
    (schedule,) = BY_NAME["nightly"]["schedules"]
    due = CronSchedule(cron=cron or schedule["cron"], timezone=zone)
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC)

    async def dates() -> set[datetime]:
        found: set[datetime] = set()
        for minutes in range(0, 4 * 24 * 60, 30):
            found |= set(await due.get_dates(n=1, start=begin + timedelta(minutes=minutes)))
        return {moment.astimezone(UTC) for moment in found}

    nights = Counter(moment.astimezone(ZoneInfo(zone)).date() for moment in asyncio.run(dates()))
    assert len(nights) >= 4
    assert set(nights.values()) == {1}


def test_the_schedule_names_its_zone() -> None:
    (schedule,) = BY_NAME["nightly"]["schedules"]
    assert ZoneInfo(schedule["timezone"])


def test_a_list_that_nights_will_miss_is_told_once(tmp_path: Path) -> None:
    (said,) = apply.unusable_lists(tmp_path)
    assert str(tmp_path / "data/repositories.csv") in said
    assert "url,ref" in said
    (tmp_path / "data").mkdir()
    (tmp_path / "data/repositories.csv").write_text("url,ref\nhttps://example.org/owner/name,main\n")
    assert apply.unusable_lists(tmp_path) == ()


@pytest.mark.parametrize("secret", ["deployments/.env", "deployments/worker.env", ".env", "data/repositories.csv"])
def test_what_holds_secrets_is_in_no_image(secret: str) -> None:
    rules = [rule for rule in (Path(__file__).parents[2] / ".dockerignore").read_text().splitlines() if rule]
    # Docker's `**/` is any number of directories, none included.
    assert any(fnmatch(secret, rule.removeprefix("**/")) or fnmatch(secret, rule) for rule in rules)
    assert not any(fnmatch("deployments/compose.env.example", rule) for rule in rules)
