"""Plans, goals and repairs of Python projects."""

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Plan, Repair
from autoinstall.agents.rules.ecosystems.python import PythonEcosystem, knowledge
from autoinstall.agents.rules.ecosystems.python.plan import cut_off
from autoinstall.agents.rules.repairs.python import PythonRepairer
from autoinstall.outputs.summaries import summarise, total
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category, CommandResult, Goal, Recipe, TestCounts


class Base:
    """A sandbox that has Python 3.8 and 3.11 and does nothing else."""

    def __init__(self, minors: Sequence[str] = ("3.8", "3.11")) -> None:
        self.minors = minors
        self.recipe = Recipe()

    def run(self, command: str, **_: Any) -> CommandResult:
        listing = "".join(f"{minor} /opt/python/{minor}/bin/python3\n" for minor in self.minors)
        return CommandResult(command=command, exit_code=0, output=listing if "compgen" in command else "/usr/bin:/bin")


def context_of(root: Path, files: dict[str, str], *, date: str = "2020-06-01", **fields: Any) -> Context:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    when = datetime.fromisoformat(date).replace(tzinfo=UTC)
    repository = Repository(url="https://example.org/a/b", commit="0" * 40, commit_date=when)
    return Context(repository=repository, tree=Tree(root), **fields)


def plan_of(context: Context, base: Base | None = None) -> Plan:
    return PythonEcosystem().plan(context, cast(Sandbox, base or Base()))


def commands(plan: Plan) -> str:
    return "\n".join(step.command for step in plan.steps)


PROJECT = {
    "setup.py": """
        from setuptools import setup
        setup(name='thing', extras_require={'test': ['pytest'], 's3': ['boto3']})
    """,
    "thing/__init__.py": "",
    "tests/test_a.py": "import pytest\ndef test_a(): pass\n",
}


def test_one_resolution_as_of_the_commit(tmp_path: Path) -> None:
    plan = plan_of(context_of(tmp_path, PROJECT))
    text = commands(plan)
    assert "--python /opt/python/3.8/bin/python3 /opt/venv" in text
    assert 'exclude-newer = "2020-07-10T00:00:00Z"' in text
    assert 'setuptools = "2023-01-20T00:00:00Z"' in text
    assert "uv pip install --no-sources -e '.[test]' -r /opt/venv/requirements.txt" in text
    assert "-e '.[s3]'" in text
    assert plan.env["PATH"] == "/opt/venv/bin:/usr/bin:/bin"
    assert plan.env["VIRTUAL_ENV"] == "/opt/venv"
    assert not plan.exhausted


def test_later_attempts_differ_and_end(tmp_path: Path) -> None:
    plans = [commands(plan_of(context_of(tmp_path, PROJECT, attempt=attempt))) for attempt in (1, 2, 3, 4)]
    assert len(set(plans)) == 4
    assert "/opt/python/3.11/" in plans[1]
    assert "exclude-newer" not in plans[2]
    assert " -e " not in plans[3]
    assert plan_of(context_of(tmp_path, PROJECT, attempt=4)).exhausted


def test_with_one_interpreter_every_attempt_still_differs(tmp_path: Path) -> None:
    base = Base(["3.8"])
    plans = [plan_of(context_of(tmp_path, PROJECT, attempt=attempt), base) for attempt in (1, 2, 3)]
    assert len({commands(plan) for plan in plans}) == 3
    assert [plan.exhausted for plan in plans] == [False, False, True]


def test_a_lesson_on_the_interpreter_is_followed(tmp_path: Path) -> None:
    context = context_of(tmp_path, PROJECT, date="2024-06-01", attempt=2, lessons=("python<=3.8: older code",))
    assert "--python /opt/python/3.8/" in commands(plan_of(context))


def test_an_interpreter_newer_than_the_commit_moves_the_date_and_relaxes_pins(tmp_path: Path) -> None:
    files = PROJECT | {
        "requirements-test.txt": "pytest==5.4.1\nnumpy\n",
        "poetry.lock": '[[package]]\nname="a"\nversion="1"\n',
    }
    text = commands(plan_of(context_of(tmp_path, files), Base(["3.11"])))
    assert 'exclude-newer = "2023-07-21T00:00:00Z"' in text
    assert 'cython = "2023-07-16T00:00:00Z"' in text
    assert "pytest>=5.4.1" in text
    assert "constraints.txt" not in text


