"""What of a conversation is sent: all of it while it fits the model, and then less in big steps.

In big steps, because endpoints cache the beginning that a request shares with the one before: between two of them each
request is the one before with something behind it.
"""

from collections.abc import Iterable, Sequence

from autoinstall.agents.contract import Journal
from autoinstall.agents.llm.notices import notices
from autoinstall.errors import ContextExhausted
from autoinstall.models.contract import Message, TokenUsage, Tool, ToolCall

ANSWER_TOKENS = 8192
"""Kept free for the answer, at most a quarter of the context."""

TARGET = 0.6
"""Of the limit: what is left once it was reached."""

OVERFLOW = 0.8
"""Of what an endpoint found too long: the limit from then on."""

RECENT = 4
"""Steps that are shortened or left out only if nothing else helps."""

SHORT = 600
"""Characters that a shortened observation keeps of its beginning and of its end, each."""

LINES = 20
"""Calls that the note on what was left out names."""

_CHARACTERS_PER_TOKEN = 3.0
_MESSAGE_CHARACTERS = 20
_EMPTY = "(no text)"

Group = list[Message]
"""An assistant's message with all that answers it: left out together or not at all."""


class Conversation:
    """A conversation, whole for the record and within bounds for the model.

    Args:
        start: the messages that it begins with; they are always sent as they are.
        context_tokens: of a request and its answer together.
        journal: gets every message as it comes.

    Attributes:
        messages: all of them, nothing shortened.
    """

    def __init__(self, start: Sequence[Message], tools: Sequence[Tool], context_tokens: int, journal: Journal) -> None:
        self.messages: list[Message] = []
        self._journal = journal
        self._limit = context_tokens - min(ANSWER_TOKENS, context_tokens // 4)
        self._tools = sum(len(tool.model_dump_json()) for tool in tools)
        self._per_token = _CHARACTERS_PER_TOKEN
        self._sent_characters = 0
        self._ids: dict[str, str] = {}
        self._start = tuple(start)
        self._note: tuple[Message, ...] = ()
        self._groups: list[Group] = []
        self._left_out: list[str] = []
        self._left_out_steps = 0
        for message in start:
            self._record(message)

    def add(self, message: Message) -> None:
        """Put a message behind the others."""
        self._record(message)
        self._append(message if message.content or message.tool_calls else _with_text(message))

    def add_refused(self, message: Message) -> None:
        """Put an assistant's message behind the others of which nothing is carried out: arguments that were cut off
        are no JSON, and endpoints choke on them, so the calls are sent back without."""
        self._record(message)
        calls = tuple(ToolCall(id=call.id, name=call.name, arguments={}) for call in message.tool_calls)
        self._append(_with_text(message).model_copy(update={"tool_calls": calls, "reasoning": ""}))

    def to_send(self) -> tuple[Message, ...]:
        """The next request's messages, shortened if need be.

        Raises:
            ContextExhausted: they do not fit however they are shortened.
        """
        if self.tokens > self._limit:
            self._compact()
        if self.tokens > self._limit:
            raise ContextExhausted(
                f"The task alone takes about {self.tokens} tokens, and the model has room for {self._limit}.",
                hint="Take a model with a larger context.",
            )
        self._sent_characters = self._characters
        return tuple(self._shown())

    def calibrate(self, usage: TokenUsage) -> None:
        """Learn from the reply to what was sent last how many characters make a token."""
        if usage.input_tokens and not usage.estimated:
            self._per_token = min(max(self._sent_characters / usage.input_tokens, 1.0), 6.0)

    def overflowed(self) -> None:
        """The endpoint found the last request too long: hold the next ones to less than that."""
        self._limit = int(min(self._limit, self.tokens) * OVERFLOW)

    @property
    def tokens(self) -> int:
        """An estimate of what would be sent, tools included."""
        return int(self._characters / self._per_token)

    @property
    def _characters(self) -> int:
        return self._tools + sum(map(_characters, self._shown()))

    def _shown(self) -> Iterable[Message]:
        yield from self._start
        yield from self._note
        for group in self._groups:
            yield from group

    def _record(self, message: Message) -> None:
        """Keep a message. Endpoints use ids again that they are not sent any more: the record has them apart."""
        for call in message.tool_calls:
            self._ids[call.id] = f"{call.id}_{len(self.messages)}" if call.id in self._ids else call.id
        calls = tuple(call.model_copy(update={"id": self._ids[call.id]}) for call in message.tool_calls)
        answered = self._ids.get(message.tool_call_id, message.tool_call_id)
        message = message.model_copy(update={"tool_calls": calls, "tool_call_id": answered})
        self._journal.write(message)
        self.messages.append(message)

    def _append(self, message: Message) -> None:
        if message.role == "assistant" or not self._groups:
            self._groups.append([])
        self._groups[-1].append(message)

    def _compact(self) -> None:
        target = int(self._limit * TARGET)
        for spared, enough in ((RECENT, target), (1, (target + self._limit) // 2), (0, self._limit)):
            self._shorten(len(self._groups) - spared, enough)
            while len(self._groups) > spared and self.tokens > enough:
                self._leave_out(self._groups.pop(0))

    def _shorten(self, count: int, enough: int) -> None:
        """Shorten the observations of the first `count` groups, oldest first, until `enough` tokens are left."""
        for group in self._groups[: max(count, 0)]:
            for index, message in enumerate(group):
                if self.tokens <= enough:
                    return
                if message.role == "tool":
                    group[index] = message.model_copy(update={"content": _shortened(message.content)})

    def _leave_out(self, group: Group) -> None:
        results = {message.tool_call_id: message.content for message in group if message.role == "tool"}
        calls = [call for message in group for call in message.tool_calls]
        self._left_out_steps += 1
        self._left_out = [*self._left_out, *(_line(call, results.get(call.id, "")) for call in calls)][-LINES:]
        text = notices().left_out.format(count=self._left_out_steps, calls="\n".join(self._left_out))
        self._note = (Message(role="user", content=text),)


def _with_text(message: Message) -> Message:
    """An assistant's message without a word is refused by some endpoints."""
    return message.model_copy(update={"content": message.content or _EMPTY})


def _characters(message: Message) -> int:
    calls = sum(len(call.id) + len(call.name) + len(call.raw) + _MESSAGE_CHARACTERS for call in message.tool_calls)
    texts = len(message.content) + len(message.reasoning) + len(message.tool_call_id)
    return texts + calls + _MESSAGE_CHARACTERS


def _shortened(text: str) -> str:
    notice = notices().shortened.format(count=len(text) - 2 * SHORT)
    return text if len(text) <= 2 * SHORT + len(notice) else f"{text[:SHORT]}\n{notice}\n{text[-SHORT:]}"


def _line(call: ToolCall, result: str) -> str:
    """A call in short: its most telling argument, and how its result begins."""
    told = next((value for value in (call.arguments or {}).values() if isinstance(value, str)), "")
    began = result.strip().split("\n", 1)[0]
    return f"- {call.name} {' '.join(told.split())[:100]} → {began[:60]}"
