"""The neutral model of a job: what `compose` fills, and what a parsed sbatch script fills."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from lumitui.app.knowledge.model.command_words import NO_OPTIONS, CommandOptions, Shell, Variable
from lumitui.app.knowledge.model.resources import UNKNOWN, Resources
from lumitui.app.knowledge.model.steps import Command, JobStep
from lumitui.remote.site.source_position import NOWHERE, Position


@dataclass(frozen=True)
class Trouble:
    """What the reader of the script could not read, or what bash or sbatch would refuse."""

    id: str
    message: str
    at: Position = NOWHERE
    fact: str = ""
    """What its rule needs to know besides, so that nobody reads it out of the message."""


@dataclass(frozen=True)
class Rank:
    """What one rank has, worked out from the request and the launch; None: not known."""

    per_node: int | None = None
    """Ranks on each node."""
    world_size: int | None = None
    cores: int | None = None
    """Cores that a rank may use."""
    visible_gpus: Literal["one", "all", "none"] | None = None
    """Whether it sees its own GPU alone (`--gpus-per-task`, `ROCR_USE_SLURM_LOCALID`), or all."""


UNKNOWN_RANK = Rank()
"""Of a job whose launch says nothing of its ranks."""


@dataclass(frozen=True)
class ScriptJob:
    """One job, whatever it was written in. Rules read this and the site's profile."""

    origin: Literal["script", "job file"]
    name: str = ""
    text: str = ""
    """The script's text; "" where there is none."""
    options: CommandOptions = NO_OPTIONS
    """sbatch's, from `#SBATCH` lines and from a job file's keys."""
    resources: Resources = UNKNOWN
    variables: tuple[Variable, ...] = ()
    commands: tuple[Command, ...] = ()
    """All simple commands in their order, those that launch too."""
    steps: tuple[JobStep, ...] = ()
    modules: tuple[str, ...] = ()
    """What `module load` named, in order, without those that a later purge removed."""
    rank: Rank = UNKNOWN_RANK
    shebang: str = ""
    troubles: tuple[Trouble, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Texts of the project's files, by the path that the job uses: its Python program, its
    DeepSpeed configuration. Empty: they are not at hand, and no rule may say that one is absent."""
    written: Mapping[str, tuple[Position, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Of those files that the script writes itself: where each of their lines is in it."""
    folder: str | None = None
    """Where it is submitted from, where that is known."""
    strategy: str = ""
    """`ddp`, `zero3`, `fsdp`, `lightning` … where it is known; "": not."""
    end: Position = NOWHERE
    """The `exit` or `exec` that is run in any case; NOWHERE: it ends behind its last line."""

    @cached_property
    def training(self) -> tuple[JobStep, ...]:
        """The steps that start the job's main program."""
        return tuple(step for step in self.steps if step.trains)

    def variable(self, name: str, *, shell: Shell | None = None) -> Variable | None:
        """Return the last setting of a variable, in any shell or in this one."""
        found = self._by_name.get(name, ())
        return next((item for item in reversed(found) if shell in (None, item.shell)), None)

    @cached_property
    def _by_name(self) -> dict[str, list[Variable]]:
        found: dict[str, list[Variable]] = {}
        for item in self.variables:
            found.setdefault(item.name, []).append(item)
        return found

    def settings(self, *names: str) -> Iterator[Variable]:
        """Yield every setting of these variables."""
        return (item for item in self.variables if item.name in names)

    @property
    def nodes(self) -> int:
        """The nodes it asks for; Slurm's own 1 where it names none."""
        return self.resources.nodes or 1

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The container images of its steps, as far as their paths are known."""
        calls = (step.container for step in self.steps)
        return tuple(call.image.known for call in calls if call and call.image)
