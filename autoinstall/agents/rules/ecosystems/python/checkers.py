"""Linters, formatters and type checkers that a project configures."""

from collections.abc import Iterator

from autoinstall.agents.rules.ecosystems.python.manifests import load_ini, load_toml
from autoinstall.tree import Tree
from autoinstall.values import Evidence, Value


class Checker(Value):
    """A tool and how it is run; `{}` in the command is the place to check."""

    name: str
    command: str
    description: str
    exit_codes: tuple[int, ...] = (0, 1)


_CHECKERS = (
    Checker(
        name="ruff",
        command="ruff check .",
        description="Lints the code and ends with a count of findings, or says that all checks passed.",
    ),
    Checker(
        name="flake8",
        command="flake8 --count {}",
        description="Lints the code: prints findings, one a line, then a count of them.",
    ),
    Checker(
        name="mypy",
        command="mypy {}",
        description="Checks the types and ends with a line on how many source files were checked.",
    ),
    Checker(
        name="black",
        command="black --check {}",
        description="Says which files would be reformatted, and how many files there are.",
    ),
    Checker(
        name="pylint",
        command="pylint --exit-zero {}",
        description="Lints the code: prints findings by module and a rating.",
        exit_codes=(0,),
    ),
)


def configured(tree: Tree) -> Iterator[tuple[Checker, Evidence]]:
    """The checkers that the checkout has a configuration for, and where it is."""
    for checker in _CHECKERS:
        evidence = _evidence(tree, checker.name)
        if evidence is not None:
            yield checker, evidence


def configured_checkers(tree: Tree) -> list[str]:
    """Their names."""
    return [checker.name for checker, _ in configured(tree)]


def _evidence(tree: Tree, tool: str) -> Evidence | None:
    if tool in load_toml(tree, "pyproject.toml").get("tool", {}):
        return Evidence(path="pyproject.toml", line=tree.find_line("pyproject.toml", f"[tool.{tool}"), text=tool)
    own = tree.first(f".{tool}", f"{tool}.toml", f".{tool}.toml", f"{tool}.ini", f".{tool}rc", f"{tool}rc")
    if own:
        return Evidence(path=own, line=1, text=f"configuration of {tool}")
    for path in ("setup.cfg", "tox.ini"):
        if load_ini(tree, path).has_section(tool):
            return Evidence(path=path, line=tree.find_line(path, f"[{tool}]"), text=f"[{tool}]")
    return None
