"""The endpoint itself: a threading HTTP server that answers by a script and refuses what is not valid."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from pydantic import SecretStr

from autoinstall.settings import ModelSettings
from tests.endpoint.acts import Act, Cut, Drop, Failed, Hang, Line, Raw, Says, Trickle
from tests.endpoint.strictness import problems


@dataclass(frozen=True)
class Asked:
    """One request. Names of headers are in lower case."""

    body: dict[str, Any]
    headers: dict[str, str]
    path: str
    at: float


class Endpoint:
    """A Chat Completions endpoint on localhost, as a context manager.

    Every request is validated (`strictness.problems`): a bad one gets a 400 and fails the test when the endpoint ends.

    Args:
        script: what to answer, one line a request.
        repeat: the last line again where there are no more; otherwise further requests fail the test.
        refuses: asked before the script, and without using a line of it: an act instead, or None.
        extras: further fields of the body that are allowed.
        strict: False lets everything through.

    Attributes:
        url: for `base_url`. requests: what was asked so far. connections: made so far.
    """

    def __init__(
        self,
        *script: Line,
        repeat: bool = False,
        refuses: Callable[[dict[str, Any]], Act | None] | None = None,
        extras: Iterable[str] = (),
        strict: bool = True,
    ) -> None:
        self.requests: list[Asked] = []
        self.violations: list[str] = []
        self.connections = 0
        self._script = list(script)
        self._repeat = repeat
        self._refuses = refuses
        self._extras = tuple(extras)
        self._strict = strict
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.ended = threading.Event()
        endpoint = self

        class Bound(_Handler):
            owner = endpoint

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            for connection in self._open:
                _shut(connection)
        self._thread.join()
        if error is None and self.violations:
            raise AssertionError(f"The endpoint was sent what is not valid: {self.violations}")

    def settings(self, **changes: Any) -> ModelSettings:
        """Settings of a model here, with short waits."""
        given: dict[str, Any] = {
            "base_url": self.url,
            "api_key": SecretStr("test-key-0123456789"),
            "name": "test-model",
            "connect_seconds": 5,
            "read_seconds": 10,
            "total_seconds": 20,
        }
        return ModelSettings(**(given | changes))

    def next_act(self, asked: Asked) -> Act:
        """What to do with a request."""
        with self._lock:
            self.requests.append(asked)
            if not asked.path.endswith("/chat/completions"):
                return Failed(404, f"Unknown path {asked.path}")
            wrong = problems(asked.body, self._extras) if self._strict else []
            if wrong:
                self.violations += wrong
                return Failed(400, "; ".join(wrong), type="invalid_request_error")
            if self._refuses is not None and (refusal := self._refuses(asked.body)) is not None:
                return refusal
            if not self._script:
                self.violations.append(f"request {len(self.requests)} is not in the script")
                return Failed(400, "There is nothing more in the script.")
            line = self._script[0] if self._repeat and len(self._script) == 1 else self._script.pop(0)
        return line(asked.body) if callable(line) else line

    def opened(self, connection: socket.socket) -> None:
        """A client came."""
        with self._lock:
            self.connections += 1
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        """It went."""
        with self._lock:
            self._open.discard(connection)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the client was faster


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would hold every answer back by 40 ms
    owner: Endpoint

    def setup(self) -> None:
        super().setup()
        self.owner.opened(self.connection)

    def finish(self) -> None:
        self.owner.closed(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the test says what matters."""

    def do_POST(self) -> None:
        """One request."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        act = self.owner.next_act(Asked(body=body, headers=headers, path=self.path, at=time.monotonic()))
        try:
            self._do(act, body)
        except OSError:
            self.close_connection = True  # the client left, as many a test wants it to

    def _do(self, act: Act, body: Any) -> None:
        match act:
            case Says():
                self.owner.ended.wait(act.delay)
                self._send(200, json.dumps(act.payload(str(body.get("model")))).encode())
            case Failed():
                self._send(act.status, json.dumps(act.payload()).encode(), headers=act.headers)
            case Raw():
                self._send(act.status, act.body, act.content_type)
            case Hang():
                self._wait_for_the_end()
            case Trickle():
                self._trickle(act)
            case Drop():
                self.close_connection = True
                _shut(self.connection)
            case Cut():
                whole = json.dumps(Says("cut").payload("m")).encode()
                self._head(200, len(whole), "application/json", {})
                self.wfile.write(whole[: len(whole) // 2])
                self.close_connection = True
                _shut(self.connection)

    def _head(self, status: int, length: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(
        self, status: int, body: bytes, kind: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        self._head(status, len(body), kind, headers or {})
        self.wfile.write(body)

    def _wait_for_the_end(self) -> None:
        self.close_connection = True
        self.owner.ended.wait()

    def _trickle(self, act: Trickle) -> None:
        self.close_connection = True
        if act.part == "headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        else:
            self._head(200, 10**6, "application/json", {})
        while not self.owner.ended.wait(act.interval):
            self.wfile.write(b"x" if act.part == "headers" else b" ")
            self.wfile.flush()
