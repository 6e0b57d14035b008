"""Real services: a database, a cache, an S3 stand-in and a queue, in the environment itself and beside it."""

from collections.abc import Iterator

import docker
import pytest

from autoinstall.sandbox.contract import Sandbox, SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.values import Probe, ProbeKind, Recipe, Service, Sidecar

pytestmark = [pytest.mark.docker, pytest.mark.slow]

PACKAGES = "postgresql redis-server beanstalkd"

POSTGRES = Service(
    name="postgres",
    command="cd /var/lib/postgresql/*/main && exec /usr/lib/postgresql/*/bin/postgres -D . "
    "-c config_file=$(echo /etc/postgresql/*/main/postgresql.conf)",
    probe=Probe(kind=ProbeKind.COMMAND, target="pg_isready -q -h localhost"),
    user="postgres",
)
REDIS = Service(
    name="redis",
    command="exec redis-server --bind 127.0.0.1 --dir /var/lib/redis --appendonly yes --pidfile /tmp/redis.pid",
    probe=Probe(kind=ProbeKind.TCP, target="6379"),
    user="redis",
)
# What this one holds is gone with its process, so its command puts the bucket there each time.
S3 = Service(
    name="s3",
    command="(until curl -sf -X PUT http://localhost:5000/uploads; do sleep 0.2; done) & "
    "exec /opt/moto/bin/moto_server -H 127.0.0.1 -p 5000",
    probe=Probe(kind=ProbeKind.COMMAND, target="curl -sf http://localhost:5000/uploads"),
)
QUEUE = Service(
    name="queue",
    command="exec beanstalkd -l 127.0.0.1 -p 11300 -b /var/lib/beanstalkd -f 0",
    probe=Probe(kind=ProbeKind.TCP, target="localhost:11300"),
    user="beanstalkd",
)
SERVICES = (POSTGRES, REDIS, S3, QUEUE)

ROW = "runuser -u postgres -- psql -tAc 'SELECT name FROM users' app"
KEY = "redis-cli get greeting"
OBJECT = "curl -sf http://localhost:5000/uploads/"
JOB = r"exec 3<>/dev/tcp/localhost/11300; printf 'peek-ready\r\nquit\r\n' >&3; cat <&3"


def done(sandbox: Sandbox, command: str, *, timeout: float = 60) -> str:
    result = sandbox.run(command, timeout=timeout)
    assert result.exit_code == 0, f"{command}\n{result.output[-3000:]}"
    return result.output


@pytest.fixture(scope="module")
def programs(provider: DockerProvider, base: Snapshot) -> Iterator[Snapshot]:
    """The base with the servers' programs, none of them running."""
    with provider.open(SandboxSpec(image=base.digest, purpose="test")) as sandbox:
        install = f"apt-get install -qy --no-install-recommends {PACKAGES}"
        done(
            sandbox,
            f"({install} || (apt-get update -q && {install})) >/tmp/log 2>&1 || (cat /tmp/log; exit 1)",
            timeout=400,
        )
        done(
            sandbox,
            "uv venv -q /opt/moto && uv pip install -q --python /opt/moto 'moto[s3]' flask flask-cors",
            timeout=200,
        )
        snapshot = sandbox.snapshot()
    yield snapshot
    provider.remove_image(snapshot.reference)


def write(sandbox: Sandbox) -> None:
    """Something into each service."""
    statements = "CREATE TABLE users (name text); INSERT INTO users VALUES ($$a mock user$$)"
    done(sandbox, f"runuser -u postgres -- createdb app && runuser -u postgres -- psql -qc '{statements}' app")
    done(sandbox, "redis-cli set greeting hello")
    done(sandbox, "curl -sf -X PUT -d 'a file' http://localhost:5000/uploads/notes.txt")
    done(sandbox, r"exec 3<>/dev/tcp/localhost/11300; printf 'put 1 0 60 5\r\na job\r\nquit\r\n' >&3; cat <&3")


