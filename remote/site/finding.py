"""A mistake or unwise setting: one form for scripts, job files, profiles and cluster checks."""

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
    """Its effect, like `remove --gpu-bind` or `use standard-g`."""
    at: Position
    """The characters of a text that it replaces, or the key of a job file that it sets."""
    value: str | tuple[str, ...] | None
    """The new characters, or the key's new value; None removes the key."""
    renames: bool = False
    """Whether `value` is the key's new name."""
    below: tuple[tuple[str, str], ...] = ()
    """Keys below the key, with their new values, instead of `value`."""


@dataclass(frozen=True)
class Cure:
    """The change of the request that resolves a finding, independent of the request's format."""

    option: str
    """sbatch's name for it, like `time`; or an environment variable."""
    value: str | None
    """The right value; None removes it."""


@dataclass(frozen=True)
class Finding:
    """The finding of a rule, a check, or a reader of files."""

    rule: str
    """The rule's name, like `idle-gpus`; "" if it is not in the rulebook."""
    severity: Severity
    message: str
    """The mistake and its effect, in one or two sentences."""
    do: str = ""
    """The fix, in one sentence that begins with a verb."""
    source: str = ""
    """The document or address of its source."""
    at: Position = NOWHERE
    fix: Fix | None = None
    """The change that resolves it, if one suffices."""
    cure: Cure | None = None
    """The request's change that resolves it, independent of its format."""
    also: tuple[Position, ...] = ()
    """More lines where a comment silences it, e.g. those of srun with the masks of a variable."""
    final: bool = False
    """Whether it prevents sending even with `--force`: a file is missing."""

    @property
    def words(self) -> str:
        """The mistake and the fix, in one line."""
        if self.fix:
            return f"{self.message} → {self.fix.words}"
        return f"{self.message} {self.do}".strip()
