"""The tools of model agents, on scripted sandboxes."""

import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from autoinstall.agents.llm.contract import AgentTool, Desk, LoopStop, Observation
from autoinstall.agents.llm.observations import excerpt, remove_kept
from autoinstall.agents.llm.tools import GiveUp, Submit, exploring_tools, installing_tools
from autoinstall.agents.llm.tools.base import descriptions, schema_of
from autoinstall.agents.llm.tools.bash import leaves_behind
from autoinstall.errors import SandboxLost
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import Call, File, Response, ScriptedProvider, ScriptedSandbox
from autoinstall.settings import LimitSettings
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Mock, MockKind, Probe, ProbeKind, Service, Sidecar, Value

TOOLS: dict[str, AgentTool] = {tool.spec.name: tool for tool in installing_tools()}
Open = Callable[..., Desk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Any:
    """A function that opens a sandbox with responses of its own, and a checkout of a few files."""
    for path in ("src/app.py", "tests/test_app.py", "conftest.py", "uv.lock"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("one\n", encoding="utf-8")
    with ExitStack() as stack:

        def opening(
            responses: dict[str | re.Pattern[str], Response] | None = None, characters: int = 4000, **options: Any
        ) -> Desk:
            provider = ScriptedProvider(responses, **options)
            sandbox = stack.enter_context(provider.open(SandboxSpec(image=provider.ensure_base().digest)))
            return Desk(sandbox, Tree(tmp_path), characters, 60, time.monotonic() + 600)

        yield opening


def use(desk: Desk, name: str, /, **arguments: Any) -> Observation:
    return TOOLS[name].call(arguments, desk)


def box(desk: Desk) -> ScriptedSandbox:
    assert isinstance(desk.sandbox, ScriptedSandbox)
    return desk.sandbox


def test_every_tool_has_a_description_and_a_schema_that_small_servers_take() -> None:
    assert set(descriptions()) >= TOOLS.keys()
    for tool in TOOLS.values():
        text = str(tool.spec.parameters)
        assert tool.spec.parameters["type"] == "object"
        assert not re.search(r"\$ref|\$defs|anyOf|allOf|'title'", text), tool.spec.name
        assert tool.spec.description
        assert not tool.spec.description.startswith("\n")
        for schema in tool.spec.parameters["properties"].values():
            assert "type" in schema, tool.spec.name
    assert [tool.spec.name for tool in TOOLS.values() if tool.reads_only] == ["read_file", "list_files", "search_files"]
    assert {tool.spec.name for tool in exploring_tools()} == {"bash", "read_file", "list_files", "search_files"}


class Inner(Value):
    title: str
    level: Literal["low", "high"] = "low"


class Outer(Value):
    inner: Annotated[Inner, Field(description="the one inside")]
    more: tuple[Inner, ...] = ()
    maybe: int | None = None
    kind: MockKind = MockKind.FILE


def test_schemas_have_no_references_no_titles_and_no_null() -> None:
    schema = schema_of(Outer)
    inner = {
        "type": "object",
        "additionalProperties": False,
        "required": ["title"],
        "properties": {
            "title": {"type": "string"},
            "level": {"type": "string", "enum": ["low", "high"], "default": "low"},
        },
    }
    assert schema["properties"]["inner"] == {**inner, "description": "the one inside"}
    assert schema["properties"]["more"]["items"] == inner
    assert schema["properties"]["maybe"] == {"type": "integer"}
    assert schema["properties"]["kind"]["enum"] == [kind.value for kind in MockKind]
    assert schema["required"] == ["inner"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("bash", {}, "command: Field required"),
        ("bash", {"command": ""}, "command: "),
        ("bash", {"command": "ls", "timeout": "soon"}, "timeout: Input should be a valid number"),
        ("bash", {"cmd": "ls"}, "cmd: Extra inputs are not permitted"),
        ("start_service", {"name": "db", "command": "x", "probe_kind": "smell", "probe_target": "1"}, "'tcp', 'http'"),
        ("declare_mock", {"kind": "lie", "path": "x", "reason": "y"}, "kind: Input should be"),
    ],
)
def test_arguments_that_do_not_fit_are_explained_and_nothing_is_done(
    open_desk: Open, name: str, arguments: dict[str, Any], said: str
) -> None:
    desk = open_desk()
    observation = TOOLS[name].call(arguments, desk)
    assert observation.error
    assert said in observation.text
    assert f"{name} takes " in observation.text
    assert box(desk).commands == []


# --- bash


def test_bash_gives_exit_code_and_output_as_a_terminal_would_show_it(open_desk: Open) -> None:
    desk = open_desk({"make": (2, "\x1b[31mred\x1b[0m\x1b]0;title\x07\r\nprogress 1%\rprogress 100%\n"), "true": 0})
    observation = use(desk, "bash", command="make")
    assert observation.error
    assert re.fullmatch(r"\[exit code 2, [\d.]+ s\]\nred\nprogress 100%", observation.text)
    assert use(desk, "bash", command="true").text.endswith(", no output]")
    assert box(desk).commands == ["make", "true"]


def test_bash_has_a_command_end_with_the_run(open_desk: Open) -> None:
    seen: list[float] = []

    def note(call: Call) -> int:
        seen.append(call.timeout)
        return 0

    desk = open_desk(default=note)
    use(desk, "bash", command="a")
    use(desk, "bash", command="b", timeout=5)
    use(desk, "bash", command="c", timeout=5000)
    desk.deadline = time.monotonic() + 20
    use(desk, "bash", command="d")
    desk.deadline = time.monotonic() - 20
    use(desk, "bash", command="e")
    assert seen[:3] == [60, 5, 60]
    assert 10 < seen[3] <= 20
    assert 0 < seen[4] <= 1


def test_a_server_in_the_foreground_is_told_of_the_service_tool(open_desk: Open) -> None:
    ended = CommandResult(command="", exit_code=124, output="Listening on 8000\n", timed_out=True, duration=60)
    observation = use(open_desk({"serve": ended}), "bash", command="serve")
    assert observation.error
    assert observation.text.startswith("[exit code 124, timed out, 60.0 s]\nListening on 8000\n")
    assert "start_service" in observation.text


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("python -m http.server &", True),
        ("nohup redis-server > log 2>&1 &", True),
        ("setsid postgres -D data", True),
        ("cd web && (npm start &) && sleep 5", True),
        ("make -j4", False),
        ("echo 'a & b' && curl 'http://x/?a=1&b=2'", False),
        ("make a & make b & wait", False),
        ("server & sleep 1; curl localhost:80; kill $!", False),
    ],
)
def test_what_would_be_left_in_the_background_is_refused(open_desk: Open, command: str, left: bool) -> None:
    assert leaves_behind(command) is left
    desk = open_desk()
    observation = use(desk, "bash", command=command)
    assert ("start_service" in observation.text) is left
    assert (command in box(desk).commands) is not left


