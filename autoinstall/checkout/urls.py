"""What a repository URL may look like, where it is really fetched from, and with which credential."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from autoinstall.errors import InvalidUrl
from autoinstall.redaction import redact, without_userinfo
from autoinstall.settings import Settings

_NETWORK = frozenset({"https", "http", "ssh", "git"})
_SCP_LIKE = re.compile(r"(?:[A-Za-z0-9._-]+@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?!//|:)(?P<path>\S+)")
_USER = re.compile(r"[A-Za-z0-9._~+-]+")
_HINT = "Allowed are https://, http://, ssh://, git://, user@host:path, file:// and absolute local paths."


@dataclass(frozen=True)
class Remote:
    """Where git fetches from.

    Attributes:
        address: goes into git's arguments; without a secret.
        username, password: go into the git process's environment alone; empty for none.
    """

    address: str
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_local(self) -> bool:
        return self.path is not None

    @property
    def path(self) -> Path | None:
        """Of a local repository."""
        if self.address.startswith("file://"):
            return Path(unquote(urlsplit(self.address).path))
        return Path(self.address) if self.address.startswith("/") else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must not be written down, in every spelling that git may show."""
        return tuple({self.password, quote(self.password, safe="")} - {""})


def locate(url: str, settings: Settings, *, trusted: bool = True) -> Remote:
    """Checks `url`, rewrites it by the longest matching mirror prefix, and finds its credential.

    Args:
        trusted: False for a URL that a repository names (a submodule's): only a mirror may make it local.

    Raises:
        InvalidUrl: it is not one that is safe to hand to git.
    """
    check_url(url)
    clean, user_info = without_userinfo(url), _user_info(url)
    if not trusted and Remote(clean).is_local:
        raise InvalidUrl(f"A submodule may not be a local path: {clean}.")
    prefix = max((prefix for prefix in settings.git_mirrors if clean.startswith(prefix)), key=len, default=None)
    if prefix is not None:
        replaced = settings.git_mirrors[prefix] + clean[len(prefix) :]
        check_url(replaced)
        # The user info of the original URL is meant for the original host.
        clean, user_info = without_userinfo(replaced), _user_info(replaced)
    if Remote(clean).is_local:
        return Remote(_existing(clean))
    username, password = user_info if user_info[1] else _configured(clean, settings) or user_info
    return Remote(clean, username, password)


def join(base: str, relative: str) -> str:
    """The URL of a submodule that is given relative to its parent's, as git resolves it.

    Raises:
        InvalidUrl: it climbs out of the host.
    """
    if not relative.startswith(("./", "../")):
        return relative
    scheme, mark, rest = without_userinfo(base).rstrip("/").partition("://")
    separator = "/"
    if not mark:
        scheme, rest = "", base.rstrip("/")
    while relative.startswith(("./", "../")):
        if relative.startswith("./"):
            relative = relative[2:]
            continue
        relative = relative[3:]
        head, slash, _ = rest.rpartition("/")
        if not slash and not mark and ":" in rest:
            head, separator = rest.partition(":")[0], ":"
        if not head:
            raise InvalidUrl(f"A submodule's URL climbs out of {redact(base)}.")
        rest = head
    return f"{scheme}{mark}{rest}{separator}{relative}"


def check_url(url: str) -> None:
    """Whether a URL is safe to hand to git; nothing is started for it.

    Raises:
        InvalidUrl: it is not.
    """
    shown = redact(url[:200].encode("unicode_escape").decode("ascii"))
    if not url.strip():
        raise InvalidUrl("The repository URL is empty.", hint=_HINT)
    unclean = any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in url) or url != url.strip()
    if unclean or (" " in url and not url.startswith("/")):
        raise InvalidUrl(f"The repository URL has white space or control characters: {shown}.", hint=_HINT)
    if url.startswith("-") or "::" in url.partition("[")[0]:
        raise InvalidUrl(f"The repository URL would be read as an option or a remote helper: {shown}.", hint=_HINT)
    if url.startswith("/"):
        return
    if "://" in url:
        _check_parts(url, shown)
        return
    match = _SCP_LIKE.fullmatch(url)
    if match is None or match["host"].startswith("-") or match["path"].startswith("-"):
        raise InvalidUrl(f"Not a repository URL: {shown}.", hint=_HINT)


def _check_parts(url: str, shown: str) -> None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidUrl(f"Not a repository URL: {shown}.", hint=_HINT) from None
    if parts.scheme not in _NETWORK | {"file"}:
        raise InvalidUrl(f"git is not allowed to use {parts.scheme}:// URLs: {shown}.", hint=_HINT)
    if parts.query or parts.fragment:
        raise InvalidUrl(f"A repository URL has no query and no fragment: {shown}.", hint=_HINT)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise InvalidUrl(f"A file:// URL needs an absolute path: {shown}.", hint=_HINT)
    elif not host or host.startswith("-") or port == 0 or not parts.path.strip("/") or parts.path.startswith("/-"):
        raise InvalidUrl(f"The repository URL names no repository: {shown}.", hint=_HINT)
    elif parts.scheme == "ssh" and parts.username and not _USER.fullmatch(parts.username):
        raise InvalidUrl(f"The user name of the ssh URL is malformed: {shown}.", hint=_HINT)


def _user_info(url: str) -> tuple[str, str]:
    """(user, password) of an http URL; ssh has no password to hand over. A lone user is a token."""
    parts = urlsplit(url) if url.startswith(("http://", "https://")) else None
    if parts is None or not parts.username:
        return "", ""
    user, password = unquote(parts.username), unquote(parts.password or "")
    return (user, password) if password else ("x-access-token", user)


def _configured(url: str, settings: Settings) -> tuple[str, str] | None:
    if not url.startswith(("http://", "https://")):
        return None
    prefixes = [prefix for prefix in settings.git_credentials if _covers(prefix, url)]
    if not prefixes:
        return None
    user, colon, password = settings.git_credentials[max(prefixes, key=len)].get_secret_value().partition(":")
    return (user, password) if colon else ("x-access-token", user)


def _covers(prefix: str, url: str) -> bool:
    """Unlike a mirror's, a credential's prefix ends at a border: https://host must not cover https://host.evil."""
    return url.startswith(prefix) and (prefix.endswith("/") or url[len(prefix) :][:1] in ("", "/"))


def _existing(address: str) -> str:
    """A local repository with or without `.git` at its end, whichever there is; git never drops one."""
    bare = address.rstrip("/").removesuffix(".git")
    asked = address.rstrip("/")
    for candidate in (asked, bare, f"{bare}.git"):
        remote = Remote(candidate)
        if remote.path is not None and _is_repository(remote.path):
            return candidate
    return address


def _is_repository(path: Path) -> bool:
    """Or a bundle. A folder that only groups repositories is none."""
    return path.is_file() or (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())
