"""Which model a role's setting means, one object for each in a process."""

import threading
from typing import TYPE_CHECKING

from autoinstall.errors import BadInput
from autoinstall.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from autoinstall.models.client import OpenAIModel

_lock = threading.Lock()
_made: list[tuple[ModelSettings, "OpenAIModel"]] = []
"""Settings hold mappings, so they are compared and not hashed; there are a handful."""


def model_for(settings: Settings, name: str = "") -> "OpenAIModel":
    """The model that a role's setting names.

    Args:
        name: a key of `settings.models`, or a model's name at the endpoint of `settings.model`; empty means
            `settings.model` itself.

    Raises:
        BadInput: no model is named there, or its settings cannot be used; the hint says which variable to set.
        EndpointUnsuitable: the default endpoint wants a key.
    """
    from autoinstall.models.client import OpenAIModel  # the openai package takes a second, and rules need none of it

    found, variable = resolve(settings, name)
    with _lock:
        for known, model in _made:
            if known == found:
                return model
        model = OpenAIModel(found, variable=variable)
        _made.append((found, model))
        return model


def resolve(settings: Settings, name: str = "") -> tuple[ModelSettings, str]:
    """The settings that `name` means, and the variable that they are below.

    Raises:
        BadInput: no model is named there.
    """
    if name in settings.models:
        found, variable = settings.models[name], f"AUTOINSTALL_MODELS__{name}"
    else:
        found, variable = settings.model, "AUTOINSTALL_MODEL"
        if name and name != found.name:
            # The price is another model's.
            found = found.model_copy(update={"name": name, "price": None})
    if not found.name:
        raise BadInput("An agent is to be played by a model, and none is named.", hint=f"Set {variable}__NAME.")
    return found, variable


def names_in_use(settings: Settings) -> tuple[str, ...]:
    """The names of the models that the roles of the settings use, each once; none where rules play all of them."""
    agents = settings.agents
    names: list[str] = []
    if agents.goal_setter == "llm":
        names.append(agents.goal_setter_model)
    if "llm" in agents.installer:
        names.extend(agents.installer_models or ("",))
    if agents.judge == "llm":
        names.append(agents.judge_model)
    return tuple(dict.fromkeys(names))
