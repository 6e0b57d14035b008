"""Which server of Prefect's a command works with."""

import fcntl
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.server import running


class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/api/health" else 404)
        self.end_headers()

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
