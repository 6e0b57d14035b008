"""The tools of model agents in real containers: what a scripted sandbox cannot show."""

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoinstall.agents.llm.contract import AgentTool, Desk, Observation
from autoinstall.agents.llm.observations import KEPT, remove_kept
from autoinstall.agents.llm.tools import installing_tools
from autoinstall.agents.llm.tools.hints import hint_table
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.tree import Tree
from autoinstall.values import Limits

pytestmark = pytest.mark.docker

TOOLS: dict[str, AgentTool] = {tool.spec.name: tool for tool in installing_tools()}


@pytest.fixture(scope="module")
def sandbox(provider: DockerProvider, workspace_image: Snapshot) -> Iterator[Sandbox]:
    limits = Limits(command_seconds=60)
    with provider.open(SandboxSpec(image=workspace_image.digest, purpose="test", limits=limits)) as sandbox:
        yield sandbox


@pytest.fixture
def desk(sandbox: Sandbox, source: WorkspaceSource) -> Iterator[Desk]:
    desk = Desk(sandbox, Tree(Path(source.path)), 12_000, 60, time.monotonic() + 600)
    yield desk
    remove_kept(desk)


def use(desk: Desk, name: str, /, **arguments: Any) -> Observation:
    return TOOLS[name].call(arguments, desk)


def output_of(observation: Observation) -> str:
    return observation.text.partition("\n")[2]


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("printf out; printf err >&2; exit 3", 3, "outerr"),
        ("trap 'echo bye' EXIT; echo hello | cat; false", 1, "hello\nbye"),
        ("exec printf replaced", 0, "replaced"),
        ("kill -9 $$", 137, ""),
        ("kill 0; sleep 5", 143, ""),
        ("nonsense-command", 127, "bash: line 1: nonsense-command: command not found"),
        ("echo 'unclosed", 2, None),
        ('echo "$SHLVL:$PWD:${BASH_ENV-none}:${AUTOINSTALL_KEEP-none}"; env | grep -c ^autoinstall_', 1, None),
        ('[ -t 0 ] || [ -t 1 ] || [ -p /dev/stdout ] && read -r x </dev/stdin; echo "got:$x"', 0, "got:"),
        ("printf 'caf\\303'; sleep 0.2; printf '\\251'", 0, "café"),
    ],
)
def test_a_command_runs_as_the_sandbox_alone_would_run_it(
    desk: Desk, command: str, code: int, output: str | None
) -> None:
    plain = desk.sandbox.run(command)
    observation = use(desk, "bash", command=command)
    assert plain.exit_code == code
    assert observation.text.startswith(f"[exit code {code}, ")
    assert output_of(observation) == plain.output.rstrip("\n")
    if output is not None:
        assert output_of(observation) == output


def test_an_output_of_150_000_tokens_is_shown_in_part_and_can_be_read_whole(desk: Desk) -> None:
    whole = "".join(f"{number}\n" for number in range(1, 150_001))
    observation = use(desk, "bash", command="seq 1 150000; exit 4")
    assert observation.text.startswith("[exit code 4, ")
    assert len(observation.text) <= desk.observation_characters
    assert observation.text.endswith("149999\n150000")
    found = re.search(rf"of (\d+) characters were left out here. All of it is in ({KEPT}/\d+\.txt)", observation.text)
    assert found
    path = found[2]
    assert output_of(use(desk, "bash", command=f"md5sum < {path}")).split()[0] == _md5(whole)
    assert output_of(use(desk, "bash", command=f"sed -n '70000,70002p' {path}")) == "70000\n70001\n70002"
    part = use(desk, "read_file", path=path, start=100_000, count=2).text
    assert part.startswith("100000\t100000\n100001\t100001\n")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def test_a_flood_costs_a_bounded_file(desk: Desk) -> None:
    observation = use(desk, "bash", command="yes | head -c 200000000")
    assert observation.text.startswith("[exit code 0, ")
    assert "[The file has the first 32 MiB of it.]" in observation.text
    assert output_of(use(desk, "bash", command=f"stat -c %s {KEPT}/1.txt")) == str(32 * 2**20)


def test_small_outputs_leave_no_file_and_the_end_leaves_nothing(desk: Desk) -> None:
    use(desk, "bash", command="echo small")
    use(desk, "bash", command="seq 1 50000")
    assert output_of(use(desk, "bash", command=f"ls {KEPT}")) == "2.txt\nkeep.pl\nkeep.sh"
    remove_kept(desk)
    assert desk.sandbox.stat([KEPT]) == (None,)


def test_a_server_in_the_background_that_keeps_printing_does_not_hold_the_call(desk: Desk) -> None:
    # Hidden in a script, where the tool does not see it coming and refuse it.
    use(desk, "write_file", path="start.sh", content="while true; do echo tick; sleep 0.01; done & echo started")
    begun = time.monotonic()
    observation = use(desk, "bash", command="bash start.sh")
    assert time.monotonic() - begun < 10
    assert observation.text.startswith("[exit code 0, ")
    assert "started" in observation.text
    # It lives on, and somebody reads what it prints.
    alive = "pgrep -f '[s]tart.sh' >/dev/null && echo alive"
    assert output_of(use(desk, "bash", command=f"sleep 0.5; {alive}")) == "alive"
    use(desk, "bash", command="pkill -f '[s]tart.sh'")


