"""What the command line says, as the values that the rest works with."""

from pathlib import Path
from typing import get_args

from pydantic import ValidationError
from pydantic_settings import SettingsError

from autoinstall.datasets.location import Location
from autoinstall.errors import BadInput, InvalidUrl
from autoinstall.goals_file import read_goals
from autoinstall.settings import Family, Settings, get_settings
from autoinstall.values import RepositorySpec


def settings_for(data: str | None = None, agent: str | None = None) -> Settings:
    """The process's settings, with what the command line overrides.

    Args:
        agent: a family for all roles; or several, joined by commas, for the attempts in turn, where a model, if one of
            them is, also sets the goals and judges. Finer choices are made by AUTOINSTALL_AGENTS__*.

    Raises:
        BadInput: a variable or the .env file has a value that is not allowed; there is no such agent.
    """
    try:
        settings = get_settings()
    except SettingsError as error:
        raise BadInput(
            f"The settings are not usable: {error}.",
            hint='Mappings and lists are JSON, as in AUTOINSTALL_GIT_MIRRORS=\'{"https://github.com/": "file:///srv/"}\'.',
        ) from None
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise BadInput(
            f"The settings are not usable: {wrong}.", hint="See the AUTOINSTALL_* variables and .env."
        ) from None
    update: dict[str, object] = {}
    if data is not None:
        update["data"] = Location(data)
    if agent is not None:
        families = tuple(name.strip() for name in agent.split(","))
        known = get_args(Family)
        if unknown := [name for name in families if name not in known]:
            raise BadInput(
                f"There is no agent {unknown[0]!r}.",
                hint=f"There are {' and '.join(known)}; or several, as in rules,llm.",
            )
        thinker = "llm" if "llm" in families else families[0]
        roles = {"goal_setter": thinker, "installer": families, "judge": thinker}
        update["agents"] = settings.agents.model_copy(update=roles)
    return settings.model_copy(update=update)


def spec_of(repository: str, goals: Path | None = None) -> RepositorySpec:
    """`URL[@REF]`, and the goals of a file where one is given.

    Raises:
        InvalidUrl: there is no URL, or nothing behind the @.
        InvalidGoals: the goals file cannot be used.
    """
    url, ref = split_ref(repository.strip())
    if not url:
        raise InvalidUrl("The repository's URL is empty.", hint="Give it as URL or URL@REF.")
    if ref == "":
        raise InvalidUrl(f"No ref follows the @ of {url}@.", hint="Give it as URL or URL@REF.")
    return RepositorySpec(url=url, ref=ref, goals=read_goals(goals) if goals else None)


def split_ref(repository: str) -> tuple[str, str | None]:
    """URL and ref. Only an @ in the path separates them: one before it belongs to the user of a URL, and one that
    begins a path's part (`/@scope/name`) to the name. A local path that exists as it stands has no ref."""
    if repository.startswith(("/", ".", "~")) and Path(repository).expanduser().exists():
        return repository, None
    scheme, mark, rest = repository.partition("://")
    if not mark:
        scheme, rest = "", repository
    head = len(scheme) + len(mark)
    # scp-like (user@host:path) and local paths have no scheme; of all others the path begins at the first slash.
    separator = ":" if not mark and ":" in rest.partition("/")[0] else "/"
    start = rest.find(separator)
    if start < 0:
        return repository, None
    at = rest.rfind("@", start + 1)
    if at < 0 or rest[at - 1] == "/":
        return repository, None
    return repository[: head + at], rest[at + 1 :]
