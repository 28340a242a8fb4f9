"""A site's own commands for quotas, the budget, and its GPUs."""

import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from lumitui.remote.site.facts import Facts, Pattern

Command = Annotated[str, Field(min_length=1, max_length=200)]


class _MeterRows(Facts):
    """Rows of a command's output, with named groups."""

    pattern: Pattern
    """Matches a whole row, without surrounding spaces."""
    NEEDED: ClassVar[tuple[str, ...]] = ()
    POSSIBLE: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _has_groups(self) -> Self:
        groups = set(re.compile(self.pattern).groupindex)
        missing = [name for name in self.NEEDED if name not in groups]
        unknown = sorted(groups - {*self.NEEDED, *self.POSSIBLE})
        if missing or unknown:
            names = ", ".join(f"(?P<{name}>…)" for name in missing or unknown)
            raise ValueError(f"pattern {'lacks' if missing else 'does not use'} {names}")
        return self


class Quota(_MeterRows):
    """Used and allowed bytes and files of each folder, as a command of the site lists them.

    Groups: `folder`, `used`, `limit`; and `files`, `file_limit` where it lists them. Numbers may
    have a suffix like `55T` or `100K`.
    """

    command: Command
    """The command, e.g. `lumi-quota`; it runs on the login node."""
    NEEDED = ("folder", "used", "limit")
    POSSIBLE = ("files", "file_limit")


class Budget(_MeterRows):
    """Used and granted hours of each account, in the rows of `commands: balance:`.

    Groups: `account`, `limit`, and `used` or `left`; all in the site's `billing_unit`.
    """

    NEEDED = ("account",)
    POSSIBLE = ("used", "limit", "left")


class GpuReadings(Facts):
    """The command that shows the GPUs of a node, as data for one step on all nodes of a job."""

    command: str
    """A command line without placeholders, run by sh on each node."""
    prints: Literal["rocm-smi", "nvidia-smi"]
    """`rocm-smi`: the JSON of `rocm-smi --json`. `nvidia-smi`: lines of `--format=csv,noheader,
    nounits` with index, power.draw, memory.used, memory.total, utilization.gpu."""
    idle_watts: Annotated[float, Field(gt=0, le=10_000)]
    """A GPU below this power is idle; for two dies on one board, this is their sum."""