def test_a_lock_constrains_the_first_attempt(tmp_path: Path) -> None:
    files = PROJECT | {"poetry.lock": '[[package]]\nname="a"\nversion="1"\n'}
    text = commands(plan_of(context_of(tmp_path, files)))
    assert "a==1" in text
    assert "-c /opt/venv/constraints.txt" in text


def test_a_checkout_that_is_no_package_is_put_on_the_path(tmp_path: Path) -> None:
    plan = plan_of(
        context_of(
            tmp_path, {"requirements.txt": "flask\n", "src/app/__init__.py": "", "test_app.py": "def test_a(): pass"}
        )
    )
    assert plan.env["PYTHONPATH"] == "/workspace:/workspace/src"
    assert " -e " not in commands(plan)
    assert "flask" in commands(plan)


@pytest.mark.parametrize(("back_end", "asked"), [("hatchling", True), ("setuptools", False)])
def test_a_back_end_is_asked_what_a_build_without_isolation_takes(tmp_path: Path, back_end: str, asked: bool) -> None:
    build = f'[build-system]\nrequires = ["{back_end}"]\nbuild-backend = "{back_end}.build"\n'
    files = {"pyproject.toml": f'{build}[project]\nname = "thing"\nversion = "1"\n', "thing/__init__.py": ""}
    found = [step for step in plan_of(context_of(tmp_path, files)).steps if "get_requires_for_build" in step.command]
    assert bool(found) is asked


def test_tools_of_targets_are_installed(tmp_path: Path) -> None:
    target = Goal(command="mypy thing", description="checks the types", category=Category.LINT)
    context = context_of(tmp_path, PROJECT | {"lint.requirements.txt": "mypy==0.9\n"}, targets=(target,))
    assert "uv pip install --no-sources mypy==0.9" in commands(plan_of(context))


def test_every_command_is_sound_shell(tmp_path: Path) -> None:
    files = PROJECT | {
        "poetry.lock": '[[package]]\nname="a"\nversion="1"\n',
        "setup.cfg": "[flake8]\n[metadata]\nname=x\n",
    }
    for attempt in (1, 2, 3, 4):
        for step in plan_of(context_of(tmp_path, files, attempt=attempt)).steps:
            for command in (step.command, *step.fallback):
                subprocess.run(["bash", "-n", "-c", command], check=True)


def test_the_cut_off_is_never_before_the_interpreter_had_wheels() -> None:
    old = datetime(2018, 1, 1, tzinfo=UTC)
    assert cut_off(old, "3.6") == datetime(2018, 1, 2, tzinfo=UTC)
    assert cut_off(old, "3.11").year == 2023


def test_no_python_at_all_is_said(tmp_path: Path) -> None:
    plan = plan_of(context_of(tmp_path, PROJECT), Base([]))
    assert plan.exhausted
    assert [step.command for step in plan.steps] == ["command -v python3"]


def test_goals_have_evidence_and_a_description_that_can_fail(tmp_path: Path) -> None:
    files = PROJECT | {
        "setup.cfg": "[flake8]\nmax-line-length=100\n",
        "thing/core.py": "x = 1\n",
        "thing/__main__.py": "import argparse\n",
    }
    found = list(PythonEcosystem().candidates(context_of(tmp_path, files), cast(Sandbox, Base())))
    goals = {candidate.goal.command: candidate.goal for candidate in found}
    assert len(goals) >= 10
    assert all(goal.evidence is not None and goal.description for goal in goals.values())
    suite = goals["python -m pytest tests"]
    assert suite.min_pass_rate == 0.9
    assert suite.exit_codes == (0, 1)
    assert goals["flake8 --count thing"].evidence.path == "setup.cfg"  # type: ignore[union-attr]
    assert "python -m pytest tests/test_a.py" in goals
    assert "python -m thing --help" in goals


