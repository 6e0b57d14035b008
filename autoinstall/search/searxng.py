"""Search by a SearXNG instance of one's own. Its settings.yml must list `json` under `search.formats`."""

import json

import urllib3

from autoinstall.errors import SearchFailed
from autoinstall.search.contract import SearchResult, result
from autoinstall.settings import SearchSettings

MAX_ANSWER_BYTES = 4 * 2**20


class SearxngSearch:
    """Asks the instance at `settings.url`, which may well be in a private network: it is the operator's choice."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._address = settings.url.rstrip("/").removesuffix("/search") + "/search"
        self._pool = urllib3.PoolManager(retries=False, timeout=settings.seconds)

    def search(self, query: str) -> tuple[SearchResult, ...]:
        answer = self._ask(query)
        try:
            document = json.loads(answer)
            found = [result(hit.get("title"), hit.get("url"), hit.get("content")) for hit in document["results"]]
            silent = document.get("unresponsive_engines") or []
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SearchFailed("The search server did not answer with SearXNG's JSON.") from error
        results = tuple(hit for hit in found if hit is not None)[: self._settings.results]
        if not results and silent:
            raise SearchFailed(f"None of the search server's engines answered: {json.dumps(silent)[:300]}")
        return results

    def _ask(self, query: str) -> bytes:
        try:
            response = self._pool.request(
                "GET",
                self._address,
                fields={"q": query, "format": "json"},
                headers={"Accept": "application/json"},
                preload_content=False,
                redirect=False,
            )
            try:
                answer = response.read(MAX_ANSWER_BYTES, decode_content=True)
            finally:
                response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise SearchFailed(f"The search server does not answer: {type(error).__name__}.") from error
        if response.status != 200:
            hint = "Its settings.yml must allow the format `json`." if response.status == 403 else ""
            raise SearchFailed(f"The search server answered with status {response.status}.", hint=hint)
        return answer
