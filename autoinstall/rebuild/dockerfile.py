"""The Dockerfile of an attempt, and its instructions read back.

It is written for engines of any age: no here-documents, no mounts, no other builder than the engine's own. The build's
context is a directory in which the checkout is `workspace`, so that no .dockerignore of the project counts.
"""

import base64
import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import PurePosixPath

from autoinstall.commands import parse
from autoinstall.rebuild.steps import Ran, Set, Started, Step, Wrote
from autoinstall.sandbox.commit import quoted
from autoinstall.sandbox.contract import STATE_DIR, WORKSPACE
from autoinstall.sandbox.exec import script
from autoinstall.sandbox.pass_through import constant_env
from autoinstall.sandbox.services import ENTRYPOINT_FILE, ENV_FILE, START_FILE, entrypoint, env_file, start_script
from autoinstall.values import Recipe, Service, Value

WITH_SERVICES = STATE_DIR / "with-services"
"""The program that a step is run by once there are services: a build keeps no process from one step to the next."""

_STOP_SECONDS = 10
_LINE_BYTES = 60_000
"""Builders of before BuildKit read no line of 64 KiB."""

_CHUNK = 40_000
_LONG = STATE_DIR / "step"
"""Where a command that no line takes is put meanwhile."""

_WRITES = re.compile(r">(?!&|\s*/dev/null)|\s-(?:delete|exec|execdir|ok|fprint\w*|fls)\b")


class _Looks(Value):
    programs: frozenset[str]
    options: frozenset[str]


@cache
def _looks() -> _Looks:
    text = resources.files(__package__).joinpath("looks.toml").read_text(encoding="utf-8")
    return _Looks.model_validate(tomllib.loads(text))


class Word(StrEnum):
    """Instructions that are written."""

    FROM = "FROM"
    SHELL = "SHELL"
    COPY = "COPY"
    WORKDIR = "WORKDIR"
    ENV = "ENV"
    USER = "USER"
    RUN = "RUN"
    ENTRYPOINT = "ENTRYPOINT"
    CMD = "CMD"


class Instruction(Value):
    """One instruction: a command of RUN as bash is given it, anything else as written."""

    word: Word
    text: str


def dockerfile(
    url: str, commit: str, base: str, steps: Sequence[Step], recipe: Recipe, *, checks: Collection[str] = ()
) -> str:
    """The Dockerfile that makes of `base` what `steps` made of it.

    A command that failed may have done some of its work, so it is run too, whatever becomes of it; one that was run
    again later in the same words is not. What only looks is left out.

    Args:
        base: image reference.
        recipe: as the attempt left it; the image carries its variables and its start script.
        checks: commands that were run to see whether they work; left out too.
    """
    clone = f"git clone {shlex.quote(url)} workspace && git -C workspace checkout {commit}"
    head = [
        f"# Of {url} at {commit}.",
        f"# {clone} && docker build -f Dockerfile .",
        f"FROM {base}",
        'SHELL ["/bin/bash", "-c"]',
        f"COPY workspace {WORKSPACE}",
        f"WORKDIR {WORKSPACE}",
        _env(constant_env()),
    ]
    ready = [
        *_program(ENV_FILE, env_file(recipe.env)),
        *_program(START_FILE, start_script(recipe.services)),
        *_program(ENTRYPOINT_FILE, entrypoint()),
    ]
    tail = [f"ENTRYPOINT {json.dumps([str(ENTRYPOINT_FILE)])}", 'CMD ["bash"]']
    return "\n".join([*head, *_body(steps, checks), *ready, *tail]) + "\n"


def _body(steps: Sequence[Step], checks: Collection[str]) -> Iterator[str]:
    services: tuple[Service, ...] = ()
    variables: dict[str, str] = {}
    for step in _telling(steps, checks):
        match step:
            case Set(name=name, value=value) if not value.isprintable():
                variables[name] = value  # no instruction carries a line break
            case Set(name=name, value=value):
                variables.pop(name, None)
                yield _env({name: value})
            case Started(service=service):
                services = (*(other for other in services if other.name != service.name), service)
                yield from _program(START_FILE, start_script(services))
                yield from _program(WITH_SERVICES, _with(services))
            case Wrote():
                yield from _as(step.user, _written(step.path, step.content, executable=step.executable))
            case Ran():
                yield from _as(step.user, _run(_command(step, variables, services)))


def _program(path: PurePosixPath, text: str) -> Iterator[str]:
    return _written(str(path), text.encode(), executable=True)


