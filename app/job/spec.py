"""The job file a person writes: `JobSpec`, how it is read, and how it is changed."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from lumitui.app.job.keys.fields import (
    Hang,
    Inside,
    Line,
    Memory,
    Name,
    Signal,
    Text,
    Walltime,
    Word,
)
from lumitui.app.job.keys.log_pattern import check_log_pattern
from lumitui.app.job.keys.variables import check_environment_name, check_secret_name
from lumitui.app.job.keys.venv import Venv
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.remote.site.reading.validation import validate

MOST_NODES = 10_000
"""More than any machine has: a larger number is a slip of the finger."""
MOST_LIMITS = 100
"""Time limits of one run: of two days each, more than half a year."""
MOST_RELAUNCHES = 10
"""A machine that breaks a program more often is not one to stay on."""


StageName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]{0,30}$")]
"""The name of something staged, as a part of a variable's name."""


def _only_path(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class Part(BaseModel):
    """The base of every part of a job file: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ContainerChoice(Part):
    """Which container the ranks run in; `none: true` for none."""

    generation: Line | None = None
    """A generation of the site's profile."""
    image: Line | None = None
    """An image other than the generation's."""
    binds: tuple[Line, ...] = ()
    """`SRC[:DST[:OPTIONS]]`, as the container command takes them."""
    venv: Line | None = None
    """A squashed Python environment (`.sqsh`) on the cluster, mounted over the image's own."""
    none: bool = False


class DeepSpeedChoice(Part):
    """DeepSpeed's configuration."""

    config: Inside
    """A file of the project, read as HJSON; the run gets a copy with the batch recomputed."""


class BatchRule(Part):
    """How the batch changes with the number of ranks."""

    arg: Line | None = None
    """The argument with the samples per rank and step; None: the trainer's, or DeepSpeed's."""
    keep: Literal["per_gpu", "global"] = "global"


class LearningRateRule(Part):
    """How the learning rate changes with the global batch."""

    arg: Line | None = None
    rule: Literal["none", "linear", "sqrt"] = "none"


class Scale(Part):
    """What a resubmission on more nodes changes; without it global batch and learning rate stay."""

    batch: BatchRule = BatchRule()
    lr: LearningRateRule = LearningRateRule()


class StagedPath(Part):
    """Data, a model or an image that the site gets once, and all runs there share."""

    path: Line
    """A file or folder on this machine, relative to the project; `~` is the home. Of a container's
    definition (`*.def`) the image is sent, which is built here."""
    link: Inside | None = None
    """Where it appears below the code, too."""


class JobSpec(Part):
    """A job file: what to run and how. Everything else is derived."""

    name: Name
    site: Line
    account: Annotated[Word, BeforeValidator(lambda value: value or "none")] = "none"
    partition: Word
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    gpus_per_node: Annotated[int, Field(ge=1, le=64)] | None = None
    """None: all GPUs of a node."""
    cpus_per_task: Annotated[int, Field(ge=1)] | None = None
    memory: Memory | None = None
    """`--mem`, per node; None: the site's share for the GPUs."""
    local_disk: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """GiB on each node's own disk, at a site where a job asks for them; None: none."""
    exclusive: bool = False
    """Whether a shared partition gives whole nodes, and bills them, so that masks are right."""
    time: Walltime
    chain: Annotated[int, Field(ge=1, le=MOST_LIMITS)] = 1
    """How many time limits the run may take: an attempt that stopped near its limit, with its
    checkpoint saved, goes back into the queue and continues."""
    relaunch: Annotated[int, Field(ge=0, le=MOST_RELAUNCHES)] = 0
    """How often a program that fails is launched again in its allocation, from its checkpoint."""
    launcher: Line = "srun"
    strategy: str = "ddp"
    trainer: str | None = None
    script: Inside | None = None
    args: tuple[Text, ...] = ()
    resume: tuple[Text, ...] = ()
    """Arguments that make the person's own script continue from `$RUN_DIR/checkpoints`."""
    hostfile: bool = False
    """Whether the job writes `$RUN_DIR/hostfile` for a program that starts ranks itself: a line
    `HOST slots=RANKS` for each node, as DeepSpeed and Open MPI read it."""
    signal: Signal | None = None
    """sbatch's `--signal`, like `USR1@120`, when the script saves on that signal."""
    hang: Hang | None = None
    """After how long a rank that hangs ends a bundled training; None: it is only named."""
    env: dict[str, Text] = {}
    secrets: tuple[str, ...] = ()
    """Names of the laptop's variables that the job may read; their values are never shown."""
    container: ContainerChoice = ContainerChoice()
    venv: Venv | None = None
    """Packages that the image or the modules lack: a requirements file of the project, or a list.
    They are installed once, and shared by all runs that need the same."""
    binding: Literal["auto", "masks", "none"] = "auto"
    proof: Literal["on", "strict", "off"] = "on"
    """`strict`: the job ends before the launch when a rank has other cores or another GPU than
    planned, or when no driver tells which GPU it has."""
    preflight: Literal["warn", "end", "off"] | None = None
    """Whether the GPUs and the network are measured before the launch, in half a minute at most:
    `warn` names a rank or node that is slow or wrong, `end` ends the job then. None: as the site's
    profile says."""
    keep_compiled: bool = True
    """Whether the next job gets what Inductor, Triton and MIOpen compiled in this one."""
    project: Line = "."
    """The folder that is sent, relative to the job file's folder."""
    ship: Literal["auto", "files", "archive"] = "auto"
    """How the code is sent: as files, or as one archive that every node unpacks. `auto` becomes
    `archive` when the project has too many files or too large ones."""
    ship_secrets: Annotated[
        tuple[Inside, ...], Field(validation_alias=AliasChoices("ship_secrets", "allow"))
    ] = ()
    """Files that look like secrets and are sent nevertheless; otherwise they are left out, and the
    preview names them. Paths from the project's root; `*`, `**` and folders as in .gitignore."""
    workdir: Inside = "."
    links: dict[Inside, Line] = {}
    stage: dict[StageName, Annotated[StagedPath, BeforeValidator(_only_path)]] = {}
    """What the site gets before the run, each under a name: `DATA` is `$STAGE_DATA` in the job, and
    also in `args:`, `env:` and `container.image`."""
    fetch: tuple[Inside, ...] = ()
    metrics: dict[Line, Line] = {}
    """Names of series, each with a regular expression of one group that is searched in the log."""
    deepspeed: DeepSpeedChoice | None = None
    scale: Scale | None = None
    sbatch: tuple[Line, ...] = ()
    """Further #SBATCH options."""
    grid: dict[Line, Annotated[tuple[Text, ...], Field(min_length=1)]] = {}
    """Keys of the job file or arguments of the script, each with a list of values: the file
    becomes a run for each combination."""

    @field_validator("strategy")
    @classmethod
    def _known_strategy(cls, value: str) -> str:
        if value not in STRATEGIES:
            raise ValueError(f"{value!r} is not one of {', '.join(STRATEGIES)}")
        return value

    @field_validator("trainer")
    @classmethod
    def _known_trainer(cls, value: str | None) -> str | None:
        if value is not None and value not in TRAINERS:
            raise ValueError(f"{value!r} is not one of {', '.join(TRAINERS)}")
        return value

    @field_validator("env")
    @classmethod
    def _plain_variables(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            check_environment_name(name)
        return value

    @field_validator("secrets")
    @classmethod
    def _secret_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            check_secret_name(name)
        return value

    @field_validator("sbatch")
    @classmethod
    def _long_options(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for option in value:
            if not option.startswith("-") or "$" in option:
                raise ValueError(f"{option!r} is not an option like --exclude=nid005001")
        return value

    @field_validator("metrics")
    @classmethod
    def _patterns(cls, value: dict[str, str]) -> dict[str, str]:
        for name, pattern in value.items():
            try:
                check_log_pattern(pattern)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return value

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if (self.trainer is None) == (self.script is None):
            raise ValueError("give either `trainer:` (a bundled one) or `script:` (your own)")
        if self.trainer and self.strategy not in TRAINERS[self.trainer].strategies:
            fitting = ", ".join(TRAINERS[self.trainer].strategies)
            raise ValueError(f"the trainer {self.trainer} supports {fitting}, not {self.strategy}")
        return self


def read_job(path: Path) -> JobSpec:
    """Return the job that the file at `path` describes.

    Raises:
        InputError: every mistake in it, with its line.
    """
    from lumitui.remote.site.reading.yaml_document import read_document

    document = read_document(path, plain=True)
    return validate(document, JobSpec, document.data)


def parse_job(text: str, name: str) -> JobSpec:
    """Return the job that `text` describes; errors call it `name`."""
    from lumitui.remote.site.reading.yaml_document import Document

    document = Document(text, name, plain=True)
    return validate(document, JobSpec, document.data)


def changed(spec: JobSpec, changes: dict[str, Any], name: str) -> JobSpec:
    """Return `spec` with top-level keys replaced and validated; errors call it `name`."""
    data = spec.model_dump(mode="json", exclude_defaults=True) | changes
    from lumitui.remote.site.reading.yaml_document import Document

    return validate(Document("", name), JobSpec, data)
