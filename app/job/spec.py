"""The job file: `JobSpec`, and how to read and change it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from lumitui.app.job.fields.mapping_fields import (
    AfterShort,
    ContainerChoice,
    DeepSpeedChoice,
    Follower,
    FollowerName,
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
    Modules,
    Name,
    Place,
    Places,
    Signal,
    Text,
    Walltime,
    Word,
    check_environment_name,
    check_log_pattern,
    check_secret_name,
)
from lumitui.app.job.fields.venv_field import Venv
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.validation import validate

if TYPE_CHECKING:
    from lumitui.remote.site.reading.yaml_document import Document

MOST_NODES = 10_000
"""Maximum number of nodes, more than any machine has: a larger number is a typing error."""
MOST_LIMITS = 100
"""Maximum number of time limits of one run: at two days each, more than half a year."""
MOST_ARGUMENTS = 5000
"""Maximum number of arguments, since bash and the rules read them one by one."""
MOST_FOLLOWERS = 20
"""Maximum number of followers: each is a job that waits in the queue, often from the start."""
MOST_RELAUNCHES = 10
"""Maximum number of relaunches: a program that fails more often needs a fix, or other nodes."""
_LONGEST_NAME = 100
_OF_THE_FIRST = frozenset({"name", "site", "after", "grid", "at_once", "then"})
"""The keys that a job of `then:` cannot set."""
_OF_A_PROGRAM = frozenset(
    {"script", "trainer", "args", "resume", "strategy", "deepspeed", "chain", "relaunch", "signal",
     "hang", "metrics"}
)  # fmt: skip
"""The keys that belong to one program: a different program does not inherit them."""


class JobSpec(MappingField):
    """A job file: what to run and how. lumitui derives everything else."""

    name: Name
    """The job's name in the queue and in the list of runs, one line of at most 100 characters:
    `name: resnet50`."""
    site: Line
    """A site's name (`lumitui site show` lists all): `site: laptop`."""
    account: Annotated[Word, BeforeValidator(lambda value: value or "none")] = "none"
    """The project to bill: `account: project_462000000`. Omit it if the site needs none.
    Default: that of the site's profile, if it has one."""
    partition: Word
    """The queue, by its name in the site's profile. It limits nodes and time, and sets the price:
    `partition: standard-g`."""
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    """The number of nodes: `nodes: 2`."""
    gpus_per_node: Annotated[int, Field(ge=1, le=64)] | None = None
    """GPUs per node, with one rank for each: `gpus_per_node: 4`. Default: all GPUs of a node."""
    cpus_per_task: Annotated[int, Field(ge=1)] | None = None
    """Cores per Slurm task: `cpus_per_task: 7`. Default: the site's share for the GPUs."""
    memory: Memory | None = None
    """Memory per node, in MiB or with K, M, G or T as for `--mem`: `memory: 60G`. Default: the
    site's share for the GPUs."""
    local_disk: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """GiB of each node's local disk, at sites where jobs request it: `local_disk: 100`. Default:
    none."""
    exclusive: bool = False
    """Request whole nodes of a shared partition, so that CPU masks are valid. The site bills the
    whole nodes: `exclusive: true`."""
    time: Walltime
    """The time limit in Slurm's form, hours:minutes:seconds or days-hours, or with units, like
    `1h30m`: `time: "02:00:00"`."""
    chain: Annotated[int, Field(ge=1, le=MOST_LIMITS)] = 1
    """The maximum number of time limits that the run may use. The job saves before each limit,
    requeues itself
    and resumes: `chain: 4`."""
    after: AfterShort | None = None
    """Runs at the same site that must be done before the job starts, as a Slurm dependency:
    `after: vit-1n`. A resubmission does not wait."""
    relaunch: Annotated[int, Field(ge=0, le=MOST_RELAUNCHES)] = 0
    """How many times to restart a failed program in the same allocation, from its checkpoint:
    `relaunch: 2`."""
    launcher: Line = "srun"
    """The program that starts the ranks, one of the site's launchers: `launcher: torchrun`."""
    strategy: str = "ddp"
    """How the ranks train together: `strategy: fsdp`."""
    trainer: str | None = None
    """A bundled trainer, instead of a script: `trainer: ddp`."""
    script: Inside | None = None
    """Your program, inside the project: `script: train.py`."""
    args: tuple[Text, ...] = ()
    """The program's arguments: `args: [--lr, 0.1]`. No shell expands them, but lumitui expands
    `$STAGE_NAME` (the path of a staged item), `$AFTER_DIR` (the folder of the `after:` run),
    `$USER` and the site's folders. For a literal `$USER`, write `$$USER`."""
    resume: tuple[Text, ...] = ()
    """Arguments that make your own script continue from the folder `$RUN_DIR/checkpoints`:
    `resume: [--resume]`."""
    hostfile: bool = False
    """Write `$RUN_DIR/hostfile` for a program that starts ranks itself, with a line `HOST
    slots=RANKS` per node, as DeepSpeed and Open MPI expect: `hostfile: true`."""
    signal: Signal | None = None
    """The signal on which the script saves: `signal: USR1@120`. The number gives the seconds before
    the time limit. With `B:`, as in `B:USR1@120`, the script gets no signal; the file
    `$RUN_DIR/stop` appears instead."""
    hang: Hang | None = None
    """End a bundled trainer once a rank has hung this long, at least a minute, in the form
    hours:minutes:seconds: `hang: 00:10:00`. Default: the log only names the hung rank."""
    debug: Hang | None = None
    """Hold the nodes for `lumitui shell` instead of running the program. The job ends after this
    time without an open shell (hours:minutes:seconds): `debug: 00:20:00`. `lumitui debug` sets
    it."""
    env: dict[str, Text] = Field(default={})
    """The program's environment variables; list a secret under `secrets:`: `env: {NCCL_DEBUG:
    INFO}`."""
    secrets: tuple[str, ...] = ()
    """Names of your laptop's variables that the job may read: `secrets: [WANDB_API_KEY]`. lumitui
    never shows their values."""
    notify: NotifyShort | None = None
    """The laptop variable with the address to which the job reports its end: `notify: NTFY_URL`.
    lumitui sends the address like a secret."""
    container: ContainerChoice = ContainerChoice()
    """The container in which the ranks run: `container: {image: $STAGE_IMAGE}`. Default: the
    site's."""
    modules: Modules = ()
    """Modules to load after those of the site's profile: `modules: [rocm/6.2.2]`."""
    python: Place | None = None
    """The program's Python, as an absolute path on the site or a command: `python:
    $HOME/envs/vit/bin/python`. Default: the image's or the site's."""
    activate: Places = ()
    """Environments on the site to activate after the modules: the folder of a virtual or conda
    environment, a folder with `pixi.toml`, or a conda environment's name: `activate:
    $HOME/envs/vit`."""
    venv: Venv | None = None
    """Packages that the image or the modules lack: a requirements file in the project, or a list.
    lumitui installs them once for all runs that need the same ones: `venv: [einops==0.8.1]`."""
    binding: Literal["auto", "masks", "none"] = "auto"
    """Whether to bind each rank to the cores near its GPU: `auto` if launcher and partition allow
    it, `masks` always (or fail), `none` never: `binding: masks`."""
    proof: Literal["on", "strict", "off"] = "on"
    """Whether the job measures its binding: `proof: strict`. `strict` ends the job before the
    launch if a rank does not have the planned cores and GPU, or if no driver reports its GPU. On
    shared nodes, where no cores are planned, `strict` has no effect."""
    preflight: Literal["warn", "end", "off"] | None = None
    """Whether the job measures the GPUs and the network before the launch, in at most half a
    minute: `preflight: end`. `warn` names a slow or faulty rank or node; `end` also ends the job.
    Default: the site's."""
    keep_compiled: bool = True
    """Keep, for the next job, what Inductor, Triton and MIOpen compile: `keep_compiled: false`."""
    project: Line = "."
    """The folder to send, relative to the job file's folder: `project: ..`."""
    ship_secrets: tuple[Inside, ...] = ()
    """Files to send even if they look like secrets, as paths from the root of the project or of a
    staged folder: `ship_secrets: [config/dev.env]`. `*`, `**` and folders work as in .gitignore."""
    follow_links: tuple[Inside, ...] = ()
    """Links out of the project or a staged folder whose targets lumitui sends: `follow_links:
    [data/shared]`. It refuses all others. Patterns work as in `ship_secrets:`."""
    workdir: Inside = "."
    """The program's working folder, inside the code: `workdir: src`."""
    links: dict[Inside, Line] = Field(default={})
    """Links to create in the code's folder, with their targets on the site: `links: {data:
    /scratch/project_462000000/data}`."""
    stage: dict[StageName, StagedShort] = Field(default={})
    """Data to upload before the run, by name: the job finds `DATA` at `$STAGE_DATA`, also in
    `args:`, `env:` and `container.image`: `stage: {DATA: ~/mnist}`."""
    fetch: tuple[Inside, ...] = ()
    """Files that `lumitui fetch` copies besides a run's records, as patterns relative to the run's
    folder: `fetch: [checkpoints/last.pt]`."""
    metrics: dict[Line, Line] = Field(default={})
    """Series to read from the log, by name, each as a regular expression with one group:
    `metrics: {loss: "loss=([0-9.]+)"}`. `samples_per_s`, `images_per_s`, `examples_per_s` or
    `sequences_per_s` is the throughput of all ranks, which `lumitui scaling` needs; `step` numbers
    the steps."""
    deepspeed: DeepSpeedChoice | None = None
    """DeepSpeed's configuration for your own script: `deepspeed: {config: ds_config.json}`."""
    scale: Scale | None = None
    """What a resubmission on more nodes changes besides the nodes: `scale: {lr: {rule: linear}}`.
    Default: neither global batch nor learning rate."""
    sbatch: tuple[Line, ...] = ()
    """Further #SBATCH options: `sbatch: [--exclude=nid005001]`."""
    grid: dict[Line, Annotated[tuple[Text, ...], Field(min_length=1)]] = Field(default={})
    """Keys of the job file or arguments of the script, with lists of values; lumitui sends a run
    for each combination: `grid: {lr: [1e-3, 3e-4], nodes: [1, 2]}`."""
    at_once: Annotated[int, Field(ge=1, le=100)] | None = None
    """How many runs of the grid may run at the same time; the others wait in the queue until
    earlier ones end: `at_once: 4`. Default: as many as Slurm starts."""
    then: Annotated[dict[FollowerName, Follower], Field(max_length=MOST_FOLLOWERS)] = Field(
        default={}
    )
    """Jobs that run one after another, by name, each with only the keys that differ. Each starts
    once the previous one is done, or as its key `when` (`failed`, `any`) requires. In its `args:`,
    `$AFTER_DIR` is the folder of the previous run:
    `then: {evaluate: {script: evaluate.py, nodes: 1}}`."""

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema, in which a job of `then:` also has the other keys, for editors."""
        schema = super().model_json_schema(*args, **kwargs)
        keys = schema["properties"]
        own = [name for name in keys if name not in _OF_THE_FIRST]
        (job,) = keys["then"]["patternProperties"].values()
        job["properties"] = {name: {"$ref": f"#/properties/{name}"} for name in own}
        job["propertyNames"] = {"enum": [*own, "when"]}
        return schema

    @property
    def awaited(self) -> tuple[str, ...]:
        """The runs of `after:`."""
        return self.after.run if self.after else ()

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
                f"{len(value):,} arguments exceed the limit of {MOST_ARGUMENTS:,}; write them to "
                "a project file, and pass its name"
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
            one_line = len(option.splitlines()) == 1  # many programs end a line at U+2028 too
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
            raise ValueError("set either `trainer:` (a bundled one) or `script:` (your own)")
        if self.trainer and self.strategy not in TRAINERS[self.trainer].strategies:
            fitting = ", ".join(TRAINERS[self.trainer].strategies)
            raise ValueError(f"the trainer {self.trainer} supports {fitting}, not {self.strategy}")
        if self.venv and (self.python or self.activate):
            raise ValueError("`venv:` has its own Python, so it excludes `python:` and `activate:`")
        if self.debug and (self.chain > 1 or self.relaunch):
            raise ValueError("`debug:` excludes `chain:` and `relaunch:`, since nothing trains")
        is_global = self.scale is not None and self.scale.batch.arg_is == "global"
        if is_global and (self.trainer or self.deepspeed or STRATEGIES[self.strategy].zero_stage):
            raise ValueError(
                "`scale.batch.arg_is: global` is for your own script without DeepSpeed; the "
                "batch arguments of a trainer and of DeepSpeed are per rank"
            )
        return self


def at_line_of(path: Path, error: InputError) -> str:
    """Return the message of an error in the valid job file at `path`, with its key's line."""
    from lumitui.remote.site.reading.yaml_document import read_document

    keys, document = error.field.split("."), read_document(path, plain=True)
    known = keys[0] in document.data
    line = f"{path.name}, line {document.line(tuple(keys))}: " if known else ""
    return line + error.message


