"""From a failure's output to remedies."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.contract import Context, Repair, Repairer
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.repairs import all_repairers
from autoinstall.agents.rules.repairs.apt import AptRepairer, AptTable, rank, search_pattern
from autoinstall.agents.rules.repairs.environment import EnvironmentRepairer, placeholder
from autoinstall.agents.rules.repairs.generic import GenericRepairer
from autoinstall.agents.rules.repairs.missing import Kind, Missing, missing_things
from autoinstall.agents.rules.repairs.mocks import MockRepairer, example_of
from autoinstall.agents.rules.repairs.python import PythonRepairer
from autoinstall.agents.rules.repairs.services import ServiceRepairer
from autoinstall.agents.rules.repairs.web import WebRepairer
from autoinstall.agents.rules.servers import server_goals, start_commands
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.scripted import Answer, Call, ScriptedProvider
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Goal, MockKind


def _context(root: Path, files: Mapping[str, str], *targets: str) -> Context:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tree = Tree(root)
    repository = Repository(
        url="https://example.com/o/n", commit="0" * 40, commit_date=datetime(2024, 1, 1, tzinfo=UTC)
    )
    goals = tuple(Goal(command=command, description="answers with at least 1 line") for command in targets)
    return Context(repository=repository, tree=tree, targets=goals, findings=collect(tree))


def _repairs(
    repairer: Repairer, context: Context, output: str, *, command: str = "x", exit_code: int = 1, index: str = ""
) -> list[Repair]:
    def search(call: Call) -> Answer:
        pattern = re.search(r"--regexp '(.*)' \|", call.command)
        assert pattern is not None
        lines = [line for line in index.splitlines() if re.search(pattern[1], line.partition(": ")[2])]
        return "\n".join(lines)

    provider = ScriptedProvider({re.compile("^apt-file"): search})
    image = provider.ensure_base().reference
    with provider.open(SandboxSpec(image=image)) as sandbox:
        failure = CommandResult(command=command, exit_code=exit_code, output=output)
        return list(repairer.repairs(context, failure, sandbox))


@pytest.mark.parametrize(
    ("output", "kind", "name"),
    [
        ("a.c:1:10: fatal error: foo/bar.h: No such file or directory", Kind.HEADER, "foo/bar.h"),
        ("/usr/bin/ld: cannot find -lfoo: No such file or directory", Kind.LIBRARY, "foo"),
        ("/usr/bin/ld: cannot find -lfoo", Kind.LIBRARY, "foo"),
        ("./x: error while loading shared libraries: libfoo.so.1: cannot open", Kind.SHARED_LIBRARY, "libfoo.so.1"),
        ("OSError: libGL.so.1: cannot open shared object file", Kind.SHARED_LIBRARY, "libGL.so.1"),
        ("bash: line 1: frob: command not found", Kind.COMMAND, "frob"),
        ("/bin/sh: 1: frob: not found", Kind.COMMAND, "frob"),
        ("make: frob: No such file or directory", Kind.COMMAND, "frob"),
        ("/usr/bin/env: ‘frob’: No such file or directory", Kind.COMMAND, "frob"),
        ("Program 'frob' not found or not executable", Kind.COMMAND, "frob"),
        ("No package 'libfrob-2.0' found", Kind.MODULE, "libfrob-2.0"),
        ("Package 'libfrob', required by 'virtual:world', not found", Kind.MODULE, "libfrob"),
        ('meson.build:3:0: ERROR: Dependency "frob" not found, tried pkgconfig', Kind.MODULE, "frob"),
        ('Could not find a package configuration file provided by "Frob"', Kind.CMAKE, "Frob"),
        ("Could NOT find Frob (missing: FROB_LIBRARY)", Kind.CMAKE, "Frob"),
        ("configure.ac:5: error: possibly undefined macro: AC_PROG_LIBTOOL", Kind.MACRO, "AC_PROG_LIBTOOL"),
        ("configure: error: You need libevent", Kind.WORD, "You need libevent"),
        ("checking for libx directory... configure: error: libx is required", Kind.WORD, "libx is required"),
    ],
)
def test_missing_things_are_recognised(output: str, kind: Kind, name: str) -> None:
    assert Missing(kind=kind, name=name) in list(missing_things(output))


@pytest.mark.parametrize("output", ["", "all tests passed", "error: something else", "KeyError: 'x'"])
def test_nothing_is_missing(output: str) -> None:
    assert list(missing_things(output)) == []


def test_table_packages_come_without_a_look_up(tmp_path: Path) -> None:
    (repair, *_) = _repairs(AptRepairer(), _context(tmp_path, {}), "fatal error: zlib.h: No such file or directory")
    assert repair.key == "apt:zlib1g-dev"
    assert "apt-get install -y --no-install-recommends zlib1g-dev" in repair.commands[0]


def test_index_answers_what_the_table_does_not_know(tmp_path: Path) -> None:
    index = "libfrob-dev: /usr/include/frob.h\nlibother-dev: /usr/include/other/deep/frob.h\nfrob: /usr/bin/frob\n"
    found = _repairs(
        AptRepairer(), _context(tmp_path, {}), "fatal error: frob.h: No such file or directory", index=index
    )
    assert [repair.key for repair in found] == ["apt:libfrob-dev", "apt:libother-dev"]


def test_what_the_table_knows_comes_before_look_ups(tmp_path: Path) -> None:
    output = "checking for libevent directory... configure: error: libevent is required\n"
    found = _repairs(AptRepairer(), _context(tmp_path, {}), output, index="other: /usr/bin/libevent\n")
    assert [repair.key for repair in found] == ["apt:libevent-dev", "apt:other"]


def test_own_headers_are_not_looked_up(tmp_path: Path) -> None:
    context = _context(tmp_path, {"include/config.h": ""})
    assert _repairs(AptRepairer(), context, "fatal error: config.h: No such file or directory") == []


def test_ranking_prefers_the_direct_and_the_developers() -> None:
    missing = Missing(kind=Kind.HEADER, name="frob.h")
    lines = [
        "a-very-long-dev: /usr/include/sub/frob.h",
        "libfrob-dev: /usr/include/frob.h",
        "libfrob-arm64-cross: /usr/include/frob.h",
        "frobtools: /usr/include/frob.h",
    ]
    assert rank(missing, lines) == ["libfrob-dev", "frobtools", "a-very-long-dev"]


def test_search_patterns_are_exact() -> None:
    pattern = search_pattern(Missing(kind=Kind.COMMAND, name="g++"))
    assert re.search(pattern, "/usr/bin/g++")
    assert not re.search(pattern, "/usr/bin/g++-12")
    assert not re.search(pattern, "/usr/share/bin/g++")


def test_refused_connection_gets_the_service_with_the_credentials_of_ci(tmp_path: Path) -> None:
    compose = (
        "services:\n  db:\n    image: postgres:14\n    environment:\n"
        "      POSTGRES_USER: shop\n      POSTGRES_PASSWORD: pw\n      POSTGRES_DB: orders\n"
    )
    context = _context(tmp_path, {"docker-compose.yml": compose})
    output = 'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused'
    (repair,) = _repairs(ServiceRepairer(), context, output)
    prepared = "\n".join(repair.commands)
    assert repair.key == "service:postgres"
    assert "shop" in prepared
    assert "orders" in prepared
    assert repair.services[0].probe.target == "5432"
    assert repair.mocks[0].kind is MockKind.SERVICE


def test_credentials_that_could_reach_a_shell_are_not_used(tmp_path: Path) -> None:
    compose = 'services:\n  db:\n    image: postgres\n    environment:\n      POSTGRES_USER: "a\'; rm -rf /"\n'
    context = _context(tmp_path, {"docker-compose.yml": compose})
    (repair,) = _repairs(ServiceRepairer(), context, "could not connect to server: localhost:5432")
    assert "rm -rf" not in "\n".join(repair.commands)


def test_a_refusal_without_a_name_gets_what_compose_starts(tmp_path: Path) -> None:
    compose = "services:\n  cache:\n    image: memcached:1.6\n"
    output = "dial failed: connection refused"
    found = _repairs(ServiceRepairer(), _context(tmp_path, {"compose.yaml": compose}), output)
    assert [repair.key for repair in found] == ["service:memcached"]
    assert _repairs(ServiceRepairer(), _context(tmp_path / "other", {}), output) == []


@pytest.mark.parametrize(
    "output",
    [
        'could not translate host name "db" to address: Name or service not known',
        "Error: getaddrinfo ENOTFOUND db",
        "dial tcp: lookup db on 10.0.0.1:53: no such host",
    ],
)
def test_a_service_sought_by_its_name_in_compose_answers_to_it(tmp_path: Path, output: str) -> None:
    compose = "services:\n  db:\n    image: postgres:14\n  cache:\n    image: redis\n"
    (repair,) = _repairs(ServiceRepairer(), _context(tmp_path, {"compose.yaml": compose}), output)
    assert repair.key == "service:postgres"
    assert "echo 127.0.0.1 db >>/etc/hosts" in repair.services[0].command


@pytest.mark.parametrize("host", ["localhost", "a;rm -rf /", "a$(id)"])
def test_names_of_services_that_are_no_host_of_theirs_are_left(tmp_path: Path, host: str) -> None:
    compose = f"services:\n  '{host}':\n    image: redis\n"
    (repair,) = _repairs(
        ServiceRepairer(), _context(tmp_path, {"compose.yaml": compose}), "refused: localhost:6379\nconnection refused"
    )
    assert "/etc/hosts" not in repair.services[0].command


def test_a_suite_that_skips_all_gets_what_compose_starts(tmp_path: Path) -> None:
    context = _context(tmp_path, {"compose.yaml": "services:\n  cache:\n    image: redis\n"})
    assert _repairs(ServiceRepairer(), context, "====== 2 passed, 3 skipped in 0.1s ======") == []
    (repair,) = _repairs(ServiceRepairer(), context, "====== 3 skipped in 0.1s ======")
    assert repair.key == "service:redis"


def test_redis_by_its_address(tmp_path: Path) -> None:
    output = "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused."
    (repair,) = _repairs(ServiceRepairer(), _context(tmp_path, {}), output)
    assert (repair.key, repair.services[0].name) == ("service:redis", "redis")


def test_a_target_that_asks_a_port_gets_the_projects_server(tmp_path: Path) -> None:
    command = "curl -s http://localhost:8000/health"
    app = "from flask import Flask\napp = Flask(__name__)\n"
    context = _context(tmp_path, {"Procfile": "web: gunicorn app:app --bind :$PORT\n", "app.py": app}, command)
    found = _repairs(WebRepairer(), context, "", command=command, exit_code=7)
    commands = [repair.services[0].command for repair in found]
    assert "gunicorn app:app --bind :8000" in commands[0]
    assert any("flask --app app:app run" in text for text in commands)


def test_requests_of_documents_become_goals_where_the_server_is_known(tmp_path: Path) -> None:
    readme = "```\nflask --app app run --port 8000 &\ncurl http://localhost:8000/health\n```\n"
    context = _context(tmp_path, {"README.md": readme})
    (found,) = server_goals(context)
    assert found.goal.command == "curl --fail http://localhost:8000/health"
    assert list(start_commands(context, 8000)) == ["flask --app app run --port 8000"]
    unknown = _context(tmp_path / "other", {"README.md": "```\ncurl http://localhost:8000/health\n```\n"})
    assert list(server_goals(unknown)) == []


@pytest.mark.parametrize(
    ("started", "files", "expected"),
    [
        ("uvicorn things:app", {}, False),
        ("uvicorn things:app", {"things.py": ""}, True),
        ("gunicorn shop.web:make()", {"src/shop/web.py": ""}, True),
        ("python things/server.py", {}, False),
        ("python things/server.py", {"things/server.py": ""}, True),
    ],
)
def test_an_example_that_only_a_document_has_is_no_server(
    tmp_path: Path, started: str, files: dict[str, str], expected: bool
) -> None:
    readme = f"```\n$ {started}\n```\n\n```\n$ curl localhost:8000/things\n```\n"
    assert bool(list(server_goals(_context(tmp_path, {"README.md": readme, **files})))) is expected


def test_the_request_of_a_documents_own_example_is_for_no_other_server(tmp_path: Path) -> None:
    readme = "```\n$ pip install waitress\n$ python things.py\n```\n\n```\n$ curl localhost:8000/things\n```\n"
    files = {"README.md": readme, "bench/create.py": "from flask import Flask\napp = Flask(__name__)\n"}
    context = _context(tmp_path, files)
    assert len(list(start_commands(context, 8000))) == 1
    assert list(server_goals(context)) == []


def test_other_failures_start_no_server(tmp_path: Path) -> None:
    context = _context(tmp_path, {"Procfile": "web: gunicorn app:app\n"}, "pytest")
    assert (
        _repairs(WebRepairer(), context, "curl: (7) Failed to connect to localhost:8000", command="pip install x") == []
    )


@pytest.mark.parametrize(
    ("output", "example", "wanted"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'config.yml'", "config.example.yml", "config.yml"),
        ("Error: ENOENT: no such file or directory, open '/workspace/.env'", ".env.example", ".env"),
        ("cat: etc/app.conf: No such file or directory", "etc/app.conf.sample", "etc/app.conf"),
        ("Cannot find module './settings.json'", "conf/settings.json.dist", "conf/settings.json"),
        ("could not find config file: settings.ini", "settings.ini-dist", "settings.ini"),
    ],
)
def test_missing_file_is_copied_from_its_example(tmp_path: Path, output: str, example: str, wanted: str) -> None:
    found = _repairs(MockRepairer(), _context(tmp_path, {example: "x"}), output)
    assert [repair.key for repair in found] == [f"mock:{wanted}"]
    assert found[0].mocks[0].path == wanted
    assert f"cp -n {example} {wanted}" in found[0].commands[-1]


def test_no_example_no_mock(tmp_path: Path) -> None:
    context = _context(tmp_path, {"main.py": "", "present.yml": "", "present.example.yml": ""})
    assert _repairs(MockRepairer(), context, "No such file or directory: 'other.yml'") == []
    assert _repairs(MockRepairer(), context, "No such file or directory: 'present.yml'") == []
    assert _repairs(MockRepairer(), context, "No such file or directory: '/etc/passwd'") == []
    assert example_of(context.tree, "present.yml") == "present.example.yml"


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("KeyError: 'APP_SECRET_KEY'", "APP_SECRET_KEY"),
        ("The API_TOKEN environment variable is required", "API_TOKEN"),
        ("Error: DATABASE_URL is not set", "DATABASE_URL"),
        ("environment variable STRIPE_KEY missing", "STRIPE_KEY"),
        ("run.sh: line 3: APP_MODE: unbound variable", "APP_MODE"),
        ("1 validation error for S\ndatabase_url\n  field required (type=value_error.missing)", "DATABASE_URL"),
        ("1 validation error for S\ndatabase_url\n  Field required [type=missing, input={}]", "DATABASE_URL"),
        ("E   1 validation error for S\nE   database_url\nE     Field required [type=missing, i]", "DATABASE_URL"),
    ],
)
def test_unset_variable_is_set_and_declared(tmp_path: Path, output: str, name: str) -> None:
    (repair,) = _repairs(EnvironmentRepairer(), _context(tmp_path, {}), output)
    assert repair.env == {name: placeholder(name)}
    assert repair.mocks[0].path == name


def test_sample_values_are_preferred_to_placeholders(tmp_path: Path) -> None:
    context = _context(tmp_path, {".env.example": "# note\nexport APP_MODE='demo' # x\nEMPTY_ONE=\n"})
    (repair,) = _repairs(EnvironmentRepairer(), context, "KeyError: 'APP_MODE'")
    assert repair.env == {"APP_MODE": "demo"}


def test_lower_case_keys_are_no_variables(tmp_path: Path) -> None:
    assert _repairs(EnvironmentRepairer(), _context(tmp_path, {}), "KeyError: 'name'") == []


@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("locale.Error: unsupported locale setting", "symptom:locale"),
        ("*** Please tell me who you are.", "symptom:git-identity"),
        ("error: unused variable [-Werror=unused-variable]", "symptom:werror"),
        ("configure: error: you should not run configure as root", "symptom:root-configure"),
    ],
)
def test_symptoms(tmp_path: Path, output: str, key: str) -> None:
    found = _repairs(GenericRepairer(), _context(tmp_path, {}), output)
    assert key in [repair.key for repair in found]


def test_an_ordinary_success_needs_no_repair(tmp_path: Path) -> None:
    context = _context(tmp_path, {"a.py": ""}, "pytest")
    for repairer in all_repairers():
        assert _repairs(repairer, context, "===== 12 passed in 0.1s =====", command="pytest", exit_code=0) == []


def test_tables_name_packages_that_apt_could_have() -> None:
    table = load("apt", AptTable)
    for entries in (table.commands, table.headers, table.libraries, table.modules, table.cmake, table.words):
        for packages in entries.values():
            assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]+(?: [a-z0-9][a-z0-9+.-]+)*", packages)


def test_a_suite_that_hangs_is_given_a_limit_for_each_test(tmp_path: Path) -> None:
    context = _context(tmp_path, {"setup.py": "from setuptools import setup\nsetup(name='n')\n"}, "make check")
    provider = ScriptedProvider({})
    hung = CommandResult(
        command="make check", exit_code=124, output="test session starts", duration=400, timed_out=True, idle=True
    )
    with provider.open(SandboxSpec(image=provider.ensure_base().reference)) as sandbox:
        sandbox.set_env("PYTEST_ADDOPTS", "-v")
        (repair,) = PythonRepairer().repairs(context, hung, sandbox)
        slow = hung.model_copy(update={"idle": False})
        assert not PythonRepairer().repairs(context, slow, sandbox)
        assert not PythonRepairer().repairs(context, hung.model_copy(update={"output": ""}), sandbox)
    assert repair.env == {"PYTEST_ADDOPTS": "-v --timeout=120"}
    assert "pytest-timeout" in repair.commands[0]
