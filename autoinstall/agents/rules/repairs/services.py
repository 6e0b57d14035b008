"""Connection refused by a well-known service → the service itself, from Debian's packages."""

import re
import shlex
from collections.abc import Sequence

from autoinstall.agents.rules.contract import Context, Repair, ServiceNeed
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.outputs.summaries import summarise, total
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import CommandResult, Mock, MockKind, Probe, ProbeKind, Service, Value

_REFUSED = re.compile(
    r"(?i)connection refused|ECONNREFUSED|could not connect|can't connect|ConnectionError|connection error"
    r"|failed to connect|Connect call failed|is the server running|AMQPConnect"
)
_UNKNOWN_HOST = re.compile(
    r"(?i)could not translate host name|name or service not known|name resolution|no such host|unknown (?:\w+ )*host"
    r"|ENOTFOUND|EAI_AGAIN|could not resolve host|nodename nor servname"
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,60}[A-Za-z0-9])?")
_USER = re.compile(r"(?i)^(?:POSTGRES|MYSQL|MARIADB|DB|DATABASE|PG|RABBITMQ_DEFAULT)_?USER(?:NAME)?$")
_PASSWORD = re.compile(r"(?i)^(?:POSTGRES|MYSQL|MARIADB|MYSQL_ROOT|MARIADB_ROOT|DB|DATABASE|PG)_?PASS(?:WORD)?$")
_DATABASE = re.compile(
    r"(?i)^(?:POSTGRES_DB|MYSQL_DATABASE|MARIADB_DATABASE|DB_NAME|DATABASE_NAME|PGDATABASE|DB_DATABASE)$"
)
_DSN = re.compile(
    r"\b(?P<scheme>postgres(?:ql)?|mysql|mariadb)(?:\+\w+)?://(?P<user>\w+)(?::(?P<password>[\w-]*))?@[^/\s'\"]+/(?P<db>\w+)"
)
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class KnownService(Value):
    """One entry of the table. `probe` is the port that answers when it is ready."""

    name: str
    ports: tuple[int, ...]
    images: tuple[str, ...]
    messages: tuple[str, ...]
    packages: str
    prepare: tuple[str, ...]
    command: str
    probe: int
    user: str = ""
    password: str = ""
    database: str = ""


class ServiceTable(Value):
    """The form of `services.toml`."""

    services: tuple[KnownService, ...]


class ServiceRepairer:
    """Installs and starts the service that a client was refused by, with the credentials that the evidence names."""

    name = "services"

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        del sandbox
        services = context.findings.services
        needed: list[KnownService] = []
        if _REFUSED.search(failure.output):
            # A refusal that names nothing known is most likely by what CI or compose starts beside the project.
            needed = named_services(failure.output) or needed_services(services)
        elif _UNKNOWN_HOST.search(failure.output):
            sought = [need for need in services if re.search(rf"\b{re.escape(need.host or '-')}\b", failure.output)]
            needed = needed_services(sought)
        elif (counts := total(summarise(failure.output))) and counts.skipped and not counts.ran:
            needed = needed_services(services)  # tests that skip themselves where their service is missing
        return [service_repair(context, known) for known in needed]


def named_services(output: str) -> list[KnownService]:
    """The known services that the output's messages name."""
    table = load("services", ServiceTable).services
    return [known for known in table if any(re.search(pattern, output) for pattern in known.messages)]


def service_repair(context: Context, known: KnownService) -> Repair:
    """The remedy that installs, prepares and starts `known`."""
    values = credentials(context, known)
    prepare = tuple(_fill(command, values) for command in known.prepare)
    # A package's own start-up is held back: the start script is what starts the service.
    install = (
        "printf 'exit 101' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && "
        f"{{ {apt_install(known.packages)}; }}"
    )
    command = "".join(map(_named, hosts_of(context, known))) + _fill(known.command, values)
    return Repair(
        key=f"service:{known.name}",
        why=f"A client was refused by {known.name}; a local one is installed and started.",
        commands=(install, "rm -f /usr/sbin/policy-rc.d", *prepare),
        services=(
            Service(
                name=known.name,
                command=f"bash -c {shlex.quote(command)}",
                probe=Probe(kind=ProbeKind.TCP, target=str(known.probe)),
            ),
        ),
        mocks=(
            Mock(kind=MockKind.SERVICE, path=known.name, reason="A local, empty service stands in for the real one."),
        ),
        lesson=f"needs a {known.name} service",
    )


def hosts_of(context: Context, known: KnownService) -> tuple[str, ...]:
    """The names that CI and compose give the service: what is set up for them reaches it by those."""
    hosts = (need.host for need in context.findings.services if need.image in known.images)
    return tuple(dict.fromkeys(host for host in hosts if _HOST.fullmatch(host) and host != "localhost"))


def _named(host: str) -> str:
    """Shell that makes this container answer to `host`; its hosts file is written anew at every start."""
    return f"grep -qw {host} /etc/hosts || echo 127.0.0.1 {host} >>/etc/hosts; "


def credentials(context: Context, known: KnownService) -> dict[str, str]:
    """User, password and database: of CI and compose services, of variables, of addresses in files, of the table."""
    values = {"user": known.user, "password": known.password, "database": known.database}
    needs = [need for need in context.findings.services if need.image in known.images]
    sources = [need.env for need in needs] + [context.findings.env]
    for env in sources:
        found = _from_env(env, known)
        if found:
            values.update(found)
            break
    else:
        values.update(_from_addresses(context, known))
    return {name: value for name, value in values.items() if _SAFE.fullmatch(value)} | {
        name: getattr(known, name) for name, value in values.items() if not _SAFE.fullmatch(value)
    }


def needed_services(needs: Sequence[ServiceNeed]) -> list[KnownService]:
    """The known services among those that CI or compose starts."""
    table = load("services", ServiceTable).services
    return [known for known in table if any(need.image in known.images for need in needs)]


def _from_env(env: dict[str, str], known: KnownService) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in env.items():
        if (match := _DSN.search(value)) and match["scheme"].startswith(known.name[:5]):
            return {"user": match["user"], "password": match["password"] or known.password, "database": match["db"]}
        for key, pattern in (("user", _USER), ("password", _PASSWORD), ("database", _DATABASE)):
            if pattern.match(name):
                found[key] = value
    return found


def _from_addresses(context: Context, known: KnownService) -> dict[str, str]:
    samples = [
        path
        for path in context.tree.files
        if re.search(r"(?i)(?:^|/)(?:\.env[\w.]*|conftest\.py|settings\w*\.py|tox\.ini)$", path)
    ]
    for path in samples[:20]:
        match = _DSN.search(context.tree.read(path))
        if match and match["scheme"].startswith(known.name[:5]):
            return {"user": match["user"], "password": match["password"] or known.password, "database": match["db"]}
    return {}


def _fill(command: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        command = command.replace(f"{{{name}}}", value)
    return command
