"""Which server of Prefect's a command works with."""

import fcntl
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import prefect
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from autoinstall.errors import OrchestratorUnavailable
from cli.server import prefect_api, running


class Healthy(http.server.BaseHTTPRequestHandler):
    version = prefect.__version__

    def do_GET(self) -> None:
        known = {"/api/health": b"true", "/api/admin/version": json.dumps(self.version).encode()}
        self.send_response(200 if self.path in known else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(known.get(self.path, b""))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        thread.join()


def test_a_server_that_make_up_has_started_is_used_as_long_as_it_lives(tmp_path: Path, url: str) -> None:
    assert running(tmp_path / "absent") == ""
    (tmp_path / "url").write_text(f"{url}\n")
    with (tmp_path / "server.pid").open("w") as held:
        assert running(tmp_path) == ""  # nobody holds the lock
        fcntl.flock(held, fcntl.LOCK_EX)
        assert running(tmp_path) == url
        (tmp_path / "url").write_text("http://127.0.0.1:9/api\n")
        assert running(tmp_path) == ""
        (tmp_path / "url").unlink()
        assert running(tmp_path) == ""


@pytest.mark.parametrize("wrong", ["http://127.0.0.1:9/api", "foo", "http://user:secret@127.0.0.1:9/api"])
def test_a_configured_server_that_does_not_answer_is_told_at_once(wrong: str) -> None:
    with temporary_settings({PREFECT_API_URL: wrong}), pytest.raises(OrchestratorUnavailable) as caught, prefect_api():
        pass
    assert "does not answer" in caught.value.message
    assert "PREFECT_API_URL" in caught.value.hint
    assert "secret" not in caught.value.message


def test_a_configured_server_of_another_age_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Healthy, "version", "2.20.0")
    with (
        temporary_settings({PREFECT_API_URL: url}),
        pytest.raises(OrchestratorUnavailable, match=re.escape("2.20.0")) as caught,
        prefect_api(),
    ):
        pass
    assert "one version" in caught.value.hint


def test_a_configured_server_that_answers_is_used(url: str) -> None:
    with temporary_settings({PREFECT_API_URL: url}), prefect_api():
        assert PREFECT_API_URL.value() == url
