"""What is read from a Python checkout: manifests, requirement files, environments, locks, interpreters, suites."""

from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, EvidenceCommand, Findings, Source
from autoinstall.agents.rules.ecosystems.python import PythonEcosystem, django, knowledge
from autoinstall.agents.rules.ecosystems.python.commands import plain_test_command
from autoinstall.agents.rules.ecosystems.python.environments import test_environments as environments
from autoinstall.agents.rules.ecosystems.python.environments import tox_pythons
from autoinstall.agents.rules.ecosystems.python.interpreter import Interpreter, allows, ranked
from autoinstall.agents.rules.ecosystems.python.locks import read_lock
from autoinstall.agents.rules.ecosystems.python.manifests import (
    find_projects,
    read_project,
    requirement_files,
)
from autoinstall.agents.rules.ecosystems.python.model import SetRole
from autoinstall.agents.rules.ecosystems.python.poetry import poetry_specifier
from autoinstall.agents.rules.ecosystems.python.requirements import name_of_url, parse_conda, parse_file
from autoinstall.agents.rules.ecosystems.python.sources import Sources, relaxed, tidy
from autoinstall.agents.rules.ecosystems.python.suite import find_suite
from autoinstall.agents.rules.ecosystems.python.suite import test_files as suite_files
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence
from tests.conftest import written
from tests.unit.rules_contexts import context_of as rules_context
from tests.unit.rules_contexts import goals_of


def tree_of(root: Path, **files: str) -> Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return Tree(root)


def context_of(tree: Tree, date: str = "2024-06-01", findings: Findings | None = None) -> Context:
    when = datetime.fromisoformat(date).replace(tzinfo=UTC)
    repository = Repository(url="https://example.org/a/b", commit="0" * 40, commit_date=when)
    return Context(repository=repository, tree=tree, findings=findings or Findings())


def sets_of(tree: Tree) -> dict[str, tuple[str, ...]]:
    return {item.name: item.requirements for item in read_project(tree, "").sets}


def test_standard_metadata_with_extras_and_nested_groups(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "pyproject.toml": """
                [build-system]
                requires = ["hatchling"]
                build-backend = "hatchling.build"
                [project]
                name = "Some-Thing"
                requires-python = ">=3.9"
                dependencies = ["httpx>=0.20"]
                [project.optional-dependencies]
                s3 = ["boto3"]
                [project.scripts]
                thing = "some_thing.cli:main"
                [dependency-groups]
                base = ["coverage"]
                test = ["pytest", {include-group = "base"}]
            """,
            "src/some_thing/__init__.py": "",
        },
    )
    project = read_project(tree, "")
    assert project.installable
    assert project.packages[0] == "some_thing"
    assert project.source_dir == "src"
    assert project.scripts == {"thing": "some_thing.cli:main"}
    sets = sets_of(tree)
    assert sets["dependencies"] == ("httpx>=0.20",)
    assert sets["test"] == ("pytest", "coverage")
    assert [item.role for item in project.sets if item.name == "s3"] == [SetRole.EXTRA]


def test_poetry_tables(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "pyproject.toml": """
                [tool.poetry]
                name = "thing"
                [tool.poetry.dependencies]
                python = "^3.8"
                requests = "^2.25"
                redis = {version = "~4.1", optional = true}
                private = {git = "https://example.org/private.git"}
                tomli = {version = "*", python = "<3.11"}
                [tool.poetry.extras]
                cache = ["redis"]
                [tool.poetry.group.test.dependencies]
                pytest = ">=7"
                [build-system]
                requires = ["poetry-core"]
                build-backend = "poetry.core.masonry.api"
            """
        },
    )
    project = read_project(tree, "")
    sets = sets_of(tree)
    assert project.requires_python == ">=3.8,<4"
    assert set(sets["dependencies"]) == {'tomli; python_version < "3.11"', "private", "requests<3,>=2.25"}
    assert sets["cache"] == ("redis<4.2,>=4.1",)
    assert sets["test"] == ("pytest>=7",)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("~1.2", ">=1.2,<1.3"),
        ("~2", ">=2,<3"),
        ("1.*", "==1.*"),
        ("*", ""),
        (">=1.0,<2 || >=3", ">=3"),
        ("~=1.4", "~=1.4"),
    ],
)
def test_poetry_constraints(constraint: str, expected: str) -> None:
    assert SpecifierSet(poetry_specifier(constraint)) == SpecifierSet(expected)


