"""Goals as a model writes them, and the tool that tells it how one of them fares."""

from typing import Annotated

from pydantic import Field

from autoinstall.agents.contract import Judge
from autoinstall.agents.llm.contract import Desk, Observation
from autoinstall.agents.llm.shared import tail
from autoinstall.agents.llm.tools.base import TypedTool, failure, seconds_left
from autoinstall.proposals import check_goal
from autoinstall.values import Category, Goal, NonEmpty, Value
from autoinstall.verification import run_goal

_MAX_EXIT_CODES = 3
_HIGHEST_EXIT_CODE = 125
"""Above it the shell speaks: a command that was not found, could not be run or was killed is no success."""


class Trial(Value):
    """What of a goal decides whether an output fits it."""

    command: Annotated[NonEmpty, Field(max_length=4000, description="run by bash in /workspace")]
    category: Category
    description: Annotated[
        NonEmpty, Field(max_length=1500, description="what it prints in a working environment; read literally")
    ]
    exit_codes: Annotated[
        tuple[Annotated[int, Field(ge=0, le=_HIGHEST_EXIT_CODE)], ...],
        Field(min_length=1, max_length=_MAX_EXIT_CODES, description="exit codes that count as success"),
    ] = (0,)
    min_pass_rate: Annotated[
        float, Field(gt=0, le=1, description="fraction of the tests that must pass; 1 for all, and for other commands")
    ] = 1.0

    def goal(self) -> Goal:
        """Without evidence."""
        return Goal(
            command=self.command,
            description=self.description,
            category=self.category,
            exit_codes=self.exit_codes,
            min_pass_rate=self.min_pass_rate,
        )


class GoalDraft(Trial):
    """One goal, as it is submitted."""

    evidence_path: Annotated[NonEmpty, Field(description="file of the checkout that shows the command, relative to it")]
    evidence_line: Annotated[int, Field(ge=0, description="its line there; 0 for the file as a whole")] = 0


class TryGoal(TypedTool[Trial]):
    """Runs one draft in the throw-away sandbox and holds its output against its description.

    Args:
        judge: no model; the one that the goal will be held to later.
    """

    def __init__(self, judge: Judge) -> None:
        super().__init__("try_goal", Trial)
        self._judge = judge

    def carry_out(self, arguments: Trial, desk: Desk) -> Observation:
        goal = arguments.goal()
        if complaint := check_goal(goal):
            return failure(f"It could not be proposed: {complaint}")
        judged = run_goal(desk.sandbox, goal, self._judge, limit=seconds_left(desk, desk.command_seconds))
        verdict, result = judged.judgement, judged.result
        shown = tail(result, desk.observation_characters // 3) or "(no output)"
        head = f"[{verdict.verdict.value}: {verdict.reason}]\n[exit code {result.exit_code}, {result.duration:.1f} s]"
        return Observation(text=f"{head}\n{shown}", error=not judged.matches)