def test_where_there_is_no_service_tool_nobody_is_sent_to_it(open_desk: Open) -> None:
    bash = exploring_tools()[0]
    ended = CommandResult(command="", exit_code=124, output="", timed_out=True, duration=60)
    desk = open_desk({"serve": ended})
    told = [bash.call({"command": command}, desk).text for command in ("serve &", "serve")]
    assert "kill $!" in told[0]
    assert "`timeout`" in told[1]
    for text in (bash.spec.description, *told):
        assert not re.search("start_service|set_env", text)
    assert "start_service" in TOOLS["bash"].spec.description


def test_a_process_killed_for_memory_is_told(open_desk: Open) -> None:
    killed = CommandResult(command="", exit_code=137, output="Killed\n", out_of_memory=True)
    text = use(open_desk({"make -j64": killed}), "bash", command="make -j64").text
    assert "exit code 137, out of memory" in text
    assert "fewer jobs" in text


def test_a_long_output_is_shown_in_part_and_kept_whole(open_desk: Open) -> None:
    whole = "".join(f"line {number}\n" for number in range(10_000))
    desk = open_desk({"tests": (1, whole)})
    text = use(desk, "bash", command="tests").text
    assert len(text) <= desk.observation_characters
    assert "line 0\n" in text
    assert text.endswith("line 9999")
    found = re.search(r"All of it is in (/tmp/autoinstall-outputs/\d+\.txt)", text)
    assert found
    assert box(desk).read_file(found[1]).decode() == whole
    assert "sed -n" in text
    remove_kept(desk)
    assert box(desk).commands[-1] == "rm -rf /tmp/autoinstall-outputs"