def test_setup_script_is_read_and_not_run(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "setup.py": f"""
                import os
                from setuptools import setup, find_packages
                open({str(tmp_path / "ran")!r}, "w").write("x")
                BASE = ["six"]
                tests = ["pytest"] + ["mock>=1"]
                extras = {{"docs": ["sphinx"], "dynamic": compute()}}
                extras["test"] = tests
                setup(
                    name="old", install_requires=BASE + ["attrs"], tests_require=tests, extras_require=extras,
                    setup_requires=read("requirements/build.txt"),
                    entry_points={{"console_scripts": ["old = old.cli:main"]}},
                )
            """,
            "requirements/build.txt": "cython\n",
            "old/__init__.py": "",
        },
    )
    project = read_project(tree, "")
    sets = sets_of(tree)
    assert not (tmp_path / "ran").exists()
    assert project.legacy_setup
    assert project.scripts == {"old": "old.cli:main"}
    assert sets["install_requires"] == ("six", "attrs")
    assert sets["test"] == ("pytest", "mock>=1")
    assert sets["dynamic"] == ()
    assert project.build_requires == ("cython",)


def test_requirement_files_follow_includes_and_replace_what_no_index_has(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "requirements/base.txt": "flask==2.0  # web\n--index-url https://example.org/simple\n",
            "requirements/test.txt": """
                -r base.txt
                -c constraints.txt
                pytest>=6 ; python_version >= "3.6" \\
                    --hash=sha256:00
                git+https://example.org/org/some-lib.git@main#egg=some_lib[fast]
                other @ https://example.org/other-1.0.zip
                -e ../pkg[dev]
                -r test.txt
            """,
            "pkg/setup.py": "",
        },
    )
    parsed = parse_file(tree, "requirements/test.txt")
    assert parsed.requirements == ["flask==2.0", 'pytest>=6; python_version >= "3.6"', "some_lib[fast]", "other"]
    assert parsed.paths == ["pkg"]
    assert len(parsed.dropped) == 2
    assert [item.role for item in requirement_files(tree)] == [SetRole.EXTRA, SetRole.TEST]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git+ssh://git@example.org/a/lib-x.git@v1", "lib-x"),
        ("https://example.org/a/python-thing/archive/main.zip", "thing"),
        ("https://example.org/f/foo_bar-1.2.0-py3-none-any.whl", "foo_bar==1.2.0"),
        ("https://example.org/f/foo-1.2.tar.gz", "foo==1.2"),
    ],
)
def test_names_of_urls(url: str, name: str) -> None:
    assert name_of_url(url) == name


def test_conda_environment(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "environment.yml": """
                channels: [conda-forge]
                dependencies:
                  - python=3.9
                  - numpy=1.20
                  - conda-forge::pytorch>=1.9
                  - gcc
                  - pip
                  - pip:
                      - requests==2.0
            """
        },
    )
    assert parse_conda(tree, "environment.yml").requirements == ["numpy==1.20.*", "torch>=1.9", "requests==2.0"]


def test_tox_factors_references_and_substitutions(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "tox.ini": """
                [tox]
                envlist = py{38,39,311}, lint
                [base]
                deps =
                    pytest
                [testenv]
                deps =
                    {[base]deps}
                    -r{toxinidir}/requirements-test.txt
                    django: django
                    !django: flask
                extras = cli, s3
                setenv =
                    PYTHONPATH = {toxinidir}/src
                commands = coverage run -m pytest {posargs:tests} --cov-report xml
                [testenv:lint]
                deps = flake8
                commands = flake8
            """,
            "requirements-test.txt": "mock\n",
            "tests/test_a.py": "def test_a(): pass\n",
        },
    )
    found = {item.name: item for item in environments(tree)}
    assert set(found["testenv"].requirements.requirements) == {"pytest", "mock", "flask"}
    assert found["testenv"].extras == ("cli", "s3")
    assert found["lint"].requirements.role is SetRole.LINT
    assert tox_pythons(tree) == ["3.8"]
    suite = find_suite(context_of(tree), environments(tree))
    assert suite is not None
    assert suite.command == "python -m pytest tests"
    assert suite.env == {"PYTHONPATH": "/workspace/src"}


