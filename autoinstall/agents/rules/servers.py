"""The project's own servers: how they are started, and what the repository asks of them."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context, EvidenceCommand
from autoinstall.agents.rules.evidence.classify import is_refused, unwrap
from autoinstall.agents.rules.evidence.script import words
from autoinstall.agents.rules.evidence.yaml_marks import mapping
from autoinstall.tree import Tree
from autoinstall.values import Category, Goal

LOCAL_URL = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):(?P<port>\d{2,5})")
"""An address on this machine, with its port."""

_SERVER = re.compile(
    r"(?i)\b(?:runserver|uvicorn|gunicorn|hypercorn|waitress-serve|flask\s+(?:\S+\s+)*run|daphne|streamlit|http\.server"
    r"|serve|server|start|dev|listen|app\.py|main\.py|wsgi|httpd|rackup|puma)\b"
)
_FRAMEWORK = re.compile(
    r"^\s*(?P<name>\w+)\s*(?::\s*\w+\s*)?=\s*(?P<kind>Flask|FastAPI|Starlette|Sanic|Quart|Bottle|Litestar)\(",
    re.MULTILINE,
)
_LISTENS = re.compile(r"\.listen\(")
_NODE_MAINS = ("server.js", "app.js", "index.js", "src/server.js", "src/index.js", "server.mjs", "bin/www")
_APPLICATION = re.compile(r"(?P<module>[a-z_]\w*(?:\.\w+)*):\w+(?:\(\))?", re.IGNORECASE)
"""What servers of WSGI and ASGI are given."""

_PROGRAM = re.compile(r"[\w./-]+\.(?:py|[cm]?js|ts|rb|ru|php|pl)")
_BACKGROUND = re.compile(r"^nohup\s+|\s*(?:>{1,2}\s*\S+)?\s*(?:2>&1)?\s*&\s*$")
_SENDS = re.compile(r"\s(?:-X|--request|-d|--data\S*|-F|--form|-T|--upload-file|-u|--user|-o|-O|--output)\b")


def server_goals(context: Context) -> Iterator[Candidate]:
    """What CI and documents ask a local server with curl, where it is known how to start that server."""
    of_examples: dict[str, bool] = {}
    for command in context.findings.commands:
        text, path = unwrap(command.command), command.evidence.path
        match = LOCAL_URL.search(text)
        if not match and any(_programs(text)):
            of_examples[path] = not _is_here(context.tree, command)
        if not match or not text.startswith("curl ") or _SENDS.search(text) or is_refused(text):
            continue
        if (
            of_examples.get(path)
            or re.search(r"[$|<>;&]", text)
            or next(start_commands(context, int(match["port"])), None) is None
        ):
            continue
        is_strict = re.search(r"\s(?:-\w*f\w*|--fail\S*)\s", text)
        goal = Goal(
            command=text if is_strict else text.replace("curl ", "curl --fail ", 1),
            description="the project's server answers the request with at least 1 line",
            category=Category.RUN,
            evidence=command.evidence,
        )
        yield Candidate(goal=goal, weight=82)


def start_commands(context: Context, port: int) -> Iterator[str]:
    """Commands that may start the project's server, likeliest first."""
    named = [command for command in context.findings.by_category(Category.RUN) if _SERVER.search(command.command)]
    with_port = [command for command in named if str(port) in command.command]
    for command in (*with_port, *(command for command in named if command not in with_port)):
        if re.search(r"\b(?:docker|podman|curl|kubectl)\b", command.command) or not _is_here(context.tree, command):
            continue
        text = _BACKGROUND.sub("", unwrap(command.command)).replace("$PORT", str(port)).replace("${PORT}", str(port))
        yield f"cd {shlex.quote(command.working_directory)} && {text}" if command.working_directory else text
    yield from _of_node(context)
    yield from _of_python(context, port)


def _is_here(tree: Tree, command: EvidenceCommand) -> bool:
    """Whether the program that the command serves is the repository's: a document may serve its own example."""
    for word in _programs(unwrap(command.command)):
        module = _APPLICATION.fullmatch(word)
        path = module["module"].replace(".", "/") if module else word.removeprefix("./")
        inside = posixpath.normpath(posixpath.join(command.working_directory, path))
        if not (tree.first(inside, f"{inside}.py", f"src/{inside}.py") or tree.has_directory(inside)):
            return False
    return True


def _programs(text: str) -> Iterator[str]:
    return (word for word in words(text) if _APPLICATION.fullmatch(word) or _PROGRAM.fullmatch(word))


def _of_node(context: Context) -> Iterator[str]:
    tree = context.tree
    if tree.has("package.json"):
        scripts = _scripts(tree.read("package.json"))
        yield from (f"npm run {name}" for name in ("start", "serve", "dev") if name in scripts)
    for path in _NODE_MAINS:
        if tree.has(path) and (_LISTENS.search(tree.read(path)) or path == "bin/www"):
            yield f"node {path}"


def _of_python(context: Context, port: int) -> Iterator[str]:
    tree = context.tree
    if manage := next((path for path in tree.files if path.rsplit("/", 1)[-1] == "manage.py"), None):
        yield f"python {manage} migrate --noinput; exec python {manage} runserver 0.0.0.0:{port} --noreload"
    shallow = sorted((path for path in tree.files if path.endswith(".py")), key=lambda path: (path.count("/"), path))
    for path in shallow[:200]:
        text = tree.read(path)
        if not (match := _FRAMEWORK.search(text)) or "test" in path:
            continue
        directory, _, file = path.rpartition("/")
        module = file.removesuffix(".py")
        inside = f"cd {shlex.quote(directory)} && " if directory else ""
        if match["kind"] in ("FastAPI", "Starlette", "Quart", "Litestar"):
            yield f"{inside}python -m uvicorn {module}:{match['name']} --host 0.0.0.0 --port {port}"
        elif match["kind"] == "Flask":
            yield f"{inside}python -m flask --app {module}:{match['name']} run --host 0.0.0.0 --port {port}"
        if "__main__" in text:
            yield f"{inside}python {file}"


def _scripts(manifest: str) -> dict[str, object]:
    try:
        return mapping(mapping(json.loads(manifest)).get("scripts"))
    except ValueError:
        return {}
