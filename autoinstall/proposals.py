"""Whether a goal-setter's proposal can be used at all."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from autoinstall.commands import SimpleCommand, parse, unwrap
from autoinstall.outputs.comparison import unmet
from autoinstall.outputs.expectations import read_requirements, required_pass_rate
from autoinstall.outputs.summaries import summarise
from autoinstall.values import Goal

_PRINTS_A_LITERAL = re.compile(
    r"""^\s*(?:print\s*\(?|console\.log\(|puts\s+|echo\s+|process\.stdout\.write\()\s*(?:r|f|b)?(['"]).*?\1\s*\)?;?\s*$""",
    re.DOTALL,
)
_WIDE_TARGETS = re.compile(
    r"^(?:/|/\*|~/?|~/\*|\$HOME/?|\$\{HOME\}/?|\.|\./?|\*|\.\.|\.git/?|/(?:usr|etc|var|home|root|opt|workspace|bin|lib)/?\*?)$"
)
_FETCHERS = frozenset({"curl", "wget"})
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "python", "python3", "node", "perl", "ruby"})
_SHOWN = 200
_FORK_BOMB = re.compile(r":\s*\(\)\s*\{.*:\s*\|\s*:")


_ELSEWHERE = re.compile(r"[<$]\(|`|>\s*(?!/dev/(?:null|stdout|stderr)\b)\S")
"""What an echo says may go into a file or become an argument then."""


class ProposalTable(BaseModel):
    """proposals.toml, checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    interactive: frozenset[str]
    repl: frozenset[str]
    watching: frozenset[str]
    servers: tuple[tuple[str, ...], ...]
    destructive: tuple[tuple[str, ...], ...]
    trivial: frozenset[str]
    harmless: frozenset[str]


@cache
def proposal_table() -> ProposalTable:
    text = files("autoinstall").joinpath("proposals.toml").read_text(encoding="utf-8")
    return ProposalTable.model_validate(tomllib.loads(text))


def check_proposal(goals: Sequence[Goal], n: int) -> str:
    """What is wrong with a proposal, in words that its author can act on; empty where it can be used.

    A proposal has exactly `n` goals, all different, none of them interactive, destructive or trivial, each with a
    description that an output can be held against.
    """
    complaints = []
    if len(goals) != n:
        complaints.append(f"{len(goals)} goals instead of exactly {n}.")
    seen: dict[str, int] = {}
    for number, goal in enumerate(goals, start=1):
        key = normalised(goal.command)
        if key in seen:
            complaints.append(f"Goal {number} is the same command as goal {seen[key]}: {_short(goal.command)}")
        seen.setdefault(key, number)
        complaint = check_goal(goal)
        if complaint:
            complaints.append(f"Goal {number} ({_short(goal.command)}): {complaint}")
    return "\n".join(complaints)


def check_goal(goal: Goal) -> str:
    """What is wrong with one goal; empty where it can be used."""
    if not goal.description.strip():
        return "it has no description of the expected output."
    if read_requirements(goal).trivial:
        return "its description does not say what the output shows; name what is printed, counted or made."
    commands = parse(goal.command)
    if not any(command.words for command in commands):
        return "it runs no program."
    destructive = next((found for command in commands if (found := _destructive(command))), "") or _across(
        goal.command, commands
    )
    if destructive:
        return f"it is destructive or reaches outside of the sandbox ({destructive})."
    # A loop over lines reads a file or a pipe.
    looping = re.search(r"\bwhile\b.*\bread\b", goal.command) is not None
    interactive = next(
        (
            found
            for index, command in enumerate(commands)
            if (found := _interactive(command, commands[:index], looping))
        ),
        "",
    )
    if interactive:
        return f"it is interactive or never ends by itself ({interactive})."
    if all(_trivial(command) for command in commands if command.words):
        return "it is trivial: it shows nothing about the environment."
    if _tells_itself(goal, commands):
        return "what its description asks for is printed by an echo in the command itself, whatever happens before it."
    return ""


def _tells_itself(goal: Goal, commands: Sequence[SimpleCommand]) -> bool:
    """Whether the texts that the shell is told to print fulfil the description without anything else."""
    if _ELSEWHERE.search(goal.command.replace("2>&1", "").replace(">&2", "")):
        return False
    requirements = read_requirements(goal)
    said = "\n".join(
        " ".join(word for word in command.words[1:] if not re.fullmatch(r"-[neE]+", word)).replace("\\n", "\n")
        for command in commands
        if command.program in {"echo", "printf"} and not command.feeds
    )
    # What the shell puts in the place of a `$` is not known.
    if not said or "$" in said or "`" in said or not requirements.positive:
        return False
    return not unmet(requirements, said, summarise(said), required_pass_rate(goal, requirements))


def normalised(command: str) -> str:
    """A command with blanks, quotes and comments that make no difference taken out, for comparison."""
    lines = (" ".join((*sorted(simple.env), *simple.words, *simple.input.splitlines())) for simple in parse(command))
    return "\n".join(lines) or " ".join(command.split())


def _short(command: str) -> str:
    first = command.strip().split("\n", 1)[0]
    return command if command == first and len(first) <= _SHOWN else f"{first[:_SHOWN]}…"


def _destructive(command: SimpleCommand) -> str:
    words = unwrap(command.words)
    if not words:
        return ""
    program = words[0].rsplit("/", 1)[-1]
    options = "".join(word[1:] for word in words[1:] if re.match(r"^-[a-zA-Z]", word))
    if program == "rm" and ("r" in options.lower() or "--recursive" in words):
        target = next((word for word in words[1:] if _WIDE_TARGETS.match(word)), None)
        return f"rm -r {target}" if target else ""
    if program == "dd" and any(word.startswith("of=/dev/") for word in words):
        return "dd to a device"
    if program.startswith("mkfs"):
        return program
    if program in {"chmod", "chown"} and "R" in options and any(_WIDE_TARGETS.match(word) for word in words[2:]):
        return f"{program} -R"
    if program == "kill" and "-1" in words[2:]:
        return "kill of everything"
    return _listed(words, proposal_table().destructive)


def _across(text: str, commands: Sequence[SimpleCommand]) -> str:
    if _FORK_BOMB.search(text):
        return "fork bomb"
    for index, command in enumerate(commands):
        if command.feeds and command.program in _FETCHERS:
            follower = next((later for later in commands[index + 1 :] if later.words), None)
            if follower is not None and unwrap(follower.words)[0].rsplit("/", 1)[-1] in _SHELLS:
                return f"{command.program} piped into {follower.program}"
    return ""


def _interactive(command: SimpleCommand, before: Sequence[SimpleCommand], looping: bool) -> str:
    table = proposal_table()
    words = unwrap(command.words)
    asks_where = command.program == "command" and command.words[1:2] in {("-v",), ("-V",)}
    if not words or command.background or asks_where or command.program == "timeout" or table.harmless & set(words[1:]):
        return ""
    program = words[0].rsplit("/", 1)[-1]
    fed = bool(command.input) or (bool(before) and before[-1].feeds)
    if program in table.interactive and not (program == "read" and (fed or looping)):
        return program
    if program in table.repl and len(words) == 1 and not fed:
        return f"{program} without arguments"
    if re.match(r"^(?:python|node|php)[\d.]*$", program) and "-i" in words[1:2]:
        return f"{program} -i"
    watching = next((word for word in words[1:] if word in table.watching), "")
    return watching or _listed(words, table.servers)


def _listed(words: Sequence[str], entries: Sequence[tuple[str, ...]]) -> str:
    program = words[0].rsplit("/", 1)[-1]
    plain = [word for word in words[1:] if not word.startswith("-")]
    for entry in entries:
        if entry[0] != program:
            continue
        wanted = entry[1:]
        given = plain if not any(word.startswith("-") for word in wanted) else list(words[1:])
        if not wanted and program in {"vite"} and plain:
            continue
        if all(_same(want, have) for want, have in zip(wanted, given, strict=False)) and len(given) >= len(wanted):
            return " ".join(entry)
    return ""


def _same(want: str, have: str) -> bool:
    return have == want or (not want.startswith("-") and re.match(rf"{re.escape(want)}[:]", have) is not None)


def _trivial(command: SimpleCommand) -> bool:
    words = unwrap(command.words)
    if not words:
        return True
    program = words[0].rsplit("/", 1)[-1]
    if program in proposal_table().trivial:
        return True
    for position, word in enumerate(words[1:-1], start=1):
        if word in {"-c", "-e", "-p", "-r"} and re.match(r"^(?:python|node|ruby|perl|php|bash|sh)[\d.]*$", program):
            code = words[position + 1]
            if program in {"bash", "sh"}:
                return all(_trivial(inner) for inner in parse(code))
            return _PRINTS_A_LITERAL.match(code) is not None or not code.strip() or code.strip() == "pass"
    return False
