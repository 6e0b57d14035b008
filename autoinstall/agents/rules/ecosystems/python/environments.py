"""Test environments that tox and nox describe: what they install, run and set."""

import ast
import configparser
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from autoinstall.agents.rules.ecosystems.python.manifests import load_ini, load_toml, role_of
from autoinstall.agents.rules.ecosystems.python.model import RequirementSet, SetRole
from autoinstall.agents.rules.ecosystems.python.requirements import Parsed, parse_lines
from autoinstall.tree import Tree
from autoinstall.values import Evidence, Value

_DEFAULT = "testenv"
_PLAIN_WORD = r"py[\d.]*|tests?|unit|unittests?|pytest|testing|cov|coverage|ci|check|run|all|session|nox"
_FACTOR_LINE = re.compile(r"^\s*(?P<factors>[!\w.{},-]+)\s*:\s+(?P<rest>.+)$")
_SUBSTITUTION = re.compile(r"\{(?:\[(?P<section>[^\]]+)\](?P<key>\w+)|(?P<name>\w*)(?::(?P<rest>[^{}]*))?)\}")


class TestEnvironment(Value):
    """One environment of tox or one session of nox.

    Attributes:
        requirements: what it installs beside the project.
        extras: of the project, that it installs.
        groups: dependency groups that it installs.
        commands: as far as they can be told, in the checkout's terms (`python -m pytest tests`).
        env: variables that it sets.
        directory: where its commands run, relative to the checkout.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    name: str
    requirements: RequirementSet
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    directory: str = ""


def test_environments(tree: Tree) -> tuple[TestEnvironment, ...]:
    """All environments, those for tests first."""
    found = [*_tox(tree), *_nox(tree)]
    order = (SetRole.TEST, SetRole.DEV)
    return tuple(sorted(found, key=lambda item: item.requirements.role not in order))


test_environments.__test__ = False  # type: ignore[attr-defined]


def tox_pythons(tree: Tree) -> list[str]:
    """Minor versions that tox's list of environments names."""
    text = "\n".join((tree.read("tox.ini"), tree.read("setup.cfg") if "tox:tox" in tree.read("setup.cfg") else ""))
    listed = re.search(r"(?ms)^envlist\s*=(.*?)(?=^\S|\Z)", text)
    return [f"{match[1]}.{match[2]}" for match in re.finditer(r"py\{?([23])[.]?(\d{1,2})", listed[1])] if listed else []


def _tox(tree: Tree) -> Iterator[TestEnvironment]:
    for path in ("tox.ini", "setup.cfg"):
        document = load_ini(tree, path)
        if path == "setup.cfg" and not document.has_section("tox:tox"):
            continue
        yield from _ini_environments(tree, document, path)
    tool = load_toml(tree, "pyproject.toml").get("tool", {})
    tox = tool.get("tox", {}) if isinstance(tool, dict) else {}
    legacy = tox.get("legacy_tox_ini") if isinstance(tox, dict) else None
    if isinstance(legacy, str):
        document = configparser.RawConfigParser(strict=False, interpolation=None)
        try:
            document.read_string(legacy)
        except configparser.Error:
            return
        yield from _ini_environments(tree, document, "pyproject.toml")
    elif isinstance(tox, dict) and tox:
        yield from _toml_environments(tree, tox, "pyproject.toml")
    if tree.has("tox.toml"):
        yield from _toml_environments(tree, load_toml(tree, "tox.toml"), "tox.toml")


def _ini_environments(tree: Tree, document: configparser.RawConfigParser, path: str) -> Iterator[TestEnvironment]:
    for section in document.sections():
        if section != _DEFAULT and not section.startswith((f"{_DEFAULT}:", "testenv ")):
            continue
        name = section.partition(":")[2] or _DEFAULT
        values = dict(document[_DEFAULT]) if document.has_section(_DEFAULT) else {}
        values |= dict(document[section])
        lines = {
            key: list(_ini_lines(document, values.get(key, ""), name))
            for key in (
                "deps",
                "extras",
                "commands",
                "setenv",
                "set_env",
                "changedir",
                "change_dir",
                "dependency_groups",
            )
        }
        env = dict(_assignments([*lines["setenv"], *lines["set_env"]]))
        directory = next(iter([*lines["changedir"], *lines["change_dir"]]), "").strip("/.")
        yield TestEnvironment(
            name=name,
            requirements=_requirements(tree, name, _split_deps(lines["deps"]), path, f"[{section}]"),
            extras=_words(lines["extras"]),
            groups=_words(lines["dependency_groups"]),
            commands=_joined(lines["commands"]),
            env=env,
            directory=directory if tree.has_directory(directory) else "",
        )


