"""Makes the provider that the settings name."""

from autoinstall.errors import BadInput
from autoinstall.search.contract import SearchProvider
from autoinstall.search.metasearch import MetaSearch
from autoinstall.search.searxng import SearxngSearch
from autoinstall.settings import Settings


def search_provider(settings: Settings) -> SearchProvider | None:
    """The provider; None where no search is configured.

    Raises:
        BadInput: its address or its library is missing.
    """
    search = settings.search
    match search.provider:
        case "none":
            return None
        case "searxng":
            if not search.url.startswith(("http://", "https://")):
                raise BadInput(
                    "Search by SearXNG needs the address of an instance.", hint="Set AUTOINSTALL_SEARCH__URL."
                )
            return SearxngSearch(search)
        case "ddgs":
            return MetaSearch(search, settings.pass_through.https_proxy)
