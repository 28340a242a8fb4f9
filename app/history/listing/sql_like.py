"""Conditions of SQL: what contains a text."""

from collections.abc import Sequence

Value = str | float
Condition = tuple[str, Sequence[Value]]
"""A condition, and the values of its marks."""


def containing(text: str) -> str:
    """Return the pattern of LIKE for what contains `text`."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def like(expression: str) -> str:
    """Return the condition that an expression is like a pattern."""
    return rf"{expression} LIKE ? ESCAPE '\'"