def test_examples_of_the_readme_are_run_where_they_are_the_projects_own(tmp_path: Path) -> None:
    def examples(readme: str) -> list[str]:
        context = context_of(tmp_path, PROJECT | {"README.md": readme})
        found = PythonEcosystem().candidates(context, cast(Sandbox, Base()))
        return [item.goal.command for item in found if "doctest" in item.goal.command]

    shown = "```\n>>> import thing\n>>> 1\n1\n>>> 2\n2\n>>> 3\n3\n>>> 4\n4\n```\n"
    (command,) = examples(shown)
    line = command.replace("README.md", str(tmp_path / "README.md"))
    env = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(tmp_path)}
    printed = subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True, env=env).stdout
    assert total(summarise(printed)) == TestCounts(runner="python doctest", passed=5)
    assert examples(shown.replace("thing", "other")) == []
    assert examples(shown.replace(">>> 4", ">>> requests.get('x')")) == []


def test_modules_that_want_more_than_is_declared_are_not_proposed(tmp_path: Path) -> None:
    files = PROJECT | {"thing/plain.py": "import os\n", "thing/extra.py": "import pandas\n", "thing/_private.py": ""}
    found = [
        item.goal.command for item in PythonEcosystem().candidates(context_of(tmp_path, files), cast(Sandbox, Base()))
    ]
    text = "\n".join(found)
    assert "thing.plain" in text
    assert "thing.extra" not in text
    assert "thing._private" not in text
    (tmp_path / "thing/models.py").write_text("from django.db import models\n")
    found = [
        item.goal.command for item in PythonEcosystem().candidates(context_of(tmp_path, {}), cast(Sandbox, Base()))
    ]
    assert "thing.plain" not in "\n".join(found)


def repairs_of(context: Context, output: str) -> list[Repair]:
    result = CommandResult(command="python -m pytest", exit_code=1, output=output)
    return list(PythonRepairer().repairs(context, result, cast(Sandbox, Base())))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("E   ModuleNotFoundError: No module named 'yaml'", "uv pip install --no-sources PyYAML"),
        (
            "ModuleNotFoundError: No module named 'google.cloud.storage'",
            "uv pip install --no-sources google-cloud-storage",
        ),
        (
            "ModuleNotFoundError: No module named 'yaml'\nModuleNotFoundError: No module named 'attr'",
            "uv pip install --no-sources PyYAML attrs",
        ),
        ("ERROR: error: unrecognized arguments: --cov=thing -n 4", "uv pip install --no-sources pytest-cov"),
        ("E  fixture 'mocker' not found\nerror", "uv pip install --no-sources pytest-mock"),
        ("async def functions are not natively supported.\nerror", "uv pip install --no-sources pytest-asyncio"),
        ("ValueError: numpy.dtype size changed, may indicate", "uv pip install --no-sources 'numpy<2'"),
        ("AttributeError: module 'numpy' has no attribute 'float'", "uv pip install --no-sources 'numpy<1.24'"),
        ("TypeError: Descriptors cannot be created directly.\nerror", "uv pip install --no-sources 'protobuf<3.21'"),
        (
            "ImportError: Error importing plugin \"main\": No module named 'UserDict'",
            "uv pip install --no-config --no-sources 'pytest>=7,<8' 'py>=1.11'",
        ),
        ("error: use_2to3 is invalid.", "uv pip install --no-sources 'setuptools<58'"),
        ("No module named pytest\nerror", "uv pip install --no-sources pytest"),
        ("/opt/venv/bin/python: No module named build", "uv pip install --no-sources build"),
        ("bash: line 1: flake8: command not found", "uv pip install --no-sources flake8"),
        (
            "ImportError: cannot import name 'New' from 'attr' (/opt/venv/lib/site-packages/attr/__init__.py)",
            "uv pip install --no-config --no-sources --upgrade-package attrs attrs",
        ),
    ],
)
def test_remedies(tmp_path: Path, output: str, expected: str) -> None:
    found = repairs_of(context_of(tmp_path, PROJECT), output)
    assert expected in [command for repair in found for command in repair.commands]