def test_a_server_in_the_foreground_is_ended_with_all_it_started_and_the_service_tool_named(desk: Desk) -> None:
    use(desk, "write_file", path="serve.sh", content="sleep 4711 & exec python3 -u -m http.server 8123\n")
    observation = use(desk, "bash", command="bash serve.sh", timeout=2)
    assert observation.error
    assert "timed out" in observation.text
    assert "Serving HTTP on 0.0.0.0 port 8123" in observation.text
    assert "start_service" in observation.text
    left = use(desk, "bash", command="pgrep -f '[s]leep 4711'; pgrep -f '[h]ttp.server'; true")
    assert "no output" in left.text


def test_what_a_command_printed_before_its_limit_is_kept(desk: Desk) -> None:
    observation = use(desk, "bash", command="seq 1 20000; sleep 60", timeout=2)
    found = re.search(rf"All of it is in ({KEPT}/\d+\.txt)", observation.text)
    assert found
    assert output_of(use(desk, "bash", command=f"wc -l < {found[1]}")) == "20000"


def test_questions_end_at_once(desk: Desk) -> None:
    begun = time.monotonic()
    use(
        desk,
        "bash",
        command="read -r -p 'Continue? ' answer; read -r x </dev/tty; git clone https://localhost:1/x.git /tmp/x",
    )
    assert time.monotonic() - begun < 20


def test_what_a_distribution_refuses_comes_with_its_remedy(desk: Desk) -> None:
    remedies = {hint.name: hint.text for hint in hint_table()}
    # As on a Debian of its own: the default base lets its Python be installed into.
    marker = (
        "marker=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))')/EXTERNALLY-MANAGED"
    )
    pip = "/usr/bin/python3 -m pip install --no-index six"
    observation = use(desk, "bash", command=f"{marker}; trap 'rm -f $marker' EXIT; touch $marker; {pip}")
    assert remedies["pep668"] in observation.text
    listed = "deb file:/nowhere buster main"
    gone = f"echo '{listed}' > /tmp/gone.list && apt-get update -o Dir::Etc::SourceList=/tmp/gone.list "
    observation = use(desk, "bash", command=f"{gone} -o Dir::Etc::SourceParts=/dev/null --error-on=any")
    assert remedies["apt_end_of_life"] in observation.text


def test_a_service_is_ready_and_recorded_or_its_log_is_told(desk: Desk) -> None:
    given = {"probe_kind": "http", "probe_target": "http://localhost:8124/README.md", "probe_timeout": 30}
    observation = use(desk, "start_service", name="web", command="exec python3 -m http.server 8124", **given)
    assert not observation.error, observation.text
    fetched = use(desk, "bash", command="curl -s --noproxy '*' http://localhost:8124/README.md")
    assert output_of(fetched) == "A sample"
    assert [service.name for service in desk.sandbox.recipe.services] == ["web"]
    broken = use(
        desk,
        "start_service",
        name="broken",
        command="echo cannot open the database; exit 3",
        probe_kind="tcp",
        probe_target="8125",
    )
    assert broken.error
    assert "cannot open the database" in broken.text
    assert [service.name for service in desk.sandbox.recipe.services] == ["web"]


def test_files_are_listed_searched_read_and_edited(desk: Desk) -> None:
    listed = use(desk, "list_files").text.split("\n")
    assert {"src/", "src/main.py 15", "run.sh 19"} <= set(listed)
    assert not any(line.startswith(".git/") and line != ".git/" for line in listed)
    assert use(desk, "search_files", pattern="print.*hello").text == "src/main.py:1:print('hello')"
    assert use(desk, "search_files", pattern="print", glob="*.sh").text == "No match."
    assert use(desk, "search_files", pattern="(").text.startswith("The search failed: ")
    assert use(desk, "search_files", pattern="x", path="nowhere").error
    assert use(desk, "list_files", path="nowhere").error
    content = "a\r\n'b' $c\\n\0"
    use(desk, "write_file", path="made/file.bin", content=content)
    assert desk.sandbox.read_file("made/file.bin") == content.encode()
    edited = use(desk, "edit_file", path="src/main.py", old="hello", new="bye")
    assert "src/main.py is a file of the commit" in edited.text
    assert output_of(use(desk, "bash", command="python3 src/main.py")) == "bye"
    use(desk, "bash", command="git checkout -q -- src/main.py; rm -r made")


def test_a_variable_reaches_later_commands(desk: Desk) -> None:
    use(desk, "set_env", name="GREETING", value="it's $HOME")
    assert output_of(use(desk, "bash", command='echo "$GREETING"')) == "it's $HOME"


def test_commands_run_without_the_copier_where_somebody_removed_it(desk: Desk) -> None:
    use(desk, "bash", command="echo first")
    use(desk, "bash", command=f"rm -rf {KEPT}")
    lost = use(desk, "bash", command="seq 1 150000; exit 5")
    assert lost.text.startswith("[exit code 5, ")
    assert "bytes in the middle are lost" in lost.text
    found = re.search(rf"All of it is in ({KEPT}/\d+\.txt)", use(desk, "bash", command="seq 1 150000").text)
    assert found
    assert output_of(use(desk, "bash", command=f"wc -l < {found[1]}")) == "150000"
