"""What tools are made of: arguments by a pydantic model, from which the schema that models are given is derived."""

import time
import tomllib
from abc import ABC, abstractmethod
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from autoinstall.agents.llm.contract import Desk, Observation
from autoinstall.models.contract import Tool

A = TypeVar("A", bound=BaseModel)

_MIN_SECONDS = 1.0


class TypedTool(ABC, Generic[A]):
    """A tool whose arguments are a pydantic model.

    Args:
        name: also the key of its description in descriptions.toml, unless `description` is given.
    """

    reads_only = False

    def __init__(self, name: str, arguments: type[A], *, description: str = "") -> None:
        self._arguments = arguments
        text = description or descriptions()[name]
        self.spec = Tool(name=name, description=text.strip(), parameters=schema_of(arguments))

    def call(self, arguments: dict[str, Any], desk: Desk) -> Observation:
        try:
            parsed = self._arguments.model_validate(arguments)
        except ValidationError as error:
            return failure(f"Nothing was carried out: {explain(error)}. {takes(self.spec)}")
        return self.carry_out(parsed, desk)

    @abstractmethod
    def carry_out(self, arguments: A, desk: Desk) -> Observation:
        """The call, with arguments that are valid."""


@cache
def descriptions() -> dict[str, str]:
    """Tool → what the model is told of it."""
    text = files(__package__).joinpath("descriptions.toml").read_text(encoding="utf-8")
    return {str(name): str(value) for name, value in tomllib.loads(text).items()}


def failure(text: str) -> Observation:
    """An observation of something that did not work."""
    return Observation(text=text, error=True)


def explain(error: ValidationError) -> str:
    """What is wrong with a value, field by field, in one line."""
    found = [(".".join(map(str, problem["loc"])), problem["msg"]) for problem in error.errors(include_url=False)]
    return "; ".join(f"{where}: {what}" if where else what for where, what in found[:8])


def takes(tool: Tool) -> str:
    """A tool's arguments in one line."""
    required = tool.parameters.get("required", ())
    parts = [
        f"{name} ({schema.get('type', 'value')}{', required' if name in required else ''})"
        for name, schema in tool.parameters.get("properties", {}).items()
    ]
    return f"{tool.name} takes {', '.join(parts)}." if parts else f"{tool.name} takes no arguments."


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model in the few words that every endpoint knows: no references, no titles, and an optional
    value is one that may be absent."""
    schema = model.model_json_schema()
    return _plain(schema, schema.get("$defs", {}))


def _plain(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain({**known[schema["$ref"].rsplit("/", 1)[-1]], **rest}, known)
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
        if len(choices) == 1:
            rest = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
            return _plain({**choices[0], **rest}, known)
    plain = {key: value for key, value in schema.items() if key not in {"title", "$defs"} and value is not None}
    if "properties" in plain:
        plain["properties"] = {name: _plain(value, known) for name, value in plain["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(plain.get(key), dict):
            plain[key] = _plain(plain[key], known)
    return plain


def seconds_left(desk: Desk, wanted: float) -> float:
    """`wanted` seconds, or as many as a command may take and the run has left."""
    return max(min(wanted, desk.command_seconds, desk.deadline - time.monotonic()), _MIN_SECONDS)
