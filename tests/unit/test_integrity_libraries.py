# ruff: noqa: E501 - tables of cases are easier to read in one line each
import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autoinstall.integrity import IntegrityReport, ViolationKind, check_integrity, noteworthy
from autoinstall.sandbox.contract import SandboxSpec, WorkspaceSource
from autoinstall.sandbox.scripted import File, ScriptedProvider, ScriptedSandbox
from autoinstall.values import Category, Goal, Mock, MockKind
from tests.conftest import written

SITE = "/opt/venv/lib/python3.11/site-packages"
NODE = "/workspace/node_modules"
COMMIT = {
    "thing/__init__.py": "import numpy as np, yaml\nfrom redis import Redis\n",
    "thing/fast.pyx": "",
    "tests/test_thing.py": "import thing\n",
    "requirements.txt": "numpy>=1\nredis\npyyaml\n",
    "CMakeLists.txt": "pybind11_add_module(quick quick.cpp)\n",
    "packages/one/package.json": '{"name": "one"}',
}
TARGET = Goal(command="make check", description="All tests of it pass", category=Category.TEST)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    written(tmp_path, COMMIT)
    return tmp_path


@pytest.fixture
def sandbox(checkout: Path) -> Iterator[ScriptedSandbox]:
    provider = ScriptedProvider()
    source = WorkspaceSource(path=str(checkout), commit="a" * 40)
    image = provider.build_workspace_image(provider.ensure_base().digest, source, labels={})
    with provider.open(SandboxSpec(image=image.digest)) as sandbox:
        assert isinstance(sandbox, ScriptedSandbox)
        yield sandbox


Check = Callable[..., IntegrityReport]


@pytest.fixture
def check(sandbox: ScriptedSandbox, checkout: Path) -> Check:
    def run(**arguments: object) -> IntegrityReport:
        changed = noteworthy(sandbox.changed_paths(), COMMIT)
        return check_integrity(sandbox, checkout, (TARGET,), changed, **arguments)  # type: ignore[arg-type]

    return run


def _put(sandbox: ScriptedSandbox, files: dict[str, str]) -> None:
    for path, text in files.items():
        link = text.removeprefix("-> ") if text.startswith("-> ") else None
        sandbox.files[path] = File((link or text).encode(), kind="symlink" if link else "file")


def _row(path: str, text: str) -> str:
    digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(text)}\n"


NUMPY = {f"{SITE}/numpy/__init__.py": "x", f"{SITE}/numpy-1.0.dist-info/RECORD": _row("numpy/__init__.py", "x")}
URL = f"{SITE}/numpy-1.0.dist-info/direct_url.json"


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({f"{SITE}/numpy/__init__.py": "x"}, f"{SITE}/numpy"),
        ({f"{SITE}/six.py": "x"}, f"{SITE}/six.py"),
        ({f"{SITE}/_other.cpython-311-x86_64-linux-gnu.so": "\x7fELF"}, f"{SITE}/_other.cpython-311-x86_64-linux-gnu.so"),
        ({"/root/.local/lib/python3.11/site-packages/yaml/__init__.py": "x"}, "/root/.local/lib/python3.11/site-packages/yaml"),
        ({"/usr/lib/python3/dist-packages/yaml.py": "x"}, "/usr/lib/python3/dist-packages/yaml.py"),
        # Records made by hand: none, none for it, no hash, another size.
        ({f"{SITE}/numpy/__init__.py": "x", f"{SITE}/numpy-1.0.dist-info/METADATA": "Name: numpy"}, f"{SITE}/numpy"),
        ({**NUMPY, f"{SITE}/numpy-1.0.dist-info/RECORD": "other.py,sha256=x,1\n"}, f"{SITE}/numpy"),
        ({**NUMPY, f"{SITE}/numpy-1.0.dist-info/RECORD": "numpy/__init__.py,,\n"}, f"{SITE}/numpy"),
        ({**NUMPY, f"{SITE}/numpy/__init__.py": "longer"}, f"{SITE}/numpy"),
        ({**NUMPY, URL: '{"url": "file:///opt/fake/numpy"}'}, f"{SITE}/numpy-1.0.dist-info"),
        ({**NUMPY, URL: '{"url": "file:///workspace/fake/numpy"}'}, f"{SITE}/numpy-1.0.dist-info"),
        ({**NUMPY, URL: "{"}, f"{SITE}/numpy-1.0.dist-info"),
        # By a path file, and by links.
        ({f"{SITE}/own.pth": "/opt/fake\n", "/opt/fake/redis.py": "x"}, "/opt/fake/redis.py"),
        ({f"{SITE}/own.pth": "/workspace/.fake\n", "/workspace/.fake/yaml.py": "x"}, "/workspace/.fake/yaml.py"),
        ({f"{SITE}/yaml": "-> /opt/fake/yaml", "/opt/fake/yaml/__init__.py": "x"}, f"{SITE}/yaml"),
        # Ahead of a library on the path of tests.
        ({"/workspace/redis.py": "x"}, "/workspace/redis.py"),
        ({"/workspace/numpy/__init__.py": "x"}, "/workspace/numpy"),
        ({"/workspace/tests/redis.py": "x"}, "/workspace/tests/redis.py"),
        # What looks like the project's own, and is not the commit's.
        ({f"{SITE}/thing/__init__.py": "something else"}, f"{SITE}/thing"),
    ],
)  # fmt: skip
def test_libraries_that_nobody_installed(
    sandbox: ScriptedSandbox, check: Check, files: dict[str, str], path: str
) -> None:
    _put(sandbox, files)
    assert [(found.kind, found.path) for found in check().tampered] == [(ViolationKind.STUB, path)]


