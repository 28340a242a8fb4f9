"""What is wrong or unwise: one shape for scripts, job files, profiles and what a cluster says."""

from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.source_position import NOWHERE, Position

Severity = Literal["error", "warning", "note"]
"""`error`: Slurm refuses it, or the job fails or hangs. `warning`: slow, wasteful or fragile.
`note`: worth knowing."""
RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Fix:
    """One change that ends a finding."""

    words: str
    """What it does, like `remove --gpu-bind` or `use standard-g`."""
    at: Position
    """The characters of a text that it replaces, or the key of a job file that it sets."""
    value: str | tuple[str, ...] | None
    """The new characters, or the key's new value; None: the key is removed."""
    renames: bool = False
    """Whether `value` is the key's new name."""


@dataclass(frozen=True)
class Cure:
    """What of the request ends a finding, whatever the request is written in."""

    option: str
    """sbatch's name for it, like `time`; or a variable of the environment."""
    value: str | None
    """What is right; None: to leave it out."""


@dataclass(frozen=True)
class Finding:
    """What a rule found, or a check, or a reader of files."""

    rule: str
    """The rule's name, like `idle-gpus`; "": none of the rulebook."""
    severity: Severity
    message: str
    """What is wrong and what follows from it, in one or two sentences."""
    do: str = ""
    """What to do about it, in one sentence that begins with a verb."""
    source: str = ""
    """The document or address that says so."""
    at: Position = NOWHERE
    fix: Fix | None = None
    """What ends it, where one change does."""
    cure: Cure | None = None
    """What of the request ends it, for a request in any form."""
    final: bool = False
    """Whether nothing can be sent as long as it holds, `--force` or not: a file is missing."""

    @property
    def words(self) -> str:
        """What is wrong and what to do, in one line."""
        if self.fix:
            return f"{self.message} → {self.fix.words}"
        return f"{self.message} {self.do}".strip()
