"""The repair loop: a failure goes to the repairers, remedies are applied one at a time, the command runs again."""

import re
import time
from collections.abc import Callable, Iterator, Sequence

from autoinstall.agents.rules.contract import Context, Repair, Repairer, Step
from autoinstall.agents.rules.registries import answers, is_network_failure
from autoinstall.agents.rules.trajectory import RecordingSandbox
from autoinstall.errors import BudgetExhausted, ServiceNotReady
from autoinstall.values import CommandResult, Mock, Value

REPAIR_SECONDS = 600.0
"""Limit of one command of a repair."""

MAX_STALE = 3
"""Repairs in a row after which the failure looks as it did before: no progress."""

MAX_APPLIED = 40
"""Repairs in one attempt, whatever they are for."""

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?\s*m?s\b|/tmp/\S+|\d{2}:\d{2}:\d{2}\S*|\bpid \d+")


class Failure(Value):
    """A step or target that did not do what it should."""

    step: Step
    result: CommandResult
    is_target: bool = False


class Workshop:
    """Runs commands within the attempt's time and applies repairs; remembers what was done.

    Args:
        deadline: of the attempt, in seconds of `time.monotonic`.
        limit: seconds of one command that states none of its own.
    """

    def __init__(
        self,
        context: Context,
        sandbox: RecordingSandbox,
        repairers: Sequence[Repairer],
        *,
        deadline: float,
        limit: float,
    ) -> None:
        self._context = context
        self._sandbox = sandbox
        self._repairers = repairers
        self._deadline = deadline
        self._limit = limit
        self._tried: set[str] = set()
        self.applied: list[str] = []
        self.mocks: list[Mock] = []
        self.lessons: list[str] = []
        self.looped = False
        self.unmet: dict[str, CommandResult] = {}
        """Targets that do not match, with what they last gave."""
        self.silent = ""
        """The ecosystem whose registry was asked and did not answer."""

    def run(self, step: Step) -> CommandResult:
        """Run the step's command.

        Raises:
            BudgetExhausted: the attempt's time is over.
        """
        timeout = min(step.timeout or self._limit, self._left())
        return self._sandbox.because(step.why).run(step.command, timeout=timeout)

    def is_silent(self, ecosystem: str, failure: CommandResult) -> bool:
        """Whether the failure speaks of the network and the ecosystem's registry does not answer: no repair helps."""
        if is_network_failure(failure.output) and self.silent != ecosystem and not answers(ecosystem, self._sandbox):
            self.silent = ecosystem
        return self.silent == ecosystem and is_network_failure(failure.output)

    def repair(
        self,
        failure: Failure,
        *,
        rerun: Callable[[Step], CommandResult],
        accept: Callable[[CommandResult], bool],
        limit: int,
    ) -> CommandResult:
        """The result after repairing, good or bad: of the last run of the (possibly replaced) command."""
        step, result = failure.step, failure.result
        seen = {_signature(result)}
        stale = 0
        remedies = self._remedies(result, failure.is_target)
        for _ in range(limit):
            repair = next(remedies, None)
            if repair is None or len(self.applied) >= MAX_APPLIED:
                return result
            if not self._apply(repair):
                continue
            if repair.replacement and not failure.is_target:
                step = step.model_copy(update={"command": repair.replacement})
            result = rerun(step)
            if accept(result):
                return result
            signature = _signature(result)
            stale = stale + 1 if signature in seen else 0
            seen.add(signature)
            if stale >= MAX_STALE:
                self.looped = True
                return result
            remedies = self._remedies(result, failure.is_target)
        return result

    def declare(self, mock: Mock) -> None:
        self._sandbox.declare_mock(mock)
        self.mocks.append(mock)

    def learn(self, lesson: str) -> None:
        if lesson and lesson not in self.lessons:
            self.lessons.append(lesson)

    def _remedies(self, failure: CommandResult, is_target: bool) -> Iterator[Repair]:
        """What has not been tried yet, as the repairers name it; a look-up is only made once it is reached."""
        for repairer in self._repairers:
            for repair in repairer.repairs(self._context, failure, self._sandbox):
                replaces_target = is_target and repair.replacement and not repair.commands
                if repair.key not in self._tried and not replaces_target:
                    yield repair

    def _apply(self, repair: Repair) -> bool:
        """Whether everything in the repair could be done."""
        self._tried.add(repair.key)
        for command in repair.commands:
            timeout = min(REPAIR_SECONDS, self._left())
            if self._sandbox.because(repair.why).run(command, timeout=timeout).exit_code != 0:
                return False
        for name, value in repair.env.items():
            self._sandbox.because(repair.why).set_env(name, value)
        for file in repair.files:
            self._sandbox.because(repair.why).write_file(file.path, file.content.encode())
        for service in repair.services:
            try:
                self._sandbox.because(repair.why).start_service(service)
            except ServiceNotReady as error:
                self.learn(f"service {service.name} did not start: {error.message[:160]}")
                return False
        for mock in repair.mocks:
            self.declare(mock)
        self.learn(repair.lesson)
        self.applied.append(repair.key)
        return True

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 1:
            raise BudgetExhausted("The attempt's time is over.")
        return left


def _signature(result: CommandResult) -> str:
    """The failure's last lines without what differs from run to run."""
    return _VOLATILE.sub("", "\n".join(result.output.splitlines()[-30:]))
