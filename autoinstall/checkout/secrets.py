"""Moves credentials out of URLs before anything else sees them: an orchestrator keeps its parameters for ever."""

from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from autoinstall.redaction import without_userinfo
from autoinstall.settings import Settings
from autoinstall.values import RepositorySpec


def without_credentials(
    specs: Iterable[RepositorySpec], settings: Settings
) -> tuple[tuple[RepositorySpec, ...], Settings]:
    """The specs with clean URLs, and settings that give the git process the credentials that were in them."""
    cleaned: list[RepositorySpec] = []
    found: dict[str, SecretStr] = {}
    for spec in specs:
        clean = without_userinfo(spec.url)
        if clean != spec.url and spec.url.startswith(("http://", "https://")):
            user, _, password = urlsplit(spec.url).netloc.rpartition("@")[0].partition(":")
            found[clean] = SecretStr(f"{unquote(user)}:{unquote(password)}" if password else unquote(user))
        cleaned.append(spec if clean == spec.url else spec.model_copy(update={"url": clean}))
    if found:
        settings = settings.model_copy(update={"git_credentials": {**settings.git_credentials, **found}})
    return tuple(cleaned), settings
