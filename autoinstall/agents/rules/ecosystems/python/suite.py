"""How the project's tests are run, and which of its test files are likely to pass anywhere."""

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pydantic import Field

from autoinstall.agents.rules.contract import Context
from autoinstall.agents.rules.ecosystems.goals import MOST_TESTS
from autoinstall.agents.rules.ecosystems.python.commands import plain_test_command, split
from autoinstall.agents.rules.ecosystems.python.environments import TestEnvironment
from autoinstall.agents.rules.ecosystems.python.knowledge import marker_plugin, option_plugin
from autoinstall.agents.rules.ecosystems.python.manifests import load_ini, load_toml
from autoinstall.agents.rules.ecosystems.python.model import SetRole
from autoinstall.agents.rules.evidence.classify import unwrap
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence, Value

LEAST_TESTS = 0.5
"""With fewer that pass a suite says little of its environment."""

_SEVERAL_TESTS, _MANY_TESTS = 12, 120
_MAX_FILES_READ = 400
_TEST_NAME = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_tests?|tests?)\.py$")
_COLLECTED = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
_TEST_DEF = re.compile(r"(?m)^\s*(?:async )?def test\w*")
_OUTSIDE = re.compile(
    r"(?m)^\s*(?:import|from)\s+(redis|psycopg\w*|pymysql|MySQLdb|pymongo|motor|kafka|aiokafka|pika|boto3?|botocore|"
    r"google\.cloud|azure|selenium|playwright|docker|testcontainers|torch|tensorflow|jax|openai|anthropic|paramiko|"
    r"kubernetes|elasticsearch|opensearchpy|cassandra|neo4j|tkinter|PyQt\w*|PySide\w*|gi|pygame|serial|ldap3?|"
    r"memcache|[\w.]+\.(?:aws|gcp|azure)|pylibmc|snowflake|sentence_transformers|transformers|pyaudio|cv2|nltk|spacy)\b"
    r"|requests\.(?:get|post)\(|urlopen\(|@pytest\.mark\.(?:integration|network|slow|online|gpu|e2e|live)"
)
_FAR = re.compile(
    r"(?i)(?:^|[/_])(?:integration|e2e|end_?to_?end|functional|acceptance|live|network|online|remote|gpu|"
    r"cuda|benchmarks?|perf|slow|browser|selenium|docker|smoke|system)(?=[/_.]|s?/)"
)
_MODEL_CLIENTS = r"openai|anthropic|cohere|mistralai|groq|litellm|replicate|google\.generativeai"
_REMOTE = re.compile(
    rf"(?m)^\s*(?:import|from)\s+(?:{_MODEL_CLIENTS}|google\.cloud|"
    r"azure|snowflake|tiktoken|huggingface_hub|tweepy|slack_sdk|telegram)\b"
    r"|(?:requests|httpx)\.(?:get|post)\(\s*f?['\"]https?://(?!localhost|127\.|test)|urlopen\(\s*['\"]https?://(?!localhost|127\.)"
    r"|@pytest\.mark\.(?:network|online|live|internet)\b"
)
"""What only somebody else's servers answer; services that a set-up can start are none of it."""

_DOWNLOADS = re.compile(r"\b(?:\w*download\w*|urlretrieve|wget\.\w+|pooch\.\w+)\(")
_FILE_OF_OTHERS = re.compile(r"['\"]https?://(?!localhost|127\.|example\.)\S+/\S+\.\w{1,8}['\"]")
_RECORDED = re.compile(r"\b(?:responses|requests_mock|respx|httpretty|vcr|aioresponses|pook|betamax|httpserver)\b")
_MODELS = re.compile(rf"(?m)^\s*(?:import|from)\s+(?:{_MODEL_CLIENTS}|ollama)\b")
_STANDS_IN = re.compile(r"(?i)\b(?:\w*mock\w*|patch|monkeypatch|fake\w*|stub\w*)\b")
_PLUGIN_MARK = re.compile(r"pytest\.mark\.(\w+)")


