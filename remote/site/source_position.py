"""A position in a script, and in the job file it came from."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text."""

    line: int = 0
    """1-based; 0: the job has no script yet."""
    column: int = 0
    """1-based, in characters."""
    end_line: int = 0
    end_column: int = 0
    """The first column behind it."""
    file: str = ""
    """Its file, as the script names it; "" for the script or job file itself."""
    field: str = ""
    """The job file's key that set it, like `time` or `env.NCCL_DEBUG`, or ""."""


NOWHERE = Position()
"""The job as a whole."""


def at_key(field: str) -> Position:
    """Return the place of a job file's key, like `nodes` or `env.NCCL_DEBUG`."""
    return Position(field=field)
