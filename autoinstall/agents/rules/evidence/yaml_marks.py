"""YAML with line numbers: CI files are evidence, and evidence names its line."""

from typing import Any

import yaml

from autoinstall.tree import Tree

MAX_NODES = 50_000


class Text(str):
    """A scalar that knows its 1-based line; for a block scalar the line of its first content line."""

    __slots__ = ("line",)
    line: int


def read_yaml(tree: Tree, path: str) -> Any:
    """The file's first document with every string as `Text`; None where it is not YAML.

    Tags are ignored rather than acted upon, anchors and merges are resolved, and a document that expands beyond
    `MAX_NODES` nodes is refused, since the file is untrusted.
    """
    try:
        node = yaml.compose(tree.read(path), Loader=yaml.SafeLoader)
        return _build(node, [MAX_NODES]) if node is not None else None
    except (yaml.YAMLError, RecursionError, OverflowError):
        return None


def line_of(value: object) -> int:
    return value.line if isinstance(value, Text) else 0


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """`value` if it is a list, a list of it if it is a scalar, else an empty one."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, str) else []


def _build(node: yaml.Node, budget: list[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        raise yaml.YAMLError("too large")
    if isinstance(node, yaml.MappingNode):
        built: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                merged = _build(value, budget)
                for item in merged if isinstance(merged, list) else [merged]:
                    built = {**mapping(item), **built}
            else:
                built[str(_build(key, budget))] = _build(value, budget)
        return built
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, budget) for item in node.value]
    text = Text(node.value)
    is_block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    text.line = node.start_mark.line + (2 if is_block else 1)
    return text