class TestFile(Value):
    """A test file: number of test functions, whether it seems to need something outside of the process.

    Attributes:
        remote: that is something which no set-up can start.
        fetches: it begins with a file of somebody else's server.
        lacks: it names a submodule that the checkout does not have.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    path: str
    tests: int
    outside: bool
    remote: bool = False
    fetches: bool = False
    lacks: bool = False

    @property
    def near(self) -> bool:
        """Whether it needs nothing but the code."""
        return not (self.outside or self.fetches or self.lacks)


class Suite(Value):
    """The project's tests.

    Attributes:
        runner: `pytest`, `django`, `unittest` or `script`.
        command: runs all of them.
        directory: where it runs, relative to the checkout.
        needs: distributions that running them takes, beside what the project declares.
        env: variables that the project's own test set-up sets.
        files: most promising first.
        evidence: where the command was found.
    """

    runner: str
    command: str
    directory: str = ""
    needs: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    files: tuple[TestFile, ...] = ()
    evidence: Evidence

    @property
    def fetching(self) -> float:
        """The part of the tests that begin with files of others' servers."""
        return self._part([file for file in self.files if file.fetches])

    @property
    def pass_rate(self) -> float:
        """The part of the tests to ask for: less where many call servers that nobody here can stand in for."""
        remote = self._part([file for file in self.files if file.remote or file.fetches])
        return max(LEAST_TESTS, round(MOST_TESTS * (1 - remote), 2))

    def _part(self, files: Sequence[TestFile]) -> float:
        every = sum(file.tests for file in self.files)
        return sum(file.tests for file in files) / every if every else 0.0

    def file_command(self, path: str) -> str:
        """Runs the tests of one file."""
        tool = "pytest" if self.runner == "pytest" else "unittest"
        if self.directory and path.startswith(f"{self.directory}/"):
            inner = path[len(self.directory) + 1 :]
            return f"cd {shlex.quote(self.directory)} && python -m {tool} {shlex.quote(inner)}"
        return f"python -m {tool} {shlex.quote(path)}"


def find_suite(context: Context, environments: Iterable[TestEnvironment], own: Iterable[str] = ()) -> Suite | None:
    """The project's tests; None where it has none."""
    tree = context.tree
    files = test_files(tree, own)
    base = _settings_directory(tree, files)
    ini_path, ini = pytest_settings(tree, base)
    named = _named_command(context, environments, files)
    if not files and named is None:
        return None
    text = "\n".join(tree.read(file.path) for file in files[:60])
    uses_pytest = bool(ini) or re.search(r"(?m)^\s*(?:import|from)\s+pytest\b", text) is not None
    needs = sorted(set(_plugins(ini, text, named[0] if named else "")))
    env = _environment_of(environments)
    if named is not None:
        command, evidence = named
        runner = _runner(command)
        command = _adjusted(command, files, ini) if runner == "pytest" else command
        return Suite(
            runner=runner,
            command=command,
            directory=_directory_of(command),
            needs=("pytest", *needs) if runner == "pytest" else tuple(needs),
            env=env,
            files=files,
            evidence=evidence,
        )
    if not uses_pytest and tree.has("manage.py") and "django" in text:
        return Suite(
            runner="django",
            command="python manage.py test",
            env=env,
            files=files,
            evidence=Evidence(path="manage.py", line=1, text="Django project with tests"),
        )
    if not uses_pytest and tree.has("runtests.py"):
        return Suite(
            runner="script",
            command="python runtests.py",
            env=env,
            files=files,
            evidence=Evidence(path="runtests.py", line=1, text="the project's test script"),
        )
    directories = "" if base else _directories(files)
    command = (
        f"cd {shlex.quote(base)} && python -m pytest"
        if base
        else "python -m pytest"
        if "testpaths" in ini or not directories
        else f"python -m pytest {directories}"
    )
    return Suite(
        runner="pytest",
        command=_adjusted(command, files, ini),
        directory=base,
        needs=("pytest", *needs),
        env=env,
        files=files,
        evidence=Evidence(path=ini_path, line=tree.find_line(ini_path, "pytest"), text="pytest configuration")
        if ini_path
        else Evidence(path=files[0].path, line=1, text="test file"),
    )


