"""Fetches public web pages as bounded plain text.

A page's address comes from a model, which may have it from a stranger's README, so it is never trusted: http and https
alone, no address but the public internet's (`addresses`), the connection made to the very address that was checked, and
each redirect treated as a new address. Time, bytes and redirects are bounded.

Where the settings pass a proxy through (`pass_through.https_proxy`, `http_proxy`) pages are fetched by it; the host's
own HTTPS_PROXY is not heeded. The proxy then resolves the name for itself: it is refused here by what this host's
resolver says of it, and where this host cannot resolve it, what the proxy reaches is the proxy's own matter.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from email.message import Message
from http.client import HTTPException
from typing import NamedTuple
from urllib.parse import urljoin

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import Url, make_headers, parse_url

from autoinstall.errors import SearchFailed
from autoinstall.search.addresses import Resolver, checked_address, resolve
from autoinstall.search.text import Text, html_text, plain_text
from autoinstall.settings import Settings
from autoinstall.values import Value

MAX_PAGE_BYTES = 2 * 2**20
MAX_REDIRECTS = 5
MAX_URL_CHARACTERS = 2000

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN = frozenset({"text/plain", "text/markdown", "application/json"})
_HEADERS = {
    "User-Agent": "autoinstall (reads documentation)",
    "Accept": "text/html, text/markdown, text/plain, application/json;q=0.9",
    "Accept-Encoding": "gzip, deflate",
}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Page(Value):
    """A page, or a part of it.

    Attributes:
        url: where it was found in the end.
        text: from character `start` on.
        characters: of the whole text; `incomplete` where the page itself was longer than what is read of one.
    """

    url: str
    title: str
    text: str
    start: int
    characters: int
    incomplete: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Answer(NamedTuple):
    status: int
    content_type: str
    location: str
    body: bytes
    incomplete: bool


class PageReader:
    """Fetches pages within the settings' bounds; shared by threads.

    Args:
        resolver: how names become addresses; tests give their own.
    """

    def __init__(self, settings: Settings, resolver: Resolver = resolve) -> None:
        self._settings = settings.search
        self._pass_through = settings.pass_through
        self._resolve = resolver

    def read(self, url: str, *, start: int = 0, characters: int | None = None) -> Page:
        """A page's text from character `start` on, at most `characters` (None: the settings' `page_characters`).

        Raises:
            SearchFailed: the address is refused, or what is there is no text, or it was not had in time.
        """
        deadline = time.monotonic() + self._settings.seconds
        address = _parse(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._get(address, deadline)
            if answer.status not in _REDIRECTS:
                break
            try:
                address = _parse(urljoin(address.url, answer.location))
            except ValueError as error:
                raise SearchFailed(f"{address.url} leads to an address that is none.") from error
        else:
            raise SearchFailed(f"{url} leads on more than {MAX_REDIRECTS} times.")
        if answer.status != 200:
            raise SearchFailed(f"{address.url} answered with status {answer.status}.")
        title, text = _text(answer, address.url)
        limit = min(self._settings.page_characters, characters or self._settings.page_characters)
        return Page(
            url=address.url,
            title=title,
            text=text[start : start + limit],
            start=start,
            characters=len(text),
            incomplete=answer.incomplete,
        )

    def _get(self, url: Url, deadline: float) -> _Answer:
        try:
            with self._connection(url, deadline) as (connection, target, headers):
                connection.request("GET", target, headers=headers, preload_content=False)
                response = connection.getresponse()
                kind = response.headers.get("Content-Type", "")
                body = b""
                if response.status == 200:
                    _check_kind(url, kind)
                    body = _read(response, deadline)
                location = response.headers.get("Location", "")
                return _Answer(response.status, kind, location, body[:MAX_PAGE_BYTES], len(body) > MAX_PAGE_BYTES)
        except TimeoutError as error:
            raise SearchFailed(f"{url.url} did not answer within {self._settings.seconds:g} s.") from error
        except (urllib3.exceptions.HTTPError, HTTPException, OSError, ValueError) as error:
            if time.monotonic() >= deadline:
                raise SearchFailed(f"{url.url} did not answer within {self._settings.seconds:g} s.") from error
            raise SearchFailed(f"{url.url} cannot be fetched: {_reason(error)}.") from error

    @contextlib.contextmanager
    def _connection(self, url: Url, deadline: float) -> Iterator[tuple[HTTPConnection, str, dict[str, str]]]:
        """A connection, what to ask it for, and with which headers. It is cut off at the deadline, whatever it does."""
        secure = url.scheme == "https"
        host = (url.host or "").strip("[]")
        port = url.port or (443 if secure else 80)
        headers = {**_HEADERS, "Host": url.netloc or ""}
        target = url.request_uri
        proxy_url = self._pass_through.https_proxy if secure else self._pass_through.http_proxy
        proxy = parse_url(proxy_url) if proxy_url else None
        peer = self._peer(host, port, by_proxy=proxy is not None)
        timeout = max(0.1, deadline - time.monotonic())
        connection: HTTPConnection
        if proxy is not None:
            peer, peer_port = (proxy.host or "").strip("[]"), proxy.port or 3128
            credentials = make_headers(proxy_basic_auth=proxy.auth) if proxy.auth else {}
            if secure:
                connection = HTTPSConnection(peer, peer_port, timeout=timeout, ssl_context=self._tls())
                connection.set_tunnel(host, port, headers=credentials)
            else:
                connection = HTTPConnection(peer, peer_port, timeout=timeout)
                headers |= credentials
                target = url.url
        elif secure:
            connection = HTTPSConnection(
                peer, port, timeout=timeout, ssl_context=self._tls(), server_hostname=host, assert_hostname=host
            )
        else:
            connection = HTTPConnection(peer, port, timeout=timeout)
        # A socket's own limit is for each read, and a hostile server sends a byte a second.
        timer = threading.Timer(timeout, _cut, (connection,))
        timer.daemon = True
        timer.start()
        try:
            yield connection, target, headers
        finally:
            timer.cancel()
            connection.close()

    def _peer(self, host: str, port: int, *, by_proxy: bool) -> str:
        if host.lower() in {name.lower() for name in self._settings.allow_hosts}:
            return str(self._resolve(host, port)[0]) if not by_proxy else host
        try:
            return str(checked_address(host, port, self._resolve))
        except SearchFailed as error:
            if by_proxy and isinstance(error.__cause__, OSError):
                return host  # this host resolves nothing beyond its own network; the proxy does
            raise

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._pass_through.ca_bundle is not None:
            context.load_verify_locations(self._pass_through.ca_bundle)
        return context


def _parse(url: str) -> Url:
    """Raises SearchFailed where `url` is none that may be fetched."""
    if len(url) > MAX_URL_CHARACTERS:
        raise SearchFailed(f"The address is longer than {MAX_URL_CHARACTERS} characters.")
    try:
        parsed = parse_url(url.strip())
    except urllib3.exceptions.LocationParseError as error:
        raise SearchFailed(f"{url} is not an address.", hint="Give a full one: https://host/path") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SearchFailed(f"{url} is not an address that can be fetched.", hint="Only http and https addresses can.")
    if parsed.auth:
        raise SearchFailed("The address holds credentials.", hint="Give it without `user:password@`.")
    return parsed._replace(fragment=None)


def _check_kind(url: Url, content_type: str) -> None:
    kind = _kind(content_type)
    if kind not in _HTML | _PLAIN:
        raise SearchFailed(f"{url.url} is not text but {kind or 'of no stated kind'}.", hint="Only text can be read.")


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _charset(content_type: str) -> str:
    message = Message()
    message["Content-Type"] = content_type
    return message.get_content_charset("")


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The body, decompressed, up to one byte more than is kept of it."""
    body = bytearray()
    while len(body) <= MAX_PAGE_BYTES:
        part = response.read1(min(65536, MAX_PAGE_BYTES + 1 - len(body)), decode_content=True)
        if time.monotonic() >= deadline:
            raise TimeoutError
        if not part:
            break
        body += part
    return bytes(body)


def _text(answer: _Answer, url: str) -> Text:
    charset = _charset(answer.content_type)
    if _kind(answer.content_type) in _HTML:
        return html_text(answer.body, charset, url)
    return plain_text(answer.body, charset)


def _cut(connection: HTTPConnection) -> None:
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            # Not the TLS socket's own method, which is not made for being called by another thread.
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid, {error.verify_message}"
    if isinstance(error, HTTPException):
        return "what answers there is no web server"
    # urllib3 puts its object before the reason.
    return (str(error).partition("): ")[2] or str(error) or type(error).__name__)[:200]
