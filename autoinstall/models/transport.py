"""One request to an endpoint through the openai package: finite in time, and silent about secrets.

The package's asynchronous client is driven from a thread of its own, since only cancellation ends a request at its
deadline whatever it hangs in: a name server, a handshake, a header or a body that trickles.
"""

import asyncio
import base64
import concurrent.futures
import json
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

import openai

from autoinstall.errors import BadInput, EndpointUnsuitable
from autoinstall.models.failures import Failure
from autoinstall.redaction import redact, without_userinfo
from autoinstall.settings import ModelSettings
from autoinstall.values import Value

LONGEST = 24 * 3600.0
"""Seconds that no deadline exceeds, whatever the settings say."""

SLICE_SECONDS = 0.5
CLOSE_SECONDS = 2.0

SHORTEST_SECRET = 4
"""Characters below which a key is a placeholder: masking it would mask half of every message."""

_KEY = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")


class Answer(Value):
    """A decoded body of a response with status 200."""

    payload: Any


class Transport:
    """The way to one endpoint. Shared by threads.

    Args:
        variable: where the endpoint's settings are, for hints.

    Raises:
        BadInput: the settings cannot be used.
        EndpointUnsuitable: there is no key where the endpoint wants one.
    """

    def __init__(self, settings: ModelSettings, variable: str) -> None:
        self._settings = settings
        key = settings.api_key.get_secret_value().strip()
        headers = {name: value.get_secret_value().strip() for name, value in settings.headers.items()}
        _check_headers(key, headers, variable)
        url, user_info = _split(settings.base_url, variable)
        self.endpoint = redact(url) or "the default endpoint"
        sent = dict(headers)
        if user_info:
            sent["Authorization"] = "Basic " + base64.b64encode(unquote(user_info).encode()).decode()
        # The environment's OpenAI account is for OpenAI's endpoint: nothing of it goes to another.
        left_out = ["OpenAI-Organization", "OpenAI-Project"] if url else []
        if url and not key and "authorization" not in map(str.lower, sent):
            left_out.append("Authorization")
        self._left_out = {name: openai.Omit() for name in left_out}
        try:
            self._client = openai.AsyncOpenAI(
                api_key=key or ("none" if url else None),
                base_url=url or None,
                default_headers=sent,
                max_retries=0,
                # A redirect would carry the headers to wherever it leads.
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            )
        except openai.OpenAIError:
            hint = f"Set {variable}__API_KEY, or {variable}__BASE_URL to an endpoint of your own."
            raise EndpointUnsuitable("The default endpoint wants an API key, and there is none.", hint=hint) from None
        found = [key, user_info, unquote(user_info), *headers.values(), self._client.api_key]
        found += [str(value).rpartition(" ")[2] for value in sent.values()]
        found += unquote(user_info).split(":", 1)[1:]
        secrets = {secret for secret in found if len(secret) >= SHORTEST_SECRET}
        self._secrets: tuple[str, ...] = tuple(sorted(secrets, key=len, reverse=True))
        self._finalize = weakref.finalize(self, _close, self._client)

    def close(self) -> None:
        """Close the connections. Idempotent; also done when nobody holds this any more."""
        self._finalize()

    def send(self, body: Mapping[str, Any], deadline: float) -> Answer | Failure:
        """Ask once. Never raises for what the endpoint or the network does.

        Args:
            deadline: by `time.monotonic()`.
        """
        future = asyncio.run_coroutine_threadsafe(self._ask(body, deadline), _loop())
        try:
            while True:
                # In slices: an exception that is raised in this thread from outside is only seen in between.
                done, _ = concurrent.futures.wait([future], SLICE_SECONDS)
                if done:
                    return future.result()
        except BaseException:  # an interrupt of the caller: the request must not go on without it
            future.cancel()
            raise

    async def _ask(self, body: Mapping[str, Any], deadline: float) -> Answer | Failure:
        left = min(LONGEST, deadline - time.monotonic())
        wait = min(left, self._settings.read_seconds)
        timeout = openai.Timeout(wait, connect=min(left, self._settings.connect_seconds))
        try:
            async with asyncio.timeout(left):
                create = self._client.chat.completions.with_raw_response.create
                # As `extra_body` it goes out as it is: the package would walk through all of a long conversation by its
                # types, which takes longer than everything else here.
                answer = await create(
                    model=body["model"], messages=[], extra_headers=self._left_out, extra_body=body, timeout=timeout
                )
            return _decoded(answer.http_response.content, answer.headers.get("content-type", ""), self.hide)
        except TimeoutError:
            return Failure(summary="the time for the whole answer ran out")
        except openai.APIStatusError as error:
            response = error.response
            return Failure.of_response(response.status_code, response.headers, response.content, self.hide)
        except openai.APITimeoutError:
            connect = f"{self._settings.connect_seconds:g} s"
            return Failure(summary=f"nothing came within {wait:.3g} s, or no connection within {connect}")
        except (openai.OpenAIError, OSError, ValueError) as error:
            causes = [str(cause) or type(cause).__name__ for cause in (error.__cause__, error) if cause is not None]
            return Failure.of_payload(0, causes[0], self.hide)

    def hide(self, text: str) -> str:
        """`text` without the endpoint's secrets: servers send keys back in their explanations."""
        return redact(text, *self._secrets)


def _decoded(content: bytes, kind: str, hide: Callable[[str], str]) -> Answer | Failure:
    try:
        return Answer(payload=json.loads(content))
    except (ValueError, RecursionError):
        start = " ".join(hide(content.decode("utf-8", "replace")).replace("\0", " ").split())[:120]
        summary = f"no JSON, but {kind or 'a body of no stated type'}: {start}"
        return Failure(status=200, summary=summary, malformed=True)


def _check_headers(key: str, headers: Mapping[str, str], variable: str) -> None:
    """What no header can carry is refused here: the HTTP library would put it into its own message, whole."""
    if key and not _KEY.fullmatch(key):
        hint = f"Set {variable}__API_KEY again; look for a line break or a quote in it."
        raise BadInput("The API key has characters that no header can carry.", hint=hint)
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            hint = f"Correct {variable}__HEADERS."
            raise BadInput(f"The header {ascii(name)[:60]} has characters that no header can carry.", hint=hint)


def _split(base_url: str, variable: str) -> tuple[str, str]:
    """The URL without its user info, and the user info: HTTP libraries log URLs."""
    if not base_url:
        return "", ""
    hint = f"Set {variable}__BASE_URL to something like http://localhost:8000/v1."
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(f"{redact(without_userinfo(base_url))} is no URL of an endpoint.", hint=hint)
    return without_userinfo(base_url), parts.netloc.rpartition("@")[0]


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """The process's loop for requests, in a thread that ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="model requests", daemon=True).start()
    return loop


def _close(client: openai.AsyncOpenAI) -> None:
    """Close the connections. Waits for it a little: this runs at the end of the process too."""
    closing = asyncio.run_coroutine_threadsafe(client.close(), _loop())
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        concurrent.futures.wait([closing], CLOSE_SECONDS)
    # Where a collector of garbage got here on the loop's own thread, the loop must not be kept from closing.
