# ruff: noqa: E501 - tables of cases are easier to read in one line each
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from autoinstall.commands import parse, unwrap
from autoinstall.integrity import IntegrityReport, ViolationKind, check_integrity, noteworthy
from autoinstall.integrity.changes import Changes
from autoinstall.integrity.files import Files
from autoinstall.integrity.table import integrity_table, matches
from autoinstall.sandbox.contract import SandboxSpec, WorkspaceSource
from autoinstall.sandbox.scripted import Answer, Call, File, ScriptedProvider, ScriptedSandbox
from autoinstall.values import Category, Goal, Mock, MockKind, Probe, ProbeKind, Service
from tests.conftest import written

FILES = {
    "thing.py": "def main(): return 1\n",
    "tests/test_thing.py": "def test_main(): assert main() == 1\n",
    "package.json": '{"scripts": {"test": "mocha"}}\n',
    "package-lock.json": "{}\n",
    "configure": "#!/bin/sh\n",
    "scripts/check.sh": "#!/bin/sh\npytest\n",
}
PYTEST = Goal(command="pytest -q", description="All tests of it pass", category=Category.TEST)
NPM = Goal(command="npm test", description="All tests of it pass", category=Category.TEST)


def _find(call: Call) -> Answer:
    """As much of `find` as the check asks for."""
    words = shlex.split(call.command)
    root, name, text = words[1], words[words.index("-name") + 1], words[words.index("-e") + 1]
    found = [entry for entry in call.sandbox.read_tree([root]) if fnmatch(entry.path.rpartition("/")[2], name)]
    return "\n".join(
        f"{entry.path}\0{line}" for entry in found for line in entry.content.decode().splitlines() if text in line
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    written(tmp_path, FILES)
    (tmp_path / "link").symlink_to("thing.py")
    return tmp_path


@pytest.fixture
def sandbox(checkout: Path) -> Iterator[ScriptedSandbox]:
    provider = ScriptedProvider({re.compile("^/usr/bin/find"): _find})
    source = WorkspaceSource(path=str(checkout), commit="a" * 40)
    image = provider.build_workspace_image(provider.ensure_base().digest, source, labels={})
    with provider.open(SandboxSpec(image=image.digest)) as sandbox:
        assert isinstance(sandbox, ScriptedSandbox)
        yield sandbox


Check = Callable[..., IntegrityReport]


@pytest.fixture
def check(sandbox: ScriptedSandbox, checkout: Path) -> Check:
    def run(*targets: Goal, **arguments: object) -> IntegrityReport:
        changed = sandbox.changed_paths()
        return check_integrity(sandbox, checkout, targets or (PYTEST,), changed, **arguments)  # type: ignore[arg-type]

    return run


def test_an_untouched_checkout_is_clean(check: Check) -> None:
    assert check() == IntegrityReport()


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("tests/test_thing.py", b"def test_main(): pass\n", ViolationKind.TEST_CHANGED),
        ("tests/test_new.py", b"def test_new(): pass\n", ViolationKind.TEST_CHANGED),
        ("thing.py", b"def main(): return 2\n", ViolationKind.SOURCE_CHANGED),
        ("package.json", b"{}", ViolationKind.SOURCE_CHANGED),
        ("conftest.py", b"", ViolationKind.MEANING_CHANGED),
        ("tests/conftest.py", b"", ViolationKind.MEANING_CHANGED),
        ("sitecustomize.py", b"", ViolationKind.MEANING_CHANGED),
        ("pytest.ini", b"[pytest]\n", ViolationKind.MEANING_CHANGED),
        ("jest.config.js", b"", ViolationKind.MEANING_CHANGED),
        ("GNUmakefile", b"", ViolationKind.MEANING_CHANGED),
        ("pytest.py", b"", ViolationKind.MEANING_CHANGED),
        ("pytest/__init__.py", b"", ViolationKind.MEANING_CHANGED),
    ],
)
def test_files_of_the_workspace(
    sandbox: ScriptedSandbox, check: Check, path: str, content: bytes, kind: ViolationKind
) -> None:
    sandbox.write_file(path, content)
    assert [(violation.kind, violation.path) for violation in check().tampered] == [(kind, path)]


