"""The goals on the untouched initial state: one that already matches there says nothing about a set-up."""

import re
from collections.abc import Sequence
from time import monotonic

from autoinstall.agents.contract import Judge
from autoinstall.commands import parse
from autoinstall.outputs.cleaning import clean
from autoinstall.sandbox.contract import SandboxProvider, SandboxSpec
from autoinstall.settings import Settings
from autoinstall.values import (
    Category,
    CommandResult,
    Goal,
    GoalResult,
    Judgement,
    Limits,
    Recipe,
    Verdict,
)
from autoinstall.verification import run_goal

BASELINE_SECONDS = 180.0
"""At most this long may one goal take on the untouched sandbox; what has not matched by then is not trivial."""

BASELINE_TOTAL_SECONDS = 600.0
"""After this long no further sandbox is started for the baseline."""

_PLAIN = Recipe()
_DEFAULTS = Limits()

_STATUS = r"""
since=/tmp/.autoinstall-untouched
git -C /workspace status --porcelain --ignored --untracked-files=normal 2>/dev/null |
    grep -vE '(^|[/ ])(__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache)/$'
"""
_UNTOUCHED = f"touch /tmp/.autoinstall-untouched\n{_STATUS}"
_TRACES = (
    _STATUS
    + r"""
find / /usr/local -xdev \( -path /workspace -o -path /opt/autoinstall -o -path /proc -o -path /sys -o -path /dev \
    -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/cache -o -path /root/.cache \
    -o -path /root/.npm -o -path /usr \) -prune -o ! -type d -newercc "$since" -print 2>/dev/null |
    grep -v /__pycache__/ | head -n 20
find /usr -xdev -maxdepth 3 -type d -newercc "$since" -print 2>/dev/null | head -n 20
[ -e "$since" ] || echo "no longer known"
"""
)
"""Prints what commands have left in a sandbox since it was started, beside caches and scratch files. Before it is asked
the first time `_UNTOUCHED` notes the time, and prints the same where nothing was left. Most files of an image lie in
/usr, where only package managers write: its directories tell of that, and to read them all would take twice as long.

Asked inside, unlike all that a verdict on an agent rests on: nobody has had a hand in an untouched sandbox but the
goals' own commands, and the engine may take seconds to compare a whole image.
"""

_NOT_STARTED = re.compile(
    r"(?:^|\n)(?:\S*bash: line \d+: (?P<word>\S+): (?:command not found|No such file or directory)"
    r"|\S*python[\d.]*: No module named \S+|ModuleNotFoundError: No module named \S+"
    r"|importlib\.metadata\.PackageNotFoundError: .+)$"
)
_SHORT = 1000
"""Characters of output; whoever printed more did something before it ended so."""


def baseline(
    provider: SandboxProvider,
    image: str,
    goals: Sequence[Goal],
    judge: Judge,
    *,
    settings: Settings,
    recipe: Recipe = _PLAIN,
    limits: Limits = _DEFAULTS,
    owner: str = "",
    then: SandboxSpec | None = None,
) -> tuple[GoalResult, ...]:
    """Every goal on the untouched initial state `image`, in their order.

    A sandbox serves the next goal only while nothing that matters has changed in it. Set-up goals are not run: they
    change the environment by definition, so whether they work now says nothing; they come back as `UNKNOWN`. So do
    goals whose turn had not come when `BASELINE_TOTAL_SECONDS` were over.

    Args:
        then: what will be opened next; prepared meanwhile.

    Raises:
        Infrastructure: the sandbox failed; no goal is judged by that.
    """
    spec = baseline_spec(image, recipe=recipe, limits=limits, owner=owner)
    cap = min(BASELINE_SECONDS, limits.command_seconds or settings.limits.command_seconds)
    setup = "set-up goals are not part of the baseline"
    results = {index: _not_run(goal, setup) for index, goal in enumerate(goals) if goal.category is Category.SETUP}
    waiting = [index for index in range(len(goals)) if index not in results]
    end = monotonic() + BASELINE_TOTAL_SECONDS
    while waiting:
        if monotonic() > end:
            results |= {index: _not_run(goals[index], "the baseline's time was over") for index in waiting}
            break
        with provider.open(spec) as sandbox:
            if then is not None:
                provider.prepare(then)
            untouched = sandbox.run(_UNTOUCHED).output
            while waiting:
                index = waiting.pop(0)
                result = run_goal(sandbox, goals[index], judge, limit=min(cap, goals[index].timeout or cap))
                results[index] = result
                if result.result.timed_out:
                    break
                if not _never_started(result) and sandbox.run(_TRACES).output != untouched:
                    break
    return tuple(results[index] for index in range(len(goals)))


def baseline_spec(image: str, *, recipe: Recipe = _PLAIN, limits: Limits = _DEFAULTS, owner: str = "") -> SandboxSpec:
    """The sandbox of `baseline`."""
    return SandboxSpec(image=image, recipe=recipe, limits=limits, purpose="baseline", owner=owner)


def _never_started(result: GoalResult) -> bool:
    """Whether a goal's program was not even there, as most are not where nothing is set up; nothing is left then."""
    output = clean(result.result.output).strip()
    match = _NOT_STARTED.search(output) if len(output) < _SHORT else None
    commands = parse(result.goal.command) if match is not None and not result.matches else ()
    return match is not None and len(commands) == 1 and (match["word"] or commands[0].words[0]) == commands[0].words[0]


def _not_run(goal: Goal, why: str) -> GoalResult:
    return GoalResult(
        goal=goal,
        result=CommandResult(command=goal.command, exit_code=0, output=""),
        judgement=Judgement(verdict=Verdict.UNKNOWN, reason=f"not run: {why}"),
    )
