"""Messages and tools for the tests of models, and a client that does not wait between tries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from autoinstall.models.client import OpenAIModel
from autoinstall.models.contract import Message, Tool
from tests.endpoint import Act, Endpoint
from tests.endpoint.acts import Line

BASH = Tool(
    name="bash",
    description="Runs a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
VERDICT = Tool(
    name="verdict",
    description="Whether the output matches.",
    parameters={
        "type": "object",
        "properties": {"verdict": {"type": "string"}, "reason": {"type": "string"}},
        "required": ["verdict", "reason"],
    },
)
ASKED = (Message(role="system", content="Be brief."), Message(role="user", content="Hello"))


class Client:
    """A model at an endpoint, and the waits that it would have made."""

    def __init__(self, endpoint: Endpoint, **changes: Any) -> None:
        self.endpoint = endpoint
        self.waits: list[float] = []
        self.model = OpenAIModel(endpoint.settings(**changes), sleep=self.waits.append)
        self.ask = self.model.complete


@contextmanager
def client(
    *script: Line,
    repeat: bool = False,
    refuses: Callable[[dict[str, Any]], Act | None] | None = None,
    extras: tuple[str, ...] = (),
    **changes: Any,
) -> Iterator[Client]:
    """A client of an endpoint with this script; `changes` are of the model's settings."""
    with Endpoint(*script, repeat=repeat, refuses=refuses, extras=extras) as endpoint:
        made = Client(endpoint, **changes)
        try:
            yield made
        finally:
            made.model.close()