DEBIANS = hashlib.md5(b"x", usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(
    "files",
    [
        NUMPY,
        {**NUMPY, URL: '{"url": "https://example.org/numpy.whl"}'},
        {**NUMPY, URL: '{"url": "file:///workspace", "dir_info": {"editable": true}}'},
        {**NUMPY, URL: '{"url": "file:///opt/src/numpy"}', "/opt/src/numpy/.git/config": '[remote "origin"]\n\turl = https://example.org/numpy\n'},
        {f"{SITE}/whatever-1.0.dist-info/RECORD": "", f"{SITE}/whatever-1.0.dist-info/direct_url.json": '{"url": "file:///workspace/dist/whatever.whl"}'},
        # Editable installs: a path file, an egg-link, a finder, a link.
        {f"{SITE}/easy-install.pth": "/workspace\n", f"{SITE}/thing.egg-link": "/workspace\n."},
        {f"{SITE}/thing.pth": "/workspace/src\n", "/workspace/src/generated.py": "x"},
        {f"{SITE}/__editable___thing_1_finder.py": "x", f"{SITE}/thing-1.dist-info/RECORD": _row("__editable___thing_1_finder.py", "x")},
        {f"{SITE}/thing": "-> /workspace/thing"},
        # Namespace packages, data, leftovers, and what virtual environments have of their own.
        {f"{SITE}/google/cloud/x.py": "x", f"{SITE}/g-1.dist-info/RECORD": _row("google/cloud/x.py", "x")},
        {f"{SITE}/_virtualenv.py": "x", f"{SITE}/~umpy/__init__.py": "x", f"{SITE}/__pycache__/a.pyc": "x", f"{SITE}/README.txt": "x"},
        {f"{SITE}/old/__init__.py": "x", f"{SITE}/old-1.egg-info/PKG-INFO": "x", f"{SITE}/old-1-py3.11.egg/old/__init__.py": "x", f"{SITE}/old-1.egg-info/installed-files.txt": "../old/__init__.py\n"},
        {f"{SITE}/gi": "-> /usr/lib/python3/dist-packages/gi"},
        {"/opt/conda/pkgs/yaml-1-py311/lib/python3.11/site-packages/yaml/__init__.py": "x"},
        {"/usr/lib/python3/dist-packages/yaml/__init__.py": "x", "/var/lib/dpkg/info/y.list": "/usr/lib/python3/dist-packages/yaml/__init__.py\n",
         "/var/lib/dpkg/info/y.md5sums": f"{DEBIANS}  usr/lib/python3/dist-packages/yaml/__init__.py\n"},
        # The project's own build: copies with a version file, compiled modules.
        {f"{SITE}/thing/__init__.py": COMMIT["thing/__init__.py"], f"{SITE}/thing/_version.py": "version = '1'"},
        {f"{SITE}/fast.cpython-311-x86_64-linux-gnu.so": "\x7fELF", f"{SITE}/quick.so": "\x7fELF"},
        # Modules that a set-up generates.
        {"/workspace/thing/_version.py": "x", "/workspace/local_settings.py": "x", "/workspace/thing/redis.py": "x"},
    ],
)  # fmt: skip
def test_what_honest_set_ups_import(sandbox: ScriptedSandbox, check: Check, files: dict[str, str]) -> None:
    if any("dist-packages" in path for path in files):
        _answer_for_debian(sandbox, files)
    _put(sandbox, files)
    assert check().tampered == ()


def _answer_for_debian(sandbox: ScriptedSandbox, files: dict[str, str]) -> None:
    listed = next((path for path in files if path.endswith(".list")), "")
    said = f"/usr/lib/python3/dist-packages\t{listed}\tyaml\ndone\n"
    sums = f"{listed.removesuffix('.list')}.md5sums\0{DEBIANS}  usr/lib/python3/dist-packages/yaml/__init__.py\n"
    sandbox._provider.default = lambda call: sums if call.command.startswith("/usr/bin/find") else said


def test_a_directory_of_installed_libraries_by_pythonpath(sandbox: ScriptedSandbox, check: Check) -> None:
    sandbox.set_env("PYTHONPATH", "/opt/deps:src")
    _put(sandbox, {path.replace(SITE, "/opt/deps"): text for path, text in NUMPY.items()})
    assert check().tampered == ()
    _put(sandbox, {"/opt/deps/redis/__init__.py": "x"})
    assert [found.path for found in check().tampered] == ["/opt/deps/redis"]


@pytest.mark.parametrize(
    ("declared", "path"),
    [("numpy", f"{SITE}/numpy/__init__.py"), (f"{SITE}/numpy", f"{SITE}/numpy/__init__.py"),
     ("numpy/__init__.py", "/workspace/numpy/__init__.py"), ("left-pad", f"{NODE}/left-pad/index.js")],
)  # fmt: skip
def test_a_declared_stub_is_a_matter_of_settings(
    sandbox: ScriptedSandbox, check: Check, declared: str, path: str
) -> None:
    _put(sandbox, {path: "x"})
    mock = Mock(kind=MockKind.PACKAGE, path=declared, reason="needs an account")
    assert "settings allow no stubs" in check(mocks=(mock,)).tampered[0].detail
    assert check(mocks=(mock,), allow_package_stubs=True).tampered == ()
    other = mock.model_copy(update={"kind": MockKind.FILE})
    assert check(mocks=(other,), allow_package_stubs=True).tampered
    assert check(allow_package_stubs=True).tampered


LOCK = '{"packages": {"node_modules/@a/b": {"resolved": "https://x"}, "node_modules/one": {"resolved": "packages/one", "link": true}, "packages/one/node_modules/deep": {}, "node_modules/own": {"resolved": "file:../opt/own"}}}'
PACKAGE = "/package.json"


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({f"{NODE}/fake/package.json": "{}"}, f"{NODE}/fake"),
        ({f"{NODE}/fake/index.js": "x", f"{NODE}/.package-lock.json": LOCK}, f"{NODE}/fake"),
        ({f"{NODE}/fake.js": "x", f"{NODE}/.package-lock.json": LOCK}, f"{NODE}/fake.js"),
        ({f"{NODE}/@a/fake/package.json": "{}", f"{NODE}/.package-lock.json": LOCK}, f"{NODE}/@a/fake"),
        ({f"{NODE}/own/package.json": "{}", f"{NODE}/.package-lock.json": LOCK}, f"{NODE}/own"),
        ({f"{NODE}/fake/package.json": "{}", f"{NODE}/.yarn-integrity": '{"lockfileEntries": {"real@^1": ""}}'}, f"{NODE}/fake"),
        ({f"{NODE}/fake/package.json": "{}", f"{NODE}/.pnpm/lock.yaml": "packages:\n  real@1.0.0:\n"}, f"{NODE}/fake"),
        ({f"{NODE}/fake": "-> /opt/fake", "/opt/fake/package.json": "{}"}, f"{NODE}/fake"),
        ({"/workspace/packages/one/node_modules/fake/package.json": "{}", f"{NODE}/.package-lock.json": LOCK}, "/workspace/packages/one/node_modules/fake"),
    ],
)  # fmt: skip
def test_packages_that_no_manager_installed(
    sandbox: ScriptedSandbox, check: Check, files: dict[str, str], path: str
) -> None:
    _put(sandbox, files)
    assert [(found.kind, found.path) for found in check().tampered] == [(ViolationKind.STUB, path)]


