"""The blocks of bash's syntax tree, and which program of a step is its main one."""

from collections.abc import Sequence

from tree_sitter import Node

from lumitui.app.knowledge.script_job import JobStep


def flat(node: Node) -> list[Node]:
    """Return the statements of `a && b && c`, which is nested to the left, in their order."""
    if node.type != "list":
        return node.children
    found: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "list":
        found = [*current.children[1:], *found] if current.children else found
        current = current.children[0] if current.children else None
    return [*([current] if current is not None else []), *found]


def parts(node: Node) -> list[list[Node]]:
    """Return what always runs of an `if` or `case`, then each branch."""
    if node.type == "case_statement":
        return [[], *(_body_of(item) for item in node.children if item.type == "case_item")]
    found: list[list[Node]] = [[]]
    for child in node.children:
        if child.type in ("then", "elif_clause", "else_clause"):
            found.append([])
        if child.is_named or child.type == "&":
            found[-1].append(child)
    return found


def _body_of(item: Node) -> list[Node]:
    """Return a case's statements, without its patterns."""
    closing = next((n for n, child in enumerate(item.children) if child.type == ")"), -1)
    return item.children[closing + 1 :]


def starts(step: JobStep) -> bool:
    """Return whether a line is more than a command of the batch script."""
    return step.launcher != "plain" or step.container is not None or step.python


def chosen(candidates: Sequence[JobStep]) -> JobStep:
    """Return the main program of a step: the last that is launched, or else that trains."""

    def weight(step: JobStep) -> tuple[bool, bool, bool]:
        return step.trains, step.launcher != "plain", step.python

    best = max(weight(step) for step in candidates)
    return next(step for step in reversed(candidates) if weight(step) == best)
