"""Poetry's own notation of dependencies, as PEP 508 and PEP 440 write them."""

import re
from collections.abc import Mapping
from typing import Any

from autoinstall.agents.rules.ecosystems.python.shapes import mapping, strings


def poetry_requirement(name: str, value: object, *, optional: bool = True) -> list[str]:
    """PEP 508 strings of one entry of a Poetry table; several where it lists several constraints.

    Args:
        optional: whether entries that only extras ask for are wanted.
    """
    if name.lower() == "python":
        return []
    entries = value if isinstance(value, list) else [value]
    lines: list[str] = []
    for entry in entries:
        table: Mapping[str, Any] = {"version": entry} if isinstance(entry, str) else mapping(entry)
        if table.get("optional") and not optional:
            continue
        if isinstance(table.get("path"), str):
            lines.append(f"./{table['path']}")
            continue
        extras = strings(table.get("extras"))
        line = name + (f"[{','.join(extras)}]" if extras else "")
        if table.get("git") or table.get("url"):
            lines.append(line)
            continue
        line += poetry_specifier(str(table.get("version", "*")))
        markers = [str(table["markers"])] if table.get("markers") else []
        if table.get("python"):
            markers += _python_marker(poetry_specifier(str(table["python"])))
        if table.get("platform"):
            markers.append(f"sys_platform == '{table['platform']}'")
        joined = " and ".join(f"({marker})" for marker in markers)
        lines.append(line + (f" ; {joined}" if joined else ""))
    return lines


def _python_marker(specifier: str) -> list[str]:
    return [
        f"python_version {match[1]} '{match[2]}'"
        for match in re.finditer(r"(>=|<=|==|!=|<|>|~=)\s*(\d+(?:\.\d+)?)", specifier)
    ]


def poetry_specifier(text: str) -> str:
    """A Poetry constraint (`^1.2`, `~1.2`, `1.*`, `>=1,<2 || >=3`) as a PEP 440 specifier; the last alternative of
    several is taken."""
    text = text.rsplit("||", maxsplit=1)[-1].rsplit("|", maxsplit=1)[-1].strip()
    parts = [part for part in re.split(r"\s*,\s*|\s+(?=[<>=!~^])", text) if part and part != "*"]
    return ",".join(converted for part in parts for converted in [_poetry_part(part.strip())] if converted)


def _poetry_part(part: str) -> str:
    caret = re.match(r"^([\^~])\s*v?(\d+(?:\.\d+)*)(.*)$", part)
    if caret and not part.startswith("~="):
        numbers = [int(number) for number in caret[2].split(".")]
        if caret[1] == "^":
            index = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
        else:
            index = min(1, len(numbers) - 1)
        upper = [*numbers[:index], numbers[index] + 1]
        return f">={caret[2]}{caret[3]},<{'.'.join(map(str, upper))}"
    if re.match(r"^\d", part):
        return f"=={part}"
    if part.startswith("=") and not part.startswith("=="):
        return f"={part}"
    return part.replace(" ", "")


def poetry_python(poetry: Mapping[str, Any]) -> str:
    """The Python versions that a `[tool.poetry]` table allows; empty where it does not say."""
    value = mapping(poetry.get("dependencies")).get("python")
    return poetry_specifier(value) if isinstance(value, str) else ""