def read_job(path: Path) -> JobSpec:
    """Return the job in the file at `path`; InputError with all its mistakes, by line."""
    from lumitui.remote.site.reading.yaml_document import read_document

    return job_of(read_document(path, plain=True))


def parse_job(text: str, name: str) -> JobSpec:
    """Return the job in `text`; errors call it `name`."""
    from lumitui.remote.site.reading.yaml_document import Document

    return job_of(Document(text, name, plain=True))


def job_of(document: "Document") -> JobSpec:
    """Return the job of a document and check its `then:`; InputError with all mistakes, by line."""
    spec = validate(document, JobSpec, document.data)
    for name in spec.then:
        follower(spec, name, document)
    return spec


def follower(spec: JobSpec, name: str, document: "Document | None" = None) -> JobSpec:
    """Return the job `name` of `then:`: its own keys, and all others as in `spec`.

    If the job sets its own program, it inherits no key that concerns the first job's program.
    `document` gives lines to the errors.

    Raises:
        InputError: it is not a valid job.
    """
    from lumitui.remote.site.reading.yaml_document import Document

    own = spec.then[name].own
    if shared := sorted(_OF_THE_FIRST & own.keys()):
        raise InputError(
            f"{name} under `then:` sets {shared[0]}, which only the job file itself can set.",
            "Remove it from that job.",
            field=f"then.{name}.{shared[0]}",
        )
    data: dict[str, object] = spec.model_dump(mode="json", exclude_defaults=True)
    dropped = _OF_THE_FIRST - {"name", "site"}
    if {"script", "trainer"} & own.keys():
        dropped |= _OF_A_PROGRAM
    data = {key: value for key, value in data.items() if key not in dropped} | own
    data["name"] = f"{spec.name[: _LONGEST_NAME - 1 - len(name)]}-{name}"
    document = document or Document("", "then")
    return validate(document, JobSpec, data, place=("then", name))


def changed(spec: JobSpec, changes: dict[str, Any], name: str) -> JobSpec:
    """Return `spec` with top-level keys replaced and validated; errors call it `name`."""
    data = spec.model_dump(mode="json", exclude_defaults=True) | changes
    from lumitui.remote.site.reading.yaml_document import Document

    return validate(Document("", name), JobSpec, data)
