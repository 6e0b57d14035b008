"""What the loop, the tools and the three roles agree on."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from autoinstall.models.contract import Message, Tool
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Goal, Mock, Usage, Value


class LoopStop(StrEnum):
    """Why a loop ended. `SUBMITTED` and `GAVE_UP` are the agent's own choice; all others were done to it."""

    SUBMITTED = "submitted"
    GAVE_UP = "gave_up"
    STEPS = "steps"
    SECONDS = "seconds"
    TOKENS = "tokens"
    COST = "cost"
    CONTEXT = "context_exhausted"
    TRUNCATED = "output_truncated"
    REPETITION = "repetition"
    NO_CALLS = "no_tool_calls"
    SANDBOX_BROKEN = "sandbox_broken"


class Budget(Value):
    """Bounds of one loop.

    Attributes:
        deadline: by `time.monotonic()`.
        steps: assistant messages. tokens: input and output of all calls. cost_usd: None for no bound.
    """

    deadline: float
    steps: int
    tokens: int
    cost_usd: float | None = None


class Observation(Value):
    """What a tool tells the model. `stop` ends the loop after every call of this message is answered."""

    text: str
    error: bool = False
    stop: LoopStop | None = None


@dataclass
class Desk:
    """What the tools of one agent run share: the place they act in, and what they leave for the report.

    Attributes:
        tree: the pristine checkout on the host.
        observation_characters: of one observation; longer ones are cut in the middle and kept whole in a file of the
            sandbox that the notice names.
        command_seconds: what a command may take at most; deadline: of the whole run, by `time.monotonic()`.
        mocks: declared so far.
        targets: of an installer; empty for a goal-setter.
        outputs: how many observations have a file in the sandbox so far.
        submitted: what `submit` or `give_up` was called with.
    """

    sandbox: Sandbox
    tree: Tree
    observation_characters: int
    command_seconds: float
    deadline: float
    targets: tuple[Goal, ...] = ()
    mocks: list[Mock] = field(default_factory=list)
    outputs: int = 0
    submitted: Value | None = None


class AgentTool(Protocol):
    """One tool. Calls of tools with `reads_only` may run side by side; all others run one after the other, in order."""

    spec: Tool
    reads_only: bool

    def call(self, arguments: dict[str, Any], desk: Desk) -> Observation:
        """Carry out one call. What the model did wrong is an observation with `error`, in words it can act on.

        Raises:
            Infrastructure: the sandbox or the network below it failed; not the model's fault.
        """
        ...


class LoopResult(Value):
    """How a loop ended, and the whole conversation, with nothing shortened in it.

    Attributes:
        detail: a sentence on the stop for people.
        messages: complete; what the model was sent may have been shortened.
        model: as the endpoint names it.
    """

    stop: LoopStop
    detail: str
    messages: tuple[Message, ...]
    usage: Usage
    model: str = ""


def journal_path(cache: Path, owner: str, role: str, number: int) -> Path:
    """Where the journal of one agent run lies until its trajectory is in a dataset."""
    return cache / "journals" / f"{owner}-{role}-{number}.jsonl"
