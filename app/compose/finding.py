"""What the adviser says of a launch, and what a rule of it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lumitui.app.job.launch import Launch
from lumitui.remote.site.profile import Site

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """What the adviser says of a launch; an `error` keeps it from being sent."""

    id: str
    severity: Severity
    message: str
    do: str
    source: str


Rule = Callable[[Launch, Site], Iterator[Finding]]
"""Tells what it finds of a launch at a site."""
