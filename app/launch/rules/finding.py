"""What the adviser says about a launch, and what one of its rules is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Fix:
    """A change of the job file that ends a finding."""

    words: str
    """What it does, like `use standard-g`."""
    field: str
    """The key of the job file, like `partition` or `container.generation`."""
    value: str | tuple[str, ...] | None
    """Its new value; None: the key is removed."""
    renames: bool = False
    """Whether `value` is the key's new name."""


@dataclass(frozen=True)
class Finding:
    """What the adviser says about a launch; an `error` is asked about before it is sent."""

    id: str
    severity: Severity
    message: str
    do: str
    """What to do about it."""
    source: str
    field: str = ""
    """The key of the job file that it is about; "": no single one."""
    fix: Fix | None = None
    """What would end it, where one change does."""
    final: bool = False
    """Whether nothing can be sent as long as it holds, `--force` or not: a file is missing."""


Rule = Callable[[Launch, Placement], Iterator[Finding]]
"""Yields what it finds wrong or unwise about a launch at a site."""
