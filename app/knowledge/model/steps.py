"""What a job starts: the lines that launch ranks, and the other commands."""

from dataclasses import dataclass
from typing import Literal

from lumitui.app.knowledge.model.command_words import NO_OPTIONS, CommandOptions, CommandWord, Shell
from lumitui.remote.site.source_position import NOWHERE, Position

Launcher = Literal["srun", "torchrun", "deepspeed", "accelerate", "mpirun", "plain"]
"""What makes the ranks: Slurm's tasks, a launcher of that name, or nothing (one process)."""


@dataclass(frozen=True)
class ContainerCall:
    """How a step enters a container."""

    program: str
    """`singularity`, `apptainer`, `podman-hpc`, `enroot` … or a site's wrapper by its name."""
    verb: str
    """`exec`, `run`, `shell`; "" for a wrapper."""
    image: CommandWord | None
    """None: the call names none (`python` was forgotten, or a wrapper knows its own)."""
    options: CommandOptions = NO_OPTIONS
    binds: tuple[CommandWord, ...] = ()
    at: Position = NOWHERE


@dataclass(frozen=True)
class JobStep:
    """One line that starts a program of the job, outermost to innermost."""

    at: Position = NOWHERE
    srun: CommandOptions | None = None
    """The options of `srun`; None: no srun in front, so it runs on the first node alone."""
    container: ContainerCall | None = None
    launcher: Launcher = "plain"
    launcher_options: CommandOptions = NO_OPTIONS
    mpirun: str = ""
    """`mpirun` or `mpiexec` as written."""
    shells: tuple[CommandWord, ...] = ()
    """The texts of each `bash -c` between srun and the program, outermost first."""
    program: CommandWord | None = None
    """What the ranks run: a Python file, a module (`-m name` is `name`), or a binary."""
    python: bool = False
    arguments: tuple[CommandWord, ...] = ()
    """The program's own arguments."""
    program_shell: Shell = "batch"
    """The shell in which the program's arguments are expanded."""
    background: bool = False
    repeated: bool = False
    """Whether a loop starts it."""
    trains: bool = True
    """Whether this is the job's main program, and not `rocm-smi`, `hostname`, `tar` …"""


@dataclass(frozen=True)
class Command:
    """Any simple command of the script, like `module load X`, `pip install Y` or `cd $DIR`."""

    program: str
    """Its name, without its folder."""
    words: tuple[CommandWord, ...] = ()
    """What is after the program."""
    at: Position = NOWHERE
    shell: Shell = "batch"
    step: int | None = None
    """The number of the step it runs in (inside its `bash -c`); None: in the batch script."""
