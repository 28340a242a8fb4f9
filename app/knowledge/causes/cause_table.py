"""All rules, in the order in which one line that fits several of them is read. Pure.

A cause (`RULES`) goes before a kill that nobody explains (`KILLED`), that before what one rank
sees when another has ended (`CONSEQUENCES`), and all before what counts only alone (`LAST`).
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
"""Words of the system, about any file or program: of an exception they say why."""

LAST: tuple[LogRule, ...] = (*CRASHES, *MPI_ENDS, *LOSSES, *LATE, *WEAK)
"""What is often said of a job that continues, or by one that is ending already."""

EVERY: tuple[LogRule, ...] = (*RULES, *CONSEQUENCES, *KILLED, *LAST)
"""All of them."""

SCARCE = frozenset({"gpu-memory", "quota", "no-space"})
"""Rules whose exception is shown too when its handling raised the one that ended the program."""

__all__ = ["CONSEQUENCES", "EVERY", "KILLED", "LAST", "LATE", "RULES", "SCARCE"]
