"""A search provider that answers from a table: for tests and dry runs."""

from collections.abc import Mapping, Sequence

from autoinstall.errors import SearchFailed
from autoinstall.search.contract import SearchResult


class ScriptedSearch:
    """Answers a query by the first entry whose key is in it, whatever the case.

    Attributes:
        queries: all that were asked, in order.
    """

    def __init__(self, answers: Mapping[str, Sequence[SearchResult] | SearchFailed]) -> None:
        self._answers = dict(answers)
        self.queries: list[str] = []

    def search(self, query: str) -> tuple[SearchResult, ...]:
        self.queries.append(query)
        for key, answer in self._answers.items():
            if key.lower() in query.lower():
                if isinstance(answer, SearchFailed):
                    raise answer
                return tuple(answer)
        return ()
