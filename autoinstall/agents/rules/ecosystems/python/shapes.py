"""Values of manifests, whatever shape somebody gave them."""

from collections.abc import Mapping
from typing import Any


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a table; else an empty one: what people write in manifests has any shape."""
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """The strings of a list, or one string as a list; else nothing."""
    if isinstance(value, str):
        return value.splitlines()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []


def first_text(*values: object) -> str:
    """The first value that is a non-empty string."""
    return next((value for value in values if isinstance(value, str) and value.strip()), "").strip()