@pytest.mark.parametrize(
    "path",
    [".env", "data/sample.json", "tests/fixture.dat", "build/lib/tests/test_x.py", "thing.egg-info/PKG-INFO", "__pycache__/thing.pyc", "Makefile", "node_modules/x/conftest.py",
     "tests/__pycache__/test_thing.pyc", ".tox/py311/bin/x", "package-lock.json", "configure"],
)  # fmt: skip
def test_what_honest_set_ups_write(sandbox: ScriptedSandbox, check: Check, path: str) -> None:
    sandbox.write_file(path, b"something else")
    assert check().tampered == ()


def test_deleted_files_and_changed_links(sandbox: ScriptedSandbox, check: Check) -> None:
    del sandbox.files["/workspace/tests/test_thing.py"]
    sandbox.files["/workspace/link"] = File(b"/opt/other.py", kind="symlink")
    assert {(violation.kind, violation.path) for violation in check().tampered} == {
        (ViolationKind.TEST_CHANGED, "tests/test_thing.py"),
        (ViolationKind.SOURCE_CHANGED, "link"),
    }


def test_policy_is_recorded_and_never_covers_tests(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.write_file("package-lock.json", b"{ }")
    sandbox.files["/workspace/scripts/check.sh"] = File(FILES["scripts/check.sh"].encode(), executable=True)
    sandbox.write_file("thing.py", b"changed")
    sandbox.write_file("tests/test_thing.py", b"changed")
    report = check(allow_modified=("**/*.py",))
    assert report.modified == ("package-lock.json", "scripts/check.sh", "thing.py")
    assert [violation.path for violation in report.tampered] == ["tests/test_thing.py"]


def test_a_declared_mock_may_be_configuration_of_npm(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.write_file(".npmrc", b"legacy-peer-deps=true")
    assert check().tampered
    mock = Mock(kind=MockKind.FILE, path="/workspace/.npmrc", reason="old peer dependencies")
    assert check(mocks=(mock,)).tampered == ()


@pytest.mark.parametrize(
    ("name", "value", "tampered"),
    [
        ("BASH_ENV", "/x", True),
        ("BASH_FUNC_pytest%%", "() { echo 1 passed; }", True),
        ("LD_PRELOAD", "/x.so", True),
        ("PYTEST_ADDOPTS", "-k nothing", True),
        ("PYTEST_ADDOPTS", "-qqq", True),
        ("PYTEST_ADDOPTS", "-v --no-summary", True),
        ("PYTEST_ADDOPTS", "-rN", True),
        ("PYTEST_ADDOPTS", "--tb=short -rA", False),
        ("PYTEST_ADDOPTS", "-p no:cacheprovider -q", False),
        ("NODE_OPTIONS", "--max-old-space-size=4096", False),
        ("NODE_OPTIONS", "--require /x.js", True),
        ("MAKEFLAGS", "-j4", False),
        ("MAKEFLAGS", "-n", True),
        ("GOFLAGS", "-count=1 -mod=mod -vet=off", False),
        ("GOFLAGS", "-run=TestOne", True),
        ("RUSTC_WRAPPER", "/opt/wrapper", True),
        ("MAVEN_ARGS", "-B -DskipTests", True),
        ("MAVEN_OPTS", "-Xmx2g", False),
        ("JAVA_TOOL_OPTIONS", "-javaagent:/opt/a.jar", True),
        ("DATABASE_URL", "sqlite://", False),
    ],
)
def test_variables(sandbox: ScriptedSandbox, check: Check, name: str, value: str, tampered: bool) -> None:
    sandbox._update(env={name: value})
    assert bool(check().tampered) is tampered


def test_a_module_by_pythonpath(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.set_env("PYTHONPATH", "/opt/lib:/workspace/src")
    assert check().tampered == ()
    sandbox.files["/opt/lib/pytest/__init__.py"] = File(b"")
    assert {violation.kind for violation in check().tampered} == {ViolationKind.STUB}


@pytest.mark.parametrize(
    ("content", "stub"),
    [
        (b"#!/bin/sh\necho '12 passed in 0.10s'\n", True),
        (b"#!/usr/bin/python3\nprint('=== 12 passed in 0.10s ===')\n", True),
        (b"#!/bin/sh\nexit 0\n", True),
        (b"\x7fELF...", True),
    ],
)
def test_stubs_on_the_path(sandbox: ScriptedSandbox, check: Check, content: bytes, stub: bool) -> None:
    sandbox.files["/usr/local/bin/pytest"] = File(content, executable=True)
    assert [violation.kind for violation in check().tampered] == [ViolationKind.STUB] * stub


def test_what_was_there_at_the_start_is_nobodys_stub(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox._initial["/usr/local/bin/pytest"] = File(b"#!/bin/sh\nexit 0\n", executable=True)
    sandbox.files["/usr/local/bin/pytest"] = sandbox._initial["/usr/local/bin/pytest"]
    assert check().tampered == ()
    sandbox.files["/usr/local/sbin/pytest"] = File(b"../bin/true", kind="symlink")
    sandbox.files["/usr/local/bin/true"] = File(b"\x7fELF", executable=True)
    assert [violation.path for violation in check().tampered] == ["/usr/local/sbin/pytest"]


def test_an_own_script_through_a_link_to_its_directory(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.set_env("PATH", "/opt/tools:/usr/bin")
    sandbox.files["/opt/tools"] = File(b"/srv/x", kind="symlink")
    files = Files(sandbox)
    assert files.real("/opt/tools/pytest") == "/srv/x/pytest"
    assert files.real("/usr/bin/pytest") == "/usr/bin/pytest"


def test_a_debian_script(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.files["/usr/bin/pytest"] = File(b"#!/usr/bin/perl\n", executable=True)
    digest = hashlib.md5(b"#!/usr/bin/perl\n", usedforsecurity=False).hexdigest()
    sandbox.files["/var/lib/dpkg/info/p:amd64.md5sums"] = File(f"{digest}  usr/bin/pytest\n".encode())
    assert check().tampered == ()
    sandbox.files["/var/lib/dpkg/info/p:amd64.md5sums"] = File(f"{digest}  usr/bin/other\n".encode())
    assert check().tampered


def test_a_program_that_is_known_by_its_content(
    sandbox: ScriptedSandbox, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.files["/usr/bin/pytest"] = File(b"#!/bin/sh\n", executable=True)
    assert check().tampered
    known = {"its launcher": hashlib.sha256(b"#!/bin/sh\n").hexdigest()}
    table = integrity_table().model_copy(update={"known_programs": known})
    monkeypatch.setattr("autoinstall.integrity.owners.integrity_table", lambda: table)
    assert check().tampered == ()


def test_a_large_binary_is_not_read_in_full(sandbox: ScriptedSandbox) -> None:
    sandbox.files["/opt/bin/x"] = File(b"\x7fELF" + bytes(2**20), executable=True)
    entry = Files(sandbox).entry("/opt/bin/x")
    assert entry is not None
    assert len(entry.content) == 4096


def test_a_directory_that_was_made_anew(sandbox: ScriptedSandbox, checkout: Path) -> None:
    """Of one that was deleted the engine lists what it holds now, and no more what it held."""
    del sandbox.files["/workspace/tests/test_thing.py"]
    sandbox.files["/workspace/tests/data"] = File(b"")
    # As an engine lists it that shows directories instead of what was in them.
    sandbox._initial = dict(sandbox.files)
    changed = ("/workspace", "/workspace/tests", "/workspace/tests/data")
    report = check_integrity(sandbox, checkout, (PYTEST,), changed)
    assert {violation.path for violation in report.tampered} == {"tests/test_thing.py"}


def test_a_directory_that_became_a_link(sandbox: ScriptedSandbox, checkout: Path) -> None:
    sandbox.files = {path: file for path, file in sandbox.files.items() if not path.startswith("/workspace/tests/")}
    sandbox.files["/workspace/tests"] = File(b"/opt/tests", kind="symlink")
    sandbox._initial = dict(sandbox.files)
    report = check_integrity(sandbox, checkout, (PYTEST,), ("/workspace", "/workspace/tests"))
    assert [violation.path for violation in report.tampered] == ["tests/test_thing.py"]


def test_what_is_worth_carrying() -> None:
    paths = {
        "/workspace/node_modules",
        "/workspace/node_modules/x/index.js",
        "/workspace/tests/data/node_modules/y/index.js",
        "/opt/venv/lib/python3.12/site-packages/a.pth",
        "/opt/venv/lib/python3.12/site-packages/a/b.py",
        "/usr/local/bin/x",
    }
    kept = noteworthy(paths, ["a.js", "tests/data/node_modules/y/index.js"])
    assert paths - kept == {"/workspace/node_modules/x/index.js", "/opt/venv/lib/python3.12/site-packages/a/b.py"}
    changes = Changes(kept, ["a.js"])
    assert all(changes.may_include(path) for path in paths)
    assert not changes.may_include("/workspace/a.js")
    assert not changes.may_include("/usr/bin/x")


def test_path_files_that_run_code(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.files["/usr/local/bin/python"] = File(b"\x7fELF", executable=True)
    site = "/usr/local/lib/python3.12/site-packages"
    sandbox.files[f"{site}/zz.pth"] = File(b"import os\n")
    sandbox.files[f"{site}/plain.pth"] = File(b"/workspace/src\n")
    assert [violation.path for violation in check().tampered] == [f"{site}/zz.pth"]
    sandbox.files[f"{site}/zz-1.0.dist-info/RECORD"] = File(b"zz.pth,sha256=abc,10\n")
    assert check().tampered == ()
    sandbox.files[f"{site}/sitecustomize.py"] = File(b"")
    assert [violation.path for violation in check().tampered] == [f"{site}/sitecustomize.py"]


def test_hooks_elsewhere(sandbox: ScriptedSandbox, check: Check) -> None:
    hook = "/etc/python3.12/sitecustomize.py"
    debians = b"# install the apport exception handler if available\ntry:\n    import apport_python_hook\nexcept ImportError:\n"
    debians += b"    pass\nelse:\n    apport_python_hook.install()\n"
    sandbox.files[hook] = File(debians)
    assert check().tampered == ()
    sandbox.files[hook] = File(debians + b"import os\n")
    assert [violation.path for violation in check().tampered] == [hook]
    del sandbox.files[hook]
    site = "/root/.local/lib/python3.12/site-packages"
    for path in (f"{site}/usercustomize.py", f"{site}/_x.pth"):
        sandbox.files[path] = File(b"import os\n")
        assert [violation.path for violation in check().tampered] == [path]
        del sandbox.files[path]


def test_programs_behind_npm_scripts(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.files["/workspace/node_modules/.bin/mocha"] = File(b"../mocha/bin/mocha.js", kind="symlink")
    sandbox.files["/workspace/node_modules/mocha/bin/mocha.js"] = File(b"#!/usr/bin/env node\n", executable=True)
    assert check(NPM).tampered
    described = File(b'{"name": "mocha", "bin": {"mocha": "./bin/mocha.js"}}')
    sandbox.files["/workspace/node_modules/mocha/package.json"] = described
    sandbox.files["/workspace/node_modules/.yarn-integrity"] = File(b'{"lockfileEntries": {"mocha@^10": "https://x"}}')
    assert check(NPM).tampered == ()
    sandbox.files["/workspace/node_modules/.package-lock.json"] = File(b'{"packages": {}}')
    assert "npm did not install" in check(NPM).tampered[0].detail


def test_shims_of_package_managers(sandbox: ScriptedSandbox, check: Check) -> None:
    shim = b'#!/bin/sh\nif [ -x "$basedir/node" ]; then\n  exec "$basedir/node" "$basedir/../mocha/bin/mocha.js" "$@"\nfi\n'
    sandbox.files["/workspace/node_modules/.bin/mocha"] = File(shim, executable=True)
    sandbox.files["/workspace/node_modules/mocha/bin/mocha.js"] = File(b"#!/usr/bin/env node\n")
    sandbox.files["/workspace/node_modules/mocha/package.json"] = File(b'{"name": "mocha", "bin": "bin/mocha.js"}')
    sandbox.files["/workspace/node_modules/.yarn-integrity"] = File(b'{"lockfileEntries": {"mocha@^10": "https://x"}}')
    assert check(NPM).tampered == ()


def test_a_script_of_the_set_ups_own(sandbox: ScriptedSandbox, check: Check) -> None:
    own = Goal(command="sh build/run.sh && ./scripts/check.sh", description="All tests of it pass")
    sandbox.files["/workspace/build/run.sh"] = File(b"exit 0\n")
    assert [violation.path for violation in check(own).tampered] == ["/workspace/build/run.sh"]
    sandbox.files["/workspace/build/check.sh"] = File(FILES["scripts/check.sh"].encode(), executable=True)
    copied = Goal(command="build/check.sh", description="All tests of it pass")
    assert check(copied).tampered == ()


def test_what_a_target_writes_itself_is_nobodys_stub(sandbox: ScriptedSandbox, check: Check) -> None:
    text = "import thing\n\nassert (thing.main() == 1)"
    written = Goal(
        command=f"cat > /tmp/a.py <<'EOF'\n{text}\nEOF\npython /tmp/a.py", description="All tests of it pass"
    )
    sandbox.files["/tmp/a.py"] = File(f"{text}\n".encode())
    assert check(written).tampered == ()
    sandbox.files["/tmp/a.py"] = File(b"pass\n")
    assert [violation.path for violation in check(written).tampered] == ["/tmp/a.py"]


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("env X=1 timeout 5 python -m pytest -q", ["pytest"]),
        ("cd a && npx --yes jest", ["cd", "jest"]),
        ("poetry run pytest | tail -1", ["pytest", "tail"]),
        ("X=$(which node) make", ["make", "which"]),
        ("bash -lc 'uv run --extra test pytest'", ["bash", "pytest"]),
        ("[[ -f x ]] && pytest", ["-f", "pytest"]),
        ("python3 -W error -m unittest", ["unittest"]),
        ("cat > a/b.py <<'EOF' && make 2>&1\nimport x; x.run()\nEOF\npytest", ["cat", "make", "pytest"]),
        ("bash <<-EOF\n\tmake check\n\tEOF\nls", ["bash", "make", "ls"]),
        ('python <<A; node <<"B"\nf(1)\nA\ng(2)\nB', ["python", "node"]),
        ("python -c 'print(1 << n)'\nmake", ["python", "make"]),
        ("[[ -f x ]] > a.log && ./b < c.txt 2>&1 | wc", ["-f", "./b", "wc"]),
    ],
)
def test_programs_of_a_command(command: str, programs: list[str]) -> None:
    assert sorted(unwrap(simple.words)[0] for simple in parse(command) if simple.words) == sorted(programs)


def test_the_table_is_sound() -> None:
    table = integrity_table()
    assert table.meaning_top_only <= table.meaning
    assert table.meaning_unless_declared <= table.meaning
    assert matches("a/b/test_x.py", table.tests)
    assert matches("package-lock.json", table.allowed)
    assert not matches("src/main.py", (*table.tests, *table.allowed))


def test_what_services_change_as_they_start(sandbox: ScriptedSandbox, checkout: Path) -> None:
    sandbox._update(services=(Service(name="web", command="true", probe=Probe(kind=ProbeKind.COMMAND, target="true")),))
    sandbox.write_file("tests/test_thing.py", b"")
    report = check_integrity(sandbox, checkout, (PYTEST,), ())
    assert [violation.kind for violation in report.tampered] == [ViolationKind.TEST_CHANGED]
