"""Every error that the product raises on purpose.

    AutoinstallError
    ├── BadInput                 what the caller gave cannot be used; nothing was started (exit 2)
    │   ├── InvalidUrl           not a repository URL that is safe to hand to git
    │   ├── InvalidList          a repository list that cannot be read, or a row of it that is malformed
    │   ├── InvalidGoals         a goals file that is not of the documented form
    │   └── UnusableDirectory    a data or cache directory that cannot be written
    ├── RepositoryError          the repository itself rules an environment out (a row, exit 3)
    │   ├── AuthOrNotFound       private, renamed or absent; the remote does not say which
    │   ├── CommitNotFound       the ref or commit does not exist there
    │   ├── RepositoryTooLarge   over the size or file limit of the settings
    │   ├── EmptyRepository      no commit at all
    │   ├── NothingToSetUp       no code that anything could be set up for on this platform
    │   │   ├── NeedsGpu         … without a GPU, which no sandbox has
    │   │   └── UnsupportedArch  … on this machine's processor: it is for another
    │   └── BadProposal          the goal-setter could not produce ten usable goals
    ├── Infrastructure           ours or the host's fault: retried, never charged to an agent (exit 4)
    │   ├── CloneTimeout         the remote stalled past the deadline
    │   ├── CloneFailed          the transfer broke, or its result is not what was asked for
    │   ├── EngineUnavailable    no container engine answers
    │   ├── EngineFailed         the engine answered, but could not do what it was asked
    │   ├── ImageUnavailable     a base image can be neither pulled nor built
    │   ├── RegistryRateLimited  an image registry asked us to slow down
    │   ├── SandboxLost          the container vanished while it was in use
    │   │   └── SandboxBroken    it lives, but what was done in it left no shell that starts
    │   ├── SandboxNetwork       the sandbox cannot reach what the settings say it may
    │   ├── RegistryUnreachable  a package registry does not answer, and what is needed is had from nowhere else
    │   ├── ServiceNotReady      a service or sidecar did not become ready in its time
    │   ├── DiskFull             too little disk to go on
    │   ├── OrchestratorUnavailable  Prefect's server did not take a run, so that nothing of it was begun
    │   ├── NightHalted          a night ended before its list did: one of these stayed for too long
    │   ├── StorageFailed        a dataset could not be written or read
    │   ├── ModelUnavailable     a model endpoint gave no answer, after retries
    │   │   └── QuotaExhausted   it refuses for want of money or quota; trying again does not help
    │   ├── EndpointUnsuitable   it answers, but cannot do what agents need, or refuses the settings it is given
    │   └── SearchFailed         a search or a web page gave nothing usable; the model that asked is told
    ├── BudgetExhausted          an agent's limit on time, steps, tokens or money was reached
    │   └── ContextExhausted     the conversation does not fit the model any more, however it is shortened
    └── Cancelled                somebody asked for the run to end

`code` is the stable name that records and `--json` carry. `hint` says what the reader can do about it.
Messages never contain credentials: whoever builds one from a URL or a command passes it through
`autoinstall.redaction.redact` first.
"""

from typing import ClassVar


class AutoinstallError(Exception):
    """Root of the tree.

    Args:
        message: what happened, in one sentence that makes sense to somebody who sees nothing else.
        hint: what the reader can do about it; empty where nothing can be done.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (Prefect's workers), and the keyword would be lost otherwise.
        return _rebuild, (type(self), self.message, self.hint)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


def _rebuild(kind: type[AutoinstallError], message: str, hint: str) -> AutoinstallError:
    return kind(message, hint=hint)


class BadInput(AutoinstallError):
    code = "bad_input"


class InvalidUrl(BadInput):
    code = "invalid_url"


class InvalidList(BadInput):
    code = "invalid_list"


class InvalidGoals(BadInput):
    code = "invalid_goals"


class UnusableDirectory(BadInput):
    code = "unusable_directory"


class RepositoryError(AutoinstallError):
    code = "repository"


class AuthOrNotFound(RepositoryError):
    code = "auth_or_not_found"


class CommitNotFound(RepositoryError):
    code = "commit_not_found"


class RepositoryTooLarge(RepositoryError):
    code = "too_large"


class EmptyRepository(RepositoryError):
    code = "empty_repository"


class NothingToSetUp(RepositoryError):
    code = "nothing_to_set_up"


class NeedsGpu(NothingToSetUp):
    code = "needs_gpu"


class UnsupportedArch(NothingToSetUp):
    code = "unsupported_arch"


class BadProposal(RepositoryError):
    code = "bad_proposal"


class Infrastructure(AutoinstallError):
    code = "infrastructure"


class CloneTimeout(Infrastructure):
    code = "clone_timeout"


class CloneFailed(Infrastructure):
    code = "clone_failed"


class EngineUnavailable(Infrastructure):
    code = "engine_unavailable"


class EngineFailed(Infrastructure):
    code = "engine_failed"


class ImageUnavailable(Infrastructure):
    code = "image_unavailable"


class RegistryRateLimited(Infrastructure):
    code = "registry_rate_limited"


class SandboxLost(Infrastructure):
    code = "sandbox_lost"


class SandboxBroken(SandboxLost):
    code = "sandbox_broken"


class SandboxNetwork(Infrastructure):
    code = "sandbox_network"


class ServiceNotReady(Infrastructure):
    code = "service_not_ready"


class DiskFull(Infrastructure):
    code = "disk_full"


class OrchestratorUnavailable(Infrastructure):
    code = "orchestrator_unavailable"


class RegistryUnreachable(Infrastructure):
    code = "registry_unreachable"


class NightHalted(Infrastructure):
    code = "night_halted"


class StorageFailed(Infrastructure):
    code = "storage_failed"


class ModelUnavailable(Infrastructure):
    code = "model_unavailable"


class QuotaExhausted(ModelUnavailable):
    code = "quota_exhausted"


class EndpointUnsuitable(Infrastructure):
    code = "endpoint_unsuitable"


class SearchFailed(Infrastructure):
    code = "search_failed"


class BudgetExhausted(AutoinstallError):
    code = "budget"


class ContextExhausted(BudgetExhausted):
    code = "context_exhausted"


class Cancelled(AutoinstallError):
    code = "cancelled"
