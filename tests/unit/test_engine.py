"""Finding the engine, and telling whether it has room."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from autoinstall.errors import DiskFull, EngineUnavailable
from autoinstall.sandbox import engine
from autoinstall.settings import EngineSettings, Settings


class _Engine(BaseHTTPRequestHandler):
    """Answers the two questions that are put before anything else."""

    protocol_version = "HTTP/1.1"  # connections stay open, as with a real engine
    answers: ClassVar[dict[str, str]] = {"/version": '{"ApiVersion": "1.41", "Version": "20.10"}'}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        body = self.answers.get(self.path.removeprefix("/v1.41"), '{"DockerRootDir": "/nowhere"}').encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"

    def log_request(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def listening(path: Path) -> Iterator[str]:
    with ThreadingUnixStreamServer(str(path), _Engine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown()
            thread.join()


def settings(tmp_path: Path, host: str = "") -> Settings:
    return Settings(data=tmp_path / "data", cache=tmp_path / "cache", engine=EngineSettings(host=host))


def test_connects_to_the_socket_of_the_settings(tmp_path: Path) -> None:
    with listening(tmp_path / "s") as url, closing(engine.connect(settings(tmp_path, url))) as client:
        assert client.api.api_version == "1.41"


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_ca_variables_of_the_process_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, str(tmp_path / "absent.pem"))
    with listening(tmp_path / "s") as url, closing(engine.connect(settings(tmp_path, url))) as client:
        assert client.version()["Version"] == "20.10"


def test_proxies_of_the_process_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with listening(tmp_path / "s") as url, closing(engine.connect(settings(tmp_path, url))) as client:
        assert client.version()["Version"] == "20.10"


def test_docker_host_is_used_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(tmp_path / "s") as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        engine.connect(settings(tmp_path)).close()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/absent")
        with pytest.raises(EngineUnavailable, match="absent"):
            engine.connect(settings(tmp_path))


def test_settings_outrank_docker_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/absent")
    with listening(tmp_path / "s") as url:
        engine.connect(settings(tmp_path, url)).close()


def test_rootless_podman_is_found(tmp_path: Path) -> None:
    (tmp_path / "podman").mkdir()
    (tmp_path / "podman/podman.sock").touch()
    found = engine._endpoints(settings(tmp_path), {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert f"unix://{tmp_path}/podman/podman.sock" in [endpoint.url for endpoint in found]


def test_none_there_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_endpoints", lambda settings, environ: [])
    with pytest.raises(EngineUnavailable) as caught:
        engine.connect(settings(tmp_path))
    assert "make engine" in caught.value.hint


def test_socket_that_nobody_listens_on(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    with pytest.raises(EngineUnavailable, match="Connection refused"):
        engine.connect(settings(tmp_path, f"unix://{tmp_path}/dead"))


def test_denied_socket_says_how_to_be_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(engine, "_open", denied)
    with pytest.raises(EngineUnavailable) as caught:
        engine.connect(settings(tmp_path, "unix:///var/run/docker.sock"))
    assert "group" in caught.value.hint


def test_something_that_is_no_url(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable):
        engine.connect(settings(tmp_path, "carrier-pigeon://loft"))


def client_with_root(root: str) -> Any:
    return SimpleNamespace(
        info=lambda: {"DockerRootDir": root}, api=SimpleNamespace(base_url="http+docker://localhost")
    )


def test_enough_room(tmp_path: Path) -> None:
    engine.check_disk(client_with_root(str(tmp_path)), settings(tmp_path), needed_mb=1)


def test_too_little_room_names_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def usage(path: os.PathLike[str]) -> SimpleNamespace:
        return SimpleNamespace(free=(1 if Path(path) == tmp_path / "engine" else 10_000) * 2**20)

    (tmp_path / "engine").mkdir()
    monkeypatch.setattr(engine.shutil, "disk_usage", usage)
    with pytest.raises(DiskFull, match="engine has 1 MiB"):
        engine.check_disk(client_with_root(str(tmp_path / "engine")), settings(tmp_path))


def test_room_of_an_engine_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    assert engine.data_root(client_with_root("/var/lib/docker-that-is-elsewhere")) is None
    remote = SimpleNamespace(info=lambda: {"DockerRootDir": "/"}, api=SimpleNamespace(base_url="https://build:2376"))
    assert engine.data_root(remote) is None  # type: ignore[arg-type]
