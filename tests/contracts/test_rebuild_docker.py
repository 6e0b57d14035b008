"""Dockerfiles of attempts, built by the engine's own builder and by the product."""

import io
import tarfile
from pathlib import Path

import docker
import pytest

from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.rebuild.dockerfile import dockerfile
from autoinstall.rebuild.rebuild import Rebuilt, rebuild
from autoinstall.rebuild.steps import StepRecorder
from autoinstall.sandbox.contract import SandboxSpec, Snapshot
from autoinstall.sandbox.docker import DockerProvider
from autoinstall.values import Category, Goal, Limits, Probe, Service
from tests.conftest import committed, written

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FETCH = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8123/page.txt').read().decode(), end='')"
WEB = Service(
    name="web", command="exec python3 -m http.server 8123", probe=Probe(kind="http", target="localhost:8123/page.txt")
)
CHECK = 'cat said owner served page.txt && echo "$MODE" && stat -c %U owner && test -x tool && bash lines'
GOAL = Goal(
    command=CHECK,
    description='prints "nobody", then "a page" twice',
    category=Category.RUN,
)


def set_up(sandbox: StepRecorder) -> None:
    sandbox.set_env("MODE", 'a "b" $c')
    sandbox.run("chmod 777 . && cat page.txt")
    sandbox.run('echo "it\'s \\$HOME" > said')
    sandbox.run("id -un > owner", user="nobody")
    sandbox.run("touch half && exit 3")
    sandbox.write_file("tool", b"\0binary", executable=True)
    sandbox.run("cat > lines <<'END'\nset -e\ntest -e half\nEND")
    sandbox.start_service(WEB)
    sandbox.run(f'python3 -c "{FETCH}" > served')


def test_the_engines_builder_and_ours_make_the_same(provider: DockerProvider, base: Snapshot, tmp_path: Path) -> None:
    source = committed(written(tmp_path, {"page.txt": "a page\n", ".dockerignore": "*\n"}))
    initial = provider.build_workspace_image(base.digest, source, labels={})
    with provider.open(SandboxSpec(image=initial.digest, purpose="attempt-1")) as sandbox:
        recorder = StepRecorder(sandbox)
        set_up(recorder)
        recipe = sandbox.recipe
    text = dockerfile("https://example.org/o/n", source.commit, base.digest, recorder.steps, recipe)

    result = rebuild(
        provider, text, initial=initial, services=recipe.services, goals=[GOAL], judge=RulesJudge(), limits=Limits(),
        seconds=120, owner="",
    )  # fmt: skip
    assert result == Rebuilt(ok=True), text

    client = docker.from_env()
    image, _ = client.images.build(fileobj=context(text, tmp_path), custom_context=True, rm=True)
    try:
        said = client.containers.run(image.id, ["bash", "-c", f'{CHECK} && python3 -c "{FETCH}"'], remove=True)
    finally:
        client.images.remove(image.id, force=True)
    assert said.decode().splitlines() == ["it's $HOME", "nobody", "a page", "a page", 'a "b" $c', "nobody", "a page"]


def context(text: str, checkout: Path) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text.encode())
        tar.addfile(entry, io.BytesIO(text.encode()))
        tar.add(checkout, "workspace")
    buffer.seek(0)
    return buffer
