"""From a branch, tag or SHA to the full SHA of a commit, by what the remote advertises."""

import re
from dataclasses import dataclass

from autoinstall.checkout.git import Git
from autoinstall.checkout.urls import Remote
from autoinstall.errors import CommitNotFound, EmptyRepository

_FULL = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_SHORT = re.compile(r"[0-9a-fA-F]{4,39}")
# git's own rules for ref names (check-ref-format), plus: never an option, never an expression.
_MALFORMED = re.compile(r"^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$|^@$|^$")


@dataclass(frozen=True)
class Advertised:
    """What the remote has.

    Attributes:
        refs: full ref name → SHA of the commit (tags peeled).
        default_branch: that HEAD names; None where there is no telling.
        head: the commit of HEAD.
    """

    refs: dict[str, str]
    default_branch: str | None
    head: str | None

    @property
    def branch_name(self) -> str:
        """For the one local branch of a checkout."""
        name = self.default_branch or "main"
        return "main" if _MALFORMED.search(name) else name


def advertised(git: Git, remote: Remote) -> Advertised:
    """Asks the remote.

    Raises:
        GitFailed: it did not answer.
    """
    refs: dict[str, str] = {}
    default = None
    for line in git.against(remote).text("ls-remote", "--symref", "--", remote.address).splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            if name == "HEAD":
                default = value.removeprefix("ref: ").removeprefix("refs/heads/")
        elif _FULL.fullmatch(value):
            refs[name.removesuffix("^{}")] = value.lower()  # the peeled line comes after the tag's own
    head = refs.pop("HEAD", None)
    if default is None and head is not None:  # a server too old to say
        at_head = [name for name, sha in refs.items() if sha == head and name.startswith("refs/heads/")]
        common = [name for name in ("refs/heads/main", "refs/heads/master") if name in at_head]
        default = next(iter(common + at_head), "refs/heads/main").removeprefix("refs/heads/")
    return Advertised(refs, default, head)


def full_sha(ref: str | None) -> str | None:
    """`ref` in lower case where it is a full SHA already."""
    return ref.lower() if ref is not None and _FULL.fullmatch(ref) else None


def is_short_sha(ref: str) -> bool:
    return _SHORT.fullmatch(ref) is not None


def check_ref(ref: str, repository: str) -> None:
    """Raises CommitNotFound for what cannot be the name of a ref, an option least of all."""
    if _MALFORMED.search(ref):
        shown = ref[:100].encode("unicode_escape").decode("ascii")
        raise CommitNotFound(
            f"{shown!r} cannot be a branch, tag or SHA of {repository}.", hint="Give a branch, a tag or a full SHA."
        )


def look_up(known: Advertised, ref: str | None, repository: str) -> str | None:
    """The commit of `ref`, by git's precedence (a full name, then tags, then branches); None where none has the name.

    Raises:
        EmptyRepository: the remote has no ref at all.
        CommitNotFound: the default branch is asked for, and there is none.
    """
    if not known.refs and known.head is None:
        raise EmptyRepository(f"{repository} has no commit.", hint="Push something to it first, or leave it out.")
    if ref is None or ref == "HEAD":
        if known.head is None:
            raise CommitNotFound(f"{repository} has no default branch.", hint="Name a branch, a tag or a SHA.")
        return known.head
    candidates = (ref, f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}")
    return next((known.refs[name] for name in candidates if name in known.refs), None)
