"""Agents that do what they are told: for dry runs of the pipeline and for its tests."""

from collections.abc import Callable, Sequence

from autoinstall.agents.contract import NO_JOURNAL, Assignment, Journal, Repository
from autoinstall.logs import telling
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import (
    CommandResult,
    Goal,
    GoalResult,
    Judgement,
    Mock,
    Proposal,
    Role,
    Service,
    SetupReport,
    StopReason,
    Trajectory,
    Verdict,
)


class ScriptedGoalSetter:
    """Proposes the given goals, one set for each time that it is asked; the last set serves all later times.

    Attributes:
        asked: (commands of the rejected goals, complaint) of every call.
    """

    name = "scripted"

    def __init__(self, *proposals: Sequence[Goal]) -> None:
        self._proposals = [tuple(goals) for goals in proposals]
        self.asked: list[tuple[tuple[str, ...], str]] = []

    def propose(
        self,
        repository: Repository,
        tree: Tree,
        sandbox: Sandbox,
        *,
        rejected: Sequence[GoalResult] = (),
        complaint: str = "",
        journal: Journal = NO_JOURNAL,
    ) -> Proposal:
        del repository, tree, sandbox, journal
        goals = self._proposals[min(len(self.asked), len(self._proposals) - 1)]
        self.asked.append((tuple(result.goal.command for result in rejected), complaint))
        return Proposal(goals=goals, trajectory=_trajectory(Role.GOAL_SETTER, ()))


class ScriptedInstaller:
    """Runs the given commands, one list for each attempt; the last list serves all later attempts.

    Attributes:
        assignments: what it was given, call by call.
    """

    name = "scripted"

    def __init__(
        self,
        *attempts: Sequence[str],
        services: Sequence[Service] = (),
        mocks: Sequence[Mock] = (),
        exhausted: bool = False,
        modified: Sequence[str] = (),
    ) -> None:
        self._attempts = [tuple(commands) for commands in attempts] or [()]
        self._services = tuple(services)
        self._mocks = tuple(mocks)
        self._exhausted = exhausted
        self._modified = tuple(modified)
        self.assignments: list[Assignment] = []

    def install(
        self, assignment: Assignment, tree: Tree, sandbox: Sandbox, *, journal: Journal = NO_JOURNAL
    ) -> SetupReport:
        del tree, journal
        commands = self._attempts[min(assignment.attempt, len(self._attempts)) - 1]
        self.assignments.append(assignment)
        with telling():
            results = [sandbox.run(command) for command in commands]
        for service in self._services:
            sandbox.start_service(service)
        failed = next((result for result in results if result.exit_code != 0), None)
        return SetupReport(
            stop=StopReason.GAVE_UP if failed else StopReason.DONE,
            summary=f"`{failed.command}` failed." if failed else "All commands succeeded.",
            recipe=sandbox.recipe,
            mocks=self._mocks,
            lessons=(f"`{failed.command}` failed",) if failed else (),
            exhausted=self._exhausted,
            modified=self._modified,
            trajectory=_trajectory(Role.INSTALLER, commands),
        )


class ScriptedJudge:
    """Judges by a function; by default a goal matches where its exit code is one of those it names."""

    name = "scripted"

    def __init__(self, decide: Callable[[Goal, CommandResult], Verdict] | None = None) -> None:
        self._decide = decide or _by_exit_code

    def judge(self, goal: Goal, result: CommandResult) -> Judgement:
        verdict = self._decide(goal, result)
        return Judgement(verdict=verdict, reason=f"scripted: exit code {result.exit_code}")


def _by_exit_code(goal: Goal, result: CommandResult) -> Verdict:
    return Verdict.MATCHES if result.exit_code in goal.exit_codes else Verdict.MISMATCH


def _trajectory(role: Role, commands: Sequence[str]) -> Trajectory:
    messages = tuple({"role": "assistant", "content": command} for command in commands)
    return Trajectory(role=role, agent="scripted", messages=messages)
