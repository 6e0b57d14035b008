import json

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.report import MOST_ROWS
from notebooks.sample_nights import write_nights

ASKED = {"nights", "funnel", "models", "languages", "failures", "attempts", "costs", "flakiness", "stages"}


def cli(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("nights")
    write_nights(path, nights=16, repositories=20)
    return path


def test_json_has_every_table_whole(data):
    tables = json.loads(cli("report", "--data", data, "--json"))["tables"]
    assert set(tables) == ASKED
    assert len(tables["nights"]) == 16
    assert tables["nights"][0].keys() == {"night", "runs", "decided", "verified", "yield_rate", "hours", "cost_usd"}
    assert tables["funnel"][0] == {"step": "on the list", "repositories": 20, "share": 1.0}
    assert [row["attempts"] for row in tables["attempts"]] == sorted(row["attempts"] for row in tables["attempts"])


def test_people_see_the_last_nights_and_not_every_repository(data):
    shown = cli("report", "--data", data)
    assert "The last 50 of 320 repositories" in shown
    assert "2026-03-17" in shown
    assert shown.count("2026-03-") == MOST_ROWS + 1  # the nights, and the funnel's heading
    for heading in ("Slowest stages", "Attempts to success", "Why repositories fail"):
        assert heading in shown


def test_tables_without_rows_are_left_out_and_empty_in_json(tmp_path):
    assert "Nothing ran yet" in cli("report", "--data", tmp_path)
    tables = json.loads(cli("report", "--data", tmp_path, "--json"))["tables"]
    assert set(tables) == ASKED
    assert tables["nights"] == []


def test_compact_says_what_it_did(data):
    assert json.loads(cli("compact", "--data", data, "--json"))["after"] >= 2
    assert "files with rows are" in cli("compact", "--data", data)