@pytest.fixture(scope="module")
def environment(provider: DockerProvider, programs: Snapshot) -> Iterator[tuple[Snapshot, Recipe]]:
    """An environment whose services ran, were written to, and then died without putting anything in order."""
    with provider.open(SandboxSpec(image=programs.digest, purpose="test")) as sandbox:
        for service in SERVICES:
            sandbox.start_service(service)
        write(sandbox)
        assert done(sandbox, ROW) == "a mock user\n"
        assert "a job" in done(sandbox, JOB)
        recipe = sandbox.recipe
        done(
            sandbox,
            "sync; pkill -9 postgres; pkill -9 redis-server; pkill -9 beanstalkd; pkill -9 moto_server; sleep 0.5",
        )
        done(sandbox, "test -s /var/lib/postgresql/*/main/postmaster.pid && test -s /tmp/redis.pid")
        snapshot = sandbox.snapshot()
    yield snapshot, recipe
    provider.remove_image(snapshot.reference)


def test_services_are_ready_in_a_fresh_container_with_what_they_kept(
    provider: DockerProvider, environment: tuple[Snapshot, Recipe]
) -> None:
    snapshot, recipe = environment
    assert recipe.services == SERVICES
    with provider.open(SandboxSpec(image=snapshot.digest, recipe=recipe, purpose="test")) as fresh:
        # In files before, and so there again; the S3 stand-in keeps nothing, and its command made the bucket anew.
        assert done(fresh, ROW) == "a mock user\n"
        assert done(fresh, KEY) == "hello\n"
        assert "a job" in done(fresh, JOB)
        assert "<Name>uploads</Name>" in done(fresh, OBJECT)
        assert "notes.txt" not in done(fresh, OBJECT)

        # Each service says what it has to say in a file of its own, of this start alone.
        assert "ready to accept connections" in done(fresh, "cat /var/log/autoinstall/postgres.log")
        assert "Ready to accept connections" in done(fresh, "cat /var/log/autoinstall/redis.log")
        assert "Running on http://127.0.0.1:5000" in done(fresh, "cat /var/log/autoinstall/s3.log")
        assert done(fresh, "ls /var/log/autoinstall").split() == ["postgres.log", "queue.log", "redis.log", "s3.log"]
        owners = done(fresh, "ps -o user:20= -p $(pgrep -o postgres) -p $(pgrep redis-server) -p $(pgrep beanstalkd)")
        assert sorted(owners.split()) == ["beanstalkd", "postgres", "redis"]

        # What dies stays dead until the start script is run again.
        done(fresh, "pkill -9 redis-server; sleep 3")
        assert fresh.run("redis-cli ping").exit_code != 0
        assert done(fresh, ROW) == "a mock user\n"
        before = done(fresh, "pgrep -o postgres")
        done(fresh, "/opt/autoinstall/start.sh")
        assert done(fresh, KEY) == "hello\n"
        assert done(fresh, "pgrep -o postgres") == before, "one that runs was started again"


def test_the_image_alone_starts_its_services(environment: tuple[Snapshot, Recipe], engine: docker.DockerClient) -> None:
    """As a trainer has it, who has no more than the image."""
    output = engine.containers.run(environment[0].digest, ["bash", "-c", f"{ROW}; {KEY}; {OBJECT}"], remove=True)
    assert b"a mock user\nhello\n<?xml" in output


def test_a_sidecar_is_reached_by_its_alias_and_ends_with_the_environment(
    provider: DockerProvider, programs: Snapshot, base: Snapshot, engine: docker.DockerClient
) -> None:
    sidecar = Sidecar(
        alias="cache",
        image=programs.digest,
        command=("redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"),
        ports=(6379,),
        probe=Probe(kind=ProbeKind.TCP, target="cache:6379", timeout=30),
    )
    ask = r"exec 3<>/dev/tcp/cache/6379; printf 'PING\r\nQUIT\r\n' >&3; cat <&3"
    with provider.open(SandboxSpec(image=base.digest, purpose="test")) as sandbox:
        sandbox.start_sidecar(sidecar)
        assert "+PONG" in done(sandbox, ask)
        recipe, name = sandbox.recipe, sandbox.id
    provider.settle()
    assert not engine.containers.list(all=True, filters={"name": name})
    assert not engine.networks.list(filters={"name": name})
    with provider.open(SandboxSpec(image=base.digest, recipe=recipe, purpose="test")) as fresh:
        assert "+PONG" in done(fresh, ask)
        assert fresh.recipe.sidecars == (sidecar,)