def test_what_the_sandbox_dropped_is_told_where_nothing_kept_it(open_desk: Open) -> None:
    limits = LimitSettings(output_head_bytes=3000, output_tail_bytes=3000)
    desk = open_desk({"tests": "a" * 5000 + "b" * 5000}, limits=limits)
    text = use(desk, "bash", command="tests").text
    assert "[4000 bytes in the middle are lost.]" in text
    assert len(text) <= desk.observation_characters


def test_the_copier_of_outputs_is_brought_once_and_asked_for_by_every_command(open_desk: Open) -> None:
    seen: list[str] = []

    def note(call: Call) -> int:
        seen.append(f"{call.env['BASH_ENV']} {call.env['AUTOINSTALL_KEEP']}")
        return 0

    desk = open_desk(default=note)
    use(desk, "bash", command="a")
    use(desk, "bash", command="b")
    home = "/tmp/autoinstall-outputs"
    assert seen == [f"{home}/keep.sh {home}/{number}.txt:1350:33554432" for number in (1, 2)]
    assert b"BASH_EXECUTION_STRING" in box(desk).files[f"{home}/keep.sh"].content
    assert b"sysread" in box(desk).files[f"{home}/keep.pl"].content


def test_commands_that_no_shell_takes_are_refused(open_desk: Open) -> None:
    desk = open_desk()
    assert "write a file" in use(desk, "bash", command="x" * 200_000).text
    assert use(desk, "bash", command="echo \0").error
    assert box(desk).commands == []


def test_a_lost_sandbox_is_not_the_models_fault(open_desk: Open) -> None:
    desk = open_desk({"ls": SandboxLost("gone")})
    with pytest.raises(SandboxLost):
        use(desk, "bash", command="ls")


def test_an_excerpt_counts_what_is_missing() -> None:
    text = excerpt("a" * 1000 + "b" * 1000, 600, path="", dropped=500)
    shown = len(re.sub(r"\n\[.*\]\n", "", text))
    assert f"{2500 - shown} of 2500 characters" in text
    assert len(text) <= 600


# --- files


def test_a_file_is_read_in_parts_with_its_line_numbers(open_desk: Open) -> None:
    desk = open_desk(characters=1000)
    content = "".join(f"line {number} of the file\n" for number in range(1, 101))
    box(desk).files["/workspace/a.txt"] = File(content.encode())
    text = use(desk, "read_file", path="a.txt").text
    assert text.startswith("     1\tline 1 of the file\n")
    assert len(text) <= 1000
    found = re.search(r"\[lines 1 to (\d+) of 100; go on with start=(\d+)\]$", text)
    assert found
    assert int(found[2]) == int(found[1]) + 1
    assert f"{found[1]}\tline {found[1]} of" in text
    rest = use(desk, "read_file", path="/workspace/a.txt", start=99, count=5).text
    assert rest == "    99\tline 99 of the file\n   100\tline 100 of the file"
    assert use(desk, "read_file", path="a.txt", start=101).text == "a.txt has 100 lines only."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "a.txt is empty."),
        (b"\x7fELF\0\0", "a.txt is no text: a binary file of 6 bytes."),
        (b"caf\xe9\x1b[31m\r\n", "     1\tcaf\ufffd"),
        (b"no end", "     1\tno end"),
        (b"x" * 5000, "characters more]"),
    ],
)
def test_odd_files_are_read_without_harm(open_desk: Open, content: bytes, said: str) -> None:
    desk = open_desk()
    box(desk).files["/workspace/a.txt"] = File(content)
    assert use(desk, "read_file", path="a.txt").text.endswith(said)


def test_a_file_that_is_not_there_or_too_large_is_told(open_desk: Open) -> None:
    desk = open_desk()
    assert use(desk, "read_file", path="nothing").text == "There is no file nothing; list_files shows what there is."
    box(desk).files["/workspace/huge"] = File(b"x" * (17 * 2**20))
    assert "larger than" in use(desk, "read_file", path="huge").text


