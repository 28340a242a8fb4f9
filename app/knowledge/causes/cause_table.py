"""All rules on log lines, in order of precedence for a line that matches several. Pure.

Causes (`RULES`) precede unexplained kills (`KILLED`), then the errors of a rank after another rank
has ended (`CONSEQUENCES`), then lines that count only without any other (`LAST`).
"""

from lumitui.app.knowledge.causes.communication_causes import (
    COMMUNICATION,
    CONSEQUENCES,
    CRASHES,
    MPI_ENDS,
)
from lumitui.app.knowledge.causes.container_causes import CONTAINERS
from lumitui.app.knowledge.causes.device_causes import DEVICES
from lumitui.app.knowledge.causes.file_causes import FILES, LATE_FILES
from lumitui.app.knowledge.causes.library_causes import LIBRARIES
from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.own_causes import OWN
from lumitui.app.knowledge.causes.resource_causes import KILLED, LATE_MEMORY, RESOURCES
from lumitui.app.knowledge.causes.slurm_causes import SLURM, WEAK
from lumitui.app.knowledge.causes.training_causes import LOSSES, TRAINING

RULES: tuple[LogRule, ...] = (
    *OWN,
    *SLURM,
    *RESOURCES,
    *CONTAINERS,
    *DEVICES,
    *COMMUNICATION,
    *LIBRARIES,
    *TRAINING,
    *FILES,
)
"""Causes: the first one in the log is the likeliest."""

LATE: tuple[LogRule, ...] = (*LATE_FILES, *LATE_MEMORY)
"""Operating system errors about any file or program, which give the reason for an exception."""

LAST: tuple[LogRule, ...] = (*CRASHES, *MPI_ENDS, *LOSSES, *LATE, *WEAK)
"""Lines that a job often writes although it continues, or when it is already ending."""

EVERY: tuple[LogRule, ...] = (*RULES, *CONSEQUENCES, *KILLED, *LAST)

SCARCE = frozenset({"gpu-memory", "quota", "no-space"})
"""Rules whose exception is also shown if handling it raised the one that ended the program."""

__all__ = ["CONSEQUENCES", "EVERY", "KILLED", "LAST", "LATE", "RULES", "SCARCE"]
