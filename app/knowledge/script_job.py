"""The neutral model of a job, filled by `compose` or from a parsed sbatch script."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType
from typing import Literal

from lumitui.remote.site.source_position import NOWHERE, Position

MOST_DIGITS = 12
"""Maximum digits of a meaningful number; Python itself reads at most 4,300."""
Shell = Literal["batch", "task", "container", "never"]
"""The shell that expands a variable: that of the batch script on the first node, one that each task
starts outside a container, one inside the container, or none: it stays literal."""


@dataclass(frozen=True)
class CommandWord:
    """One word of a command, and its value as far as known."""

    text: str
    """With quotes and backslashes taken away; variables and substitutions as written: `$SIF`."""
    at: Position = NOWHERE
    quotes: Literal["", "'", '"', "mixed"] = ""
    """The quotes around the whole word."""
    expanded_in: Shell = "batch"
    """The shell that expands its variables."""
    value: str | None = None
    """The text with the script's own variables expanded; None if unknown."""

    @property
    def known(self) -> str:
        """The value if known, otherwise the text."""
        return self.text if self.value is None else self.value


@dataclass(frozen=True)
class Option:
    """An option of sbatch, srun, torchrun or another program."""

    name: str
    """The long name without dashes: `nodes` for `-N`; launchers' names with `-` for `_`."""
    value: str | None = None
    """None if it was given without a value. The script's own variables are expanded."""
    at: Position = NOWHERE
    raw: str = ""
    """As written, like `-N 2` or `--nproc_per_node=8`."""


@dataclass(frozen=True)
class CommandOptions:
    """All options of one program, in order; of several with one name, the last wins."""

    all: tuple[Option, ...] = ()

    def get(self, *names: str) -> Option | None:
        """Return the last option of one of these names."""
        options = [option for option in self.all if option.name in names]
        return options[-1] if options else None

    def value(self, *names: str) -> str | None:
        """Return the value of the last option of one of these names."""
        found = self.get(*names)
        return found.value if found else None

    def number(self, *names: str) -> int | None:
        """Return the value as a whole number; None if missing or not a number."""
        text = (self.value(*names) or "").strip()
        return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None

    def has(self, *names: str) -> bool:
        """Return whether any of these options was given."""
        return self.get(*names) is not None


NO_OPTIONS = CommandOptions()
"""For a program without options."""


@dataclass(frozen=True)
class Variable:
    """A variable that the job sets."""

    name: str
    value: str
    """The text without quotes; `$` marks later expansions."""
    at: Position = NOWHERE
    shell: Shell = "batch"
    """The shell that sets it."""
    exported: bool = True
    quoted: Literal["", "'", '"', "mixed"] = ""
    step: int | None = None
    """The number of the only step that receives it (`X=1 srun …`, `bash -c 'export X=1; …'`); None
    if all later steps do."""
    conditional: bool = False
    """Whether it is in a branch, which may not run."""
    items: int | None = None
    """The number of entries of an array; None if it is not one, or unknown."""
    local: bool = False
    """Whether it is local to a function, so commands after the call do not see it."""


@dataclass(frozen=True)
class Resources:
    """The job's resources, derived from its options; None if not requested or unknown."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    seconds: int | None = None
    """The time limit."""
    nodes: int | None = None
    tasks: int | None = None
    """The total number."""
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str = ""
    """The type in `gpu:TYPE:N`."""
    gpus_total: bool = False
    """Whether the GPUs were requested in total (`--gpus=N`), not per node."""
    memory_gib: float | None = None
    """Per node, whichever option requested it."""
    array: str = ""


UNKNOWN = Resources()
"""For a job without requests."""


@dataclass(frozen=True)
class Rank:
    """The resources of one rank, derived from the request and the launch; None if unknown."""

    per_node: int | None = None
    """Ranks on each node."""
    world_size: int | None = None
    gpus_per_node: int | None = None
    """GPUs on each node that its step may use: those that srun requests, otherwise the job's."""
    cores: int | None = None
    """Cores that a rank may use."""
    visible_gpus: Literal["one", "all", "none"] | None = None
    """Whether it sees only its own GPU (`--gpus-per-task`, `ROCR_USE_SLURM_LOCALID`), or all."""


UNKNOWN_RANK = Rank()
"""For a step that does not determine its ranks."""
Launcher = Literal["srun", "torchrun", "deepspeed", "accelerate", "mpirun", "plain"]
"""The creator of the ranks: Slurm's tasks, a launcher of that name, or none (one process)."""


@dataclass(frozen=True)
class ContainerCall:
    """How a step enters a container."""

    program: str
    """`singularity`, `apptainer`, `podman-hpc`, `enroot` … or a site's wrapper."""
    verb: str
    """`exec`, `run`, `shell`; "" for a wrapper."""
    image: CommandWord | None
    """None if the call names none (a missing `python`, or a wrapper with its own)."""
    options: CommandOptions = NO_OPTIONS
    binds: tuple[CommandWord, ...] = ()
    at: Position = NOWHERE


