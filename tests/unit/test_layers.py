"""The direction of imports: cli → flows → tasks → autoinstall."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = {
    "autoinstall": {"prefect", "tasks", "flows", "cli"},
    "tasks": {"flows", "cli"},
    "flows": {"cli"},
}


def imported(path: Path) -> set[str]:
    """Top-level packages that the file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_no_import_goes_up(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    upward = {str(path.relative_to(ROOT)): imported(path) & FORBIDDEN[package] for path in files}
    assert {name: found for name, found in upward.items() if found} == {}


def test_every_error_is_in_the_tree_of_the_docstring() -> None:
    from autoinstall import errors

    documented = errors.__doc__ or ""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert kinds
    assert [kind.__name__ for kind in kinds if kind.__name__ not in documented] == []


def test_error_codes_are_distinct_and_errors_survive_pickling() -> None:
    import pickle

    from autoinstall import errors

    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AutoinstallError)
    ]
    assert len({kind.code for kind in kinds}) == len(kinds)
    copy = pickle.loads(pickle.dumps(errors.DiskFull("No room.", hint="Make some.")))
    assert (type(copy), copy.message, copy.hint) == (errors.DiskFull, "No room.", "Make some.")
