"""One thing that our scripts do otherwise than the LUMI AI Guide's, on purpose."""

from dataclasses import dataclass
from typing import Literal

from tests.support.guide.scripts import Era

Kind = Literal["directive", "module", "export", "setup", "srun", "call", "inner", "launcher"]
"""Which part of a `Script` a difference is in; `setup` is any other line of the batch script."""
Change = Literal["added", "left out", "replaced"]


@dataclass(frozen=True)
class Difference:
    """One thing that our scripts do otherwise than the guide's, on purpose."""

    kind: Kind
    key: str
    """The option, variable or line it is about, as the `Script` names it."""
    change: Change
    what: str
    reason: str
    eras: tuple[Era, ...] = ("seed", "current")
