"""git with our configuration and nothing of the host's, and what its failures mean."""

import os
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from autoinstall.checkout.process import Bounds, Finished, run
from autoinstall.checkout.urls import Remote
from autoinstall.errors import AuthOrNotFound, AutoinstallError, CloneFailed, CloneTimeout, CommitNotFound, DiskFull
from autoinstall.redaction import redact
from autoinstall.settings import CloneSettings

MIB = 2**20

# What git needs of the host: to find programs, and to reach the network the way that the host does.
_KEPT = (
    *("PATH", "TMPDIR", "USER", "LOGNAME", "SSH_AUTH_SOCK"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_SSH = (
    "ssh -oBatchMode=yes -oConnectTimeout=20 -oServerAliveInterval=20 -oServerAliveCountMax=3 -oPermitLocalCommand=no"
)
# Reads the secret from its own environment, so that no argument ever has it.
_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" '
    '"$AUTOINSTALL_GIT_USERNAME" "$AUTOINSTALL_GIT_PASSWORD"; }; f'
)
_PROGRESS = re.compile(r"(remote: )?(Total \d|\w+ [\w ]+:\s+\d+%|\w+ \w+: \d+)")
_TELLING = re.compile(r"(fatal|error|remote|ssh|warning|kex)\b|.*[Dd]enied|Host key")


class Failure(StrEnum):
    """The kinds of failures.toml, and everything else."""

    DISK_FULL = "disk_full"
    STALLED = "stalled"
    REFUSED = "refused"
    ABSENT = "absent"
    NO_ACCESS = "no_access"
    UNSUPPORTED = "unsupported"
    DAMAGED = "damaged"
    BROKEN = "broken"


class GitFailed(Exception):
    """git exited with an error. Internal: turned into one of the product's errors before it leaves the package."""

    def __init__(self, kind: Failure, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    def as_error(self, repository: str) -> AutoinstallError:
        """The product's error for it, where nothing more is known."""
        said = f" git said: {self.message}" if self.message else ""
        match self.kind:
            case Failure.DISK_FULL:
                return DiskFull(f"No space is left for the clone of {repository}.", hint="Free some disk space.")
            case Failure.STALLED:
                return CloneTimeout(f"The transfer of {repository} stood still.{said}", hint="Try again later.")
            case Failure.ABSENT | Failure.REFUSED:
                return CommitNotFound(f"The commit does not exist in {repository}.{said}")
            case Failure.NO_ACCESS if repository.startswith(("/", "file:")):
                return AuthOrNotFound(
                    f"There is no repository that can be read at {repository}.{said}", hint="Check the path."
                )
            case Failure.NO_ACCESS:
                return AuthOrNotFound(
                    f"{repository} is private or does not exist.{said}",
                    hint="Check the URL; for a private repository set AUTOINSTALL_GIT_CREDENTIALS.",
                )
            case _:
                return CloneFailed(f"{repository} could not be cloned.{said}", hint="Try again later.")


@dataclass(frozen=True)
class Git:
    """Runs git, in one directory, against one remote.

    Attributes:
        directory: where it runs.
        settings: the limits.
        remote: whose credential its environment has; None for local work.
        cancelled: see `Bounds`.
    """

    directory: Path
    settings: CloneSettings
    remote: Remote | None = None
    cancelled: Callable[[], bool] | None = None

    def at(self, directory: Path) -> "Git":
        """The same in another directory."""
        return replace(self, directory=directory)

    def against(self, remote: Remote | None) -> "Git":
        """The same against another remote."""
        return replace(self, remote=remote)

    def bytes(self, *arguments: str) -> bytes:
        """What `git ARGUMENTS` printed.

        Raises:
            GitFailed: it exited with an error; and what `process.run` raises.
        """
        return self._successful(arguments).stdout

    def transfer(self, *arguments: str, size: Callable[[], int]) -> str:
        """What it told about its progress.

        Raises:
            GitFailed, and what `process.run` raises, RepositoryTooLarge by `size` among it.
        """
        return self._successful(arguments, size).stderr

    def text(self, *arguments: str) -> str:
        """Likewise as text, without its last line end."""
        return self.bytes(*arguments).decode("utf-8", "surrogateescape").rstrip("\n")

    def succeeds(self, *arguments: str) -> bool:
        """Whether it exits with 0."""
        return self._run(arguments).code == 0

    def _successful(self, arguments: Sequence[str], size: Callable[[], int] | None = None) -> Finished:
        finished = self._run(arguments, size)
        if finished.code != 0:
            message = gist(finished.stderr, self.remote.secrets if self.remote else ())
            raise GitFailed(classify(message), message)
        return finished

    def _run(self, arguments: Sequence[str], size: Callable[[], int] | None = None) -> Finished:
        limits = self.settings
        bounds = Bounds(limits.timeout, limits.stall_seconds, limits.max_size_mb * MIB, size, self.cancelled)
        return run(arguments, cwd=self.directory, environment=environment(limits, self.remote), bounds=bounds)


def environment(settings: CloneSettings, remote: Remote | None = None) -> dict[str, str]:
    """The whole environment of a git process."""
    config = {
        # An average below one byte a second: keep-alives of a server that is busy counting are movement.
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": str(max(1, round(settings.stall_seconds))),
    }
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    secret: dict[str, str] = {}
    if remote is not None and remote.password:
        parts = urlsplit(remote.address)
        config[f"credential.{parts.scheme}://{parts.netloc}.helper"] = _HELPER
        secret = {"AUTOINSTALL_GIT_USERNAME": remote.username, "AUTOINSTALL_GIT_PASSWORD": remote.password}
    numbered = {
        f"GIT_CONFIG_{part}_{index}": value
        for index, pair in enumerate(config.items())
        for part, value in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {
        **kept,
        "LC_ALL": "C.UTF-8",
        "LANGUAGE": "C",
        "HOME": "/nonexistent",  # no .netrc, no attributes file
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("gitconfig")),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": _SSH,
        "GIT_SSH_VARIANT": "ssh",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_CONFIG_COUNT": str(len(config)),
        **numbered,
        **secret,
    }


def classify(message: str) -> Failure:
    """The kind of the first pattern of failures.toml that `message` has."""
    for kind, pattern in failure_patterns():
        if pattern.search(message):
            return kind
    return Failure.BROKEN


@cache
def failure_patterns() -> tuple[tuple[Failure, re.Pattern[str]], ...]:
    """failures.toml, in its order."""
    table = tomllib.loads(Path(__file__).with_name("failures.toml").read_text(encoding="utf-8"))
    return tuple(
        (Failure(entry["kind"]), re.compile(pattern)) for entry in table["failure"] for pattern in entry["patterns"]
    )


def gist(stderr: str, secrets: tuple[str, ...]) -> str:
    """The lines that matter, without progress, at most 600 characters."""
    lines = [line.strip() for line in stderr.splitlines() if not _PROGRESS.match(line)]
    telling = [line for line in lines if _TELLING.match(line)]
    return redact(" ".join(telling or lines)[-600:], *secrets).strip()
