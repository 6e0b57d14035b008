"""What people see in the UI: the page of a repository, and the cells of a night's table."""

import json
from typing import Any

import pytest

from autoinstall.datasets.location import Location
from autoinstall.datasets.records import AttemptRecord, RunRecords, Target, TrajectoryRecord
from autoinstall.values import Role, Verdict
from flows.excerpts import LINES, STEPS, WIDTH, excerpt
from flows.reports import artifact_key, code, flow_run_link, plain, repository_report, short_name
from tests.unit.dataset_rows import common, run

DATA = Location("data/my sets")


def trajectory(*calls: tuple[str, str | dict[str, Any], str], attempt: int = 1) -> TrajectoryRecord:
    """Of calls: the tool, its arguments, what it gave."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Set it up."}]
    for number, (tool, arguments, result) in enumerate(calls):
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": given}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    return TrajectoryRecord(
        **common("r1"),
        sequence=0,
        role=Role.INSTALLER,
        agent="rules",
        attempt=attempt,
        outcome="mismatch",
        messages=tuple(messages),
    )


def failed() -> RunRecords:
    attempt = AttemptRecord(
        **common("r1"),
        attempt=1,
        outcome="mismatch",
        agent="llm",
        model="some-model",
        reason="pytest -q: 1 of 3 tests failed",
        summary="Installed it with *pip*.",
        failing_command="pytest -q",
        exit_code=1,
        output_tail="```\nFAILED test_x\n",
        steps=1,
    )
    steps = trajectory(("bash", {"command": "pip install -e ."}, "Successfully installed\n[exit code 0]"))
    return run("r1", verified=False).model_copy(update={"attempts": (attempt,), "trajectories": (steps,)})


def test_a_verified_page_says_how_to_open_it() -> None:
    records = run("r1")
    assert records.environment is not None
    page = repository_report(records, DATA)
    assert f"\nautoinstall shell {records.environment.environment_id} --data '{DATA}'\n" in page
    assert "held-out goals passed: 5 of 7" in page
    assert "- ✓ `python -m pytest -q` (test): all 3 tests pass — `README.md:7`" in page
    assert "- file `config.ini`: not in git" in page
    assert "1 attempt," in page


def test_a_discarded_page_shows_what_failed_and_what_the_agent_did() -> None:
    page = repository_report(failed(), DATA)
    assert "autoinstall shell" not in page
    assert "## Attempt 1: mismatch\n\nBy llm some-model, 1 step, 0 s.\n\npytest -q: 1 of 3 tests failed\n" in page
    assert r"Installed it with \*pip\*." in page
    assert "`pytest -q` gave exit code 1:\n\n````\n```\nFAILED test_x\n````" in page
    assert "$ pip install -e .\n    Successfully installed\n    [exit code 0]\n```" in page


def test_what_an_agent_of_another_attempt_did_is_not_shown() -> None:
    other = trajectory(("bash", {"command": "make"}, "made"), attempt=2)
    page = repository_report(failed().model_copy(update={"trajectories": (other,)}), DATA)
    assert "What the agent did" not in page


def test_an_excerpt_has_the_last_steps_and_the_ends_of_their_results() -> None:
    lines = [f"line {number}" for number in range(50)]
    text = excerpt(trajectory(*(("bash", {"command": f"step {n}"}, "\n".join(lines)) for n in range(STEPS + 3))))
    assert text.startswith("… 3 earlier steps …\n$ step 3\n    line 48\n    line 49\n$ step 4\n")
    assert len(text.splitlines()) == 1 + STEPS * (1 + LINES)


def test_an_excerpt_is_bounded_whatever_a_model_wrote() -> None:
    text = excerpt(
        trajectory(
            ("bash", "{not json", "error"),
            ("write_file", {"path": "a", "content": "x" * 10_000}, "written"),
            ("bash", "[1, 2]", "y" * 10_000),
        )
    )
    assert text.startswith("bash {not json\n    error\nwrite_file path=a, content=xxx")
    assert max(map(len, text.splitlines())) <= WIDTH + 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "`plain`"), ("echo `date`", "`` echo `date` ``"), ("a\n b", "`a b`"), ("``", "``` `` ```")],
)
def test_code_spans(text: str, shown: str) -> None:
    assert code(text) == shown


def test_what_a_repository_prints_does_not_become_markdown() -> None:
    assert plain("![x](http://e.org/a.png) <b>\n# head |") == r"\!\[x\](http://e.org/a.png) \<b\> \# head \|"


def test_links() -> None:
    assert flow_run_link(None) == ""
    assert flow_run_link("f-1").endswith("/runs/flow-run/f-1")
    assert short_name("https://example.org/o/name/") == "o/name"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("github.com/Owner/some_name.py", "repository-github-com-owner-some-name-py"),
        ("/srv/" + "deep/" * 50 + "name", "repository-" + "deep-" * 15 + "name"),
        ("日本", "repository-cf2abf0c5be3"),
    ],
)
def test_keys_of_artifacts_are_the_same_every_night(name: str, key: str) -> None:
    assert artifact_key("repository", name) == key


def test_a_target_that_failed_says_so_in_the_list_of_goals() -> None:
    records = failed()
    goal = records.goals[0]
    target = Target(command=goal.command, description="", verdict=Verdict.MISMATCH, reason="1 of 3 tests failed")
    attempt = records.attempts[0].model_copy(update={"targets": (target,)})
    page = repository_report(records.model_copy(update={"attempts": (attempt,)}), DATA)
    assert f"- ✗ `{goal.command}`" in page
    assert "*1 of 3 tests failed*" in page
