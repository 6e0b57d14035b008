"""Noticing that an agent goes round in circles."""

import json
from collections import deque
from collections.abc import Sequence

from autoinstall.agents.llm.notices import notices
from autoinstall.models.contract import ToolCall
from autoinstall.outputs.cleaning import normalise

NOTICE_TIMES = 3
MAX_TIMES = 5
LONGEST_CYCLE = 3


class Repetition:
    """Remembers the last steps: their calls, and what they gave up to times, durations and the like."""

    def __init__(self) -> None:
        self._steps: deque[int] = deque(maxlen=MAX_TIMES * LONGEST_CYCLE)

    def times(self, calls: Sequence[ToolCall], results: Sequence[str]) -> int:
        """Take in a step; how many times in a row the last one, two or three steps were now done."""
        said = [(call.name, json.dumps(call.arguments, sort_keys=True)) for call in calls]
        self._steps.append(hash((tuple(said), tuple(normalise(result) for result in results))))
        steps = list(self._steps)
        return max(_times(steps, length) for length in range(1, LONGEST_CYCLE + 1))

    @staticmethod
    def notices(times: int) -> list[str]:
        """What the model should be told of it."""
        return [notices().repeated.format(count=times)] if NOTICE_TIMES <= times < MAX_TIMES else []


def _times(steps: Sequence[int], length: int) -> int:
    """How often the last `length` steps stand at the end, one after the other."""
    cycle = steps[-length:]
    count = 1
    while steps[-length * (count + 1) : -length * count] == cycle:
        count += 1
    return count
