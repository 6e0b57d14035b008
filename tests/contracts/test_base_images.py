"""The default base on a real engine: what it has, what it must not have, and that it is made once."""

import time
from collections.abc import Callable, Iterator

import docker
import pytest

from autoinstall.errors import ImageUnavailable
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.engine import check_disk, connect
from autoinstall.sandbox.images import ensure_base, present_base
from autoinstall.settings import Settings

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1800)]

Run = Callable[[str], str]


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = connect(Settings())
    yield client
    client.close()


@pytest.fixture(scope="module")
def base(client: docker.DockerClient) -> Snapshot:
    return ensure_base(client, Settings(), "default")


@pytest.fixture(scope="module")
def run(client: docker.DockerClient, base: Snapshot) -> Iterator[Run]:
    """Runs a command in a container of the base that has no network."""
    container = client.containers.run(
        base.digest, ["sleep", "600"], detach=True, network_mode="none", labels={"autoinstall.test": "images"}
    )

    def execute(command: str) -> str:
        code, output = container.exec_run(["bash", "-c", command])
        text = str(output.decode())
        assert code == 0, f"{command}: {text}"
        return text

    yield execute
    container.remove(force=True, v=True)


def test_second_call_finds_it_at_once(client: docker.DockerClient, base: Snapshot) -> None:
    started = time.monotonic()
    assert ensure_base(client, Settings(), "bookworm").digest == base.digest
    assert time.monotonic() - started < 10
    assert present_base(client, Settings(), "default") == base
    assert base.digest.startswith("sha256:")


def test_digest_is_a_reference_to_it(client: docker.DockerClient, base: Snapshot) -> None:
    assert ensure_base(client, Settings(), base.digest).digest == base.digest


def test_size(base: Snapshot) -> None:
    assert base.size_bytes < 1.5 * 2**30 or "interpreters" in base.reference


@pytest.mark.parametrize(
    "command",
    [
        "git config --system init.defaultBranch | grep main && git lfs version",
        "git init -q /tmp/x && cd /tmp/x && git commit -q --allow-empty -m x && git describe --always",
        "python --version | grep 'Python 3.11' && python3 -m venv /tmp/venv && /tmp/venv/bin/pip --version",
        "test ! -e /usr/lib/python3.11/EXTERNALLY-MANAGED",
        "uv --version && uv venv -q /tmp/uv",
        "node --version | grep ^v22 && npm --version && pnpm --version && yarn --version | grep ^1.22",
        "test -e /usr/local/include/node/node_api.h",
        "cc --version && c++ --version && make --version && cmake --version && ninja --version && meson --version",
        "curl --version && wget --version && jq --version && rg --version && unzip -v && file --version && lsof -v",
        "id -u dev | grep -x 1000 && su dev -c 'sudo -n id -u' | grep -x 0",
        'test -d /workspace && test "$(pwd)" = /workspace && locale | grep LANG=C.UTF-8',
        "apt-cache policy libgdal-dev | grep -i candidate",
    ],
)
def test_what_it_has(run: Run, command: str) -> None:
    run(command)


def test_apt_file_answers_offline(run: Run) -> None:
    assert "libleptonica-dev:" in run("apt-file search leptonica/allheaders.h")


def test_nothing_of_the_build_stays(client: docker.DockerClient, run: Run, base: Snapshot) -> None:
    run("test ! -e /build")
    image = client.images.get(base.digest)
    text = str(image.history()) + str(image.attrs["Config"])
    for name in ("ca.pem", "SSL_CERT", "PIP_CERT", "PIP_INDEX_URL", "NPM_REGISTRY", "proxy"):
        assert name.lower() not in text.lower()
    bundle = Settings().pass_through.ca_bundle
    if bundle is not None:
        assert run("cat /etc/ssl/certs/ca-certificates.crt") != bundle.read_text()
        assert run("env | grep -ciE 'cert|proxy' || true").strip() == "0"


def test_reference_that_nobody_has(client: docker.DockerClient) -> None:
    with pytest.raises(ImageUnavailable):
        ensure_base(client, Settings(), "localhost:9/absent/image:1")


def test_there_is_room(client: docker.DockerClient) -> None:
    check_disk(client, Settings())
