import json
from pathlib import Path

import pytest

from autoinstall.errors import InvalidGoals
from autoinstall.goals_file import MAX_BYTES, parse_goals, read_goals
from autoinstall.values import Category, Goal


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "goals.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_goals_are_read_in_order(tmp_path: Path) -> None:
    entries = [
        {"command": " pytest -q ", "description": "all tests pass"},
        {
            "command": "make lint",
            "description": "no complaints",
            "exit_codes": [0, 1],
            "category": "lint",
            "min_pass_rate": 0.95,
            "timeout": 60,
        },
    ]
    assert read_goals(written(tmp_path, entries)) == (
        Goal(command="pytest -q", description="all tests pass"),
        Goal(
            command="make lint",
            description="no complaints",
            exit_codes=(0, 1),
            category=Category.LINT,
            min_pass_rate=0.95,
            timeout=60,
        ),
    )


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "goals.json"
    path.write_bytes(b'\xef\xbb\xbf[{"command": "true", "description": "x"}]')
    assert read_goals(path)[0].command == "true"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ({"command": "x", "description": "y"}, "must be a list of goals, not an object"),
        ("null", "not null"),
        ([], "no goal"),
        (["pytest"], "Goal 1 must be an object, not a string"),
    ],
)
def test_files_of_another_form(content: object, reason: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InvalidGoals, match=reason) as caught:
        read_goals(path)
    assert str(path) in caught.value.message
    assert "JSON list" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"command": ""}, "command"),
        ({"command": " \n"}, "command"),
        ({"description": "  "}, "description"),
        ({"command": None}, "command"),
        ({"command": 5}, "command"),
        ({"command": ["pytest"]}, "command"),
        ({"exit_codes": []}, "exit_codes"),
        ({"exit_codes": ["0"]}, "exit_codes.0"),
        ({"exit_codes": 0}, "exit_codes"),
        ({"exit_codes": [True]}, "exit_codes.0"),
        ({"exit_codes": [256]}, "exit_codes.0"),
        ({"category": "unit"}, "category"),
        ({"min_pass_rate": 0}, "min_pass_rate"),
        ({"min_pass_rate": 95}, "min_pass_rate"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": "60"}, "timeout"),
        ({"evidence": {"path": "x"}}, "evidence"),
        ({"exit_code": [0]}, "exit_code"),
    ],
)
def test_a_bad_entry_is_named_with_its_reason(change: dict[str, object], field: str) -> None:
    good = {"command": "true", "description": "fine"}
    with pytest.raises(InvalidGoals, match=f"^Goal 2, {field}: "):
        parse_goals([good, good | change])


@pytest.mark.parametrize("missing", ["command", "description"])
def test_a_missing_key_is_named(missing: str) -> None:
    entry = {"command": "true", "description": "fine"}
    del entry[missing]
    with pytest.raises(InvalidGoals, match=f"Goal 1, {missing}"):
        parse_goals([entry])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InvalidGoals, match="cannot be read"):
            read_goals(path)
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    with pytest.raises(InvalidGoals, match="UTF-8"):
        read_goals(tmp_path / "latin.json")
    (tmp_path / "large.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(InvalidGoals, match="larger"):
        read_goals(tmp_path / "large.json")
