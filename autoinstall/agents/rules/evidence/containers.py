"""What Dockerfiles, compose files, devcontainers and Procfiles say."""

import json
import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import EvidenceCommand, Findings, ServiceNeed, Source
from autoinstall.agents.rules.evidence.ci import bare_image, merge, plain_env
from autoinstall.agents.rules.evidence.classify import classify
from autoinstall.agents.rules.evidence.script import split_script
from autoinstall.agents.rules.evidence.yaml_marks import line_of, mapping, read_yaml, sequence
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence

_INSTRUCTION = re.compile(r"^(?P<name>RUN|CMD|ENTRYPOINT|ENV|FROM)\s+(?P<rest>.*)$", re.IGNORECASE)
_RUN_OPTIONS = re.compile(r"^(?:--\w+=\S+\s+)+")
_FROM = re.compile(r"(?:^|/)(python|node|golang):v?(\d[\d.]*)")


def read_containers(tree: Tree) -> Findings:
    dockerfiles = [path for path in tree.files if re.match(r"^(?:[\w.-]+/){0,2}(?:\w+\.)?Dockerfile(?:\.\w+)?$", path)]
    composes = (
        tree.match("docker-compose*.y*ml") + tree.match("compose*.y*ml") + tree.match(".devcontainer/*compose*.y*ml")
    )
    parts = [_dockerfile(tree, path) for path in dockerfiles]
    parts.extend(_compose(tree, path) for path in composes)
    parts.extend(_devcontainer(tree, path) for path in tree.match(".devcontainer/devcontainer.json"))
    if tree.has("Procfile"):
        parts.append(_procfile(tree))
    return merge(parts)


def _dockerfile(tree: Tree, path: str) -> Findings:
    commands: list[EvidenceCommand] = []
    env: dict[str, str] = {}
    versions: dict[str, tuple[str, ...]] = {}
    for number, line in _joined(tree, path):
        match = _INSTRUCTION.match(line.strip())
        if not match:
            continue
        name, rest = match["name"].upper(), match["rest"].strip()
        if name == "FROM" and (image := _FROM.search(rest.split()[0] if rest.split() else "")):
            tool = "go" if image[1] == "golang" else image[1]
            versions[tool] = (*versions.get(tool, ()), image[2])
        elif name == "ENV":
            env.update(dict(re.findall(r"(\w+)=(\"[^\"]*\"|\S+)", rest)))
        elif name == "RUN":
            commands.extend(_script(_RUN_OPTIONS.sub("", rest), path, number, "RUN"))
        elif name in ("CMD", "ENTRYPOINT"):
            commands.extend(_script(_exec_form(rest), path, number, name, category=Category.RUN))
    env = {key: value.strip('"') for key, value in env.items() if "$" not in value}
    return Findings(commands=tuple(commands), env=env, versions=versions)


def _joined(tree: Tree, path: str) -> Iterator[tuple[int, str]]:
    """Instructions with their continuation lines and without the comments between these."""
    held = ""
    start = 0
    for number, line in tree.lines(path):
        if line.strip().startswith("#"):
            continue
        start = start if held else number
        held += line.rstrip().removesuffix("\\") + " "
        if not line.rstrip().endswith("\\"):
            yield start, held
            held = ""


def _exec_form(text: str) -> str:
    try:
        items = json.loads(text)
    except ValueError:
        return text
    return " ".join(str(item) for item in items) if isinstance(items, list) else text


def _script(
    script: str,
    path: str,
    line: int,
    section: str,
    *,
    source: Source = Source.CONTAINER,
    category: Category | None = None,
) -> Iterator[EvidenceCommand]:
    for part in split_script(script):
        yield EvidenceCommand(
            command=part.command,
            source=source,
            category=category or classify(part.command),
            evidence=Evidence(path=path, line=line, text=part.command[:300]),
            section=section,
            working_directory=part.directory,
            env=part.env,
        )


def _compose(tree: Tree, path: str) -> Findings:
    services: list[ServiceNeed] = []
    for name, raw in mapping(mapping(read_yaml(tree, path)).get("services")).items():
        service = mapping(raw)
        image = service.get("image")
        if not isinstance(image, str):
            continue
        environment = service.get("environment")
        if isinstance(environment, list):
            environment = dict(str(item).split("=", 1) for item in environment if "=" in str(item))
        ports = [
            int(found) for port in sequence(service.get("ports")) for found in re.findall(r"(\d+)(?:/\w+)?$", str(port))
        ]
        services.append(
            ServiceNeed(
                image=bare_image(image),
                host=str(name),
                ports=tuple(ports),
                env=plain_env(environment),
                evidence=Evidence(path=path, line=line_of(image), text=image[:200]),
            )
        )
    return Findings(services=tuple(services))


def _devcontainer(tree: Tree, path: str) -> Findings:
    text = re.sub(r"^\s*//.*$", "", tree.read(path), flags=re.MULTILINE)
    try:
        document = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    except ValueError:
        return Findings()
    commands: list[EvidenceCommand] = []
    for key in ("onCreateCommand", "updateContentCommand", "postCreateCommand"):
        value = mapping(document).get(key)
        script = " ".join(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else value
        if isinstance(script, str):
            commands.extend(_script(script, path, tree.find_line(path, key), key))
    return Findings(commands=tuple(commands))


def _procfile(tree: Tree) -> Findings:
    commands: list[EvidenceCommand] = []
    for number, line in tree.lines("Procfile"):
        if match := re.match(r"^(\w[\w-]*):\s*(\S.*)$", line):
            commands.extend(
                _script(match[2], "Procfile", number, match[1], source=Source.PROCESS, category=Category.RUN)
            )
    return Findings(commands=tuple(commands))
