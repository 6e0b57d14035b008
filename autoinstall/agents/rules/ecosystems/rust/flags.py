"""Which packages and features the project's own CI builds and tests."""

import re

from autoinstall.agents.rules.contract import Context, EvidenceCommand
from autoinstall.agents.rules.ecosystems.rust.manifests import Project
from autoinstall.agents.rules.evidence.classify import unwrap

_CARGO = re.compile(r"^cargo (?P<verb>build|check|test|doc|clippy|t|b)\b(?P<rest>.*)$")
_ELSEWHERE = re.compile(r"[$|;&<>*`]|--target\b|-Z|--manifest-path|miri|--release\b|nightly|\bwasm")
_SELECTION = re.compile(
    r"(?:^|\s)(--workspace|--all(?=\s|$)|--exclude[ =]\S+|--(?:no-default|all)-features|-F \S+"
    r"|--features?[ =](?:\"[^\"]*\"|'[^']*'|\S+))"
)
_FEATURES = re.compile(r"features?\b|^-F ")


def named(context: Context, verb: str) -> list[tuple[str, EvidenceCommand]]:
    """(what stands after the verb, the command) for every call of `cargo verb` that runs here as it is."""
    found = []
    for item in context.findings.commands:
        match = _CARGO.match(unwrap(item.command))
        if match and match["verb"] == verb and not item.working_directory and not _ELSEWHERE.search(match["rest"]):
            found.append(
                (re.sub(r"\s+(?:--verbose|-v+|--locked|--frozen|--offline)\b", "", match["rest"]).strip(), item)
            )
    return found


def selection(context: Context, project: Project) -> str:
    """Options that choose packages and features of the whole project: the CI's, the plainest of its calls first.

    Members that only serve the others are left out of a whole workspace.
    """
    calls = [_SELECTION.findall(f" {rest}") for rest, _ in named(context, "test")]
    wide = any(option in ("--workspace", "--all") for options in calls for option in options)
    features: list[str] = []
    if calls and not any(not any(_FEATURES.search(option) for option in options) for options in calls):
        features = [option for option in calls[0] if _FEATURES.search(option)]
    parts: list[str] = []
    if project.virtual or wide:
        helpers = [package.name for package in project.packages if package.helper]
        parts = ["--workspace", *(f"--exclude {name}" for name in helpers)]
    return " ".join((*parts, *features))
