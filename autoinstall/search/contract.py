"""What search is: a query in, a few results out. Implementations: `searxng`, `metasearch`, and `scripted` (a fake)."""

from typing import Protocol

from autoinstall.values import Value


class SearchResult(Value):
    """One hit. All is text of strangers, on one line each; the snippet has at most `SNIPPET_CHARACTERS`."""

    title: str
    url: str
    snippet: str


class SearchProvider(Protocol):
    """Where results come from; one a process, shared by threads."""

    def search(self, query: str) -> tuple[SearchResult, ...]:
        """The best results first, at most the settings' `results`; none is an answer too.

        Raises:
            SearchFailed: the provider did not answer in its time, or not usably.
        """
        ...


SNIPPET_CHARACTERS = 500


def result(title: object, url: object, snippet: object) -> SearchResult | None:
    """A result from a provider's fields; None where it leads to nothing that could be fetched."""
    address = str(url or "").strip()
    if not address.startswith(("https://", "http://")):
        return None
    return SearchResult(title=_line(title), url=address, snippet=_line(snippet)[:SNIPPET_CHARACTERS])


def _line(text: object) -> str:
    return " ".join(str(text or "").split())
