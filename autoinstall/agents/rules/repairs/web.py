"""A target that asks a local port where nobody listens → the project's own server, started as a service."""

import re
import shlex
from collections.abc import Iterator, Sequence

from autoinstall.agents.rules.contract import Context, Repair
from autoinstall.agents.rules.evidence.classify import unwrap
from autoinstall.agents.rules.evidence.yaml_marks import mapping
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Category, CommandResult, Probe, ProbeKind, Service

_URL = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):(?P<port>\d{2,5})")
_REFUSED = re.compile(r"(?i)connection refused|failed to connect|couldn't connect|ECONNREFUSED|curl: \((?:7|52|56)\)")
_SERVER = re.compile(
    r"(?i)\b(?:runserver|uvicorn|gunicorn|hypercorn|waitress-serve|flask\s+(?:\S+\s+)*run|daphne|streamlit|http\.server|serve|server|start|dev"
    r"|listen|app\.py|main\.py|wsgi|httpd|rackup|puma)\b"
)
_FLASK = re.compile(
    r"^\s*(?P<name>\w+)\s*(?::\s*\w+\s*)?=\s*(?P<kind>Flask|FastAPI|Starlette|Sanic|Quart|Bottle|Litestar)\(",
    re.MULTILINE,
)
_NODE_MAIN = re.compile(r"\.listen\(")
MAX_COMMANDS = 6


class WebRepairer:
    """Starts what should answer on the port that the target asks."""

    name = "web"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        del sandbox
        match = _URL.search(failure.command) or _URL.search(failure.output)
        asked = any(failure.command == goal.command for goal in context.targets)
        if not match or not asked or not _REFUSED.search(failure.output + _silent_curl(failure)):
            return ()
        port = int(match["port"])
        commands = dict.fromkeys(start_commands(context, port))
        return [_repair(command, port) for command in list(commands)[:MAX_COMMANDS]]


def start_commands(context: Context, port: int) -> Iterator[str]:
    """Commands that may start the project's server, likeliest first."""
    named = [command for command in context.findings.by_category(Category.RUN) if _SERVER.search(command.command)]
    with_port = [command for command in named if str(port) in command.command]
    for command in (*with_port, *named):
        if re.search(r"\b(?:docker|podman|curl|kubectl)\b", command.command):
            continue
        text = unwrap(command.command).replace("$PORT", str(port)).replace("${PORT}", str(port))
        yield f"cd {shlex.quote(command.working_directory)} && {text}" if command.working_directory else text
    yield from _of_node(context)
    yield from _of_python(context, port)


def _of_node(context: Context) -> Iterator[str]:
    tree = context.tree
    if tree.has("package.json"):
        scripts = _scripts(tree.read("package.json"))
        yield from (f"npm run {name}" for name in ("start", "serve", "dev") if name in scripts)
    for path in ("server.js", "app.js", "index.js", "src/server.js", "src/index.js", "server.mjs", "bin/www"):
        if tree.has(path) and (_NODE_MAIN.search(tree.read(path)) or path == "bin/www"):
            yield f"node {path}"


def _of_python(context: Context, port: int) -> Iterator[str]:
    tree = context.tree
    if manage := next((path for path in tree.files if path.rsplit("/", 1)[-1] == "manage.py"), None):
        yield f"python {manage} migrate --noinput; exec python {manage} runserver 0.0.0.0:{port} --noreload"
    shallow = sorted((path for path in tree.files if path.endswith(".py")), key=lambda path: (path.count("/"), path))
    for path in shallow[:200]:
        text = tree.read(path)
        if not (match := _FLASK.search(text)) or "test" in path:
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
    import json

    try:
        return mapping(mapping(json.loads(manifest)).get("scripts"))
    except ValueError:
        return {}


def _silent_curl(failure: CommandResult) -> str:
    """`curl -s` says nothing; its exit code does."""
    return "connection refused" if "curl" in failure.command and failure.exit_code in (7, 52, 56) else ""


def _repair(command: str, port: int) -> Repair:
    shell = f"export PORT={port}; {command}"
    return Repair(
        key=f"web:{port}:{command}",
        why=f"Nothing listens on port {port}; the project's own server is started.",
        services=(
            Service(
                name=f"web-{port}",
                command=f"bash -c {shlex.quote(shell)}",
                probe=Probe(kind=ProbeKind.TCP, target=str(port), timeout=45),
            ),
        ),
        lesson=f"`{command}` serves port {port}",
    )
