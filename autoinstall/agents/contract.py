"""What agents are. Two families stand behind these: `rules` (no model) and `llm`; `scripted` is the fake."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from autoinstall.models.contract import Message
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import (
    CommandResult,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Proposal,
    SetupReport,
    Trajectory,
    Usage,
    Value,
)


class Repository(Value):
    """What an agent may know of the repository beside its tree.

    Attributes:
        left_out: what the tree lacks although the commit names it (submodules, LFS files), as a checkout warns of it.
    """

    url: str
    commit: str
    commit_date: datetime
    left_out: tuple[str, ...] = ()


class Journal(Protocol):
    """Where an agent run leaves what it does as it goes, so that one that fails or is killed leaves its trajectory too.

    Agents whose work is cheap to do again need not write.
    """

    def begin(self, trajectory: Trajectory) -> None:
        """Who is at work (role, agent, model, tools); its messages follow one by one."""
        ...

    def write(self, message: Message) -> None:
        """One message of the conversation, in order."""
        ...

    def spend(self, usage: Usage) -> None:
        """What was consumed since the last call."""
        ...


class NoJournal:
    """Keeps nothing."""

    def begin(self, trajectory: Trajectory) -> None:
        """Forget it."""

    def write(self, message: Message) -> None:
        """Forget it."""

    def spend(self, usage: Usage) -> None:
        """Forget it."""


NO_JOURNAL = NoJournal()


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
        journal: Journal = NO_JOURNAL,
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

    def install(
        self, assignment: Assignment, tree: Tree, sandbox: Sandbox, *, journal: Journal = NO_JOURNAL
    ) -> SetupReport:
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
        """Never raises for what is in the output; `UNKNOWN` where it cannot tell.

        Raises:
            Infrastructure: a model endpoint failed; that is no verdict.
        """
        ...


class Consultation(Value):
    """One time that a judge asked a model: the talk, and what it took."""

    trajectory: Trajectory
    usage: Usage


@runtime_checkable
class ConsultingJudge(Judge, Protocol):
    """A judge that asks a model, after rules that need none."""

    @property
    def rules(self) -> Judge:
        """What it starts from, and what decides where no model is to be asked."""
        ...

    def session(self, consulted: Callable[[Consultation], None]) -> Judge:
        """The judge of one run: it reports every consultation, also a failed one, and remembers its own answers."""
        ...
