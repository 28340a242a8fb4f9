"""Python source as a tree."""

import ast
from threading import Lock
from typing import Literal, overload

_LOCK = Lock()
"""Python 3.11.0 to 3.11.7, 3.12.0 and 3.12.1 count the depth of all threads' trees in one place:
two threads at once raise `SystemError` (https://github.com/python/cpython/issues/106905)."""


@overload
def tree_of(text: str, mode: Literal["exec"] = "exec") -> ast.Module: ...
@overload
def tree_of(text: str, mode: Literal["eval"]) -> ast.Expression: ...
def tree_of(text: str, mode: Literal["exec", "eval"] = "exec") -> ast.AST:
    """Return the tree of a file, or of an expression if `mode` is `eval`.

    Raises:
        SyntaxError: the text is not Python.
        ValueError: it contains NUL bytes.
        RecursionError, MemoryError: its brackets are nested too deeply.

    """
    with _LOCK:
        tree: ast.AST = ast.parse(text, mode=mode)
        return tree
