"""What every implementation of the sandbox contract does: one suite, run against the fake and against an engine."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from autoinstall.errors import ImageUnavailable, SandboxLost, ServiceNotReady
from autoinstall.sandbox.contract import Sandbox, SandboxProvider, SandboxSpec, WorkspaceSource
from autoinstall.sandbox.scripted import Call, ScriptedProvider
from autoinstall.values import Limits, Probe, ProbeKind, Recipe, Service


@dataclass
class World:
    provider: SandboxProvider
    image: str


def _match(pattern: str, call: Call) -> str:
    found = re.search(pattern, call.command)
    assert found
    return found[1]


# As much of a shell as the tests of this file speak.
SHELL = {
    re.compile(r"^exit \d+$"): lambda call: int(_match(r"(\d+)", call)),
    re.compile(r'^printf %s "\$\w+"$'): lambda call: call.env.get(_match(r"\$(\w+)", call), ""),
    re.compile(r"^cat \S+$"): lambda call: call.sandbox.read_file(_match(r"cat (\S+)", call)).decode(),
    re.compile(r"^whoami$"): lambda call: call.user,
    re.compile(r"^printf A;"): lambda call: "A" + "\0" * 1_000_000 + "Z",
}


@pytest.fixture(params=["scripted", pytest.param("docker", marks=pytest.mark.docker)])
def world(request: pytest.FixtureRequest, source: WorkspaceSource) -> World:
    if request.param == "docker":
        image = request.getfixturevalue("workspace_image")
        return World(request.getfixturevalue("provider"), image.digest)
    provider = ScriptedProvider(SHELL, not_ready={"broken"}, missing={"autoinstall-test/absent"})
    image = provider.build_workspace_image(provider.ensure_base().digest, source, labels={})
    return World(provider, image.digest)


@pytest.fixture
def sandbox(world: World) -> Iterator[Sandbox]:
    with world.provider.open(SandboxSpec(image=world.image, purpose="test")) as sandbox:
        yield sandbox


def test_commands_give_their_exit_code_and_output(sandbox: Sandbox) -> None:
    result = sandbox.run("cat README.md")
    assert (result.command, result.exit_code, result.output) == ("cat README.md", 0, "A sample\n")
    assert (result.timed_out, result.out_of_memory, result.dropped_bytes) == (False, False, 0)
    assert [sandbox.run(f"exit {code}").exit_code for code in (1, 42, 127)] == [1, 42, 127]
    assert sandbox.run("whoami", user="nobody").output.strip() == "nobody"


def test_long_output_keeps_its_head_and_tail(sandbox: Sandbox) -> None:
    result = sandbox.run("printf A; head -c 1000000 /dev/zero; printf Z")
    assert result.output.startswith("A")
    assert result.output.endswith("Z")
    assert result.dropped_bytes == 1_000_002 - 256 * 1024
    assert f"{result.dropped_bytes} bytes dropped" in result.output


def test_variables_are_set_for_good_or_for_one_call(sandbox: Sandbox) -> None:
    value = "a b$HOME\"'\\\nsecond line"
    sandbox.set_env("KEPT", value)
    assert sandbox.run('printf %s "$KEPT"').output == value
    assert sandbox.run('printf %s "$KEPT"', env={"KEPT": "other"}).output == "other"
    assert sandbox.run('printf %s "$KEPT"').output == value
    assert sandbox.recipe.env == {"KEPT": value}
    for name in ("1A", "A-B", "", "A B"):
        with pytest.raises(ValueError, match="variable"):
            sandbox.set_env(name, "x")


def test_files_are_written_and_read_byte_for_byte(sandbox: Sandbox) -> None:
    content = (b"quotes ' \" $HOME `x` \\ \r\n\0" + bytes(range(256))) * 4000
    sandbox.write_file("deep/er/file.bin", content)
    assert sandbox.read_file("/workspace/deep/er/file.bin") == content
    sandbox.write_file("deep/er/file.bin", b"")
    assert sandbox.read_file("deep/er/file.bin") == b""
    sandbox.write_file("/srv/with space", b"x", executable=True)
    assert sandbox.read_file("/srv/with space") == b"x"
    assert [entry.executable for entry in sandbox.read_tree(["/srv/with space"])] == [True]


def test_files_that_cannot_be_used_are_told_apart(sandbox: Sandbox) -> None:
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("absent")
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("/workspace/src")
    with pytest.raises(OSError, match="larger than 3 bytes"):
        sandbox.read_file("README.md", max_bytes=3)
    with pytest.raises(OSError, match="cannot be written"):
        sandbox.write_file("/workspace/src", b"x")
    with pytest.raises(OSError, match="cannot be written"):
        sandbox.write_file("/workspace/README.md/x", b"x")


def test_links_are_followed(sandbox: Sandbox) -> None:
    sandbox.write_file("link", b"through the link")
    assert sandbox.read_file("src/main.py") == b"through the link"
    assert [entry.kind for entry in sandbox.read_tree(["/workspace/link"])] == ["symlink"]


def test_the_engine_sees_what_changed(sandbox: Sandbox) -> None:
    assert sandbox.changed_paths() == frozenset()
    sandbox.write_file("src/new.py", b"1")
    sandbox.write_file("README.md", b"other")
    assert {"/workspace/src/new.py", "/workspace/README.md"} <= sandbox.changed_paths()
    assert "/workspace/run.sh" not in sandbox.changed_paths()


def test_trees_are_read(sandbox: Sandbox) -> None:
    entries = {entry.path: entry for entry in sandbox.read_tree(["/workspace/src", "/workspace/link", "/nowhere"])}
    assert entries.keys() == {"/workspace/src", "/workspace/src/main.py", "/workspace/link"}
    assert entries["/workspace/src"].kind == "directory"
    assert entries["/workspace/src/main.py"].content == b"print('hello')\n"
    assert (entries["/workspace/link"].kind, entries["/workspace/link"].content) == ("symlink", b"src/main.py")
    assert {entry.path for entry in sandbox.read_tree(["/workspace/run.sh"]) if entry.executable}


def test_a_snapshot_is_where_the_next_sandbox_starts(world: World) -> None:
    service = Service(name="beat", command="sleep 1000", probe=Probe(kind=ProbeKind.COMMAND, target="true"))
    with world.provider.open(SandboxSpec(image=world.image, purpose="test")) as sandbox:
        sandbox.write_file("made", b"by the first")
        sandbox.set_env("NAME", "value")
        sandbox.start_service(service)
        recipe = sandbox.recipe
        snapshot = sandbox.snapshot(labels={"autoinstall.test": "1"})
        with pytest.raises(SandboxLost):
            sandbox.run("exit 0")
    try:
        assert world.provider.image_exists(snapshot.digest)
        assert world.provider.image_exists(snapshot.reference)
        assert recipe == Recipe(env={"NAME": "value"}, services=(service,))
        with world.provider.open(SandboxSpec(image=snapshot.digest, recipe=recipe, purpose="test")) as second:
            assert second.read_file("made") == b"by the first"
            assert second.run('printf %s "$NAME"').output == "value"
            assert second.recipe == recipe
        with world.provider.open(SandboxSpec(image=world.image, purpose="test")) as third:
            assert [entry.path for entry in third.read_tree(["/workspace/made"])] == []
    finally:
        world.provider.remove_image(snapshot.reference)
    assert not world.provider.image_exists(snapshot.reference)


def test_services_that_do_not_become_ready_are_not_recorded(sandbox: Sandbox) -> None:
    probe = Probe(kind=ProbeKind.TCP, target="1", timeout=1)
    with pytest.raises(ServiceNotReady, match="broken"):
        sandbox.start_service(Service(name="broken", command="sleep 1000", probe=probe))
    assert sandbox.recipe.services == ()


def test_images_that_are_absent(world: World) -> None:
    assert not world.provider.image_exists("autoinstall-test/absent")
    world.provider.remove_image("autoinstall-test/absent")
    with pytest.raises(ImageUnavailable), world.provider.open(SandboxSpec(image="autoinstall-test/absent")):
        pass


def test_workspace_images_are_made_once(world: World, source: WorkspaceSource) -> None:
    base = world.provider.ensure_base().digest
    first = world.provider.build_workspace_image(base, source, labels={})
    assert first == world.provider.build_workspace_image(base, source, labels={})
    assert first.digest == world.image


def test_closing_twice_is_fine(world: World) -> None:
    with world.provider.open(SandboxSpec(image=world.image, limits=Limits(memory_mb=256), purpose="test")) as sandbox:
        sandbox.close()
        sandbox.close()
        with pytest.raises(SandboxLost):
            sandbox.run("exit 0")


def test_what_was_prepared_serves_as_any_other(world: World) -> None:
    spec = SandboxSpec(image=world.image, purpose="test", owner="test-prepared")
    world.provider.prepare(spec)
    world.provider.prepare(SandboxSpec(image="autoinstall-test/absent", owner="test-prepared"))
    with world.provider.open(spec) as sandbox:
        assert sandbox.run("cat README.md").output == "A sample\n"
    world.provider.prepare(spec)
    world.provider.release("test-prepared")
    world.provider.release("test-prepared")
    with world.provider.open(spec) as sandbox:
        assert sandbox.run("whoami").output.strip() == "root"
