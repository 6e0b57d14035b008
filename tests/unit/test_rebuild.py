"""Rebuilding an environment from its Dockerfile, on scripted sandboxes."""

import pytest

from autoinstall.agents.scripted import ScriptedJudge
from autoinstall.rebuild.dockerfile import dockerfile
from autoinstall.rebuild.rebuild import Rebuilt, rebuild
from autoinstall.rebuild.steps import Ran, Set
from autoinstall.sandbox.scripted import Call, Response, ScriptedProvider
from autoinstall.values import Category, Goal, Limits, Probe, Recipe, Service

GOAL = Goal(command="check", description="tells that all is well", category=Category.TEST)
STEPS = (Set(name="MODE", value="test"), Ran(command="install", succeeded=True))


def installs(call: Call) -> int:
    call.sandbox.write_file("/opt/installed", call.env.get("MODE", "").encode())
    return 0


def checks(call: Call) -> int:
    file = call.sandbox.files.get("/opt/installed")
    return 0 if file is not None and file.content == b"test" and call.env["MODE"] == "test" else 1


def rebuilt(provider: ScriptedProvider, *services: Service) -> Rebuilt:
    base = provider.ensure_base()
    recipe = Recipe(env={"MODE": "test"}, services=services)
    return rebuild(
        provider,
        dockerfile("https://example.org/o/n", "c" * 40, base.reference, STEPS, recipe),
        initial=base,
        services=services,
        goals=[GOAL],
        judge=ScriptedJudge(),
        limits=Limits(),
        seconds=60,
        owner="run",
    )


def test_an_image_that_passes_too() -> None:
    provider = ScriptedProvider({"install": installs, "check": checks})
    assert rebuilt(provider) == Rebuilt(ok=True)
    assert [provider.image_exists(made.digest) for made in provider.snapshots] == [False]


@pytest.mark.parametrize(
    ("install", "check", "said"),
    [((3, "error: no such package"), checks, "`install`: Exit code 3. error: no such package"), (installs, 1, "check")],
)
def test_one_that_does_not(install: Response, check: Response, said: str) -> None:
    provider = ScriptedProvider({"install": install, "check": check})
    result = rebuilt(provider)
    assert result.ok is False
    assert said in result.reason
    assert not any(provider.image_exists(made.digest) for made in provider.snapshots)


def test_services_that_do_not_come_up() -> None:
    service = Service(name="queue", command="queue-server", probe=Probe(kind="tcp", target="5672"))
    provider = ScriptedProvider({"install": installs, "check": checks}, not_ready={"queue"})
    result = rebuilt(provider, service)
    assert result.ok is False
    assert "queue" in result.reason
