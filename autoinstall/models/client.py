"""A model at any endpoint that speaks Chat Completions, through the openai package."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from autoinstall.errors import BadInput, ModelUnavailable
from autoinstall.models import structured
from autoinstall.models.adaptation import Learned, Profile, Structured
from autoinstall.models.admission import admitted
from autoinstall.models.contract import FinishReason, Message, Reply, TokenUsage, Tool
from autoinstall.models.conversation import check_conversation
from autoinstall.models.decoding import decode, fresh_id
from autoinstall.models.failures import Failure, Kind, error_of, is_filtered, kind_of
from autoinstall.models.quirks import quirks, said
from autoinstall.models.retries import backoff, sleep_in_slices
from autoinstall.models.tokens import added, cost_usd, estimate_conversation
from autoinstall.models.transport import LONGEST, Transport
from autoinstall.models.wire import Request, body_of
from autoinstall.settings import ModelSettings

log = logging.getLogger(__name__)

MALFORMED_RETRIES = 2
"""How often an answer that is none is asked for again; the `retries` of the settings are for failures that pass."""

ADAPTATIONS = 12
"""More refusals in a row than there is to learn: an endpoint that refuses whatever is sent."""

SMALLEST_ROOM = 512
"""Tokens below which an answer is not worth asking for: the conversation is too long."""


class OpenAIModel:
    """`models.contract.Model` by the openai package. Shared by threads.

    Args:
        settings: the endpoint and the model.
        variable: where these settings are, as hints name them.
        sleep: how waits before retries are spent.

    Raises:
        BadInput: no model is named, or the endpoint's URL or headers cannot be used.
        EndpointUnsuitable: the default endpoint is meant, and there is no key.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        variable: str = "AUTOINSTALL_MODEL",
        sleep: Callable[[float], None] = sleep_in_slices,
    ) -> None:
        if not settings.name:
            raise BadInput("No model is named.", hint=f"Set {variable}__NAME to a model of the endpoint.")
        self._settings = settings
        self._variable = variable
        self._sleep = sleep
        self._learned = Learned()
        self._transport = Transport(settings, variable)

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r} at {self._transport.endpoint})"

    @property
    def name(self) -> str:
        """The model, as the settings name it."""
        return self._settings.name

    @property
    def context_tokens(self) -> int:
        """By the settings."""
        return self._settings.context_tokens

    @property
    def profile(self) -> Profile:
        """What the endpoint turned out to take."""
        return self._learned.profile

    def close(self) -> None:
        """Close the connections. Idempotent; also done when the model is no longer used."""
        self._transport.close()

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Tool | None = None,
        deadline: float | None = None,
        max_output_tokens: int | None = None,
    ) -> Reply:
        """See `models.contract.Model.complete`."""
        check_conversation(messages)
        with admitted():
            started = time.monotonic()
            ends = started + min(LONGEST, self._settings.total_seconds)
            if deadline is not None:
                ends = min(ends, deadline)
            limit = max_output_tokens or self._settings.max_output_tokens
            request = Request(messages=messages, tools=tools, schema=schema, max_output_tokens=limit)
            reply = self._ask(request, ends)[0] if schema is None else self._ask_for_object(request, schema, ends)
        cost = cost_usd(reply.usage, self._settings.price)
        return reply.model_copy(update={"seconds": time.monotonic() - started, "cost_usd": cost})

    def _ask_for_object(self, request: Request, schema: Tool, ends: float) -> Reply:
        """Ask in one way after the other until there is an object, and remember the way."""
        usage, retries = TokenUsage(), 0
        made_up = fresh_id(request.messages, self._settings.call_ids)
        mode: Structured | None = Structured.TOOL
        while mode is not None:
            reply, mode = self._ask(request, ends, mode)
            usage, retries = added(usage, reply.usage), retries + reply.retries
            reply = reply.model_copy(update={"usage": usage, "retries": retries})
            if reply.finish in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER):
                return reply
            if found := structured.found_in(reply, schema, made_up):
                self._learned.settle(mode)
                return found
            mode = mode.next
        return structured.unusable(reply, schema, made_up)

    def _ask(self, request: Request, ends: float, mode: Structured = Structured.TOOL) -> tuple[Reply, Structured]:
        """One answer, after as many tries as it takes, and the way in which an object was asked for.

        Args:
            mode: the way to an object that is asked for at least; the endpoint may be known to need a later one.
        """
        retries = malformed = adaptations = 0
        while True:
            used = self._learned.profile
            sent = used.model_copy(update={"structured": used.structured.or_later(mode)})
            body = body_of(request, self._settings, sent)
            if time.monotonic() >= ends:
                self._late(retries)
            found = self._exchange(body, request, ends)
            if isinstance(found, Reply):
                return found.model_copy(update={"retries": retries}), sent.structured
            if found.status == 0 and time.monotonic() >= ends:
                self._late(retries)
            if (room := _room(found)) and SMALLEST_ROOM <= room < request.max_output_tokens:
                request = replace(request, max_output_tokens=room)
                continue
            kind = kind_of(found)
            refused = kind is Kind.REFUSED or (kind is Kind.RETRY and found.status >= 500)
            if refused and adaptations < ADAPTATIONS:
                adaptations += 1
                if self._learned.adapt(used, sent, body, found, structured=request.schema is not None):
                    continue
            malformed += kind is Kind.MALFORMED
            again = kind is Kind.RETRY or 0 < malformed <= MALFORMED_RETRIES
            if not again or retries >= self._settings.retries:
                raise error_of(found, kind, self._transport.endpoint, self._variable, retries + 1)
            self._wait(found, retries, ends)
            retries += 1

    def _exchange(self, body: Mapping[str, Any], request: Request, ends: float) -> Reply | Failure:
        """One request and its answer, decoded."""
        found = self._transport.send(body, ends)
        if isinstance(found, Failure):
            return self._filtered(request) if is_filtered(found) else found
        return decode(
            found.payload,
            request.messages,
            model=self.name,
            call_ids=self._settings.call_ids,
            input_estimate=estimate_conversation(request.messages, request.tools),
            hide=self._transport.hide,
        )

    def _filtered(self, request: Request) -> Reply:
        """A refusal of what was asked, in the form in which other endpoints answer with one."""
        usage = TokenUsage(input_tokens=estimate_conversation(request.messages, request.tools), estimated=True)
        empty = Message(role="assistant")
        return Reply(message=empty, finish=FinishReason.CONTENT_FILTER, usage=usage, model=self.name)

    def _wait(self, failure: Failure, retries: int, ends: float) -> None:
        """As long as the endpoint asks, or else by our own measure; not at all where the deadline comes first."""
        seconds = backoff(retries) if failure.wait is None else failure.wait
        left = ends - time.monotonic()
        if seconds >= left:
            asked = " as it asks" if failure.wait is not None else ""
            raise ModelUnavailable(
                f"{self._transport.endpoint} failed ({failure.summary}), and waiting {seconds:.0f} s{asked} would pass "
                f"the deadline, {max(left, 0):.0f} s from now.",
                hint=f"Ask less at once, or raise {self._variable}__TOTAL_SECONDS.",
            )
        log.info("%s: %s; trying again in %.1f s", self._transport.endpoint, failure.summary, seconds)
        self._sleep(seconds)

    def _late(self, retries: int) -> NoReturn:
        tries = f" and {retries + 1} tries" if retries else ""
        raise ModelUnavailable(
            f"{self._transport.endpoint} gave no whole answer within its deadline{tries}.",
            hint=f"Raise {self._variable}__TOTAL_SECONDS, or look what keeps the endpoint.",
        )


def _room(failure: Failure) -> int:
    """Tokens that an answer may have beside the conversation, where the endpoint says; 0 where it does not."""
    found = said(quirks().room, failure.text) if failure.status >= 400 else None
    return int(found["limit"]) - int(found["input"]) if found else 0
