"""What a setup.py says, read from its syntax tree: it is never executed on the host."""

import ast
import posixpath
from typing import Any

from autoinstall.agents.rules.ecosystems.python.requirements import parse_file
from autoinstall.tree import Tree

_FIELDS = frozenset(
    [
        "name",
        "packages",
        "py_modules",
        "package_dir",
        "install_requires",
        "tests_require",
        "extras_require",
        "setup_requires",
        "python_requires",
        "classifiers",
        "entry_points",
        "test_suite",
        "scripts",
        "use_2to3",
        "cffi_modules",
    ]
)


class _Unknown(Exception):
    """An expression that only running the script could evaluate."""


def read_setup_script(tree: Tree, path: str) -> dict[str, Any]:
    """Keyword arguments of the `setup()` call that can be told without running it; keys of `_FIELDS` only."""
    try:
        module = ast.parse(tree.read(path))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    reader = _Reader(tree, posixpath.dirname(path))
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                reader.assign(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            reader.assign(node.target, node.value)
    found: dict[str, Any] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _called(node.func) == "setup":
            for keyword in node.keywords:
                found.update(reader.keyword(keyword))
    return found


def _called(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class _Reader:
    def __init__(self, tree: Tree, base: str) -> None:
        self.tree = tree
        self.base = base
        self.names: dict[str, ast.expr] = {}
        self.items: dict[str, dict[str, ast.expr]] = {}

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.names.setdefault(target.id, value)
            return
        match target:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                self.items.setdefault(name, {})[key] = value

    def keyword(self, keyword: ast.keyword) -> dict[str, Any]:
        if keyword.arg is None:
            mapping = self._value_or_none(keyword.value)
            return {key: value for key, value in (mapping or {}).items() if key in _FIELDS}
        if keyword.arg not in _FIELDS:
            return {}
        value = self._value_or_none(keyword.value)
        return {} if value is None else {keyword.arg: value}

    def _value_or_none(self, node: ast.expr) -> Any:
        try:
            return self.value(node)
        except (_Unknown, RecursionError):
            return None

    def value(self, node: ast.expr, depth: int = 0) -> Any:
        if depth > 20:
            raise _Unknown
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple() | ast.Set():
                return self._sequence(node.elts, depth)
            case ast.Dict():
                return self._mapping(node, depth)
            case ast.Name():
                return self._name(node.id, depth)
            case ast.BinOp(op=ast.Add()):
                left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
                if type(left) is type(right) and isinstance(left, str | list):
                    return left + right
                raise _Unknown
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                mapping = self._name(name, depth)
                if isinstance(mapping, dict) and key in mapping:
                    return mapping[key]
                raise _Unknown
            case ast.Call():
                return self._call(node, depth)
        raise _Unknown

    def _name(self, name: str, depth: int) -> Any:
        value = self.value(self.names[name], depth + 1) if name in self.names else None
        if isinstance(value, dict):
            for key, item in self.items.get(name, {}).items():
                try:
                    value[key] = self.value(item, depth + 1)
                except _Unknown:
                    value[key] = []
        if value is None:
            raise _Unknown
        return value

    def _sequence(self, nodes: list[ast.expr], depth: int) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            try:
                if isinstance(node, ast.Starred):
                    inner = self.value(node.value, depth + 1)
                    values += inner if isinstance(inner, list) else []
                else:
                    values.append(self.value(node, depth + 1))
            except _Unknown:
                continue
        return values

    def _mapping(self, node: ast.Dict, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(item, depth + 1)
                values.update(inner if isinstance(inner, dict) else {})
                continue
            name = self.value(key, depth + 1)
            if isinstance(name, str):
                # An extra whose content cannot be told is still an extra: the build back end knows what is in it.
                try:
                    values[name] = self.value(item, depth + 1)
                except _Unknown:
                    values[name] = []
        return values

    def _call(self, node: ast.Call, depth: int) -> Any:
        called = _called(node.func)
        if called == "dict":
            keywords = [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
            return self._mapping(
                ast.Dict(keys=[ast.Constant(name) for name, _ in keywords], values=[value for _, value in keywords]),
                depth,
            )
        if called in ("list", "tuple", "sorted", "set") and len(node.args) == 1:
            return self.value(node.args[0], depth + 1)
        # `read_requirements("requirements/test.txt")`, `open("requirements.txt").read().splitlines()` and their like:
        # whatever wraps it, a call around the name of a requirements file gives what is in that file.
        for inner in ast.walk(node):
            if (
                isinstance(inner, ast.Constant)
                and isinstance(inner.value, str)
                and inner.value.endswith((".txt", ".in"))
            ):
                path = posixpath.normpath(posixpath.join(self.base, inner.value))
                if self.tree.has(path):
                    return list(parse_file(self.tree, path).requirements)
        if called in ("split", "splitlines") and isinstance(node.func, ast.Attribute):
            text = self.value(node.func.value, depth + 1)
            if isinstance(text, str):
                return [line.strip() for line in text.splitlines() if line.strip()] if "\n" in text else text.split()
        raise _Unknown
