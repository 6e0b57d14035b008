"""What a loop has used of its budget."""

import time
from collections.abc import Iterator

from autoinstall.agents.llm.contract import Budget, LoopStop
from autoinstall.agents.llm.notices import notices
from autoinstall.models.contract import Reply
from autoinstall.values import Usage

WARN_AT = 0.8
"""Share of a bound from which the model is told, once for each bound."""

_WORDS = {LoopStop.STEPS: "steps", LoopStop.SECONDS: "time", LoopStop.TOKENS: "tokens", LoopStop.COST: "money"}


class Meter:
    """Counts replies against a budget; its time runs from here on.

    Attributes:
        deadline: by `time.monotonic()`.
        model: the model's name as its last reply said it.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.deadline = budget.deadline
        self._started = time.monotonic()
        self._usage = Usage()
        self._warned: set[LoopStop] = set()
        self.model = ""

    def add(self, reply: Reply) -> None:
        used, tokens = self._usage, reply.usage
        self.model = reply.model
        self._usage = Usage(
            model_seconds=used.model_seconds + reply.seconds,
            steps=used.steps + 1,
            input_tokens=used.input_tokens + tokens.input_tokens,
            cached_tokens=used.cached_tokens + tokens.cached_tokens,
            output_tokens=used.output_tokens + tokens.output_tokens,
            reasoning_tokens=used.reasoning_tokens + tokens.reasoning_tokens,
            cost_usd=used.cost_usd + reply.cost_usd,
        )

    def usage(self) -> Usage:
        """All of it so far."""
        return self._usage.model_copy(update={"seconds": time.monotonic() - self._started})

    def used_up(self) -> tuple[LoopStop, str] | None:
        """The first bound that is reached, with a sentence on it."""
        for stop, share in self._shares():
            if share >= 1:
                return stop, f"The {_WORDS[stop]} of this run are used up ({self._amount(stop)})."
        return None

    def notices(self) -> list[str]:
        """What the model should be told now: once for each bound that comes near."""
        near = [(stop, share) for stop, share in self._shares() if share >= WARN_AT and stop not in self._warned]
        self._warned.update(stop for stop, _ in near)
        return [notices().running_out.format(percent=int(share * 100), what=_WORDS[stop]) for stop, share in near]

    def _shares(self) -> Iterator[tuple[LoopStop, float]]:
        budget, used = self._budget, self._usage
        now = time.monotonic()
        yield LoopStop.STEPS, used.steps / max(budget.steps, 1)
        yield LoopStop.SECONDS, (now - self._started) / span if (span := budget.deadline - self._started) > 0 else 1.0
        yield LoopStop.TOKENS, (used.input_tokens + used.output_tokens) / max(budget.tokens, 1)
        if budget.cost_usd is not None:
            yield LoopStop.COST, used.cost_usd / budget.cost_usd if budget.cost_usd > 0 else 1.0

    def _amount(self, stop: LoopStop) -> str:
        used = self.usage()
        return {
            LoopStop.STEPS: f"{used.steps} answers",
            LoopStop.SECONDS: f"{used.seconds:.0f} s",
            LoopStop.TOKENS: f"{used.input_tokens + used.output_tokens} tokens",
            LoopStop.COST: f"${used.cost_usd:.2f}",
        }[stop]
