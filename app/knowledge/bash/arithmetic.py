"""`$((…))` of constants."""

import ast
import operator
from collections.abc import Callable, Mapping

_MOST = 10**15
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def evaluate(text: str, names: Mapping[str, str]) -> int | None:
    """Return what bash makes of `text`, where `names` have these values; None: not known."""
    if len(text) > 200:
        return None
    try:
        tree = ast.parse(
            text.replace("$", "").replace("{", "").replace("}", "").strip(), mode="eval"
        )
        return _value(tree.body, names, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, names: Mapping[str, str], depth: int) -> int | None:
    if depth > 30:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < _MOST else None
    if isinstance(node, ast.Name):
        held = names.get(node.id, "").strip()
        return (
            int(held)
            if (held.isdecimal() and len(held) < 16 and not held.startswith("0")) or held == "0"
            else None
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, names, depth + 1)
        return None if inner is None else -inner
    if not isinstance(node, ast.BinOp):
        return None
    left = _value(node.left, names, depth + 1)
    right = _value(node.right, names, depth + 1)
    if left is None or right is None:
        return None
    result = _combined(node.op, left, right)
    return result if result is not None and abs(result) < _MOST else None


def _combined(kind: ast.operator, left: int, right: int) -> int | None:
    if isinstance(kind, (ast.Div, ast.Mod)):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if isinstance(kind, ast.Div) else left - quotient * right
    calculate = _BINARY.get(type(kind))
    return calculate(left, right) if calculate else None
