"""A web server on this machine, of which each path is a function of its own."""

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Handler = Callable[[BaseHTTPRequestHandler], None]


def answer(body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str) -> Handler:
    """A handler that always says the same."""
    content = body.encode() if isinstance(body, str) else body

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return handle


@contextlib.contextmanager
def serve(paths: Mapping[str, Handler], tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[str]]]:
    """The port, and the paths with hosts that were asked for (`host path`), as they come."""
    asked: list[str] = []

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers['Host']} {self.path}")
            with contextlib.suppress(OSError):
                paths.get(self.path.partition("?")[0], answer("none", status=404))(self)

        def log_message(self, *arguments: object) -> None:
            pass

    class _Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: object) -> None:
            pass  # a client that went away is what some tests are about

    server = _Server(("127.0.0.1", 0), _Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