def test_nox_sessions_are_read(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "noxfile.py": """
                import nox
                @nox.session(python=["3.9"])
                def tests(session):
                    session.install("-r", "dev.txt", ".[extra]", "pytest-cov")
                    session.run("pytest", "tests", *session.posargs)
            """,
            "dev.txt": "hypothesis\n",
        },
    )
    (session,) = environments(tree)
    assert session.requirements.requirements == ("hypothesis", "pytest-cov")
    assert session.extras == ("extra",)
    assert session.commands == ("pytest tests",)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -n auto --cov=thing --cov-report xml -v tests -m 'not slow'", "python -m pytest tests -m 'not slow'"),
        ("coverage run --source thing -m pytest tests", "python -m pytest tests"),
        ("python -W error -m pytest missing_directory", "python -m pytest"),
        ("py.test --ignore=tests/slow", "python -m pytest --ignore=tests/slow"),
        ("nosetests", "python -m pytest"),
        ("coverage run manage.py test app", "python manage.py test app"),
        ("flake8 thing", None),
        ("pytest $TESTS", None),
        ("pytest tests 2>&1 | tee out.txt", "python -m pytest tests"),
    ],
)
def test_plain_test_commands(tmp_path: Path, command: str, expected: str | None) -> None:
    tree = tree_of(tmp_path, **{"tests/test_a.py": "", "manage.py": ""})
    assert plain_test_command(command, tree) == expected


def test_plugins_come_from_settings_and_markers(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "pytest.ini": "[pytest]\naddopts = --cov=x -n 2\nasyncio_mode = auto\n",
            "tests/test_a.py": "import pytest\n@pytest.mark.timeout(3)\ndef test_a(): pass\n",
        },
    )
    suite = find_suite(context_of(tree), ())
    assert suite is not None
    assert suite.needs == ("pytest", "pytest-asyncio", "pytest-cov", "pytest-timeout", "pytest-xdist")


def test_settings_below_the_root_say_where_tests_run(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, **{"src/pytest.ini": "[pytest]\n", "src/tests/test_a.py": "def test_a(): pass\n"})
    suite = find_suite(context_of(tree), ())
    assert suite is not None
    assert suite.command == "cd src && python -m pytest"
    assert suite.file_command("src/tests/test_a.py") == "cd src && python -m pytest tests/test_a.py"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("poetry.lock", '[[package]]\nname = "Foo_Bar"\nversion = "1.2"\n[metadata]\npython-versions = "^3.9"\n'),
        (
            "uv.lock",
            (
                '[[package]]\nname = "foo-bar"\nversion = "1.2"\nsource = {registry = "https://example.org"}\n'
                '[[package]]\nname = "me"\nversion = "0"\nsource = {editable = "."}\n'
            ),
        ),
        ("pdm.lock", '[[package]]\nname = "foo-bar"\nversion = "1.2+cpu"\n'),
        ("Pipfile.lock", '{"default": {"Foo-Bar": {"version": "==1.2"}}, "develop": {}}'),
    ],
)
def test_locks_become_constraints(tmp_path: Path, name: str, text: str) -> None:
    lock = read_lock(tree_of(tmp_path, **{name: text}), "")
    assert lock is not None
    assert lock.constraints == ("foo-bar==1.2",)


def test_a_distribution_locked_to_several_versions_is_no_constraint(tmp_path: Path) -> None:
    text = (
        '[[package]]\nname="a"\nversion="1"\n[[package]]\nname="a"\nversion="2"\n[[package]]\nname="b"\nversion="3"\n'
    )
    lock = read_lock(tree_of(tmp_path, **{"poetry.lock": text}), "")
    assert lock is not None
    assert lock.constraints == ("b==3",)


