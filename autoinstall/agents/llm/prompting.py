"""The prompts: Jinja templates beside this file, rendered with every variable required."""

import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateNotFound

from autoinstall.marking import as_data
from autoinstall.outputs import expectations

PROMPTS = ("goal_setter_system", "goal_setter_task", "installer_system", "installer_task", "judge_system", "judge_task")
"""Templates that are rendered by name; those that begin with an underscore are parts of them.

A system prompt depends on nothing but the settings, so that endpoints can keep it cached from run to run; what differs
between repositories is in the task.
"""

_WORDS = ("notices.toml", "tools/descriptions.toml", "tools/hints.toml")
"""What the loop and the tools say."""

_SUFFIX = ".md.j2"
_BRIEF = 160


def render(name: str, **values: object) -> str:
    """The prompt of that name.

    Raises:
        jinja2.UndefinedError: a variable of the template was not given.
        jinja2.TemplateNotFound: there is no such prompt.
    """
    return _environment().get_template(name + _SUFFIX).render(**values).strip() + "\n"


def as_command(text: str) -> str:
    """A command as code: within a line where it is one, else a block of its own that nothing in it can end."""
    if "\n" not in text and "`" not in text:
        return f"`{text}`"
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"\n{fence}\n{text}\n{fence}"


def brief_command(text: str) -> str:
    """The beginning of a command in one line, to name it by."""
    flat = " ".join(text.split())
    return f"`{flat if len(flat) <= _BRIEF else flat[:_BRIEF] + ' …'}`"


def reading_of_descriptions() -> str:
    """How a goal's description is read, as `autoinstall.outputs.expectations` does it and says it."""
    text = (expectations.__doc__ or "").partition("How a description is read:")[2].strip()
    return re.sub(r" See `\w+`\.", "", text)  # what only readers of the code can look up


@cache
def digest_of_prompts() -> str:
    """Fingerprint of all that models are told: results under other prompts are other results."""
    folder = files("autoinstall.agents.llm")
    texts = {name: _source(name) for name in template_names()}
    texts |= {name: folder.joinpath(name).read_text(encoding="utf-8") for name in _WORDS}
    texts["descriptions"] = reading_of_descriptions()
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]


def template_names() -> tuple[str, ...]:
    """Files of all templates, parts included, sorted."""
    folder = files("autoinstall.agents.llm").joinpath("prompts")
    return tuple(sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(_SUFFIX)))


def _source(name: str) -> str:
    try:
        return files("autoinstall.agents.llm").joinpath("prompts", name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TemplateNotFound(name) from None


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - plain text for a model, no HTML
        loader=FunctionLoader(_source), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["data"] = lambda text, source: as_data(str(text), source=source)
    environment.filters["command"] = as_command
    return environment
