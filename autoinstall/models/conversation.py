"""When a conversation is valid: what every endpoint asks of it, checked before one is asked."""

from collections.abc import Sequence

from autoinstall.models.contract import Message


class InvalidConversation(AssertionError):
    """A defect of whoever built the conversation, not of the model or of its endpoint."""


def check_conversation(messages: Sequence[Message]) -> None:
    """Every call has a unique id and is answered exactly once, in order, before anything else is said.

    Raises:
        InvalidConversation: it says where.
    """
    if not messages:
        raise InvalidConversation("The conversation is empty.")
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        where = f"message {number} ({message.role})"
        if message.role == "tool":
            if not waiting or message.tool_call_id != waiting[0]:
                wanted = f"call {waiting[0]!r} is next" if waiting else "no call is open"
                raise InvalidConversation(f"{where} answers {message.tool_call_id!r}, but {wanted}.")
            waiting.pop(0)
        elif waiting:
            raise InvalidConversation(f"{where} comes before the answers of {', '.join(waiting)}.")
        if message.role == "system" and number:
            raise InvalidConversation(f"{where} is not the first.")
        if message.tool_calls and message.role != "assistant":
            raise InvalidConversation(f"{where} has tool calls.")
        if message.tool_call_id and message.role != "tool":
            raise InvalidConversation(f"{where} answers a call.")
        for call in message.tool_calls:
            if not call.id or call.id in seen:
                raise InvalidConversation(f"{where}: the id {call.id!r} of a call is empty or was used before.")
            seen.add(call.id)
            waiting.append(call.id)
    if waiting:
        raise InvalidConversation(f"The conversation ends with calls unanswered: {', '.join(waiting)}.")
    if messages[-1].role == "system":
        raise InvalidConversation("There is nothing to answer: the conversation is a system message alone.")
