"""What agents are. Two families stand behind these: `rules` (no model) and, later, `llm`; `scripted` is the fake."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Goal, GoalResult, Judgement, Limits, Proposal, SetupReport, Value


class Repository(Value):
    """What an agent may know of the repository beside its tree."""

    url: str
    commit: str
    commit_date: datetime


class GoalSetter(Protocol):
    """Stage 1: studies the pristine checkout and says what should run."""

    name: str

    def propose(
        self,
        repository: Repository,
        tree: Tree,
        sandbox: Sandbox,
        *,
        rejected: Sequence[GoalResult] = (),
        complaint: str = "",
    ) -> Proposal:
        """Ten goals.

        Args:
            sandbox: a throw-away one at the initial state.
            rejected: goals of an earlier proposal that turned out to be trivial, with their baseline results.
            complaint: what was wrong with an earlier proposal; empty at first.

        Raises:
            BadProposal: it could not find ten.
            NothingToSetUp: there is no code here that anything could be set up for.
            BudgetExhausted, Infrastructure.
        """
        ...


class Assignment(Value):
    """What an installer is given: never the held-out goals, never an earlier attempt's state.

    Attributes:
        attempt: 1-based.
        lessons: of earlier attempts, oldest first.
        limits: `attempt_seconds` bounds the whole call.
    """

    repository: Repository
    targets: tuple[Goal, ...]
    attempt: int = 1
    lessons: tuple[str, ...] = ()
    limits: Limits = Limits()


class Installer(Protocol):
    """Stage 4: brings a sandbox from the initial state to where the targets run."""

    name: str

    def install(self, assignment: Assignment, tree: Tree, sandbox: Sandbox) -> SetupReport:
        """Set the environment up. Whether it is set up is decided by verification, not by the report.

        Args:
            tree: the pristine checkout on the host, the same as the sandbox's /workspace at the start.

        Raises:
            Infrastructure: the sandbox, the network or a model endpoint failed; not charged to the agent.
        """
        ...


class Judge(Protocol):
    """Holds an observed result against a goal's description."""

    name: str

    def judge(self, goal: Goal, result: CommandResult) -> Judgement:
        """Never raises for what is in the output; `UNKNOWN` where it cannot tell."""
        ...