def _telling(steps: Sequence[Step], checks: Collection[str]) -> Iterator[Step]:
    last = {(step.command, step.user): index for index, step in enumerate(steps) if isinstance(step, Ran)}
    for index, step in enumerate(steps):
        if isinstance(step, Ran):
            again = not step.succeeded and last[step.command, step.user] > index
            if again or step.command in checks or only_looks(step.command):
                continue
        yield step


def only_looks(command: str) -> bool:
    """Whether a command certainly leaves nothing behind."""
    if _WRITES.search(command) or "\n" in command:
        return False
    looks, simple = _looks(), parse(command)
    return bool(simple) and all(
        part.program in looks.programs or (len(part.words) == 2 and part.words[1] in looks.options)
        for part in simple
        if part.words
    )


def _command(step: Ran, variables: Mapping[str, str], services: Iterable[Service]) -> str:
    command = step.command
    own = {**variables, **step.env}
    wrapped = shlex.join(["env", *(f"{name}={value}" for name, value in own.items())]) + " " if own else ""
    if services:
        command = f"{wrapped}{WITH_SERVICES} {shlex.quote(command)}"
    elif own or not step.succeeded:
        command = f"{wrapped}bash -c {shlex.quote(command)}"
    return command if step.succeeded else f"{command} || true"


def _with(services: Iterable[Service]) -> str:
    """Runs one command with the services up, and has them end as gently as it goes."""
    stop = script("stop.sh", "lib.sh")
    names = shlex.join(service.name for service in services)
    return (
        f'#!/usr/bin/env bash\n{START_FILE} || exit\nbash -c "$1"\nstatus=$?\n'
        f"bash -c {shlex.quote(stop)} autoinstall {_STOP_SECONDS} named {names} >/dev/null\nexit $status\n"
    )


def _as(user: str | None, instructions: Iterable[str]) -> Iterator[str]:
    if user in (None, "root"):
        yield from instructions
        return
    yield f"USER {user}"
    yield from instructions
    yield "USER root"


def _written(path: str, content: bytes, *, executable: bool) -> Iterator[str]:
    """Instructions that write a file."""
    place = shlex.quote(path)
    directory = posixpath.dirname(path)
    make = f"mkdir -p {shlex.quote(directory)} && " if directory else ""
    chmod = f" && chmod +x {place}" if executable else ""
    text = _text(content)
    if text is not None:
        line = _line(f"{make}printf %s {shlex.quote(text)} > {place}{chmod}")
        if len(line.encode()) <= _LINE_BYTES:
            yield line
            return
    encoded = base64.b64encode(content).decode()
    for start in range(0, len(encoded), _CHUNK):
        chunk = f"echo {encoded[start : start + _CHUNK]} | base64 -d"
        yield _line(f"{chunk} >> {place}" if start else f"{make}{chunk} > {place}{chmod}")


def _text(content: bytes) -> str | None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if "\0" not in text else None


def _run(command: str) -> Iterator[str]:
    """Instructions that run a command."""
    line = _line(command)
    if len(line.encode()) <= _LINE_BYTES:
        yield line
        return
    yield from _written(str(_LONG), command.encode(), executable=False)
    yield _line(f'bash -c "$(cat {_LONG})"')


def _line(command: str) -> str:
    """As readable as the builders' own syntax allows: they read line breaks, `<<` and first brackets for themselves."""
    plain = command.isprintable() and "<<" not in command and not command.startswith(("[", "--"))
    if plain and not command.endswith("\\") and command == command.strip():
        return f"RUN {command}"
    return f"RUN {json.dumps(['/bin/bash', '-c', command], ensure_ascii=False)}"


def _env(variables: Mapping[str, str]) -> str:
    return "ENV " + " ".join(f"{name}={quoted(value)}" for name, value in variables.items())


def instructions(text: str) -> tuple[Instruction, ...]:
    """The instructions of a Dockerfile of this module.

    Raises:
        ValueError: a line is none.
    """
    lines = (line for line in text.split("\n") if line and not line.startswith("#"))
    return tuple(_read(line) for line in lines)


def _read(line: str) -> Instruction:
    word, _, rest = line.partition(" ")
    if word == Word.RUN and rest.startswith("["):
        shell, option, rest = json.loads(rest)
        if (shell, option) != ("/bin/bash", "-c"):
            raise ValueError(f"not an instruction that is written here: {line[:80]}")
    return Instruction(word=Word(word), text=rest)


def variables_of(text: str) -> dict[str, str]:
    """The variables of an ENV instruction."""
    pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text)
    return {name: re.sub(r"\\(.)", r"\1", value) for name, value in pairs}
