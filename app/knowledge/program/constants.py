"""The names of a module whose value its text says."""

import ast
from collections.abc import Iterator

from lumitui.app.knowledge.program.program_facts import Value


def constants_of(tree: ast.Module) -> dict[str, Value]:
    """Return the names that the file sets exactly once, to a constant, at its top level."""
    times: dict[str, int] = {}
    for name in _bound(tree):
        times[name] = times.get(name, 0) + 1
    found: dict[str, Value] = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str | int | float | bool)
            and times[node.targets[0].id] == 1
        ):
            found[node.targets[0].id] = node.value.value
    return found


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
