"""Commands, services, variables and versions that CI configurations name."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from autoinstall.agents.rules.contract import EvidenceCommand, Findings, ServiceNeed, Source
from autoinstall.agents.rules.evidence.classify import classify
from autoinstall.agents.rules.evidence.script import split_script
from autoinstall.agents.rules.evidence.yaml_marks import line_of, mapping, read_yaml, sequence
from autoinstall.tree import Tree
from autoinstall.values import Evidence

MAX_COMBINATIONS = 4
"""Matrix combinations of one job that are read: the rest repeat them with other versions."""

_MATRIX = re.compile(r"\$\{\{\s*matrix\.([\w.-]+)\s*\}\}")
_OTHER_SYSTEMS = re.compile(r"(?i)windows|macos|osx|freebsd")
_SECRET = re.compile(r"(?i)token|password_?file|secret|\$\{\{|\$\(")
_SETUP_ACTIONS = {f"actions/setup-{tool}": tool for tool in ("python", "node", "go", "java")}
_VERSION_KEYS = {f"{tool}-version": tool for tool in _SETUP_ACTIONS.values()}


def read_ci(tree: Tree) -> Findings:
    """Everything that the CI files of the root say; GitHub Actions first, since it is the one most kept up."""
    parts = [_github(tree, path) for path in tree.match(".github/workflows/*.y*ml")]
    parts.extend(_travis(tree, path) for path in (".travis.yml",) if tree.has(path))
    parts.extend(_gitlab(tree, path) for path in (".gitlab-ci.yml",) if tree.has(path))
    parts.extend(_generic(tree, path) for path in tree.match(".circleci/config.y*ml"))
    parts.extend(
        _generic(tree, path)
        for path in (".cirrus.yml", "azure-pipelines.yml", ".azure-pipelines.yml", ".builds/debian.yml", "tests.yml")
        if tree.has(path)
    )
    return merge(parts)


def merge(parts: list[Findings]) -> Findings:
    """One `Findings` of several, earlier ones first and stronger."""
    env: dict[str, str] = {}
    versions: dict[str, tuple[str, ...]] = {}
    for part in parts:
        env = {**part.env, **env}
        for tool, found in part.versions.items():
            versions[tool] = tuple(dict.fromkeys((*versions.get(tool, ()), *found)))
    return Findings(
        commands=tuple(itertools.chain.from_iterable(part.commands for part in parts)),
        requirements=tuple(itertools.chain.from_iterable(part.requirements for part in parts)),
        services=tuple(itertools.chain.from_iterable(part.services for part in parts)),
        env=env,
        versions=versions,
    )


def script_commands(
    script: Any, path: str, section: str, *, directory: str = "", env: Mapping[str, str] | None = None
) -> Iterator[EvidenceCommand]:
    """The commands of one script scalar, with their lines."""
    first = line_of(script)
    for line in split_script(str(script)):
        where = "/".join(part for part in (directory, line.directory) if part)
        yield EvidenceCommand(
            command=line.command,
            source=Source.CI,
            category=classify(line.command),
            evidence=Evidence(path=path, line=first + line.offset if first else 0, text=line.command[:300]),
            section=section,
            working_directory=where,
            env={**(env or {}), **line.env},
        )


def _github(tree: Tree, path: str) -> Findings:
    document = mapping(read_yaml(tree, path))
    parts: list[Findings] = []
    for job_name, raw in mapping(document.get("jobs")).items():
        job = mapping(raw)
        if _OTHER_SYSTEMS.search(str(job.get("runs-on", ""))) and "ubuntu" not in str(job.get("runs-on", "")):
            continue
        job_env = plain_env(document.get("env")) | plain_env(job.get("env"))
        services = tuple(_services(job.get("services"), path))
        for combination in combinations(mapping(mapping(job.get("strategy")).get("matrix"))):
            commands: list[EvidenceCommand] = []
            versions: dict[str, tuple[str, ...]] = {}
            for raw_step in sequence(job.get("steps")):
                step = mapping(raw_step)
                action = str(step.get("uses", "")).split("@")[0]
                if action in _SETUP_ACTIONS:
                    for key, tool in _VERSION_KEYS.items():
                        found = [fill(str(item), combination) for item in sequence(mapping(step.get("with")).get(key))]
                        found = [version for item in found for version in item.split() if "$" not in version]
                        if found:
                            versions[tool] = (*versions.get(tool, ()), *found)
                script = step.get("run")
                if not isinstance(script, str) or _only_elsewhere(step):
                    continue
                directory = str(step.get("working-directory", "")).strip("./")
                section = f"{job_name}: {step.get('name', 'run')}"
                env = {key: fill(value, combination) for key, value in (job_env | plain_env(step.get("env"))).items()}
                for command in script_commands(script, path, section, directory=directory, env=env):
                    filled = fill(command.command, combination)
                    commands.append(command.model_copy(update={"command": filled, "category": classify(filled)}))
            parts.append(Findings(commands=tuple(commands), services=services, env=job_env, versions=versions))
    return merge(parts)


def combinations(matrix: Mapping[str, Any]) -> list[dict[str, str]]:
    """Up to `MAX_COMBINATIONS` of a job's matrix, flat (`a.b` for a mapping's members), Linux ones only.

    The first and the last value of each axis come first: the last is usually the newest version."""
    axes = {key: _ends(sequence(value)) for key, value in matrix.items() if key not in ("include", "exclude")}
    axes = {key: values for key, values in axes.items() if values}
    found: list[dict[str, str]] = []
    for values in itertools.product(*axes.values()):
        flat: dict[str, str] = {}
        for key, value in zip(axes, values, strict=True):
            flat.update(_flat(key, value))
        found.append(flat)
    includes = [item for item in sequence(matrix.get("include")) if isinstance(item, dict)]
    extra = [
        {key: text for name, value in item.items() for key, text in _flat(name, value).items()} for item in includes
    ]
    found = extra if not axes else [*found, *extra]
    linux = [item for item in found if not any(_OTHER_SYSTEMS.search(value) for value in item.values())]
    return (linux or [{}])[:MAX_COMBINATIONS]


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with `${{ matrix.x }}` replaced where x is known."""
    return _MATRIX.sub(lambda match: values.get(match[1], match[0]), text)


