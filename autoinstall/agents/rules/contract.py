"""How the rules agents are put together: evidence, ecosystems, plans and repairs.

The goal-setter gathers `Candidate` goals from evidence readers and ecosystems and picks ten. The installer asks the
ecosystems for a `Plan`, runs its steps, then the targets, and lets `Repairer`s answer what still fails. An ecosystem is
one file; what it knows of packages, options and messages is in the tables of `knowledge/`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

from pydantic import ConfigDict, Field

from autoinstall.agents.contract import Repository
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category, CommandResult, Evidence, Goal, Mock, Service, Value


class Candidate(Value):
    """A goal that could be proposed.

    Attributes:
        weight: 0 to 100; how much it says about the environment. The documented test command is 90 to 100,
            a compile-all check is about 20.
        key: candidates with equal keys are the same goal; the heaviest stands. Empty: the command is the key.
    """

    goal: Goal
    weight: int
    key: str = ""


class Step(Value):
    """One command of a plan.

    Attributes:
        command: by the shell rule.
        why: for the trajectory, with the evidence it rests on.
        optional: failing does not end the plan.
        fallback: commands tried in order when it fails and no repair helps.
    """

    command: str
    why: str = ""
    optional: bool = False
    timeout: float | None = None
    fallback: tuple[str, ...] = ()


class Plan(Value):
    """What an ecosystem wants done, in order.

    Attributes:
        env: variables set for good before the first step: PATH of a virtual environment, PYTHONPATH, …
        exhausted: no later attempt would be planned differently.
    """

    steps: tuple[Step, ...]
    env: dict[str, str] = Field(default_factory=dict)
    mocks: tuple[Mock, ...] = ()
    services: tuple[Service, ...] = ()
    exhausted: bool = False


class Source(StrEnum):
    """What kind of file a piece of evidence came from, most telling first."""

    CI = "ci"
    AGENTS = "agents"
    MAKEFILE = "makefile"
    CONTAINER = "container"
    README = "readme"
    PROCESS = "process"


class EvidenceCommand(Value):
    """A command that the repository itself names.

    Attributes:
        command: one simple command or one `a && b` line, as written, with CI matrix values filled in.
        section: CI job and step, Makefile target, README heading: what it is under.
        working_directory: relative to the root; empty for the root.
        env: variables that the evidence sets for it; never secrets.
    """

    command: str
    source: Source
    category: Category
    evidence: Evidence
    section: str = ""
    working_directory: str = ""
    env: dict[str, str] = Field(default_factory=dict)


class Manager(StrEnum):
    """Who installs: for the tables that map a missing thing to a package."""

    APT = "apt"
    PIP = "pip"
    NPM = "npm"


class Requirement(Value):
    """A thing to install and where the need was found."""

    manager: Manager
    name: str
    evidence: Evidence | None = None


class ServiceNeed(Value):
    """A service that CI or compose starts beside the project.

    Attributes:
        image: without its registry, tag and digest.
        host: the name that the project reaches it by there; empty where there is none but localhost.
    """

    image: str
    host: str = ""
    ports: tuple[int, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    evidence: Evidence


class Findings(Value):
    """All that the evidence readers found in one tree, in their order of trust."""

    commands: tuple[EvidenceCommand, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    services: tuple[ServiceNeed, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Tool (`python`, `node`, …) → versions that CI, containers and version files name, in their order."""

    def by_category(self, *categories: Category) -> tuple[EvidenceCommand, ...]:
        return tuple(command for command in self.commands if command.category in categories)


class Context(Value):
    """What ecosystems and repairers plan from. `lessons` and `attempt` as in `Assignment`."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    repository: Repository
    tree: Tree
    targets: tuple[Goal, ...] = ()
    attempt: int = 1
    lessons: tuple[str, ...] = ()
    findings: Findings = Findings()


class Ecosystem(Protocol):
    """Python, Node, C and C++, …: what to propose and how to install, for one kind of project.

    Attributes:
        tools: executables that its projects are worked with (`python`, `pytest`, …): a target that names one needs it.
        suffixes: of its source files (`.py`): which of several ecosystems is the main one follows from their numbers.
    """

    name: str
    tools: frozenset[str]
    suffixes: frozenset[str]

    def detect(self, tree: Tree) -> bool:
        """Whether the repository has a project of this kind (anywhere in its first three directory levels)."""
        ...

    def candidates(self, context: Context, sandbox: Sandbox) -> Iterable[Candidate]:
        """Goals with evidence. The sandbox is a throw-away one at the initial state, for look-ups only."""
        ...

    def plan(self, context: Context, sandbox: Sandbox) -> Plan:
        """The set-up for `context.targets`; a different one for a later attempt where there is a choice."""
        ...


@runtime_checkable
class Selective(Protocol):
    """An ecosystem whose projects may want another base than the default one."""

    def objection(self, context: Context, base: Base, *, has_interpreters: bool) -> str:
        """Why `base` lacks what the project asks for, with the evidence; empty where it suits. Asked of every
        repository, so it is quick: `context` has no findings.

        Args:
            has_interpreters: whether interpreters of the host are taken into it.
        """
        ...


class Repair(Value):
    """A remedy for one failure.

    Attributes:
        key: the same key is never applied twice in one attempt.
        commands: run in order, each must succeed for the repair to count.
        replacement: where a *step* failed, the command to run in its place from now on; targets are never replaced.
        env: variables set for good.
        lesson: one line for later attempts.
    """

    key: str
    why: str
    commands: tuple[str, ...] = ()
    replacement: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    services: tuple[Service, ...] = ()
    mocks: tuple[Mock, ...] = ()
    files: tuple["FileToWrite", ...] = ()
    lesson: str = ""


class FileToWrite(Value):
    """A file that a repair makes up; always declared as a mock beside it."""

    path: str
    content: str


class Repairer(Protocol):
    """Reads a failure and proposes remedies, likeliest first."""

    name: str

    def repairs(self, context: Context, failure: CommandResult, sandbox: Sandbox) -> Sequence[Repair]:
        """Remedies for `failure`, a step or a target that did not do what it should; empty where none is known."""
        ...
