"""What an endpoint turned out to take. Learnt from its refusals, once, and kept for the life of the model."""

import logging
import re
from collections.abc import Mapping
from enum import StrEnum
from threading import Lock
from typing import Any, Literal

from autoinstall.models.failures import Failure
from autoinstall.models.quirks import quirks, said
from autoinstall.values import Value

log = logging.getLogger(__name__)


class Structured(StrEnum):
    """How an object of a given form is asked for, best first."""

    TOOL = "tool"
    JSON_SCHEMA = "json_schema"
    PLAIN = "plain"

    @property
    def next(self) -> "Structured | None":
        """What is tried where this does not work."""
        later = list(Structured)[list(Structured).index(self) + 1 :]
        return later[0] if later else None

    def or_later(self, other: "Structured") -> "Structured":
        """The later of the two."""
        return max(self, other, key=list(Structured).index)


class Profile(Value):
    """What one model at one endpoint takes.

    Attributes:
        output_field: the name of the bound on the answer; empty where none is taken. output_cap: its most.
        system_role: `user` where it has to go into the first user message.
        dropped: parameters that are left out.
        null_content: whether an assistant message of calls alone may have no content.
        send_reasoning: whether earlier reasoning has to be sent back.
    """

    output_field: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    output_cap: int | None = None
    system_role: Literal["system", "developer", "user"] = "system"
    dropped: frozenset[str] = frozenset()
    structured: Structured = Structured.TOOL
    null_content: bool = True
    send_reasoning: bool = False


class Learned:
    """The profile that all threads share."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._profile = Profile()

    @property
    def profile(self) -> Profile:
        """As of now."""
        with self._lock:
            return self._profile

    def adapt(
        self, known: Profile, sent: Profile, body: Mapping[str, Any], failure: Failure, *, structured: bool
    ) -> bool:
        """Learn from a refusal of `body`. True where asking again may help: something was learnt, here or by another
        thread meanwhile.

        Args:
            known: the profile as it was when the request was made; sent: what it was made by.
            structured: whether an object was asked for.
        """
        with self._lock:
            if self._profile != known:
                return True
            changes = _changes(sent, body, failure, structured=structured)
            self._profile = known.model_copy(update=changes)
        if changes:
            log.info("A request was refused; from now on: %s", ", ".join(f"{k}={v}" for k, v in changes.items()))
        return bool(changes)

    def settle(self, structured: Structured) -> None:
        """Remember that objects are to be had in this way, and not in those before it."""
        with self._lock:
            later = self._profile.structured.or_later(structured)
            self._profile = self._profile.model_copy(update={"structured": later})


def _changes(profile: Profile, body: Mapping[str, Any], failure: Failure, *, structured: bool) -> dict[str, Any]:
    """The fields of the profile that a refusal changes; empty where it says nothing that can be adapted to."""
    table, text = quirks(), failure.text
    field = profile.output_field
    if field and (capped := said(table.cap, text)) and 0 < int(capped["cap"]) < body.get(field, 0):
        return {"output_cap": int(capped["cap"])}
    if field and _names(failure, field):
        return {"output_field": "max_completion_tokens" if field == "max_tokens" else ""}
    if said(table.wants_reasoning, text) and not profile.send_reasoning:
        return {"send_reasoning": True}
    if structured and profile.structured.next and _refuses_structure(profile.structured, failure):
        return {"structured": profile.structured.next}
    if profile.system_role != "user" and body["messages"][0]["role"] == profile.system_role and _no_system(failure):
        suggested = profile.system_role == "system" and re.search(r"use .{0,20}developer", text, re.IGNORECASE)
        return {"system_role": "developer" if suggested else "user"}
    empty = any(message.get("content", "") is None for message in body["messages"])
    if profile.null_content and empty and said(table.no_null, text):
        return {"null_content": False}
    for name in sorted(table.optional & body.keys()):
        if _names(failure, name):
            return {"dropped": profile.dropped | {name}}
    return {}


def _names(failure: Failure, parameter: str) -> bool:
    """Whether a refusal is about this parameter."""
    if failure.param:
        return re.split(r"[.\[]", failure.param)[0] == parameter
    text = failure.text
    return bool(re.search(rf"\b{parameter}\b", text) and re.search(quirks().rejection, text, re.IGNORECASE | re.DOTALL))


def _refuses_structure(mode: Structured, failure: Failure) -> bool:
    if mode is Structured.JSON_SCHEMA:
        return _names(failure, "response_format") or _names(failure, "json_schema")
    tools = any(said((row.pattern,), failure.text) for row in quirks().unsuitable if "tool" in row.hint.lower())
    return tools or _names(failure, "tool_choice") or _names(failure, "tools")


def _no_system(failure: Failure) -> bool:
    if failure.param.startswith("messages") and failure.param.endswith("role"):
        return True
    return said(quirks().no_system, failure.text) is not None
