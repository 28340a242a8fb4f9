"""The words of a command line as bash reads them."""

from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.source_position import NOWHERE, Position

_MOST_DIGITS = 12
"""Of a number that somebody means; Python itself reads no more than 4,300."""
Shell = Literal["batch", "task", "container", "never"]
"""Which shell expands a variable: that of the batch script on the first node, one that each task
starts outside a container, one inside the container, or none: it is sent as it is written."""


@dataclass(frozen=True)
class CommandWord:
    """One word of a command, and what is known of its value."""

    text: str
    """With quotes and backslashes taken away; variables and substitutions as written: `$SIF`."""
    at: Position = NOWHERE
    quotes: Literal["", "'", '"', "mixed"] = ""
    """How the whole word is quoted."""
    expanded_in: Shell = "batch"
    """Where its variables get their value."""
    value: str | None = None
    """The text with the variables that the script itself sets put in; None: not known."""

    @property
    def known(self) -> str:
        """The value where it is known, else the text."""
        return self.text if self.value is None else self.value


@dataclass(frozen=True)
class Option:
    """An option of sbatch, srun, torchrun or another program."""

    name: str
    """The long name without dashes: `nodes` for `-N`; launchers' names with `-` for `_`."""
    value: str | None = None
    """None: it was given without one. Variables that the script sets are put in."""
    at: Position = NOWHERE
    raw: str = ""
    """As written, like `-N 2` or `--nproc_per_node=8`."""


@dataclass(frozen=True)
class CommandOptions:
    """All options of one program, in their order; a later one of a name wins."""

    all: tuple[Option, ...] = ()

    def get(self, *names: str) -> Option | None:
        """Return the last option of one of these names."""
        found = [option for option in self.all if option.name in names]
        return found[-1] if found else None

    def value(self, *names: str) -> str | None:
        """Return the value of the last option of one of these names."""
        found = self.get(*names)
        return found.value if found else None

    def number(self, *names: str) -> int | None:
        """Return the same as a whole number; None: not given, or not one."""
        text = (self.value(*names) or "").strip()
        return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None

    def has(self, *names: str) -> bool:
        """Return whether one of these was given."""
        return self.get(*names) is not None


NO_OPTIONS = CommandOptions()
"""Of a program that got none."""


@dataclass(frozen=True)
class Variable:
    """A variable that the job sets."""

    name: str
    value: str
    """As it is after the quotes are gone; `$` stands where something is expanded later."""
    at: Position = NOWHERE
    shell: Shell = "batch"
    """Which shell sets it."""
    exported: bool = True
    quoted: Literal["", "'", '"', "mixed"] = ""
    step: int | None = None
    """The number of the step that alone gets it (`X=1 srun …`, `bash -c 'export X=1; …'`);
    None: all that come later."""
    conditional: bool = False
    """Whether it is in a branch, which may not run."""
    items: int | None = None
    """How many entries an array has; None: it is none, or nobody knows."""
    local: bool = False
    """Whether a function has it for itself; what follows the call does not see it."""