def _adjusted(command: str, files: Sequence[TestFile], ini: dict[str, str]) -> str:
    """The command with patterns for test files that pytest would pass over, where most are such, and without the
    directories whose names say that their tests need more than the code, where the command does not name them itself,
    nor the files that cannot even be collected.
    """
    others = [file for file in files if not _COLLECTED.search(file.path)]
    if " -o " not in command and "python_files" not in ini and len(others) * 2 > len(files):
        command += " -o 'python_files=test*.py *_test.py *_tests.py'"
    near = any(not _FAR.search(file.path) for file in files)
    if not near or " && " in command:
        return command
    far = [file.path for file in files if file.lacks]
    for file in files:
        match = _FAR.search(file.path)
        end = file.path.find("/", match.end()) if match else -1
        if end > 0:
            far.append(file.path[:end])
    words = split(command)
    ignored = [place for place in sorted(set(far)) if not any(word.startswith(place) for word in words)]
    return " ".join([command, *(f"--ignore={shlex.quote(place)}" for place in ignored[:6])])


def test_files(tree: Tree, own: Iterable[str]) -> tuple[TestFile, ...]:
    """Test files, those first that need nothing from outside (`own` packages aside) and hold several tests, but not so
    many that they take as long as a suite."""
    found: list[TestFile] = []
    itself = frozenset(own)
    asks_models = _asks_models(tree)
    absent = _absent_submodules(tree)
    for path in [path for path in tree.files if _TEST_NAME.search(path)][:_MAX_FILES_READ]:
        text = tree.read(path)
        tests = len(_TEST_DEF.findall(text))
        if tests and "/templates/" not in path and "{{" not in path and not _is_program(text):
            found.append(
                TestFile(
                    path=path,
                    tests=tests,
                    outside=_reaches_out(text, itself) or bool(_FAR.search(path)),
                    remote=not _RECORDED.search(text)
                    and bool(_REMOTE.search(text) or (asks_models and not _STANDS_IN.search(text))),
                    fetches=_fetches(text),
                    lacks=any(re.search(rf"\b{re.escape(name)}\b", text) for name in absent),
                )
            )
    return tuple(
        sorted(
            found,
            key=lambda file: (
                *(file.outside or file.lacks, file.tests > _MANY_TESTS),
                *(-min(file.tests, _SEVERAL_TESTS), file.path.count("/"), file.path),
            ),
        )
    )


def _asks_models(tree: Tree) -> bool:
    """Whether the project's own code asks models, which tests that put nothing in their place then do as well."""
    code = (path for path in tree.files if path.endswith(".py") and not _TEST_NAME.search(path))
    return any(_MODELS.search(tree.read(path)) for path in islice(code, _MAX_FILES_READ))


def _absent_submodules(tree: Tree) -> tuple[str, ...]:
    """Names of the directories of submodules that could not be had."""
    paths = re.findall(r"(?m)^\s*path\s*=\s*(\S+)\s*$", tree.read(".gitmodules"))
    return tuple(posixpath.basename(path) for path in paths if not tree.has_directory(path))


def _fetches(text: str) -> bool:
    replaced = _RECORDED.search(text) or _STANDS_IN.search(text)
    return bool(_DOWNLOADS.search(text) and _FILE_OF_OTHERS.search(text) and not replaced)


def _is_program(text: str) -> bool:
    """Whether a file named like a test is to be called with arguments, by people."""
    called = "argparse" in text and re.search(r"(?m)^if __name__ ==", text) is not None
    return called and re.search(r"(?m)^\s*(?:import|from)\s+(?:pytest|unittest)\b", text) is None


def _reaches_out(text: str, itself: frozenset[str]) -> bool:
    return any((match[1] or "").split(".")[0] not in itself for match in _OUTSIDE.finditer(text))


test_files.__test__ = False  # type: ignore[attr-defined]


def pytest_settings(tree: Tree, base: str = "") -> tuple[str, dict[str, str]]:
    """The file at `base` that pytest reads its settings from, and the settings; empty where there is none."""
    prefix = f"{base}/" if base else ""
    if tree.has(f"{prefix}pytest.ini"):
        document = load_ini(tree, f"{prefix}pytest.ini")
        return f"{prefix}pytest.ini", dict(document["pytest"]) if document.has_section("pytest") else {}
    tool = load_toml(tree, f"{prefix}pyproject.toml").get("tool", {})
    options = tool.get("pytest", {}).get("ini_options") if isinstance(tool.get("pytest"), dict) else None
    if isinstance(options, dict):
        return f"{prefix}pyproject.toml", {
            key: " ".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in options.items()
        }
    for path, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"), ("setup.cfg", "pytest")):
        document = load_ini(tree, prefix + path)
        if document.has_section(section):
            return prefix + path, dict(document[section])
    return "", {}


