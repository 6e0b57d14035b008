"""The frozen values that cross the boundaries between stages, agents, sandboxes and datasets."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Value(BaseModel):
    """Base of all values: frozen, and an unknown field is an error rather than silently dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Outcome(StrEnum):
    """How an attempt, or a whole repository, ended."""

    VERIFIED = "verified"
    MISMATCH = "mismatch"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    BUDGET = "budget"
    GAVE_UP = "gave_up"
    AGENT_LOOP = "agent_loop"
    FLAKY = "flaky"
    TAMPERED = "tampered"
    UNKNOWN = "unknown"
    INFRASTRUCTURE = "infrastructure"
    CANCELLED = "cancelled"
    # Before any attempt:
    INVALID_URL = "invalid_url"
    AUTH_OR_NOT_FOUND = "auth_or_not_found"
    COMMIT_NOT_FOUND = "commit_not_found"
    TOO_LARGE = "too_large"
    EMPTY_REPOSITORY = "empty_repository"
    NOTHING_TO_SET_UP = "nothing_to_set_up"
    BAD_PROPOSAL = "bad_proposal"


class Category(StrEnum):
    """What a goal is about. `setup` goals change the environment; the others only use it."""

    SETUP = "setup"
    BUILD = "build"
    TEST = "test"
    LINT = "lint"
    RUN = "run"
    OTHER = "other"


class Verdict(StrEnum):
    """A judge's answer. `UNKNOWN` is neither success nor failure."""

    MATCHES = "matches"
    MISMATCH = "mismatch"
    UNKNOWN = "unknown"


class Evidence(Value):
    """Where in the checkout something was found.

    Attributes:
        path: file, relative to the root of the checkout.
        line: 1-based line; 0 where the file as a whole is meant.
        text: the line itself, or what was concluded from the file; at most a few hundred characters.
    """

    path: str
    line: int = 0
    text: str = ""


class Goal(Value):
    """One command, and what it gives once the environment is set up right.

    Attributes:
        command: run as a fresh `bash -c` in /workspace with the environment's env file sourced.
        description: the expected outcome in words. Versions, quoted strings and numbers in it are required
            of the output (see `autoinstall.outputs.expectations` for the exact reading).
        exit_codes: exit codes that count as success; never empty.
        min_pass_rate: fraction in (0, 1] of the tests that a runner reports that must pass. Below 1 it is a stated
            tolerance: healthy projects have tests that fail for reasons of their own.
        evidence: where the command was found; None for goals that the user gave.
        timeout: seconds the command may take; None means the limit of the settings.
    """

    command: NonEmpty
    description: str
    category: Category = Category.OTHER
    exit_codes: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    min_pass_rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    evidence: Evidence | None = None
    timeout: float | None = None


class Limits(Value):
    """Bounds of one sandbox and of what runs in it; None means the settings' default."""

    # Described field by field, as in `RepositorySpec`.
    command_seconds: Annotated[float, Field(gt=0)] | None = Field(default=None, description="Of any one command.")
    attempt_seconds: Annotated[float, Field(gt=0)] | None = Field(default=None, description="Of a set-up attempt.")
    memory_mb: Annotated[int, Field(ge=16)] | None = Field(default=None, description="Mebibytes, at least 16.")
    cpus: Annotated[float, Field(gt=0)] | None = Field(default=None, description="Processors; may be a fraction.")
    pids: Annotated[int, Field(ge=16)] | None = Field(default=None, description="Processes and threads, at least 16.")


class RepositorySpec(Value):
    """One row of a list: what to turn into an environment."""

    # Described field by field, since Prefect's UI makes a form of it.
    url: Annotated[NonEmpty, AfterValidator(lambda url: url.rstrip("/") or url)] = Field(
        description="As git takes it, without slashes at its end; rows keep it even where a mirror serves the clone."
    )
    ref: str | None = Field(
        default=None, description="Branch, tag, short or full SHA; left out it is the remote's default branch."
    )
    goals: tuple[Goal, ...] | None = Field(
        default=None,
        description="Acceptance commands of your own; they become the targets, and goal-setting is skipped.",
    )
    base_image: str | None = Field(default=None, description="A name of the catalogue of bases, or an image reference.")
    env: dict[str, str] = Field(default_factory=dict, description="Variables for every command of the environment.")
    limits: Limits = Field(default=Limits(), description="Where they differ from those of the settings.")


class Checkout(Value):
    """A tree at one full SHA on the host, with history up to it, nothing after, and no remote.

    Attributes:
        repository: the URL as given, without credentials.
        ref: as given; None where none was.
        commit: full SHA, lower case.
        commit_date: committer date, aware.
        path: the working tree on the host. Untrusted: read it through `autoinstall.tree.Tree` only.
        size_bytes: of working tree and history together.
        file_count: tracked files.
        warnings: what was left out and why: submodules that could not be had, LFS pointers, …
    """

    repository: str
    ref: str | None
    commit: str
    commit_date: datetime
    path: Path
    size_bytes: int
    file_count: int
    warnings: tuple[str, ...] = ()