def plain_env(value: Any) -> dict[str, str]:
    """The variables of an `env:` mapping whose values are literal and no secrets."""
    return {
        str(name): str(text)
        for name, text in mapping(value).items()
        if isinstance(text, str) and not (_SECRET.search(text) and "matrix" not in text) and re.fullmatch(r"\w+", name)
    }


def _ends(values: list[Any]) -> list[Any]:
    return values[-1:] + values[:1] if len(values) > 1 else values


def _flat(key: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {f"{key}.{name}": str(text) for name, text in value.items() if isinstance(text, str)}
    return {key: str(value)} if isinstance(value, str) else {}


def _only_elsewhere(step: Mapping[str, Any]) -> bool:
    condition = str(step.get("if", ""))
    elsewhere = re.search(r"(?i)==\s*'(windows|macos|osx)|startsWith\([^)]*'(windows|macos)", condition)
    return bool(elsewhere) or str(step.get("shell", "")) in ("pwsh", "powershell", "cmd")


def _services(value: Any, path: str) -> Iterator[ServiceNeed]:
    for name, raw in mapping(value).items():
        service = mapping(raw)
        image = str(service.get("image", name))
        ports = [
            int(match) for port in sequence(service.get("ports")) for match in re.findall(r"(\d+)(?:/\w+)?$", port)
        ]
        yield ServiceNeed(
            image=bare_image(image),
            host=str(name),
            ports=tuple(ports),
            env=plain_env(service.get("env")),
            evidence=Evidence(path=path, line=line_of(service.get("image")), text=image[:200]),
        )


def bare_image(reference: str) -> str:
    """`docker.io/library/postgres:15@sha256:…` → `postgres`."""
    return reference.split("@", maxsplit=1)[0].rsplit("/", 1)[-1].split(":", maxsplit=1)[0]


def _travis(tree: Tree, path: str) -> Findings:
    document = mapping(read_yaml(tree, path))
    commands: list[EvidenceCommand] = []
    for key in ("before_install", "install", "before_script", "script"):
        for script in sequence(document.get(key)):
            commands.extend(script_commands(script, path, key))
    packages = sequence(mapping(mapping(document.get("addons")).get("apt")).get("packages"))
    if packages:
        names = " ".join(str(name) for name in packages)
        line = line_of(packages[0])
        commands.extend(
            item.model_copy(update={"evidence": Evidence(path=path, line=line, text=names[:300])})
            for item in script_commands(f"apt-get install {names}", path, "addons")
        )
    services = tuple(
        ServiceNeed(image=str(name), evidence=Evidence(path=path, line=line_of(name), text=str(name)))
        for name in sequence(document.get("services"))
        if name != "docker"
    )
    versions = {
        tool: tuple(str(version) for version in sequence(document.get(key)))
        for key, tool in (("python", "python"), ("node_js", "node"), ("go", "go"), ("jdk", "java"))
        if document.get(key)
    }
    return Findings(commands=tuple(commands), services=services, versions=versions)


def _gitlab(tree: Tree, path: str) -> Findings:
    document = mapping(read_yaml(tree, path))
    commands: list[EvidenceCommand] = []
    services: list[ServiceNeed] = []
    for job_name, raw in document.items():
        job = mapping(raw)
        for key in ("before_script", "script"):
            for script in sequence(job.get(key)):
                commands.extend(script_commands(script, path, job_name))
        for item in sequence(job.get("services")):
            image = str(mapping(item).get("name", item if isinstance(item, str) else ""))
            host = str(mapping(item).get("alias", bare_image(image)))
            services.append(ServiceNeed(image=bare_image(image), host=host, evidence=Evidence(path=path, text=image)))
    return Findings(commands=tuple(commands), services=tuple(services), env=plain_env(document.get("variables")))


def _generic(tree: Tree, path: str) -> Findings:
    """Any other CI file: every `run`, `script`, `command` or `tasks` scalar, wherever it stands."""
    commands: list[EvidenceCommand] = []

    def walk(value: Any, section: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if re.fullmatch(r"run|script|command|bash|\w*_script|tests?|build|tasks", key):
                    for script in sequence(item):
                        if isinstance(script, str):
                            commands.extend(script_commands(script, path, section))
                walk(item, key if isinstance(item, dict) else section)
        elif isinstance(value, list):
            for item in value:
                walk(item, section)

    walk(read_yaml(tree, path), "")
    return Findings(commands=tuple(commands))
