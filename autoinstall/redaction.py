"""Keeps credentials out of everything that is written down."""

import re
from urllib.parse import urlsplit, urlunsplit

MASK = "***"

_USERINFO = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<userinfo>[^\s/@'\"]+)@")
_HEADER = re.compile(
    r"(?i)\b(authorization|proxy-authorization|x-api-key|private-token)(\s*[:=]\s*)(?:(?:bearer|basic|token)\s+)?\S+"
)
_QUERY = re.compile(r"(?i)([?&](?:access_token|token|api_key|apikey|password|secret|signature|sig)=)[^&\s'\"]+")
_KNOWN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abps]-[\w-]{10,}|AKIA[0-9A-Z]{16})\b"
)


def redact(text: str, *secrets: str) -> str:
    """`text` with URL user info, authorization headers, secret-looking query values, tokens of well-known shape,
    and every literal of `secrets`, masked."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, MASK)
    text = _USERINFO.sub(lambda match: f"{match['scheme']}{MASK}@", text)
    text = _HEADER.sub(lambda match: f"{match[1]}{match[2]}{MASK}", text)
    text = _QUERY.sub(lambda match: f"{match[1]}{MASK}", text)
    return _KNOWN.sub(MASK, text)


def without_userinfo(url: str) -> str:
    """`url` without its user info, the form that rows and images carry. scp-like URLs (`git@host:path`) are kept:
    their user is no secret and part of the address."""
    parts = urlsplit(url)
    if not parts.scheme or "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
