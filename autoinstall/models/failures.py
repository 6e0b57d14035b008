"""What went wrong with one request, and what follows from it."""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from autoinstall.errors import (
    AutoinstallError,
    ContextExhausted,
    EndpointUnsuitable,
    ModelUnavailable,
    QuotaExhausted,
)
from autoinstall.models.quirks import quirks, said
from autoinstall.models.retries import retry_after
from autoinstall.values import Value

SUMMARY_CHARACTERS = 300
TEXT_CHARACTERS = 4000
"""Of what an endpoint said: in messages, and to search for patterns in."""


class Kind(StrEnum):
    """What follows from a failure."""

    RETRY = "retry"
    MALFORMED = "malformed"
    QUOTA = "quota"
    CONTEXT = "context"
    REFUSED = "refused"


class Failure(Value):
    """One failed request.

    Attributes:
        status: of HTTP; 0 where there was no answer at all.
        summary: a short form for people. text: everything that was said, for patterns.
        param: the parameter that the endpoint names, where it names one.
        wait: seconds that it asks to wait.
        malformed: it answered, but with something that is no answer.
        retry: what the endpoint says of trying again; None where it says nothing.
    """

    status: int = 0
    summary: str
    text: str = ""
    param: str = ""
    wait: float | None = None
    malformed: bool = False
    retry: bool | None = None

    @classmethod
    def of_response(cls, status: int, headers: Mapping[str, str], body: bytes, hide: Callable[[str], str]) -> "Failure":
        """From an HTTP error, whatever form its body has. `hide` takes secrets out of a text."""
        try:
            payload: object = json.loads(body)
        except (ValueError, RecursionError):
            payload = body.decode("utf-8", "replace")
        hint = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
        return cls.of_payload(status, payload, hide).model_copy(update={"wait": retry_after(headers), "retry": hint})

    @classmethod
    def of_payload(cls, status: int, payload: object, hide: Callable[[str], str]) -> "Failure":
        """From a decoded body, be it OpenAI's form, Ollama's, FastAPI's or some other."""
        error: object = payload
        if isinstance(payload, dict):
            error = payload.get("error") or payload.get("detail") or payload
        fields: dict[Any, Any] = error if isinstance(error, dict) else {}
        text = _clean(hide(" ".join(_words(error))))
        message = fields.get("message")
        summary = _clean(hide(message)) if isinstance(message, str) and message else text
        param = fields.get("param")
        return cls(
            status=status,
            summary=" ".join(summary.split())[:SUMMARY_CHARACTERS] or "no explanation",
            text=text[:TEXT_CHARACTERS],
            param=_clean(hide(param))[:80] if isinstance(param, str) else "",
        )


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _words(value: object, depth: int = 0) -> Iterator[str]:
    """All text in a decoded JSON value; the names of fields are part of what FastAPI says of an extra one."""
    if isinstance(value, dict) and depth < 8:
        for part in value.values():
            yield from _words(part, depth + 1)
    elif isinstance(value, list) and depth < 8:
        for part in value:
            yield from _words(part, depth + 1)
    elif value is not None:
        yield str(value)


def kind_of(failure: Failure) -> Kind:
    """What follows from a failure; quota before rate limits, since both may be a 429."""
    table = quirks()
    if failure.malformed:
        return Kind.MALFORMED
    if failure.status == 402 or (
        failure.status >= 400 and said(table.quota, failure.text) and not said(table.quota_unless, failure.text)
    ):
        return Kind.QUOTA
    if failure.status >= 400 and said(table.context, failure.text):
        return Kind.CONTEXT
    if hint_of(failure, "") and failure.status not in (408, 429, 502, 503, 504):
        return Kind.REFUSED
    if failure.retry is not None and failure.status not in (401, 403):
        return Kind.RETRY if failure.retry else Kind.REFUSED
    passing = failure.status in (0, 408, 409, 425, 429) or (failure.status >= 500 and failure.status != 501)
    return Kind.RETRY if passing or said(table.passing, failure.text) else Kind.REFUSED


def is_filtered(failure: Failure) -> bool:
    """Whether the endpoint refuses what was asked, by rules about contents."""
    return 400 <= failure.status < 500 and said(quirks().filtered, failure.text) is not None


def hint_of(failure: Failure, variable: str) -> str:
    """What the table of unsuitable endpoints says of it; empty where it is not in the table."""
    for row in quirks().unsuitable:
        if said((row.pattern,), failure.text or failure.summary):
            return row.hint.format(variable=variable)
    return ""


def error_of(failure: Failure, kind: Kind, endpoint: str, variable: str, tries: int) -> AutoinstallError:
    """The product's error for a failure that nothing more is done about.

    Args:
        endpoint: how to call it in messages. variable: where its settings are, `AUTOINSTALL_MODEL`.
    """
    answered = f"{endpoint} answered with {failure.status}" if failure.status else f"{endpoint} gave no answer"
    message = f"{answered}: {failure.summary}"
    if kind is Kind.QUOTA:
        return QuotaExhausted(message, hint=f"Top up the account behind {variable}__API_KEY, or raise its limit.")
    if kind is Kind.CONTEXT:
        return ContextExhausted(message, hint=f"{variable}__CONTEXT_TOKENS says what the endpoint takes.")
    if kind is Kind.RETRY:
        count = f" after {tries} tries" if tries > 1 else ""
        hint = f"Look whether the endpoint is up, and check {variable}__BASE_URL."
        if failure.status == 429:
            hint = "Ask less at once, or raise the rate limit there."
        return ModelUnavailable(f"{answered}{count}: {failure.summary}", hint=hint)
    return EndpointUnsuitable(message, hint=hint_of(failure, variable) or _setting(failure, variable))


def _setting(failure: Failure, variable: str) -> str:
    """Which setting a refusal points to, by its status."""
    if failure.malformed:
        return f"{variable}__BASE_URL must lead to an OpenAI-compatible API, its version path included (/v1)."
    if failure.status in (401, 403):
        return f"Check {variable}__API_KEY and what it may use."
    if failure.status in (404, 405) or 300 <= failure.status < 400:
        return f"Check {variable}__BASE_URL (with its version path, /v1) and {variable}__NAME."
    return f"Check {variable}__EXTRA and the other settings of the endpoint."