@pytest.mark.parametrize(
    ("files", "date", "expected"),
    [
        ({}, "2021-01-01", "3.8"),
        ({".python-version": "3.11.4\n"}, "2024-06-01", "3.11"),
        ({"setup.cfg": "[metadata]\nname=x\n[options]\npython_requires = <3.8\n"}, "2024-06-01", "3.7"),
        ({"tox.ini": "[tox]\nenvlist = py39,py38\n"}, "2024-06-01", "3.9"),
        ({}, "2016-01-01", "3.7"),
    ],
)
def test_interpreter_by_evidence(tmp_path: Path, files: dict[str, str], date: str, expected: str) -> None:
    tree = tree_of(tmp_path, **files)
    interpreters = [Interpreter(minor=minor, path=f"/{minor}") for minor in ("3.7", "3.8", "3.9", "3.11", "3.13")]
    choices = ranked(context_of(tree, date), read_project(tree, ""), None, interpreters)
    assert choices[0].interpreter.minor == expected
    assert len(choices) == len(interpreters)


def test_a_lesson_lowers_the_interpreter(tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    context = context_of(tree).model_copy(update={"lessons": ("python<=3.9: the code is older",)})
    interpreters = [Interpreter(minor=minor, path=f"/{minor}") for minor in ("3.8", "3.9", "3.11")]
    assert ranked(context, read_project(tree, ""), None, interpreters)[0].interpreter.minor == "3.9"


def test_requires_python() -> None:
    assert allows(">=3.8,<3.12", "3.11")
    assert allows(">=3.9.2", "3.9")
    assert not allows("<3.8", "3.11")


def test_sets_for_development_only_come_along_where_no_test_runner_is_named(tmp_path: Path) -> None:
    files = {"requirements-dev.txt": "tox\nsphinx\n", "requirements-test.txt": "pytest\n"}
    names = [item.name for item in Sources(context_of(tree_of(tmp_path, **files))).test_sets()]
    assert names == ["requirements-test.txt"]
    (tmp_path / "requirements-test.txt").write_text("mock\n")
    names = [item.name for item in Sources(context_of(Tree(tmp_path))).test_sets()]
    assert names == ["requirements-test.txt", "requirements-dev.txt"]


def test_ci_installs_are_requirements_of_the_tests(tmp_path: Path) -> None:
    command = EvidenceCommand(
        command="pip install pytest-foo '.[web]'",
        source=Source.CI,
        category=Category.SETUP,
        evidence=Evidence(path="ci.yml", line=3),
        section="test: install",
    )
    tree = tree_of(
        tmp_path,
        **{"setup.py": "from setuptools import setup\nsetup(name='a', extras_require={'web': [], 'docs': []})"},
    )
    sources = Sources(context_of(tree, findings=Findings(commands=(command,))))
    assert sources.test_extras() == ("web",)
    assert [item.requirements for item in sources.test_sets()] == [("pytest-foo",)]


def test_projects_in_subdirectories(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        **{
            "backend/setup.py": "from setuptools import setup\nsetup(name='b')",
            "tests/setup.py": "",
            "docs/setup.py": "",
        },
    )
    assert [project.root for project in find_projects(tree)] == ["backend"]


def test_tidy_and_relaxed() -> None:
    assert tidy(["a", "a>=1", "b", "Own", "a>=1"], "own") == ["a>=1", "b"]
    assert relaxed("a==1.2.3") == "a>=1.2.3"
    assert relaxed("a==1.*") == "a==1.*"
    assert relaxed("a!=1; python_version == '3.8'") == "a!=1; python_version == '3.8'"


def test_tables_are_valid() -> None:
    assert knowledge.tool_distribution("pytest") == "pytest"
    assert knowledge.option_plugin("--cov-report=xml") == "pytest-cov"
    assert knowledge.option_plugin("-nauto") == "pytest-xdist"
    assert knowledge.option_plugin("--strict-markers") is None
    assert knowledge.module_distribution("google.cloud.storage.blob") == "google-cloud-storage"
    assert knowledge.module_distribution("some_thing.deep") == "some-thing"
    for plugin in (knowledge.fixture_plugin("mocker"), knowledge.marker_plugin("asyncio")):
        assert plugin is not None
        Requirement(plugin)
    assert {"3.8", "3.13"} <= knowledge.interpreter_dates().keys()


@pytest.mark.parametrize(
    ("main", "other", "expected"),
    [
        ("import argparse\n", "", True),
        ("from tool.cli import run\n", "import click\n", True),
        ("from .cli import run\n", "import click\n", True),
        ("from . import cli\n", "import click\n", True),
        ("import sys\nprint(sys.argv)\n", "import click\n", False),
    ],
)
def test_help_is_only_asked_of_programs_that_parse_options(
    tmp_path: Path, main: str, other: str, expected: bool
) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "tool"\nversion = "1"\n[build-system]\nrequires = ["setuptools"]\n',
        "tool/__init__.py": "",
        "tool/__main__.py": main,
        "tool/cli.py": other,
    }
    provider = ScriptedProvider()
    with provider.open(SandboxSpec(image=provider.ensure_base().digest)) as sandbox:
        found = PythonEcosystem().candidates(context_of(tree_of(tmp_path, **files)), sandbox)
        commands = {candidate.goal.command for candidate in found}
    assert ("python -m tool --help" in commands) is expected


