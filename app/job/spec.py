"""The job file a user writes: `JobSpec`, how it is read, and how it is changed."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from lumitui.app.job.fields.env_variables import check_environment_name, check_secret_name
from lumitui.app.job.fields.log_pattern import check_log_pattern
from lumitui.app.job.fields.mapping_fields import (
    AfterShort,
    ContainerChoice,
    DeepSpeedChoice,
    MappingField,
    NotifyShort,
    Scale,
    StagedShort,
    StageName,
)
from lumitui.app.job.fields.text_fields import (
    Hang,
    Inside,
    Line,
    Memory,
    Module,
    Name,
    Signal,
    Text,
    Walltime,
    Word,
)
from lumitui.app.job.fields.venv_field import Venv
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.remote.site.reading.validation import validate

MOST_NODES = 10_000
"""More than any machine has: a larger number is a slip of the finger."""
MOST_LIMITS = 100
"""Time limits of one run: of two days each, more than half a year."""
MOST_ARGUMENTS = 5000
"""More is a list that belongs into a file: each is read by bash, and by rules, one by one."""
MOST_RELAUNCHES = 10
"""A machine that breaks a program more often is not one to stay on."""


class JobSpec(MappingField):
    """A job file: what to run and how. Everything else is derived."""

    name: Name
    """The job's name in the queue and in the list of runs, one line of at most 100 characters:
    `name: resnet50`."""
    site: Line
    """Where the job runs, by the name of a profile (`lumitui site show` lists them): `site:
    laptop`."""
    account: Annotated[Word, BeforeValidator(lambda value: value or "none")] = "none"
    """The project that pays: `account: project_462000000`. Left out: none, where the site needs
    none."""
    partition: Word
    """The queue, as the site's profile calls it; it limits nodes and time, and sets the price:
    `partition: standard-g`."""
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    """How many nodes: `nodes: 2`."""
    gpus_per_node: Annotated[int, Field(ge=1, le=64)] | None = None
    """GPUs of each node, with a rank for each: `gpus_per_node: 4`. Left out: all GPUs of a
    node."""
    cpus_per_task: Annotated[int, Field(ge=1)] | None = None
    """Cores of each Slurm task: `cpus_per_task: 7`. Left out: the site's share for the GPUs."""
    memory: Memory | None = None
    """Memory of each node as `--mem` takes it, in MiB, or in K, M, G or T: `memory: 60G`. Left
    out: the site's share for the GPUs."""
    local_disk: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """GiB on each node's own disk, at a site where a job asks for them: `local_disk: 100`. Left
    out: none."""
    exclusive: bool = False
    """Whether a shared partition gives whole nodes, and bills them, so that masks are right:
    `exclusive: true`."""
    time: Walltime
    """The time limit of the job as Slurm writes it, hours:minutes:seconds or days-hours: `time:
    "02:00:00"`."""
    chain: Annotated[int, Field(ge=1, le=MOST_LIMITS)] = 1
    """How many time limits the run may take: an attempt that stopped near its limit, with its
    checkpoint saved, goes back into the queue and continues: `chain: 4`."""
    after: AfterShort | None = None
    """Runs of the same site that must be done before the job starts, by Slurm's own dependency:
    `after: vit-1n`. A resubmission does not wait."""
    relaunch: Annotated[int, Field(ge=0, le=MOST_RELAUNCHES)] = 0
    """How often a program that fails is launched again in its allocation, from its checkpoint:
    `relaunch: 2`."""
    launcher: Line = "srun"
    """What starts the ranks; the site's profile says which it has: `launcher: torchrun`."""
    strategy: str = "ddp"
    """How the ranks train together: `strategy: fsdp`."""
    trainer: str | None = None
    """A bundled trainer, instead of a script: `trainer: ddp`."""
    script: Inside | None = None
    """Your program, inside the project: `script: train.py`."""
    args: tuple[Text, ...] = ()
    """The program's arguments; a shell sees none of them, `$STAGE_NAME` is what is staged, and
    lumitui puts in `$USER` and the site's folders (`$$USER` stays): `args: [--lr, 0.1]`."""
    resume: tuple[Text, ...] = ()
    """Arguments that make your own script continue from `$RUN_DIR/checkpoints`, a folder that it
    finds in its environment: `resume: [--resume]`."""
    hostfile: bool = False
    """Whether the job writes `$RUN_DIR/hostfile` for a program that starts ranks itself, with a
    line `HOST slots=RANKS` for each node, as DeepSpeed and Open MPI read it: `hostfile: true`."""
    signal: Signal | None = None
    """sbatch's `--signal` when the script saves on that signal; the number is seconds before the
    time limit: `signal: USR1@120`."""
    hang: Hang | None = None
    """After how long a rank that hangs ends a bundled training, hours:minutes:seconds, a minute at
    least: `hang: 00:10:00`. Left out: it is only named."""
    env: dict[str, Text] = Field(default={})
    """Variables of the program, by their names; a secret goes under `secrets:`: `env: {NCCL_DEBUG:
    INFO}`."""
    secrets: tuple[str, ...] = ()
    """Names of the laptop's variables that the job may read; their values are never shown:
    `secrets: [WANDB_API_KEY]`."""
    notify: NotifyShort | None = None
    """Who is told that the job has ended, by the job itself: the name of the laptop's variable with
    an address, which goes the way of `secrets:`: `notify: NTFY_URL`."""
    container: ContainerChoice = ContainerChoice()
    """Which container the ranks run in: `container: {image: $STAGE_IMAGE}`. Left out: the
    site's."""
    modules: tuple[Module, ...] = ()
    """Modules that the job loads after those of the site's profile: `modules: [rocm/6.2.2]`."""
    venv: Venv | None = None
    """Packages that the image or the modules lack: a requirements file of the project, or a list.
    They are installed once, and shared by all runs that need the same: `venv: [einops==0.8.1]`."""
    binding: Literal["auto", "masks", "none"] = "auto"
    """Whether each rank is bound to the cores near its GPU: `auto` where launcher and partition
    allow it, `masks` or an error, `none` in no case: `binding: masks`."""
    proof: Literal["on", "strict", "off"] = "on"
    """Whether the job measures its binding. `strict`: the job ends before the launch when a rank
    has other cores or another GPU than planned, or when no driver tells which GPU it has: `proof:
    strict`."""
    preflight: Literal["warn", "end", "off"] | None = None
    """Whether the GPUs and the network are measured before the launch, in half a minute at most:
    `warn` names a rank or node that is slow or wrong, `end` ends the job then: `preflight: end`.
    Left out: as the site's profile says."""
    keep_compiled: bool = True
    """Whether the next job gets what Inductor, Triton and MIOpen compiled in this one:
    `keep_compiled: false`."""
    project: Line = "."
    """The folder that is sent, relative to the job file's folder: `project: ..`."""
    ship_secrets: tuple[Inside, ...] = ()
    """Files that look like secrets and are sent nevertheless; otherwise they are left out, and the
    preview names them. Paths from the project's root, or from what is staged; `*`, `**` and
    folders as in .gitignore: `ship_secrets: [config/dev.env]`."""
    follow_links: tuple[Inside, ...] = ()
    """Links out of the project, or out of a folder that is staged, of which the site gets what they
    lead to; any other is refused. Patterns as in `ship_secrets:`, which also decides about secrets
    there: `follow_links: [data/shared]`."""
    workdir: Inside = "."
    """The folder of the code in which the program starts: `workdir: src`."""
    links: dict[Inside, Line] = Field(default={})
    """Links below the code, each with what it leads to on the site: `links: {data:
    /scratch/project_462000000/data}`."""
    stage: dict[StageName, StagedShort] = Field(default={})
    """What the site gets before the run, each under a name: `DATA` is `$STAGE_DATA` in the job,
    and also in `args:`, `env:` and `container.image`: `stage: {DATA: ~/mnist}`."""
    fetch: tuple[Inside, ...] = ()
    """Files that `lumitui fetch` brings besides the records of a run, as patterns from the run's
    folder on: `fetch: [checkpoints/last.pt]`."""
    metrics: dict[Line, Line] = Field(default={})
    """Names of series, each with a regular expression of one group that is searched in the log:
    `metrics: {loss: "loss=([0-9.]+)"}`."""
    deepspeed: DeepSpeedChoice | None = None
    """DeepSpeed's configuration of your own script: `deepspeed: {config: ds_config.json}`."""
    scale: Scale | None = None
    """What a resubmission on more nodes changes besides the nodes: `scale: {lr: {rule: linear}}`.
    Left out: global batch and learning rate stay."""
    sbatch: tuple[Line, ...] = ()
    """Further #SBATCH options: `sbatch: [--exclude=nid005001]`."""
    grid: dict[Line, Annotated[tuple[Text, ...], Field(min_length=1)]] = Field(default={})
    """Keys of the job file or arguments of the script, each with a list of values: the file
    becomes a run for each combination: `grid: {lr: [1e-3, 3e-4], nodes: [1, 2]}`."""
    at_once: Annotated[int, Field(ge=1, le=100)] | None = None
    """How many runs of the grid may run at the same time; each of the others waits in the queue
    for the end of one before it: `at_once: 4`. Left out: as many as Slurm starts."""

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The names of the laptop's variables whose values go to the site."""
        webhook = self.notify.webhook if self.notify else None
        own = (webhook,) if webhook and webhook not in self.secrets else ()
        return (*self.secrets, *own)

    @field_validator("strategy", "trainer")
    @classmethod
    def _listed(cls, value: str | None, info: ValidationInfo) -> str | None:
        names = tuple(STRATEGIES if info.field_name == "strategy" else TRAINERS)
        if value is not None and value not in names:
            raise ValueError(f"{value!r} is not one of {', '.join(names)}")
        return value

    @field_validator("args", mode="before")
    @classmethod
    def _not_a_list_of_files(cls, value: object) -> object:
        if isinstance(value, list | tuple) and len(value) > MOST_ARGUMENTS:
            raise ValueError(
                f"{len(value):,} arguments are more than {MOST_ARGUMENTS:,}; write them into a "
                "file of the project, and give the program its name"
            )
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
            one_line = len(option.splitlines()) == 1  # U+2028 ends a line for many programs, too
            if not option.startswith("-") or "$" in option or not one_line:
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