class CommandResult(Value):
    """What one command in a sandbox gave. A non-zero exit is a result, not an error.

    Attributes:
        exit_code: always an int; 127 and 128+n keep their meaning. 124 where the limit ended the command.
        output: stdout and stderr as they came, decoded as UTF-8 with replacement. At most the settings' head and tail;
            where bytes were dropped a line in the middle says how many.
        dropped_bytes: bytes left out of `output`.
        duration: wall seconds.
        timed_out: the limit ended it; its whole process tree is dead.
        idle: it was ended before its limit, since it did nothing any more; `timed_out` as well.
        out_of_memory: the kernel killed at least one process of the sandbox for memory while it ran.
    """

    command: str
    exit_code: int
    output: str
    dropped_bytes: int = 0
    duration: float = 0.0
    timed_out: bool = False
    idle: bool = False
    out_of_memory: bool = False

    @property
    def ending(self) -> str:
        """How it ended, in words, where that was not by itself; else empty."""
        if self.idle:
            return "hung"
        return "timed out" if self.timed_out else "out of memory" if self.out_of_memory else ""


class TestCounts(Value):
    """Totals of a test runner's summary. `failed_names` are as the runner spells them, at most 200."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    runner: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    failed_names: tuple[str, ...] = ()

    @property
    def ran(self) -> int:
        """Tests that ran: passed, failed or broke, but not skipped."""
        return self.passed + self.failed + self.errors


class Judgement(Value):
    """A verdict with its reason; `tests` where the output had a runner's summary."""

    verdict: Verdict
    reason: str
    tests: TestCounts | None = None


class GoalResult(Value):
    """A goal, what its command gave, and the judgement on it."""

    goal: Goal
    result: CommandResult
    judgement: Judgement

    @property
    def matches(self) -> bool:
        return self.judgement.verdict is Verdict.MATCHES


class MockKind(StrEnum):
    FILE = "file"
    DATA = "data"
    SERVICE = "service"
    CREDENTIAL = "credential"
    PACKAGE = "package"
    OTHER = "other"


class Mock(Value):
    """Anything that the set-up agent made up to stand in for the real thing."""

    kind: MockKind
    path: str
    reason: str


class ProbeKind(StrEnum):
    TCP = "tcp"
    HTTP = "http"
    COMMAND = "command"


class Probe(Value):
    """How to tell that a service is ready.

    Attributes:
        target: a port (tcp), a URL that must answer below 500 (http), or a command that must exit 0.
        timeout: seconds until it counts as not ready.
    """

    kind: ProbeKind
    target: str
    timeout: float = 60.0


class Service(Value):
    """A long-running process inside the environment's own container; the start script starts it."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")]
    command: NonEmpty
    probe: Probe
    user: str = "root"


class Sidecar(Value):
    """A container beside the environment's, reached by its alias on their common network.

    Attributes:
        image: reference, by digest where one is known.
        command: empty for the image's own.
        probe: run from inside the environment's container, so `target` names the alias.
    """

    alias: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]
    image: NonEmpty
    command: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    ports: tuple[int, ...] = ()
    probe: Probe


class Recipe(Value):
    """What, beside its image, makes an environment: recorded, and enough to start it anywhere."""

    env: dict[str, str] = Field(default_factory=dict)
    services: tuple[Service, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()


class Usage(Value):
    """What an agent run consumed. Tokens and cost are zero for agents without a model.

    Cached tokens are part of the input, reasoning tokens part of the output. `model_seconds` is the part of `seconds`
    that the model's answers took.
    """

    seconds: float = 0.0
    model_seconds: float = 0.0
    steps: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0


class Role(StrEnum):
    GOAL_SETTER = "goal_setter"
    INSTALLER = "installer"
    JUDGE = "judge"


class Trajectory(Value):
    """The messages of one agent run, in the OpenAI chat format (content, tool_calls, tool results).

    Attributes:
        stop: why the agent stopped, in its family's words; empty where it did not come to an end, or does not say.
    """

    role: Role
    agent: str
    model: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    stop: str = ""


class StopReason(StrEnum):
    """Why an installer stopped."""

    DONE = "done"
    GAVE_UP = "gave_up"
    BUDGET = "budget"
    LOOP = "loop"


class Proposal(Value):
    """What a goal-setter returns: exactly ten goals, and how it came to them."""

    goals: tuple[Goal, ...]
    trajectory: Trajectory
    usage: Usage = Usage()


class SetupReport(Value):
    """What an installer returns.

    Attributes:
        summary: a few sentences for people and for the next attempt.
        code: stable name of what it gave up for; empty where it did not, or does not say.
        lessons: short facts that the next attempt should know; never state of the sandbox.
        exhausted: the agent knows nothing else to try, so an attempt after this one would only repeat it.
        self_checked: the last thing it did was to run the targets and see them match, so the cheap check is spared.
        modified: tracked files that it changed on purpose, relative to the checkout.
    """

    stop: StopReason
    summary: str
    code: str = ""
    recipe: Recipe = Recipe()
    mocks: tuple[Mock, ...] = ()
    lessons: tuple[str, ...] = ()
    exhausted: bool = False
    self_checked: bool = False
    modified: tuple[str, ...] = ()
    trajectory: Trajectory
    usage: Usage = Usage()
