"""The result of one check."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    found: str
    expected: str = ""
    do: str = ""
    """What to try; empty when it is ok."""
