"""What the rules know of commands, packages and messages, as TOML tables beside this file.

A table is validated by the model that reads it, at its first use and by a unit test.
"""

import tomllib
from functools import cache
from importlib import resources
from typing import TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


@cache
def load(name: str, model: type[Model]) -> Model:
    """The table `name`.toml as a `model`.

    Raises:
        pydantic.ValidationError: the table is not of that form, which is a defect of the product.
    """
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return model.model_validate(tomllib.loads(text))