def test_a_file_is_written_byte_for_byte(open_desk: Open) -> None:
    desk = open_desk()
    content = "quotes ' \" $HOME `x` \\n\r\nü"
    observation = use(desk, "write_file", path="deep/down/run.sh", content=content, executable=True)
    assert observation == Observation(text=f"deep/down/run.sh has {len(content.encode())} bytes in 2 lines now.")
    file = box(desk).files["/workspace/deep/down/run.sh"]
    assert (file.content, file.executable) == (content.encode(), True)
    assert use(desk, "write_file", path="deep", content="").text.startswith("deep cannot be written: ")


def test_an_edit_replaces_exactly_one_piece_and_leaves_every_other_byte(open_desk: Open) -> None:
    desk = open_desk()
    box(desk).files["/workspace/a.cfg"] = File(b"a = 1\r\nb = \xff\r\na = 2\r\n", executable=True)
    assert not use(desk, "edit_file", path="a.cfg", old="a = 2", new="a = $2\\1").error
    file = box(desk).files["/workspace/a.cfg"]
    assert (file.content, file.executable) == (b"a = 1\r\nb = \xff\r\na = $2\\1\r\n", True)


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("c = ", "`old` is not in a.cfg; read it and copy exactly."),
        ("a = ", "`old` is in a.cfg 2 times (lines 1, 3)"),
        ("a = 1\nb", r"Its lines end with \r\n."),
        ("", "old: String should have at least 1 character"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(open_desk: Open, old: str, said: str) -> None:
    desk = open_desk()
    content = b"a = 1\r\nb = 2\r\na = 3\r\n"
    box(desk).files["/workspace/a.cfg"] = File(content)
    observation = use(desk, "edit_file", path="a.cfg", old=old, new="x")
    assert observation.error
    assert said in observation.text
    assert box(desk).files["/workspace/a.cfg"].content == content
    assert use(desk, "edit_file", path="other", old="x", new="y").text.startswith("There is no file other;")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("tests/test_app.py", "counts as tampering"),
        ("/workspace/tests/../conftest.py", "counts as tampering"),
        (".git/hooks/pre-commit", "git's own"),
        ("src/app.py", "`git checkout -- src/app.py` undoes it"),
        ("uv.lock", ""),
        ("local_settings.py", ""),
        ("/etc/tests/test_app.py", ""),
    ],
)
def test_writing_where_nothing_may_change_is_warned_of(open_desk: Open, path: str, said: str) -> None:
    desk = open_desk()
    for _ in range(2):
        text = use(desk, "write_file", path=path, content="two\n").text
        assert said in text
        assert ("[" in text) is bool(said)
    assert box(desk).commands == []


def test_a_listing_shows_kinds_and_sizes(open_desk: Open) -> None:
    desk = open_desk({re.compile("^find"): "src\td\t4096\nsrc/a b.py\tf\t12\nlink\tl\t3\n"})
    assert use(desk, "list_files").text == "link -> (link)\nsrc/\nsrc/a b.py 12"
    assert box(desk).commands[0].startswith("find /workspace -mindepth 1 -maxdepth 2 ")
    use(desk, "list_files", path="-delete; rm -rf /", depth=3)
    assert box(desk).commands[1].startswith("find '/workspace/-delete; rm -rf /' -mindepth 1 -maxdepth 3 ")


def test_long_listings_and_searches_end_with_advice(open_desk: Open) -> None:
    many = "".join(f"f{number:04}\tf\t1\n" for number in range(400))
    hits = "".join(f"/workspace/a.py:{number}:x\n" for number in range(400))
    desk = open_desk({re.compile("^find"): many, re.compile("rg"): hits})
    assert use(desk, "list_files").text.endswith("[100 more; list a directory below, or fewer levels]")
    found = use(desk, "search_files", pattern="x").text
    assert found.startswith("a.py:0:x\n")
    assert found.endswith("[250 more; search for something narrower]")


def test_a_search_tells_nothing_found_from_a_bad_expression(open_desk: Open) -> None:
    desk = open_desk({re.compile("absent"): 1, re.compile(r"'\('"): (2, "regex parse error: unclosed group\n")})
    assert use(desk, "search_files", pattern="absent") == Observation(text="No match.")
    assert use(desk, "search_files", pattern="(").text == "The search failed: regex parse error: unclosed group"
    use(desk, "search_files", pattern="-x", path="src", glob="*.py", ignore_case=True)
    assert "-i --glob '*.py' -e -x -- /workspace/src;" in box(desk).commands[-1]


