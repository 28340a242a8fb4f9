"""What the adviser says about a launch, and what one of its rules is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lumitui.app.compose.placement import Placement
from lumitui.app.job.launch import Launch

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """What the adviser says about a launch; an `error` keeps it from being sent."""

    id: str
    severity: Severity
    message: str
    do: str
    """What to do about it."""
    source: str


Rule = Callable[[Launch, Placement], Iterator[Finding]]
"""Yields what it finds wrong or unwise about a launch at a site."""