def _ini_lines(document: configparser.RawConfigParser, text: str, name: str, depth: int = 0) -> Iterator[str]:
    for raw in text.splitlines():
        line = re.sub(r"\s+#.*$", "", raw).strip()
        if not line or line.startswith("#"):
            continue
        factor = _FACTOR_LINE.match(line)
        if factor and "://" not in factor[0] and not re.match(r"^\w:\\", line):
            if not _factors_match(factor["factors"], name):
                continue
            line = factor["rest"]
        reference = re.fullmatch(r"\{\[([^\]]+)\](\w+)\}", line)
        if reference:
            if depth < 6:
                yield from _ini_lines(document, document.get(reference[1], reference[2], fallback=""), name, depth + 1)
            continue
        yield _substitute(line, document)


def _factors_match(expression: str, name: str) -> bool:
    """Whether a conditional line counts: its factors are in the environment's name, or are plain interpreters."""
    own = set(name.split("-"))
    for alternative in re.split(r",(?![^{]*\})", expression):
        words = re.sub(r"[{}]", "", alternative).split("-")
        if all(
            (word.startswith("!") and word[1:] not in own)
            or word in own
            or (
                name == _DEFAULT and re.fullmatch(r"py(3|3\d+)?|cov|coverage|tests?|unit|pytest|linux|latest|dev", word)
            )
            for word in words
        ):
            return True
    return False


def _substitute(line: str, document: configparser.RawConfigParser) -> str:
    def value(match: re.Match[str]) -> str:
        if match["section"]:
            text = document.get(match["section"], match["key"], fallback="")
            return " ".join(part.strip() for part in text.splitlines() if part.strip())
        name, rest = match["name"] or "", match["rest"] or ""
        if name == "posargs":
            return rest
        if name == "env":
            return rest.partition(":")[2]
        plain = {
            "toxinidir": "/",
            "tox_root": "/",
            "envpython": "python",
            "envname": "py",
            "envtmpdir": "/tmp",  # noqa: S108  a path inside the sandbox
            "env_tmp_dir": "/tmp",  # noqa: S108
            "envsitepackagesdir": "",
            "env_site_packages_dir": "",
            "package_root": "/",
        }
        return plain.get(name, "")

    for _ in range(3):
        line = _SUBSTITUTION.sub(value, line)
    return re.sub(r"(?<![\w:/])//?(?=[\w.])", "", line) if "://" not in line else line


def _toml_environments(tree: Tree, document: Mapping[str, Any], path: str) -> Iterator[TestEnvironment]:
    base = document.get("env_run_base", {})
    environments = {_DEFAULT: base, **document.get("env", {})}
    for name, own in environments.items():
        values = {**base, **own} if isinstance(own, dict) else base
        commands = [_toml_command(command) for command in values.get("commands", []) if isinstance(command, list)]
        env = {
            key: item for key, item in values.get("set_env", {}).items() if isinstance(item, str) and "{" not in item
        }
        deps = [item for item in values.get("deps", []) if isinstance(item, str)]
        yield TestEnvironment(
            name=name,
            requirements=_requirements(tree, name, deps, path, f"env.{name}"),
            extras=tuple(item for item in values.get("extras", []) if isinstance(item, str)),
            groups=tuple(item for item in values.get("dependency_groups", []) if isinstance(item, str)),
            commands=tuple(command for command in commands if command),
            env=env,
        )


def _toml_command(parts: list[Any]) -> str:
    words: list[str] = []
    for part in parts:
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, dict) and part.get("replace") == "posargs":
            words += [item for item in part.get("default", []) if isinstance(item, str)]
    return shlex.join(words)