# --- the environment


def test_a_variable_is_set_for_good(open_desk: Open) -> None:
    desk = open_desk()
    observation = use(desk, "set_env", name="DATABASE_URL", value="postgres://x")
    assert not observation.error
    assert "DATABASE_URL=postgres://x" in observation.text
    assert "stays as it is" in use(desk, "set_env", name="P", value="/x:$PATH").text
    assert use(desk, "set_env", name="NOT A NAME", value="x").error
    assert "tampered" in use(desk, "set_env", name="LD_PRELOAD", value="x").text
    assert desk.sandbox.recipe.env == {"DATABASE_URL": "postgres://x", "P": "/x:$PATH"}


def test_a_service_goes_into_the_recipe_once_it_is_ready(open_desk: Open) -> None:
    desk = open_desk(not_ready={"broken"})
    given = {"command": "redis-server", "probe_kind": "tcp", "probe_target": "6379", "probe_timeout": 30}
    assert not use(desk, "start_service", name="redis", **given).error
    probe = Probe(kind=ProbeKind.TCP, target="6379", timeout=30)
    assert desk.sandbox.recipe.services == (Service(name="redis", command="redis-server", probe=probe),)
    failed = use(desk, "start_service", name="broken", **given)
    assert failed.error
    assert "Service broken is not ready." in failed.text
    assert use(desk, "start_service", name="Not Good", **given).text.startswith("Nothing was started: name: ")
    assert len(desk.sandbox.recipe.services) == 1


def test_a_sidecar_goes_into_the_recipe_once_it_is_ready(open_desk: Open) -> None:
    desk = open_desk(not_ready={"slow"}, missing={"absent:1"})
    given = {"env": {"A": "1"}, "command": ["serve"], "ports": [80], "probe_kind": "tcp", "probe_target": "web:80"}
    assert not use(desk, "start_sidecar", alias="web", image="nginx:1", **given).error
    probe = Probe(kind=ProbeKind.TCP, target="web:80")
    assert desk.sandbox.recipe.sidecars == (
        Sidecar(alias="web", image="nginx:1", command=("serve",), env={"A": "1"}, ports=(80,), probe=probe),
    )
    assert "is not ready" in use(desk, "start_sidecar", alias="slow", image="nginx:1", **given).text
    absent = use(desk, "start_sidecar", alias="other", image="absent:1", **given)
    assert absent.error
    assert "start_service" in absent.text
    assert len(desk.sandbox.recipe.sidecars) == 1


def test_a_mock_is_put_on_record(open_desk: Open) -> None:
    desk = open_desk()
    use(desk, "declare_mock", kind="credential", path="/root/.aws/credentials", reason="no account")
    assert desk.mocks == [Mock(kind=MockKind.CREDENTIAL, path="/root/.aws/credentials", reason="no account")]


# --- the end


class Summary(Value):
    text: str


def test_a_bad_hand_in_comes_back_with_the_complaint(open_desk: Open) -> None:
    desk = open_desk()
    submit = Submit(Summary, "Hand in.", lambda summary, _: "" if len(summary.text) > 3 else "it is too short.")
    bad = submit.call({"text": "no"}, desk)
    assert bad == Observation(text="It was not taken: it is too short.", error=True)
    assert submit.call({}, desk).text.startswith("Nothing was carried out: text: Field required.")
    assert desk.submitted is None
    assert submit.call({"text": "good"}, desk).stop is LoopStop.SUBMITTED
    assert desk.submitted == Summary(text="good")
    assert submit.spec.name == "submit"


def test_giving_up_has_the_roles_own_form(open_desk: Open) -> None:
    desk = open_desk()
    give_up = GiveUp(Summary, "End the work.")
    assert give_up.call({}, desk).error
    assert give_up.call({"text": "needs a GPU"}, desk) == Observation(text="Given up.", stop=LoopStop.GAVE_UP)
    assert desk.submitted == Summary(text="needs a GPU")