def test_a_requirement_that_came_after_the_cut_off_gets_a_later_one(tmp_path: Path) -> None:
    output = (
        "error: `numpy` was filtered by `exclude-newer` to only include those uploaded before 2024-05-03T00:00:00Z. The"
    )
    (repair,) = repairs_of(context_of(tmp_path, PROJECT), output)
    config = tmp_path / "uv.toml"
    config.write_text('link-mode = "copy"\n')
    for command in repair.commands:
        subprocess.run(
            ["bash", "-c", command], check=True, env={"UV_CONFIG_FILE": str(config), "PATH": "/usr/bin:/bin"}
        )
    assert tomllib.loads(config.read_text())["exclude-newer-package"] == {"numpy": "2024-10-30T00:00:00Z"}


def test_an_index_without_upload_dates_ends_the_cut_off(tmp_path: Path) -> None:
    (repair,) = repairs_of(context_of(tmp_path, PROJECT), "error: foo is missing an upload date")
    config = tmp_path / "uv.toml"
    config.write_text('link-mode = "copy"\nexclude-newer = "2024"\n[exclude-newer-package]\na = "2023"\n')
    (command,) = repair.commands
    subprocess.run(["bash", "-c", command], check=True, env={"UV_CONFIG_FILE": str(config), "PATH": "/usr/bin:/bin"})
    assert tomllib.loads(config.read_text()) == {"link-mode": "copy"}


def test_a_module_that_the_build_makes_is_built_and_never_taken_from_the_index(tmp_path: Path) -> None:
    found = repairs_of(context_of(tmp_path, PROJECT), "ModuleNotFoundError: No module named 'thing._speedups'")
    commands_ = [command for repair in found for command in repair.commands]
    assert commands_[0] == "cd . && python setup.py build_ext --inplace"
    assert not any(command.endswith(" thing") for command in commands_)


def test_a_declared_requirement_gives_the_version_and_what_is_nearest_to_one_that_is_gone(tmp_path: Path) -> None:
    context = context_of(tmp_path, PROJECT | {"docs/requirements.txt": "PyYAML==5.1.9\n"})
    found = repairs_of(context, "ModuleNotFoundError: No module named 'yaml'")
    assert [repair.commands[0].split()[-1] for repair in found] == [
        "PyYAML==5.1.9",
        "PyYAML==5.1.9",
        "'PyYAML==5.1.*'",
        "PyYAML",
    ]


def test_a_local_module_is_put_on_the_path_and_not_taken_from_the_index(tmp_path: Path) -> None:
    context = context_of(tmp_path, PROJECT | {"lib/helper_lib/__init__.py": ""})
    (repair,) = repairs_of(context, "ModuleNotFoundError: No module named 'helper_lib'")
    assert repair.env == {"PYTHONPATH": "/workspace/lib"}
    assert repair.commands == ()


@pytest.mark.parametrize("name", ["utils", "UserDict"])
def test_common_local_names_and_those_of_python_2_are_never_guessed(tmp_path: Path, name: str) -> None:
    assert repairs_of(context_of(tmp_path, PROJECT), f"ModuleNotFoundError: No module named '{name}'") == []


def test_what_only_an_older_interpreter_ends_is_a_lesson(tmp_path: Path) -> None:
    output = "AttributeError: module 'collections' has no attribute 'Mapping'"
    (repair,) = repairs_of(context_of(tmp_path, PROJECT), output)
    assert repair.lesson.startswith("python<=3.9")


def test_django_settings_are_found(tmp_path: Path) -> None:
    context = context_of(tmp_path, PROJECT | {"tests/settings.py": ""})
    output = "django.core.exceptions.ImproperlyConfigured: settings are not configured. error"
    assert {"DJANGO_SETTINGS_MODULE": "tests.settings"} in [repair.env for repair in repairs_of(context, output)]


def test_every_symptom_is_valid() -> None:
    import re

    from packaging.requirements import Requirement

    for symptom in knowledge.symptoms():
        re.compile(symptom.pattern)
        assert symptom.install or symptom.env or symptom.commands or symptom.python_max
        for requirement in symptom.install:
            Requirement(requirement)
