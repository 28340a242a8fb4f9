"""The result of one check."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Check:
    """One fact of a profile, compared with the live cluster."""

    name: str
    status: Status
    found: str
    expected: str = ""
    do: str = ""
    """What to try; empty where the check is ok."""