def _settings_directory(tree: Tree, files: Sequence[TestFile]) -> str:
    """The directory below the root that holds pytest's settings for most test files; empty for the root."""
    if pytest_settings(tree)[0]:
        return ""
    parents = Counter(
        "/".join(parts[:depth]) for file in files for parts in [file.path.split("/")] for depth in range(1, len(parts))
    )
    total = len(files)
    for directory, count in sorted(parents.items(), key=lambda item: item[0].count("/")):
        if directory.count("/") < 2 and count * 2 > total and pytest_settings(tree, directory)[0]:
            return directory
    return ""


def _directory_of(command: str) -> str:
    return command.partition(" && ")[0].removeprefix("cd ").strip("'") if " && " in command else ""


def _plugins(ini: dict[str, str], text: str, command: str) -> Iterator[str]:
    words = split(ini.get("addopts", "")) + split(command)
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word == "-p" and after and not after.startswith("no:"):
            plugin = option_plugin(after)
        else:
            plugin = option_plugin(word) if word.startswith("-") else None
        if plugin:
            yield plugin
    for key in ini:
        plugin = option_plugin(key)
        if plugin:
            yield plugin
    for mark in set(_PLUGIN_MARK.findall(text)):
        plugin = marker_plugin(mark)
        if plugin:
            yield plugin


def _named_command(
    context: Context, environments: Iterable[TestEnvironment], files: Iterable[TestFile]
) -> tuple[str, Evidence] | None:
    """The test command that the project itself uses, as one that runs in a plain environment.

    tox's and nox's come first; of those that CI and documents name, the one that covers most tests that need nothing
    from outside.
    """
    for environment in environments:
        if environment.requirements.role is not SetRole.TEST:
            continue
        for command in environment.commands:
            plain = plain_test_command(command, context.tree, environment.directory)
            if plain:
                return plain, environment.requirements.evidence
    found: list[tuple[int, str, Evidence]] = []
    for item in context.findings.by_category(Category.TEST):
        plain = plain_test_command(unwrap(item.command), context.tree, item.working_directory)
        if plain:
            found.append((_covered(plain, files), plain, item.evidence))
    best = max(found, key=lambda candidate: candidate[0], default=None)
    return (best[1], best[2]) if best else None


def _covered(command: str, files: Iterable[TestFile]) -> int:
    """Tests that need nothing from outside below the paths that the command names."""
    directory = _directory_of(command)
    places = [
        word.rstrip("/") for word in split(command) if not word.startswith("-") and ("/" in word or "test" in word)
    ]
    places = [posixpath.join(directory, place) for place in places if "pytest" not in place] or [directory]
    return sum(
        file.tests
        for file in files
        if not file.outside
        and any(not place or file.path == place or file.path.startswith(f"{place}/") for place in places)
    )


def _runner(command: str) -> str:
    if " pytest" in command:
        return "pytest"
    if "manage.py" in command or "django" in command:
        return "django"
    return "unittest" if "unittest" in command else "script"


def _directories(files: Iterable[TestFile]) -> str:
    """The top directories that hold the test files, where that says more than the whole checkout does."""
    tops = {file.path.split("/")[0] for file in files}
    named = sorted(top for top in tops if top in ("tests", "test", "testing", "unit_tests", "unittests"))
    return " ".join(named)


def _environment_of(environments: Iterable[TestEnvironment]) -> dict[str, str]:
    for environment in environments:
        if environment.requirements.role is SetRole.TEST and environment.env:
            return {
                name: _workspace_paths(value) if name == "PYTHONPATH" else value
                for name, value in environment.env.items()
                if "{" not in value
                and "$" not in value
                and not name.startswith(("COV", "PIP_", "TOX", "VIRTUAL", "UV_"))
                and name not in ("PATH", "HOME", "PYTHONWARNINGS", "LD_LIBRARY_PATH", "CFLAGS", "LDFLAGS")
            }
    return {}


def _workspace_paths(value: str) -> str:
    parts = [part for part in value.split(":") if part]
    return ":".join(
        part if part.startswith("/") and part != "/" else f"/workspace/{part.strip('/')}".rstrip("/") for part in parts
    )
