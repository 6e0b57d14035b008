import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import types
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
from dataset_rows import COMMIT, OBSERVED, URL, environment, run
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from typer.testing import CliRunner

from autoinstall.datasets.writer import ensure_writable, write_run
from autoinstall.doctor import Check, Status
from autoinstall.errors import DiskFull, EngineUnavailable, InvalidGoals, InvalidList, UnusableDirectory
from autoinstall.sandbox.reaper import ReapReport
from autoinstall.settings import get_settings
from autoinstall.values import CommandResult, Outcome
from autoinstall.verification import Verification
from cli import tables
from cli.arguments import split_ref
from cli.fitting import Output
from cli.main import app
from flows.recovery import Recovered

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands look whether an engine answers before they start a flow; here that is taken for granted."""
    if request.node.get_closest_marker("docker") is None:
        monkeypatch.setattr("autoinstall.sandbox.engine.connect", lambda _settings: Mock())


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flows of these tests are none of Prefect's."""
    monkeypatch.setattr("cli.server.prefect_api", contextlib.nullcontext)
    monkeypatch.setattr("cli.server.running", lambda _state: "")


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    """No .env, no variables and no directories of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("AUTOINSTALL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOINSTALL_CACHE", str(tmp_path / "cache"))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def flows(monkeypatch):
    """Stands in for the flows: what they were called with, and what they give or raise."""

    class Flows:
        calls: list = []  # noqa: RUF012
        result: object = None

        def __call__(self, *args, **kwargs):
            self.calls.append((args, kwargs))
            if isinstance(self.result, BaseException):
                raise self.result
            return self.result

    fake = Flows()
    fake.calls = []
    for module, function in (("flows.build_environment", "run_build"), ("flows.nightly", "run_nightly")):
        stub = types.ModuleType(module)
        setattr(stub, function, fake)
        monkeypatch.setitem(sys.modules, module, stub)
    return fake


@pytest.fixture(autouse=True)
def listed(tmp_path):
    """A list of repositories in the working directory."""
    (tmp_path / "list.csv").write_text(f"url,ref\n{URL},v1\n")


def cli(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


# --- run


def test_run_passes_on_what_it_was_told(flows, tmp_path):
    flows.result = run("r1")
    goals = tmp_path / "goals.json"
    goals.write_text('[{"command": "make test", "description": "passes", "exit_codes": [0, 1]}]')
    done = cli("run", f"{URL}@v1", "--data", "here", "--goals", goals, "--agent", "rules")
    assert done.exit_code == 0, done.output
    (spec,), options = flows.calls[0]
    assert (spec.url, spec.ref) == (URL, "v1")
    assert spec.goals[0].exit_codes == (0, 1)
    assert options["data"] == str(tmp_path / "here")
    assert options["settings"].data == str(tmp_path / "here")
    assert "verified" in done.stdout
    assert "autoinstall shell name-" in done.stdout


@pytest.mark.parametrize(
    ("agent", "roles"),
    [
        ("rules", ("rules", ("rules",), "rules")),
        ("llm", ("llm", ("llm",), "llm")),
        ("rules,llm", ("llm", ("rules", "llm"), "llm")),
        ("llm, rules", ("llm", ("llm", "rules"), "llm")),
    ],
)
def test_agents_are_chosen_by_family(flows, monkeypatch, agent, roles):
    monkeypatch.setenv("AUTOINSTALL_MODEL__NAME", "m1")
    monkeypatch.setenv("AUTOINSTALL_MODEL__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("AUTOINSTALL_AGENTS__STEPS", "7")
    flows.result = run("r1")
    done = cli("run", URL, "--agent", agent)
    assert done.exit_code == 0, done.output
    agents = flows.calls[0][1]["settings"].agents
    assert (agents.goal_setter, agents.installer, agents.judge) == roles
    assert agents.steps == 7  # what else was set stays


def test_an_unknown_agent_is_bad_input(flows):
    done = cli("run", URL, "--agent", "rules,magic", "--json")
    assert done.exit_code == 2
    assert "There is no agent 'magic'." in json.loads(done.stdout)["reason"]
    assert flows.calls == []


@pytest.mark.parametrize("command", [("run", URL), ("nightly", "--repositories", "list.csv")])
def test_an_agent_without_a_model_is_told_before_anything_starts(flows, command):
    done = cli(*command, "--agent", "llm", "--json")
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert "played by a model" in found["reason"]
    assert "AUTOINSTALL_MODEL__NAME" in found["hint"]
    assert flows.calls == []


def test_report_compares_agents_where_there_are_several(tmp_path):
    write_run(tmp_path, run("r1", configuration="rules", team="rules"))
    assert "Agents compared" not in cli("report", "--data", tmp_path).stdout
    spent = {"input_tokens": 1_200_000, "output_tokens": 34_567, "cost_usd": 1.5}
    write_run(tmp_path, run("r2", configuration="llm", team="llm:m1", **spent))
    shown = cli("report", "--data", tmp_path).stdout
    assert "on the 1 repositories that all of them decided" in " ".join(shown.split())
    assert "llm:m1" in shown
    assert "1,234,567" in shown
    teams = json.loads(cli("report", "--data", tmp_path, "--json").stdout)["comparison"]["teams"]
    assert {team["team"]: team["tokens"] for team in teams} == {"rules": 0, "llm:m1": 1_234_567}


def test_run_json_is_one_object_with_the_promised_keys(flows):
    flows.result = run("r1")
    done = cli("run", URL, "--json")
    found = json.loads(done.stdout)
    assert found["outcome"] == "verified"
    assert found["commit"] == COMMIT
    assert found["environment_id"].startswith("name-")
    assert (found["held_out_passed"], found["held_out_total"], found["offline_ok"]) == (5, 7, True)
    assert found["targets"][0]["verdict"] == "matches"
    assert found.keys() >= {"reason", "repository", "attempts", "seconds", "image"}


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ("mismatch", 3),
        ("flaky", 3),
        ("tampered", 3),
        ("auth_or_not_found", 3),
        ("empty_repository", 3),
        ("nothing_to_set_up", 3),
        ("infrastructure", 4),
        ("unknown", 4),
        ("invalid_url", 2),
        ("cancelled", 130),
    ],
)
def test_run_exit_codes(flows, outcome, code):
    flows.result = run("r1", verified=False, outcome=outcome, reason="because [of] it")
    done = cli("run", URL)
    assert done.exit_code == code
    assert "because [of] it" in done.stdout


@pytest.mark.parametrize(
    ("error", "code", "outcome"),
    [
        (InvalidGoals("Wrong form.", hint="Write a list."), 2, None),
        (UnusableDirectory("Cannot be written.", hint="Choose another."), 2, None),
        (EngineUnavailable("No engine answers.", hint="Start one."), 4, "infrastructure"),
        (DiskFull("No disk.", hint="Free some."), 4, "infrastructure"),
    ],
)
def test_errors_are_a_message_and_a_hint_without_a_traceback(flows, error, code, outcome):
    flows.result = error
    done = cli("run", URL, "--json")
    assert done.exit_code == code
    assert error.message in done.stderr
    assert error.hint in done.stderr
    assert "Traceback" not in done.output
    assert json.loads(done.stdout) == {
        "outcome": outcome,
        "code": error.code,
        "reason": error.message,
        "hint": error.hint,
    }


def test_what_nobody_expected_goes_to_a_log_file(flows, tmp_path):
    flows.result = ValueError("https://u:secret@h/ broke")
    done = cli("run", URL)
    assert done.exit_code == 1
    assert "Traceback" not in done.output
    (log,) = (tmp_path / "cache" / "logs").iterdir()
    assert str(log) in done.stderr
    assert "Traceback" in log.read_text()
    assert "secret" not in done.output + log.read_text()


def test_an_interrupt_is_no_traceback(flows):
    flows.result = KeyboardInterrupt()
    assert cli("run", URL).exit_code == 130


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", ""],
        ["run", f"{URL}@"],
        ["run", URL, "--goals", "absent.json"],
        ["run", URL, "--agent", "nobody"],
        ["run", URL, "--what"],
        ["nightly"],
        ["nightly", "--repositories", "list.csv", "--concurrency", "0"],
        ["nonsense"],
        ["shell", "absent"],
        ["verify", "absent"],
    ],
)
def test_bad_input_exits_with_2(flows, arguments):
    done = cli(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stderr
    assert flows.calls == []


def test_a_goals_file_of_the_wrong_form_names_it(flows, tmp_path):
    goals = tmp_path / "goals.json"
    goals.write_text('{"command": "x"}')
    done = cli("run", URL, "--goals", goals)
    assert done.exit_code == 2
    assert "goals.json" in done.stderr


def test_a_wrong_setting_is_bad_input(flows, monkeypatch):
    monkeypatch.setenv("AUTOINSTALL_LIMITS__MEMORY_MB", "much")
    done = cli("run", URL)
    assert done.exit_code == 2
    assert "memory_mb" in done.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://h/o/n", ("https://h/o/n", None)),
        ("https://h/o/n@v1.0", ("https://h/o/n", "v1.0")),
        ("https://h/o/n.git@feature/x", ("https://h/o/n.git", "feature/x")),
        ("https://user:p@h/o/n", ("https://user:p@h/o/n", None)),
        ("https://user@h/o/n@main", ("https://user@h/o/n", "main")),
        ("https://h/@scope/n", ("https://h/@scope/n", None)),
        ("git@h:o/n", ("git@h:o/n", None)),
        ("git@h:o/n@dev", ("git@h:o/n", "dev")),
        ("ssh://git@h:22/o/n@v2", ("ssh://git@h:22/o/n", "v2")),
        ("file:///srv/x@abc", ("file:///srv/x", "abc")),
        ("/srv/x@abc", ("/srv/x", "abc")),
        ("https://h/o/n@", ("https://h/o/n", "")),
        ("ext::sh -c x", ("ext::sh -c x", None)),
        ("word", ("word", None)),
    ],
)
def test_url_and_ref(given, expected):
    assert split_ref(given) == expected


def test_a_local_path_with_an_at_sign_that_exists_has_no_ref(tmp_path):
    (tmp_path / "a@b").mkdir()
    assert split_ref(str(tmp_path / "a@b")) == (str(tmp_path / "a@b"), None)


# --- nightly


def test_nightly_passes_on_what_it_was_told(flows, tmp_path):
    flows.result = (run("r1").repository, run("r2", verified=False, reason="no [luck]").repository)
    done = cli("nightly", "--repositories", "list.csv", "--data", "d", "--concurrency", 3, "--force")
    assert done.exit_code == 0, done.output
    (path,), options = flows.calls[0]
    assert path == "list.csv"
    assert options["data"] == str(tmp_path / "d")
    assert (options["concurrency"], options["force"]) == (3, True)
    for expected in ("verified", "mismatch", "5/7", "no [luck]", "prefect server start", str(tmp_path / "d")):
        assert expected in done.stdout


def test_nightly_fails_only_where_infrastructure_failed_for_all(flows):
    lost = run("r1", verified=False, outcome="infrastructure").repository
    flows.result = (lost, lost)
    assert cli("nightly", "--repositories", "list.csv").exit_code == 4
    flows.result = (lost, run("r2", verified=False).repository)
    done = cli("nightly", "--repositories", "list.csv", "--json")
    assert done.exit_code == 0
    assert [row["outcome"] for row in json.loads(done.stdout)["repositories"]] == ["infrastructure", "mismatch"]
    flows.result = ()
    assert cli("nightly", "--repositories", "list.csv").exit_code == 0


@pytest.mark.parametrize(
    ("content", "said"), [(None, "There is no repository list l"), ("url\n", "has no row"), ("url,ref\n,x\n", "line 2")]
)
def test_nightly_looks_at_its_list_before_anything_starts(flows, tmp_path, content, said):
    if content is not None:
        (tmp_path / "l").write_text(content)
    done = cli("nightly", "--repositories", "l")
    assert done.exit_code == 2
    assert said in done.stderr
    assert "starting Prefect" not in done.stderr
    assert flows.calls == []


def test_nightly_with_a_list_that_goes_while_it_starts(flows):
    flows.result = InvalidList("The repository list l cannot be read.", hint="Columns: url.")
    done = cli("nightly", "--repositories", "list.csv")
    assert done.exit_code == 2
    assert "cannot be read" in done.stderr


# --- report, environments


def test_report_and_environments_before_the_first_run(tmp_path):
    for command in ("report", "environments"):
        done = cli(command, "--data", tmp_path / "none")
        assert done.exit_code == 0, done.output
        assert str(tmp_path / "none") in done.stdout
    ensure_writable(tmp_path / "data")
    assert json.loads(cli("environments", "--data", "data", "--json").stdout) == []
    assert json.loads(cli("report", "--data", "data", "--json").stdout)["total"] == 0


def test_a_file_is_no_data_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    for command in ("report", "environments"):
        done = cli(command, "--data", tmp_path / "file")
        assert done.exit_code == 2
        assert "is no directory" in done.stderr


def test_report(tmp_path):
    write_run(tmp_path / "data", run("r1"))
    write_run(tmp_path / "data", run("r2", verified=False, configuration="c2", reason="tests fail"))
    done = cli("report", "--data", "data")
    assert done.exit_code == 0, done.output
    for expected in ("1 of 2 verified (50%)", "tests fail", "o/name", "71%", "prefect server start"):
        assert expected in done.stdout
    found = json.loads(cli("report", "--data", "data", "--json").stdout)
    assert (found["total"], found["yield_rate"]) == (2, 0.5)
    assert found["datasets"]["goals"] == str(tmp_path / "data" / "goals")


def test_environments(tmp_path):
    write_run(tmp_path / "data", run("r1"))
    assert environment("r1").environment_id in cli("environments", "--data", "data").stdout
    (found,) = json.loads(cli("environments", "--data", "data", "--json").stdout)
    assert found["image_digest"] == environment("r1").image_digest


def printed(shown, width):
    console = Output(file=io.StringIO(), width=width, highlight=False)
    console.print(shown)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, ["id", "repository", "commit", "accepted", "held-out", "offline"]),
        (95, ["id", "repository", "accepted", "held-out", "offline"]),
        (80, ["id", "repository", "held-out", "offline"]),
        (50, ["id", "held-out", "offline"]),
    ],
)
def test_a_narrow_terminal_still_shows_how_good_environments_are(width, columns):
    record = environment("r1", repository=f"https://h/{'o' * 20}/{'n' * 10}")
    heading, line = printed(tables.environments([record]), width)
    assert heading.split() == columns
    assert line.split()[0] == record.environment_id
    assert line.split()[-2:] == ["5/7", "yes"]


def test_reasons_have_room_before_numbers_have():
    reason = "the tests fail for a reason that takes its time and some more words to be told " * 2
    rows = [run("r1", verified=False, reason=reason).repository]
    wide = printed(tables.outcomes(rows), 220)
    assert len(wide) == 2
    assert "seconds" in wide[0]
    assert printed(tables.outcomes(rows), 100)[0].split()[2:4] == ["held-out", "attempts"]
    assert len(printed(tables.outcomes(rows), 80)) <= 5
    assert "held-out" not in printed(tables.outcomes(rows), 70)[0]
    assert "held-out" in printed(tables.outcomes([run("r2").repository]), 80)[0]


def test_a_pipe_gets_lines_that_are_whole(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("cli.boundary.out._width", None)  # what COLUMNS was when the program began
    reason = "because of " + "one thing and another, " * 6
    write_run(tmp_path / "data", run("r1", repository=f"https://h/{'owner' * 8}/{'name' * 8}"))
    write_run(tmp_path / "data", run("r2", verified=False, configuration="c2", reason=reason))
    assert reason.strip() in cli("report", "--data", "data").stdout
    heading, line = cli("environments", "--data", "data").stdout.splitlines()
    assert heading.split()[-2:] == ["held-out", "offline"]
    assert f"{'owner' * 8}/{'name' * 8}" in line


# --- recover


def test_recover_says_once_what_it_did_with_names_of_repositories(tmp_path, monkeypatch):
    found = Recovered(runs=("o/n@v1",), rows=("r1", "r-elsewhere"), removed=("autoinstall-1", "autoinstall/x:2"))
    write_run(tmp_path / "data", run("r1"))
    monkeypatch.setenv("AUTOINSTALL_DATA", str(tmp_path / "data"))

    def fake(_settings):
        logger = logging.getLogger("prefect.flow_runs")
        logger.info("%s", found, extra={"flow_run_name": "recover"})
        logger.warning("One is left", extra={"flow_run_name": "recover"})
        return found

    monkeypatch.setattr("flows.recovery.run_recover", fake)
    with temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: False}):
        done, as_json = cli("recover"), cli("recover", "--json")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "Runs that had died: o/n@v1",
        f"Wrote the rows of killed runs of: {URL}, r-elsewhere",
        "Removed what dead runs left: 2 of containers, networks and images",
    ]
    assert "had died" not in done.stderr
    assert "One is left" in done.stderr
    assert json.loads(as_json.stdout)["rows"] == ["r1", "r-elsewhere"]


# --- shell, verify


@pytest.fixture
def opened(monkeypatch):
    """Commands that were run in a pretended environment."""
    commands = []

    class Opened:
        def run(self, command):
            commands.append(command)
            return CommandResult(command=command, exit_code=7, output="said\n")

    @contextmanager
    def fake(record, **_options):
        commands.append(record.environment_id)
        yield Opened()

    monkeypatch.setattr("autoinstall.environment.open_environment", fake)
    return commands


def test_shell_runs_one_command_and_returns_its_exit_code(opened, tmp_path):
    write_run(tmp_path / "data", run("r1"))
    done = cli("shell", "name-", "-c", "ls | wc", "--data", "data")
    assert done.exit_code == 7
    assert done.stdout == "said\n"
    assert opened == [environment("r1").environment_id, "ls | wc"]


def test_shell_without_a_terminal_runs_what_it_reads(opened, tmp_path):
    write_run(tmp_path / "data", run("r1"))
    assert cli("shell", "name-", "--data", "data", input="cd src\nls\n").exit_code == 7
    assert opened[1] == "cd src\nls\n"


@pytest.mark.parametrize(("outcome", "code"), [("verified", 0), ("mismatch", 3), ("flaky", 3), ("unknown", 4)])
def test_verify(monkeypatch, tmp_path, outcome, code):
    write_run(tmp_path / "data", run("r1"))
    asked = []

    def fake(record, **_options):
        asked.append(record)
        return Verification(outcome=Outcome(outcome), reason="so it is", runs=((OBSERVED,), (OBSERVED,)))

    monkeypatch.setattr("autoinstall.environment.reverify", fake)
    done = cli("verify", environment("r1").environment_id, "--data", "data")
    assert done.exit_code == code
    assert asked == [environment("r1")]
    assert outcome in done.stdout
    assert OBSERVED.goal.command in done.stdout
    done = cli("verify", "name-", "--data", "data", "--json")
    assert done.exit_code == code
    found = json.loads(done.stdout)
    assert (found["outcome"], found["runs"], found["targets"][0]["verdict"]) == (outcome, 2, "matches")


# --- prune, doctor


@pytest.fixture
def pruned(monkeypatch):
    """What is asked of the engine."""
    asked = []
    found = ReapReport(containers=("autoinstall-x",), images=("autoinstall/environment:1",), freed_bytes=5 * 2**20)
    monkeypatch.setattr("autoinstall.sandbox.engine.connect", lambda _settings: types.SimpleNamespace(close=list))
    monkeypatch.setattr(
        "cli.pruning.prune", lambda _client, _settings, chosen, *, dry_run: asked.append((chosen, dry_run)) or found
    )
    return asked


@pytest.mark.parametrize("dry_run", [True, False])
def test_prune(pruned, dry_run):
    flags = ["--dry-run"] if dry_run else []
    done = cli("prune", *flags)
    assert done.exit_code == 0, done.output
    ((chosen, asked),) = pruned
    assert (chosen.expired, chosen.keep, asked) == ((), None, dry_run)
    assert "container autoinstall-x" in done.stdout
    assert ("would be" in done.stdout) is dry_run
    assert ("5 MiB freed" in done.stdout) is not dry_run
    assert json.loads(cli("prune", "--json", *flags).stdout)["dry_run"] is dry_run


def test_prune_takes_environments_only_where_it_is_told_to(pruned, tmp_path):
    first, second = environment("r1"), environment("r2")
    for name in ("r1", "r2"):
        write_run(tmp_path / "data", run(name))
    assert cli("prune", "--retain", "--newest", "1", "--unnamed", "--data", "data").exit_code == 0
    ((chosen, _),) = pruned
    assert chosen.expired in ((first.environment_id,), (second.environment_id,))  # two of the same repository
    assert {first.image, second.image} <= set(chosen.keep)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--newest", "2"], "--retain"),
        (["--retain"], "how many environments to keep"),
        (["--unnamed", "--data", "nowhere"], "every image would go"),
    ],
)
def test_prune_asks_back_where_too_much_would_go(pruned, flags, said):
    done = cli("prune", *flags)
    assert done.exit_code == 2
    assert said in done.stderr
    assert pruned == []


def test_prune_says_what_would_not_go(monkeypatch, pruned):
    monkeypatch.setattr("cli.pruning.prune", lambda *_, **__: ReapReport(failed=("x: in use",)))
    done = cli("prune")
    assert done.exit_code == 4
    assert "x: in use" in done.stderr


@pytest.mark.parametrize(("status", "code"), [(Status.OK, 0), (Status.WARN, 0), (Status.FAIL, 4)])
def test_doctor(monkeypatch, status, code):
    check = Check(name="engine", status=status, detail="is [there]", hint="Do it.")
    monkeypatch.setattr("cli.examining.examine", lambda _settings: (found for found in (check,)))
    done = cli("doctor")
    assert done.exit_code == code
    assert "is [there]" in done.stdout
    assert "Do it." in done.stdout
    assert json.loads(cli("doctor", "--json").stdout)[0]["status"] == status


def test_doctor_looks_at_the_server_that_commands_use(monkeypatch):
    monkeypatch.setattr("cli.examining.examine", lambda _settings: (found for found in ()))
    monkeypatch.setattr("cli.server.running", lambda _state: "http://127.0.0.1:9/api")
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        done = cli("doctor")
    assert done.exit_code == 4
    assert "The server at http://127.0.0.1:9/api does not answer" in done.stdout


def test_doctor_says_what_it_knows_and_closes_what_it_has_open_when_it_is_ended():
    code = (
        "import time\n"
        "from autoinstall import doctor\n"
        "from cli.main import main\n"
        "def examine(settings):\n"
        "    try:\n"
        "        yield doctor.Check(name='git', status='ok', detail='is there')\n"
        "        time.sleep(120)\n"
        "    finally:\n"
        "        print('closed', flush=True)\n"
        "doctor.examine = examine\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, "doctor"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as doctor:
        assert doctor.stdout.readline() == "ok   git: is there\n"
        doctor.terminate()
        said, complaint = doctor.communicate(timeout=60)
    assert (said, doctor.returncode) == ("closed\n", 130)
    assert "Traceback" not in complaint


# --- the command itself


def test_events_of_flows_are_shown_one_a_line():
    code = (
        "import contextlib, logging\n"
        "from cli import progress\n"
        "progress.prefect_api = contextlib.nullcontext\n"
        "with progress.flow_session(verbose=False):\n"
        "    from prefect.logging.configuration import setup_logging\n"
        "    setup_logging()\n"  # as every flow run does
        "    logger = logging.getLogger('prefect.flow_runs')\n"
        "    logger.info('Beginning flow run', extra={'flow_run_name': 'o/n@v1'})\n"
        "    logger.info('Attempt 1 of 5: [mismatch]\\nmore', extra={'flow_run_name': 'o/n@v1'})\n"
    )
    env = os.environ | {"PREFECT_LOGGING_TO_API_ENABLED": "false"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, env=env)
    assert done.stderr == "starting Prefect…\no/n@v1 Attempt 1 of 5: [mismatch]\n"
    assert done.stdout == ""


def test_help_and_version_load_nothing_heavy():
    code = (
        "import sys; from typer.testing import CliRunner; from cli.main import app; "
        "done = CliRunner().invoke(app, ['--help']); assert done.exit_code == 0; "
        "commands = 'run nightly report environments shell verify prune doctor'.split(); "
        "names = [command for command in commands if command not in done.stdout]; "
        "loaded = [m for m in ('prefect', 'pandas', 'pyarrow', 'docker') if m in sys.modules]; "
        "sys.exit(str((names, loaded)) if names or loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert cli("--version").stdout.startswith("autoinstall ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTOINSTALL_GIT_MIRRORS", "foo"),
        ("AUTOINSTALL_LIMITS__MEMORY_MB", "-5"),
        ("AUTOINSTALL_LIMITS__CPUS", "0"),
        ("AUTOINSTALL_CLONE__MAX_FILES", "-1"),
    ],
)
def test_unusable_settings_are_bad_input(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    try:
        result = CliRunner().invoke(app, ["report"])
    finally:
        get_settings.cache_clear()
    assert result.exit_code == 2
    assert "settings are not usable" in result.output


def test_a_url_that_git_must_not_see_starts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", "ext::sh -c id", "--data", str(tmp_path / "data")])
    assert result.exit_code == 2
    assert not (tmp_path / "data").exists()
