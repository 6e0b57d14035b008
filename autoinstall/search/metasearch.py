"""Search by the `ddgs` library, which asks several public search engines. It comes with the extra `search`."""

import importlib
from typing import Any

from autoinstall.errors import BadInput, SearchFailed
from autoinstall.search.contract import SearchResult, result
from autoinstall.settings import SearchSettings


class MetaSearch:
    """Asks whichever engines the library finds willing.

    Args:
        proxy: URL of an HTTP proxy; empty for none.

    Raises:
        BadInput: the library is not installed.
    """

    def __init__(self, settings: SearchSettings, proxy: str = "") -> None:
        try:
            self._library = importlib.import_module("ddgs")
        except ImportError as error:
            raise BadInput(
                "Search by `ddgs` needs a library that is not installed.", hint="pip install 'autoinstall[search]'"
            ) from error
        self._settings = settings
        self._proxy = proxy

    def search(self, query: str) -> tuple[SearchResult, ...]:
        try:
            hits = self._hits(query)
        except self._library.exceptions.DDGSException as error:
            if "No results" in str(error):
                return ()
            raise SearchFailed(f"The search engines did not answer: {str(error)[:300]}") from error
        found = (result(hit.get("title"), hit.get("href"), hit.get("body")) for hit in hits)
        return tuple(hit for hit in found if hit is not None)[: self._settings.results]

    def _hits(self, query: str) -> list[dict[str, Any]]:
        # One object a query: it keeps its connections to itself, and is not made for threads.
        with self._library.DDGS(proxy=self._proxy or None, timeout=max(1, round(self._settings.seconds))) as client:
            found: list[dict[str, Any]] = client.text(query, max_results=self._settings.results)
            return found
