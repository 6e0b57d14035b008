"""Tools that end the work."""

from collections.abc import Callable
from typing import TypeVar

from autoinstall.agents.llm.contract import Desk, LoopStop, Observation
from autoinstall.agents.llm.tools.base import TypedTool, failure
from autoinstall.values import Value

V = TypeVar("V", bound=Value)


class Submit(TypedTool[V]):
    """Hands the result in, once it is good.

    Args:
        form: what is handed in; it ends up in `desk.submitted`.
        check: what is wrong with it, in words that the model can act on; empty where nothing is. The loop goes on then.
    """

    def __init__(self, form: type[V], description: str, check: Callable[[V, Desk], str] | None = None) -> None:
        super().__init__("submit", form, description=description)
        self._check = check

    def carry_out(self, arguments: V, desk: Desk) -> Observation:
        complaint = self._check(arguments, desk) if self._check is not None else ""
        if complaint:
            return failure(f"It was not taken: {complaint}")
        desk.submitted = arguments
        return Observation(text="Handed in.", stop=LoopStop.SUBMITTED)


class GiveUp(TypedTool[V]):
    """Ends the work without a result, with a form of the role's own; it ends up in `desk.submitted`."""

    def __init__(self, form: type[V], description: str) -> None:
        super().__init__("give_up", form, description=description)

    def carry_out(self, arguments: V, desk: Desk) -> Observation:
        desk.submitted = arguments
        return Observation(text="Given up.", stop=LoopStop.GAVE_UP)
