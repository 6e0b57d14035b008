"""Repositories and servers for the tests of checkouts: local, small, and each with one way to misbehave."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from autoinstall.settings import CloneSettings, Settings

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(directory: Path, *arguments: str, date: str = "2020-01-01T00:00:00+02:00") -> str:
    environment = {**_ENVIRONMENT, "GIT_AUTHOR_DATE": "2019-01-01T00:00:00Z", "GIT_COMMITTER_DATE": date}
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(directory: Path, branch: str = "trunk") -> Path:
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", branch)
    return directory


def commit(
    directory: Path, message: str, files: dict[str, str] | None = None, date: str = "2020-01-01T00:00:00Z"
) -> str:
    for name, text in (files or {"file.txt": message}).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", message, date=date)
    return git(directory, "rev-parse", "HEAD")


def settings_for(place: Path, *, mirrors: dict[str, str] | None = None, **clone: object) -> Settings:
    limits = {"timeout": 20, "stall_seconds": 10, "retries": 1, **clone}
    return Settings(
        _env_file=None,  # type: ignore[call-arg]
        cache=place / "cache",
        git_mirrors=mirrors or {},
        clone=CloneSettings.model_validate(limits),
    )


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The base URL of a server on this host, for as long as the block lasts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def answering(status: int) -> type[BaseHTTPRequestHandler]:
    """Answers every request with `status`."""

    class Handler(_Quiet):
        requests = 0

        def do_GET(self) -> None:
            type(self).requests += 1
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="r"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Handler


def hanging(released: threading.Event) -> type[BaseHTTPRequestHandler]:
    """Takes requests and never answers, until `released`."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            released.wait(60)
            self.close_connection = True

    return Handler


def files_of(directory: Path) -> type[BaseHTTPRequestHandler]:
    """git's dumb protocol: plain files."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, directory=str(directory), **options)  # type: ignore[arg-type]

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


def smart(
    root: Path, *, login: str = "", broken_posts: int = 0, old: bool = False, seen: list[str] | None = None
) -> type[BaseHTTPRequestHandler]:
    """git's own HTTP backend, which may ask for a login, break off the first transfers, or be of the old protocol."""
    expected = "Basic " + base64.b64encode(login.encode()).decode()

    class Handler(_Quiet):
        posts = 0

        def do_GET(self) -> None:
            self._backend(b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if b"command=fetch" in body:
                type(self).posts += 1
                if self.posts <= broken_posts:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/x-git-upload-pack-result")
                    self.send_header("Content-Length", "100000")
                    self.end_headers()
                    self.wfile.write(b"000dpackfile\n")
                    self.close_connection = True
                    return
            self._backend(body)

        def _backend(self, body: bytes) -> None:
            authorization = self.headers.get("Authorization") or ""
            if seen is not None:
                seen.append(authorization)
            if login and authorization != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="r"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = {
                **_ENVIRONMENT,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": "" if old else self.headers.get("Git-Protocol") or "",
                "REMOTE_ADDR": "127.0.0.1",
            }
            answer = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True
            ).stdout
            head, _, content = answer.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass
