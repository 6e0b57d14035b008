"""A strict Chat Completions endpoint on localhost, for tests of what talks to one. See `server.Endpoint`."""

from tests.endpoint.acts import Act, Cut, Drop, Failed, Hang, Raw, Says, Trickle, call, tool_call
from tests.endpoint.server import Asked, Endpoint

__all__ = ["Act", "Asked", "Cut", "Drop", "Endpoint", "Failed", "Hang", "Raw", "Says", "Trickle", "call", "tool_call"]
