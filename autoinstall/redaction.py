"""Keeps credentials out of everything that is written down."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MASK = "***"

_literals: ContextVar[tuple[str, ...]] = ContextVar("literals that nothing may show", default=())

_SSH = frozenset({"ssh", "git+ssh", "ssh+git"})

# Anchored behind the scheme rather than matching it: that would take quadratic time on a long run of letters.
_USERINFO = re.compile(r"(?<=://)[^\s/'\"]+@")
_HEADER = re.compile(
    r"(?i)\b(authorization|proxy-authorization|x-api-key|private-token)([\"']?\s*[:=]\s*[\"']?)"
    r"(?:(?:bearer|basic|token)\s+)?[^\s\"']+"
)
_QUERY = re.compile(r"(?i)([?&](?:access_token|token|api_key|apikey|password|secret|signature|sig)=)[^&\s'\"]+")
_KNOWN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abps]-[\w-]{10,}|AKIA[0-9A-Z]{16})\b"
)


def redact(text: str, *secrets: str) -> str:
    """`text` with URL user info, authorization headers, secret-looking query values, tokens of well-known shape,
    and every literal of `secrets` and of `hiding`, masked."""
    for secret in (*secrets, *_literals.get()):
        if secret:
            text = text.replace(secret, MASK)
    text = _USERINFO.sub(f"{MASK}@", text)
    text = _HEADER.sub(lambda match: f"{match[1]}{match[2]}{MASK}", text)
    text = _QUERY.sub(lambda match: f"{match[1]}{MASK}", text)
    return _KNOWN.sub(MASK, text)


@contextmanager
def hiding(*secrets: str) -> Iterator[None]:
    """Have `redact` mask these literals too in this context, the longer before those that they contain."""
    token = _literals.set(secrets)
    try:
        yield
    finally:
        _literals.reset(token)


def one_line(text: str, limit: int) -> str:
    """`text` as a single line of at most `limit` characters, redacted before it is cut, and printable."""
    line = printable(redact(" ".join(text.split())))
    return line if len(line) <= limit else f"{line[: limit - 2]} …"


def printable(text: str) -> str:
    """`text` with control characters spelled out: what somebody wrote into a list must not steer a terminal."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def without_userinfo(url: str) -> str:
    """`url` without its user info, the form that rows and images carry. Where ssh is meant (`git@host:path` and
    `ssh://git@host/path`) the user is no secret and part of the address: it is kept, and a password is not."""
    scheme, mark, rest = url.partition("://")
    if not mark or "/" in scheme:
        return url
    authority, slash, path = rest.partition("/")
    user_info, at, host = authority.rpartition("@")
    if not at:
        return url
    user = user_info.partition(":")[0]
    kept = f"{user}@" if user and scheme.lower() in _SSH else ""
    return f"{scheme}://{kept}{host}{slash}{path}"