@pytest.mark.parametrize(
    ("remote", "rate"),
    [
        ("import json\n", 0.9),
        ("import openai\n", 0.6),
        ("import redis\n", 0.9),
        ("import requests\nrequests.get('https://example.org/')\n", 0.6),
        ("import requests\nimport responses\nrequests.get('https://example.org/')\n", 0.9),
        ("import requests\nrequests.get('http://localhost:80/')\n", 0.9),
    ],
)
def test_fewer_tests_have_to_pass_where_some_call_servers_of_others(tmp_path: Path, remote: str, rate: float) -> None:
    tests = "def test_a(): pass\ndef test_b(): pass\n"
    files = {"tests/test_near.py": tests * 2, "tests/test_far.py": remote + tests}
    suite = find_suite(context_of(tree_of(tmp_path, **files)), ())
    assert suite is not None
    assert suite.pass_rate == rate


@pytest.mark.parametrize(
    ("code", "test", "rate"),
    [
        ("import openai\n", "", 0.5),
        ("import openai\n", "from unittest.mock import patch\n", 0.9),
        ("import json\n", "", 0.9),
    ],
)
def test_tests_of_code_that_asks_models_call_them_unless_something_stands_in(
    tmp_path: Path, code: str, test: str, rate: float
) -> None:
    files = {"thing/client.py": code, "tests/test_thing.py": f"{test}import thing\ndef test_a(): pass\n"}
    suite = find_suite(context_of(tree_of(tmp_path, **files)), ())
    assert suite is not None
    assert suite.pass_rate == rate


@pytest.mark.parametrize(
    ("runs", "installed"), [("pytest", True), ("tox -e py", False), ("A=1 hatch run test:cov", False)]
)
def test_what_ci_installs_beside_an_environment_of_its_own_is_not_the_tests(
    tmp_path: Path, runs: str, installed: bool
) -> None:
    def command(text: str) -> EvidenceCommand:
        where = Evidence(path=".github/workflows/a.yml", line=1, text=text)
        return EvidenceCommand(
            command=text, source=Source.CI, category=Category.OTHER, evidence=where, section=f"test: {text}"
        )

    findings = Findings(commands=(command("pip install redis==3.5.0"), command(runs)))
    sources = Sources(context_of(tree_of(tmp_path, **{"setup.py": "", "a.py": ""}), findings=findings))
    assert any("redis==3.5.0" in item.requirements for item in sources.sets) is installed


