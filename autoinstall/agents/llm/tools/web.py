"""The tools that look things up on the web. What they bring back is marked as data."""

from typing import Annotated, Any

from pydantic import Field, ValidationError

from autoinstall.agents.llm.contract import AgentTool, Desk, Observation
from autoinstall.errors import SearchFailed
from autoinstall.models.contract import Tool
from autoinstall.search.contract import SearchProvider
from autoinstall.search.marking import as_data
from autoinstall.search.pages import PageReader
from autoinstall.search.provider import search_provider
from autoinstall.settings import Settings
from autoinstall.values import NonEmpty, Value

_MARK_CHARACTERS = 2500
"""Room in an observation for what stands around a page's text, its address above all."""


class _Query(Value):
    query: Annotated[NonEmpty, Field(max_length=400, description="What you would type into a search engine.")]


class _Address(Value):
    url: Annotated[NonEmpty, Field(max_length=2000, description="The page's full http or https address.")]
    start: Annotated[int, Field(ge=0, description="Character of the page's text to start at; 0 is its beginning.")] = 0


class WebSearch:
    """Asks the provider of the settings."""

    reads_only = True
    spec = Tool(
        name="web_search",
        description="Search the web, for instance for an error message or a project's documentation. "
        "Gives titles, addresses and snippets; read a page with fetch_page.",
        parameters=_Query.model_json_schema(),
    )

    def __init__(self, provider: SearchProvider) -> None:
        self._provider = provider

    def call(self, arguments: dict[str, Any], desk: Desk) -> Observation:  # noqa: ARG002
        try:
            query = _Query.model_validate(arguments).query
            results = self._provider.search(query)
        except (ValidationError, SearchFailed) as error:
            return _failure(error)
        if not results:
            return Observation(text="Nothing was found. Try other or fewer words.")
        lines = [f"{number}. {hit.title}\n   {hit.url}\n   {hit.snippet}" for number, hit in enumerate(results, 1)]
        return Observation(text=as_data("results", "\n".join(lines), query=query))


class FetchPage:
    """Reads one public page."""

    reads_only = True
    spec = Tool(
        name="fetch_page",
        description="Read a public web page as text. Long pages come in parts. "
        "Pages in private networks, on this machine or in the sandbox are out of its reach.",
        parameters=_Address.model_json_schema(),
    )

    def __init__(self, reader: PageReader) -> None:
        self._reader = reader

    def call(self, arguments: dict[str, Any], desk: Desk) -> Observation:
        try:
            address = _Address.model_validate(arguments)
            # No more than an observation holds: it would be cut in its middle.
            room = max(desk.observation_characters - _MARK_CHARACTERS, desk.observation_characters // 2)
            page = self._reader.read(address.url, start=address.start, characters=room)
        except (ValidationError, SearchFailed) as error:
            return _failure(error)
        if page.characters and page.start >= page.characters:
            return Observation(text=f"The page's text has {page.characters} characters.", error=True)
        text = as_data("page", page.text or "(no text)", url=page.url, title=page.title[:200])
        if page.end < page.characters:
            text += f"\nCharacters {page.start} to {page.end} of {page.characters}; go on with start={page.end}."
        elif page.incomplete:
            text += "\nThe page is longer than what is read of one; this is the end of what was read."
        return Observation(text=text)


def web_tools(settings: Settings) -> tuple[AgentTool, ...]:
    """The tools, where a search provider is configured; none otherwise.

    Raises:
        BadInput: the provider's address or library is missing.
    """
    provider = search_provider(settings)
    return () if provider is None else (WebSearch(provider), FetchPage(PageReader(settings)))


def _failure(error: ValidationError | SearchFailed) -> Observation:
    if isinstance(error, SearchFailed):
        return Observation(text=str(error), error=True)
    problems = (f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in error.errors())
    return Observation(text="Nothing was asked: " + "; ".join(problems), error=True)