@dataclass(frozen=True)
class JobStep:
    """One line that starts a program of the job, with its layers from srun to the program."""

    at: Position = NOWHERE
    srun: CommandOptions | None = None
    """The options of `srun`; None without srun, so that it runs only on the first node."""
    container: ContainerCall | None = None
    launcher: Launcher = "plain"
    launcher_options: CommandOptions = NO_OPTIONS
    mpirun: str = ""
    """`mpirun` or `mpiexec` as written."""
    shells: tuple[CommandWord, ...] = ()
    """The texts of each `bash -c` between srun and the program, outermost first."""
    program: CommandWord | None = None
    """The program of the ranks: a Python file, a module (`-m name` is `name`), or a binary."""
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
    rank: Rank = UNKNOWN_RANK

    def named_arguments(self) -> Iterator[tuple[str, CommandWord]]:
        """Yield the options among the program's arguments, with their values and positions."""
        for word, following in zip_longest(self.arguments, self.arguments[1:]):
            name, equals, value = word.known.partition("=")
            if name.startswith("-") and equals:
                text = word.text.partition("=")[2]
                yield name, CommandWord(text, word.at, value=value)
            elif name.startswith("-") and following is not None:
                yield name, CommandWord(following.text, word.at, value=following.known)


@dataclass(frozen=True)
class Command:
    """Any simple command of the script, like `module load X`, `pip install Y` or `cd $DIR`."""

    program: str
    """Its name without the folder."""
    words: tuple[CommandWord, ...] = ()
    """The words after the program."""
    at: Position = NOWHERE
    shell: Shell = "batch"
    step: int | None = None
    """The number of the step that runs it (inside its `bash -c`); None in the batch script."""


@dataclass(frozen=True)
class Trouble:
    """A part of the script that the reader could not parse, or that bash or sbatch would refuse."""

    id: str
    message: str
    at: Position = NOWHERE
    fact: str = ""
    """A fact for its rule, which therefore does not parse the message."""


GPU_LISTS = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Variables that list the GPUs a program sees."""


@dataclass(frozen=True)
class ScriptJob:
    """One job, whether from a script or a job file. Rules read this and the site's profile."""

    origin: Literal["script", "job file"]
    name: str = ""
    text: str = ""
    """The script's text, or ""."""
    options: CommandOptions = NO_OPTIONS
    """sbatch's options, from `#SBATCH` lines or from a job file's keys."""
    resources: Resources = UNKNOWN
    variables: tuple[Variable, ...] = ()
    commands: tuple[Command, ...] = ()
    """All simple commands in order, including launches."""
    steps: tuple[JobStep, ...] = ()
    modules: tuple[str, ...] = ()
    """The modules from `module load`, in order, without those purged later."""
    shebang: str = ""
    troubles: tuple[Trouble, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Texts of the project's files, by the path in the job: its Python program, its DeepSpeed
    configuration. If empty, they are unavailable, and no rule may report a missing file."""
    written: Mapping[str, tuple[Position, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """For files that the script writes itself: the positions of their lines in the script."""
    folder: str | None = None
    """The folder from which it is submitted, if known."""

    @cached_property
    def training(self) -> tuple[JobStep, ...]:
        """The steps that start the job's main program."""
        return tuple(step for step in self.steps if step.trains)

    @property
    def rank(self) -> Rank:
        """The ranks of its last main program; a rule about a step reads that step's own."""
        return self.training[-1].rank if self.training else UNKNOWN_RANK

    def variable(self, name: str, *, shell: Shell | None = None) -> Variable | None:
        """Return the last setting of a variable, in any shell or in this one."""
        settings = self._by_name.get(name, ())
        return next((item for item in reversed(settings) if shell in (None, item.shell)), None)

    @cached_property
    def _by_name(self) -> dict[str, list[Variable]]:
        by_name: dict[str, list[Variable]] = {}
        for item in self.variables:
            by_name.setdefault(item.name, []).append(item)
        return by_name

    def settings(self, *names: str) -> Iterator[Variable]:
        """Yield every setting of these variables."""
        return (item for item in self.variables if item.name in names)

    @property
    def nodes(self) -> int:
        """The requested nodes; Slurm's default 1 if it requests none."""
        return self.resources.nodes or 1

    @property
    def tasks_per_node(self) -> int:
        """The tasks per node; Slurm's default 1 if it requests none."""
        return self.resources.tasks_per_node or -(-(self.resources.tasks or 1) // self.nodes)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The container images of its steps, as far as their paths are known."""
        calls = (step.container for step in self.steps)
        return tuple(call.image.known for call in calls if call and call.image)
