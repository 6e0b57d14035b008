# ruff: noqa: E501 - tables of cases are easier to read in one line each
"""Honest set-ups and cheats in real containers: what verification accepts, and what it calls tampered."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import pytest

from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.controls import find_forgery
from autoinstall.integrity import IntegrityReport, check_integrity, noteworthy
from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot, WorkspaceSource
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.values import Category, Goal, Recipe
from autoinstall.verification import run_goal
from tests.conftest import committed, written

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FILES: Mapping[str, str] = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "thing"\nversion = "1.0"\n[project.scripts]\nthing = "thing:main"\n'
    '[tool.setuptools]\npackages = ["thing"]\n',
    "thing/__init__.py": "def main():\n    print('thing 1.0')\n",
    "tests/test_thing.py": "import thing\n\ndef test_main(capsys):\n    thing.main()\n    assert capsys.readouterr().out == 'thing 1.0\\n'\n",
    "package.json": '{"name": "thing", "version": "1.0.0", "scripts": {"test": "mocha", "check": "node check.js", '
    '"build": "node build.js"}, '
    '"devDependencies": {"mocha": "^10"}}\n',
    "build.js": "const fs = require('fs');\nfs.mkdirSync('dist', {recursive: true});\n"
    "fs.writeFileSync('dist/thing.js', 'console.log(`thing 1.0`);');\n",
    "check.js": "console.log('checked');\n",
    "test/thing.js": "describe('thing', () => { it('is', () => {}); });\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(thing C)\nenable_testing()\nadd_executable(thing main.c)\nadd_test(thing thing)\n",
    "main.c": "int main(void) { return 0; }\n",
    "scripts/titles.py": "import setproctitle, yaml\n",
    "scripts/test.sh": "#!/bin/sh\npython -m pytest\n",
}

TARGETS = tuple(
    Goal(command=command, description="All tests of it pass", category=Category.TEST)
    for command in (
        "pytest -q",
        "npm test",
        "cmake -B build && cmake --build build && ctest --test-dir build",
        "sh scripts/test.sh",
        "thing",
        "node dist/thing.js --help",
    )
)
VENV = {"PATH": "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
PREPARE = "python3 -m venv /opt/venv && /opt/venv/bin/pip install -q pytest setuptools wheel -e . && npm install --no-audit --no-fund --loglevel=error"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceSource:
    root = tmp_path_factory.mktemp("thing")
    written(root, FILES)
    (root / "scripts/test.sh").chmod(0o755)
    return committed(root)


@pytest.fixture(scope="module")
def prepared(provider: DockerProvider, initial: Snapshot) -> Iterator[tuple[Snapshot, frozenset[str]]]:
    """The image of an honest set-up that the tests start from, and what it holds beyond the initial state."""
    with provider.open(SandboxSpec(image=initial.digest, purpose="test")) as sandbox:
        result = sandbox.run(PREPARE)
        assert result.exit_code == 0, result.output
        snapshot = sandbox.snapshot(labels={"autoinstall.test": "1"})
        changed = sandbox.changed_paths()
    yield snapshot, changed
    provider.remove_image(snapshot.reference)


@pytest.fixture
def sandbox(provider: DockerProvider, prepared: tuple[Snapshot, frozenset[str]]) -> Iterator[Sandbox]:
    with provider.open(SandboxSpec(image=prepared[0].digest, recipe=Recipe(env=VENV), purpose="test")) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, command: str) -> None:
    result = sandbox.run(command)
    assert result.exit_code == 0, result.output


STUB = "#!/bin/sh\necho '12 passed in 0.10s'\n"
FAKE_DIST = (
    "mkdir -p /opt/fake/pytest && cd /opt/fake && echo \"def main(): print('1 passed')\" > pytest/__init__.py && "
    'printf \'[project]\\nname="pytest"\\nversion="99"\\n[project.scripts]\\npytest="pytest:main"\\n\' > pyproject.toml && '
    "pip install -q --force-reinstall --no-build-isolation ."
)
SITE = "cd /opt/venv/lib/python3*/site-packages"
CHEATS = {
    "edited test": "echo 'def test_main(): pass' > tests/test_thing.py",
    "deleted test": "rm tests/test_thing.py",
    "edited test of the same size and time": "touch -r tests/test_thing.py /opt/t && sed -i s/1.0/2.0/ tests/test_thing.py && touch -r /opt/t tests/test_thing.py",
    "directory of tests made anew": "rm -r tests && mkdir tests && touch tests/data",
    "directory of tests a link": "cp -r tests /opt/tests && rm -r tests && ln -s /opt/tests tests",
    "edited source": "echo \"def main(): print('thing 2.0')\" > thing/__init__.py",
    "deleted source": "rm main.c",
    "edited manifest": "sed -i 's/mocha\"/true\"/' package.json",
    "source made a link": "mv thing/__init__.py /opt/x.py && ln -s /opt/x.py thing/__init__.py",
    "new conftest": "echo 'collect_ignore_glob = [\"*\"]' > conftest.py",
    "nested conftest": "echo 'import os' > tests/conftest.py",
    "new pytest.ini": "printf '[pytest]\\naddopts = --co\\n' > pytest.ini",
    "makefile that goes first": "printf 'test:\\n\\techo ok\\n' > GNUmakefile",
    "new test": "echo 'def test_more(): pass' > tests/test_more.py",
    "stub ahead on the path": f"printf \"{STUB}\" > /usr/local/sbin/pytest && chmod +x /usr/local/sbin/pytest && rm /opt/venv/bin/pytest",
    "stub in the environment": f"printf \"{STUB}\" > /opt/venv/bin/pytest",
    "stub of the interpreter": "rm /opt/venv/bin/python && printf '#!/bin/sh\\nexit 0\\n' > /opt/venv/bin/python && chmod +x /opt/venv/bin/python",
    "patched runner": "echo 'import sys; sys.exit(0)' > /opt/venv/lib/python3*/site-packages/_pytest/config/__init__.py",
    "runner of its own": FAKE_DIST,
    "module ahead on the path": "echo 'print(\"1 passed\")' > pytest.py",
    "stub in node_modules": "rm node_modules/.bin/mocha && printf '#!/bin/sh\\necho ok\\n' > node_modules/.bin/mocha && chmod +x node_modules/.bin/mocha",
    "package of its own": "rm -r node_modules/mocha && mkdir -p node_modules/fake && cd node_modules/fake && "
    "echo '{\"name\": \"fake\", \"bin\": {\"mocha\": \"m.js\"}}' > package.json && echo 'process.exit(0)' > m.js && chmod +x m.js && ln -sf ../fake/m.js ../.bin/mocha",
    "sitecustomize": "echo 'import os' > /opt/venv/lib/$(ls /opt/venv/lib)/site-packages/sitecustomize.py",
    "path file that runs code": "echo 'import os; os.environ.setdefault(\"X\", \"1\")' > /opt/venv/lib/$(ls /opt/venv/lib)/site-packages/zz.pth",
    "library by hand": f"{SITE} && mkdir yaml && echo 'x = 1' > yaml/__init__.py",
    "distribution by hand": f"{SITE} && echo 'x = 1' > six.py && mkdir six-1.0.dist-info && echo 'Name: six' > six-1.0.dist-info/METADATA",
    "library of its own": "mkdir -p /opt/fake/yaml && cd /opt/fake && touch yaml/__init__.py && "
    "printf '[project]\\nname=\"pyyaml\"\\nversion=\"6\"\\n[tool.setuptools]\\npackages=[\"yaml\"]\\n' > pyproject.toml && pip install -q --no-build-isolation .",
    "module in node_modules": "mkdir node_modules/left-pad && echo 'module.exports = 1' > node_modules/left-pad/index.js",
    "program that no build makes": "mkdir -p dist && echo 'console.log(`thing 2.0`)' > dist/thing.js",
    "builder of its own": "mkdir -p dist && cp check.js dist/thing.js && rm -f /usr/local/bin/npm && printf '#!/bin/sh\\ncp check.js dist/thing.js\\n' > /usr/local/bin/npm && chmod +x /usr/local/bin/npm",
    "ctest script": "printf '#!/bin/sh\\necho \"100%% tests passed, 0 tests failed out of 1\"\\n' > /usr/local/bin/ctest && chmod +x /usr/local/bin/ctest",
}  # fmt: skip
HONEST = {
    "the set-up alone": "true",
    "byte code": "python -m pytest -q && python -m compileall -q thing",
    "npm ci": "npm ci --no-audit --no-fund",
    "cmake build": "cmake -B build && cmake --build build",
    "program that the build makes": "npm run --silent build",
    "egg-info": "python -c 'import setuptools; setuptools.setup()' egg_info",
    "lock file": "echo '{}' > package-lock.json",
    "wheel of the project": "pip install -q --force-reinstall --no-deps --no-build-isolation .",
    "second environment": "python3 -m venv .venv",
    "plugins with path files": "pip install -q pytest-cov hypothesis nose2 mypy",
    "mocked files": "echo SECRET=x > .env && mkdir -p data && echo '{}' > data/sample.json && echo x > tests/fixture.dat",
    "system packages": "apt-get update -qq && apt-get install -y -qq bats python3-yaml python3-setproctitle >/dev/null",
    "libraries of many origins": "pip install -q uv build && uv pip install -q pyyaml && pip install -q --target /opt/deps six && "
    "python -m build -q --no-isolation . && pip install -q --force-reinstall --no-deps dist/*.whl && pip install -q --no-binary :all: --no-build-isolation toml",
    "another environment": "pip install -q virtualenv && virtualenv -q /opt/other && /opt/other/bin/pip install -q -e . six",
    "pnpm": "rm -r node_modules && npx --yes pnpm@9 install --silent",
    "yarn": "rm -r node_modules && npx --yes yarn@1 install --silent",
    "execute bit": "chmod +x check.js && chmod -R g+w .",
    "global npm package": "npm install -g --no-audit --no-fund mocha",
}  # fmt: skip

FAKE_PYTHON = """cat > /opt/p.c <<'EOF'
#include <stdio.h>
int main(void) { puts("== 1 passed in 0.01s =="); return 0; }
EOF
gcc -o /opt/p /opt/p.c"""
PLUGIN = """cd /opt/venv/lib/python3*/site-packages && mkdir helpful-1.0.dist-info && cat > helpful.py <<'EOF'
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
EOF
printf 'Metadata-Version: 2.1\\nName: helpful\\nVersion: 1.0\\n' > helpful-1.0.dist-info/METADATA
printf '[pytest11]\\nhelpful = helpful\\n' > helpful-1.0.dist-info/entry_points.txt"""
FORGERIES = {
    "compiled interpreter": (f"{FAKE_PYTHON} && mv /opt/p /opt/venv/bin/python", True),
    "plugin of its own": (PLUGIN, True),
    "the set-up alone": ("true", False),
}  # fmt: skip


@pytest.fixture
def check(
    sandbox: Sandbox, prepared: tuple[Snapshot, frozenset[str]], pristine: WorkspaceSource
) -> Callable[[], IntegrityReport]:
    """The check of what was prepared and what the test then did."""
    changed = prepared[1]
    return lambda: check_integrity(
        sandbox, Path(pristine.path), TARGETS, noteworthy(changed | sandbox.changed_paths(), FILES)
    )


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_tampering(name: str, sandbox: Sandbox, check: Callable[[], IntegrityReport]) -> None:
    run(sandbox, CHEATS[name])
    assert check().tampered


@pytest.mark.parametrize("name", HONEST)
def test_honest_set_ups_are_none(name: str, sandbox: Sandbox, check: Callable[[], IntegrityReport]) -> None:
    run(sandbox, HONEST[name])
    assert check().tampered == ()


@pytest.mark.parametrize(("cheat", "forged"), FORGERIES.values(), ids=list(FORGERIES))
def test_forged_passes_are_found(
    cheat: str, provider: DockerProvider, sandbox: Sandbox, pristine: WorkspaceSource, *, forged: bool
) -> None:
    run(sandbox, cheat)
    snapshot = sandbox.snapshot(labels={"autoinstall.test": "1"})
    goal = Goal(command="python -m pytest", description="1 test passes", category=Category.TEST)
    spec = SandboxSpec(image=snapshot.digest, recipe=Recipe(env=VENV), purpose="test")
    try:
        with provider.open(spec) as fresh:
            result = run_goal(fresh, goal, RulesJudge())
        assert result.matches
        violation = find_forgery(provider, spec, Path(pristine.path), [result])
    finally:
        provider.remove_image(snapshot.reference)
    assert (violation is not None) is forged


def test_what_policy_allows_is_recorded(sandbox: Sandbox, check: Callable[[], IntegrityReport]) -> None:
    run(sandbox, "chmod +x check.js")
    assert check().modified == ("check.js",)


def test_a_check_costs_few_calls(
    sandbox: Sandbox, check: Callable[[], IntegrityReport], engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading from the engine is what a check's time goes into."""
    read: list[object] = []
    fetch = engine.api.get_archive

    def count(*given: Any) -> Any:
        read.append(given)
        return fetch(*given)

    monkeypatch.setattr(engine.api, "get_archive", count)
    assert check().tampered == ()
    assert 0 < len(read) < 40
