"""Tools that look things up on the web. What they bring back is marked as data."""

from typing import Annotated

from pydantic import Field

from autoinstall.agents.llm.contract import AgentTool, Desk, Observation
from autoinstall.agents.llm.tools.base import TypedTool, failure
from autoinstall.errors import SearchFailed
from autoinstall.marking import FROM_THE_WEB, as_data
from autoinstall.search.contract import SearchProvider
from autoinstall.search.pages import MAX_URL_CHARACTERS, PageReader
from autoinstall.search.provider import search_provider
from autoinstall.settings import Settings
from autoinstall.values import NonEmpty, Value

_FRAME = 600
"""Characters of an observation for what stands around a page's text, its address aside."""


class SearchArguments(Value):
    query: Annotated[NonEmpty, Field(max_length=400, description="what one would type into a search engine")]


class WebSearch(TypedTool[SearchArguments]):
    """Asks the search provider of the settings."""

    reads_only = True

    def __init__(self, provider: SearchProvider) -> None:
        super().__init__("web_search", SearchArguments)
        self._provider = provider

    def carry_out(self, arguments: SearchArguments, desk: Desk) -> Observation:  # noqa: ARG002
        try:
            results = self._provider.search(arguments.query)
        except SearchFailed as error:
            return failure(str(error))
        if not results:
            return Observation(text="Nothing was found. Try other or fewer words.")
        lines = [f"{number}. {hit.title}\n   {hit.url}\n   {hit.snippet}" for number, hit in enumerate(results, 1)]
        return Observation(text=as_data("\n".join(lines), "results", notice=FROM_THE_WEB, query=arguments.query))


class PageArguments(Value):
    url: Annotated[NonEmpty, Field(max_length=MAX_URL_CHARACTERS, description="the full http or https address")]
    start: Annotated[int, Field(ge=0, description="character of the page's text to start at")] = 0


class FetchPage(TypedTool[PageArguments]):
    """Reads one public page, as much of it as an observation holds."""

    reads_only = True

    def __init__(self, reader: PageReader) -> None:
        super().__init__("fetch_page", PageArguments)
        self._reader = reader

    def carry_out(self, arguments: PageArguments, desk: Desk) -> Observation:
        room = desk.observation_characters - _FRAME
        # An address may be as long as half an observation, and is shown after its redirects; the text gives way.
        room = max(room - len(arguments.url), room // 2, 100)
        try:
            page = self._reader.read(arguments.url, start=arguments.start, characters=room)
        except SearchFailed as error:
            return failure(str(error))
        if page.start and page.start >= page.characters:
            return failure(f"The page's text has {page.characters} characters only.")
        shown = page.text.strip() or "(no text)"
        text = as_data(shown, "page", notice=FROM_THE_WEB, url=page.url, title=page.title[:200])
        if page.end < page.characters:
            text += f"\n[characters {page.start} to {page.end} of {page.characters}; go on with start={page.end}]"
        elif page.incomplete:
            text += "\n[the page is longer than what is read of one; this is the end of what was read]"
        return Observation(text=text)


def web_tools(settings: Settings) -> tuple[AgentTool, ...]:
    """The tools, where a search provider is configured; none otherwise.

    Raises:
        BadInput: the provider's address or library is missing.
    """
    provider = search_provider(settings)
    return () if provider is None else (WebSearch(provider), FetchPage(PageReader(settings)))