@pytest.mark.parametrize(("more", "goal"), [("", False), ("from unittest.mock import patch\n", True)])
def test_a_suite_that_begins_with_downloads_is_no_goal(tmp_path: Path, more: str, goal: bool) -> None:
    fetch = "lib.download_file('https://data.net/set/cube.tif', 'cube.tif')\n"
    files = {"pyproject.toml": "[project]\nname = 'lib'\n[tool.pytest.ini_options]\n", "lib/__init__.py": ""}
    tests = {"tests/test_cube.py": f"import lib\n{more}{fetch}def test_a(): pass\n"}
    found = goals_of(PythonEcosystem(), rules_context(tmp_path, {**files, **tests}))
    assert ("python -m pytest tests" in found or "python -m pytest" in found) is goal
    assert any("--collect-only" in command for command in found)
    assert ("python -m pytest tests/test_cube.py" in found) is goal


@pytest.mark.parametrize(
    ("path", "more", "installable"),
    [
        ("app/main.py", "", False),
        ("my_app/main.py", "", True),
        ("src/my_app/main.py", "", True),
        ("my_app.py", "", True),
        ("app/main.py", "packages = [{ include = 'app' }]\n", True),
    ],
)
def test_a_poetry_project_without_its_package_is_not_installed(
    tmp_path: Path, path: str, more: str, installable: bool
) -> None:
    manifest = f"[tool.poetry]\nname = 'my-app'\n{more}[build-system]\nbuild-backend = 'poetry.core.masonry.api'\n"
    assert read_project(tree_of(tmp_path, **{"pyproject.toml": manifest, path: ""}), "").installable is installable


@pytest.mark.parametrize("there", [True, False])
def test_tests_of_a_submodule_that_is_not_there_are_left_out(tmp_path: Path, there: bool) -> None:
    files = {
        ".gitmodules": '[submodule "cases"]\n\tpath = tests/toml-cases\n\turl = https://a.net/b\n',
        "tests/test_cases.py": "import pytest\nROOT = 'toml-cases/list'\ndef test_a(): pass\n",
        "tests/test_api.py": "def test_b(): pass\n",
        **({"tests/toml-cases/list": ""} if there else {}),
    }
    suite = find_suite(context_of(tree_of(tmp_path, **files)), ())
    assert suite is not None
    assert ("--ignore=tests/test_cases.py" in suite.command) is not there


def test_a_file_of_a_whole_suites_size_comes_last(tmp_path: Path) -> None:
    for name, tests in (("test_a.py", 400), ("test_b.py", 3), ("test_c.py", 30)):
        (tmp_path / name).write_text("".join(f"def test_{number}(): pass\n" for number in range(tests)))
    assert [file.path for file in suite_files(Tree(tmp_path), ())] == ["test_c.py", "test_b.py", "test_a.py"]


def test_a_program_that_is_named_like_a_test_is_none(tmp_path: Path) -> None:
    program = "import argparse\n\ndef test_fetch(source):\n    assert source\n\nif __name__ == '__main__':\n    pass\n"
    for name, text in (("test_a.py", program), ("test_b.py", f"import unittest\n{program}")):
        (tmp_path / name).write_text(text)
    assert [file.path for file in suite_files(Tree(tmp_path), ())] == ["test_b.py"]


MANAGE = "from django.core.management import execute_from_command_line\n"


@pytest.mark.parametrize(
    ("place", "goals"),
    [
        (
            "",
            ["python manage.py check", "python manage.py showmigrations --plan", "python manage.py migrate --noinput"],
        ),
        ("backend/", ["cd backend && python manage.py check"]),
        ("tests/", []),
        ("example/", []),
    ],
)
def test_django_projects_are_asked_by_their_own_program(tmp_path: Path, place: str, goals: list[str]) -> None:
    files = {f"{place}manage.py": MANAGE, f"{place}shop/migrations/0001_first.py": "class Migration: ...\n"}
    found = {item.goal.command: item.goal for item in django.candidates(Tree(written(tmp_path, files)))}
    assert set(goals) <= set(found)
    assert bool(goals) is bool(found)
    if not place:
        assert '"0001_first"' in found["python manage.py showmigrations --plan"].description
        assert found["python manage.py migrate --noinput"].category is Category.SETUP