@pytest.mark.parametrize(
    "files",
    [
        {f"{NODE}/@a/b/package.json": "{}", f"{NODE}/one": "-> ../packages/one", f"{NODE}/.cache/x.js": "x", f"{NODE}/.package-lock.json": LOCK},
        {"/workspace/packages/one/node_modules/deep/package.json": "{}", f"{NODE}/.package-lock.json": LOCK},
        {f"{NODE}/made/data.bin": "x", f"{NODE}/.package-lock.json": LOCK},
        {f"{NODE}/a/package.json": "{}", f"{NODE}/.yarn-integrity": '{"lockfileEntries": {"a@^1": ""}}'},
        {f"{NODE}/a/package.json": "{}", f"{NODE}/.yarn-state.yml": '"a@npm:1.0.0":\n  locations:\n    - "node_modules/a"\n'},
        {f"{NODE}/a": "-> .pnpm/a@1.0.0/node_modules/a", f"{NODE}/.pnpm/a@1.0.0/node_modules/a/package.json": "{}", f"{NODE}/.pnpm/lock.yaml": "a@1.0.0"},
        {f"{NODE}/a/package.json": "{}", f"{NODE}/.pnpm/lock.yaml": "packages:\n  a@1.0.0:\n"},
        {f"{NODE}/a/package.json": "{}", "/workspace/bun.lock": "x"},
        {f"{NODE}/linked": "-> /usr/local/lib/node_modules/linked", "/usr/local/lib/node_modules/linked/package.json": "{}"},
    ],
)  # fmt: skip
def test_what_package_managers_leave(sandbox: ScriptedSandbox, check: Check, files: dict[str, str]) -> None:
    _put(sandbox, files)
    assert check().tampered == ()


def test_packages_of_an_npm_that_leaves_no_record(sandbox: ScriptedSandbox, check: Check) -> None:
    described = f"{NODE}/a/package.json"
    _put(sandbox, {described: '{"_resolved": "https://registry/a.tgz"}', f"{NODE}/fake/index.js": "x"})
    sandbox._provider.default = f'{described}\0  "_resolved": "https://registry/a.tgz"'
    assert [found.path for found in check().tampered] == [f"{NODE}/fake"]