def _nox(tree: Tree) -> Iterator[TestEnvironment]:
    path = "noxfile.py"
    try:
        module = ast.parse(tree.read(path))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in module.body:
        if not isinstance(node, ast.FunctionDef) or not any("session" in ast.unparse(d) for d in node.decorator_list):
            continue
        installs: list[str] = []
        extras: list[str] = []
        groups: list[str] = []
        commands: list[str] = []
        for call in (item for item in ast.walk(node) if isinstance(item, ast.Call)):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            words = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            if method in ("install", "run_install", "run_always"):
                groups += [word.partition("=")[2] for word in words if word.startswith(("--group=", "--only-group="))]
                groups += [
                    after
                    for word, after in itertools.pairwise(words)
                    if word in ("--group", "--with", "--only") and after != "main"
                ]
                extras += [
                    name.strip()
                    for word in words
                    if (found := re.match(r"^\.\[(.+)\]$", word))
                    for name in found[1].split(",")
                ]
                if method == "install" or "pip" in words:
                    installs += _pip_arguments(words[words.index("install") :] if "install" in words else words)
            elif method == "run" and words:
                commands.append(shlex.join(words))
        evidence_line = f"def {node.name}("
        yield TestEnvironment(
            name=node.name,
            requirements=_requirements(tree, node.name, installs, path, evidence_line),
            extras=tuple(extras),
            groups=tuple(groups),
            commands=tuple(commands),
        )


def _pip_arguments(words: list[str]) -> list[str]:
    """Install arguments as requirement lines: `-r file` and `-e .` joined, other options left out."""
    return list(install_lines(shlex.join(words)))


def install_lines(arguments: str) -> Iterator[str]:
    """Requirement lines of the arguments of a `pip install`."""
    try:
        words = shlex.split(arguments, comments=True)
    except ValueError:
        return
    index = 0
    while index < len(words):
        word = words[index]
        if word in ("&&", "||", ";", "|", ">"):
            return
        if re.fullmatch(r"-[A-Za-z]*r", word):
            word = "-r"
        if word in ("-r", "--requirement", "-e", "--editable", "-c", "--constraint") and index + 1 < len(words):
            yield f"{word} {words[index + 1]}"
            index += 1
        elif word in ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target", "--prefix"):
            index += 1
        elif (
            not word.startswith("-")
            and word not in ("install", "sync", "uv", "pip")
            and not re.search(r"[$|&{}<>]$|[$|&{}]|^matrix\.", word)
        ) or (word.startswith("-r") and len(word) > 2 and not word.startswith("--")):
            yield word
        index += 1


def _requirements(tree: Tree, name: str, lines: list[str], path: str, needle: str) -> RequirementSet:
    parsed: Parsed = parse_lines(lines, tree, "", seen=set())
    # Variants (`py39-oldest`, `mypy-tests`, `docs-ci`) are for what they add; only the plain ones are the tests.
    plain = name == _DEFAULT or all(re.fullmatch(_PLAIN_WORD, word) for word in re.split(r"[-_]", name))
    return RequirementSet(
        name=f"{path} {name}",
        role=SetRole.TEST if plain else role_of(name, SetRole.EXTRA) if not _has_test_word(name) else SetRole.EXTRA,
        requirements=tuple(dict.fromkeys(parsed.requirements)),
        paths=tuple(parsed.paths),
        dropped=tuple(parsed.dropped),
        evidence=Evidence(path=path, line=tree.find_line(path, needle), text=f"environment {name}"),
    )


def _has_test_word(name: str) -> bool:
    return role_of(name, SetRole.EXTRA) is SetRole.TEST


def _split_deps(lines: list[str]) -> list[str]:
    return [line for line in lines if line]


def _words(lines: list[str]) -> tuple[str, ...]:
    return tuple(word for line in lines for word in re.split(r"[\s,]+", line) if re.fullmatch(r"[\w.-]+", word))


def _assignments(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, separator, value = line.partition("=")
        if separator and re.fullmatch(r"\w+", name.strip()):
            yield name.strip(), value.strip().strip("'\"")


def _joined(lines: list[str]) -> tuple[str, ...]:
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1][:-1].rstrip() + " " + line.strip()
        else:
            joined.append(line.strip())
    return tuple(re.sub(r"^-\s+", "", line).strip() for line in joined if line)
