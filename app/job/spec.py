"""The job file a person writes (`JobSpec`), and the launch it becomes (`Launch`)."""

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

import regex
import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.remote import walltime
from lumitui.remote.site.yaml_document import SEPARATOR, UNSEEN, Document, validate

# The whole word at the end of a part of a name: HF_TOKEN and APIKEY, not TOKENIZERS_PARALLELISM.
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?:_|$)", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BREAKS = re.compile("[\t\n]")
_OURS = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
_OURS |= {"RUN_DIR", "SRUN_CPUS_PER_TASK"}
SCRIPTS_OWN = frozenset({"CODE", "CPU_BIND_MASKS", "PROOF_DIR", "SIF", "UNGUESSED"})
"""Variables of job.sh itself, besides those in small letters: another value would mislead it."""
_SMALL = re.compile(r"[a-z]+")
# bash gives these a value of its own, or ends at once when they are set (bash(1)).
_FIXED = frozenset(
    {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID", "BASHPID", "BASH_COMMAND"}
    | {"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO"}
    | {"OLDPWD", "PWD", "RANDOM", "SECONDS", "SHLVL", "SRANDOM", "_"}
)


def _is_taken(name: str) -> bool:
    return name in _OURS | SCRIPTS_OWN | _FIXED or _SMALL.fullmatch(name) is not None


def _walltime(value: object) -> object:
    text = str(value).strip()
    if text.isdigit():
        raise ValueError(
            f"{text} alone is ambiguous; write {text}:00 for {text} minutes "
            f"or {text}:00:00 for {text} hours"
        )
    return text


def _is_time(text: str) -> str:
    if walltime.seconds_of(text) <= 0:
        raise ValueError("the time must be more than nothing")
    return text


def _passable(text: str) -> str:
    if UNSEEN.search(text):
        raise ValueError("it has a control character, which no command should receive")
    return text


def _relative(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{text!r} must be a path inside the project")
    return _one_line(text)


def _one_line(text: str) -> str:
    if UNSEEN.search(text) or _BREAKS.search(text):
        raise ValueError("it must be one line without control characters")
    return text


Text = Annotated[str, AfterValidator(_passable)]
"""Any text a command can receive."""
Line = Annotated[str, AfterValidator(_one_line)]
"""One line of text without control characters."""
Inside = Annotated[str, AfterValidator(_relative)]
"""A path inside the project, with forward slashes."""
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._@:/+-]+$", max_length=200)]
"""Text that is safe as a word of an #SBATCH line."""


class _Dumper(yaml.SafeDumper):
    """Writes text with a separator of Unicode in double quotes, where it is escaped."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if SEPARATOR.search(text) else None
    )


_Dumper.add_representer(str, _text)


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
    """A squashed Python environment (`.sqsh`) on the cluster, mounted over the image's."""
    none: bool = False


class DeepSpeedChoice(Part):
    """DeepSpeed's configuration."""

    config: Inside
    """A file of the project, read as HJSON; the run gets a copy with the batch recomputed."""


class BatchRule(Part):
    """What becomes of the batch when the number of ranks changes."""

    arg: Line | None = None
    """The argument that holds the samples a rank and step; None: the trainer's, or DeepSpeed's."""
    keep: Literal["per_gpu", "global"] = "global"


class LearningRateRule(Part):
    """What becomes of the learning rate when the global batch changes."""

    arg: Line | None = None
    rule: Literal["none", "linear", "sqrt"] = "none"


class Scale(Part):
    """What more nodes do. Without it the global batch and the learning rate stay."""

    batch: BatchRule = BatchRule()
    lr: LearningRateRule = LearningRateRule()


class JobSpec(Part):
    """A job file: what to run and how. Everything else is derived."""

    # The length first: of text that a function has seen, pydantic would count "items".
    name: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_one_line)]
    site: Line
    account: Annotated[Word, BeforeValidator(lambda value: value or "none")] = "none"
    partition: Word
    nodes: Annotated[int, Field(ge=1, le=10000)] = 1
    gpus_per_node: Annotated[int, Field(ge=1, le=64)] | None = None
    """None: all of a node."""
    cpus_per_task: Annotated[int, Field(ge=1)] | None = None
    memory: Annotated[str, Field(pattern=r"^[0-9]{1,9}[KMGT]?$")] | None = None
    """`--mem` a node; None: the site's share for the GPUs."""
    exclusive: bool = False
    """Whole nodes on a shared partition (and billed as such), so that masks are right."""
    time: Annotated[str, BeforeValidator(_walltime), AfterValidator(_is_time)]
    launcher: Line = "srun"
    strategy: str = "ddp"
    trainer: str | None = None
    script: Inside | None = None
    args: tuple[Text, ...] = ()
    resume: tuple[Text, ...] = ()
    """Arguments that make the person's own script continue from `$RUN_DIR/checkpoints`."""
    signal: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,12}@[0-9]{1,5}$")] | None = None
    """sbatch's `--signal`, like `USR1@120`, when the script saves on it."""
    env: dict[str, Text] = {}
    secrets: tuple[str, ...] = ()
    """Names of variables of the laptop whose values the job may read, never shown anywhere."""
    container: ContainerChoice = ContainerChoice()
    binding: Literal["auto", "masks", "none"] = "auto"
    proof: Literal["on", "strict", "off"] = "on"
    """`strict`: the job ends before the launch when a rank has other cores than planned."""
    project: Line = "."
    """The root of what is shipped, from the job file's folder."""
    ship: Literal["auto", "files", "archive"] = "auto"
    """How the code gets there: as files, or, when there are too many or too large ones, as one
    archive that every node unpacks. `auto` becomes `archive` when the limits ask for it."""
    allow: tuple[Inside, ...] = ()
    """Files that look like secrets (`.env`, `*.pem`, private keys) and are sent all the same."""
    workdir: Inside = "."
    links: dict[Inside, Line] = {}
    fetch: tuple[Inside, ...] = ()
    metrics: dict[Line, Line] = {}
    """Name of a series to a regular expression with one group, looked for in the log."""
    deepspeed: DeepSpeedChoice | None = None
    scale: Scale | None = None
    sbatch: tuple[Line, ...] = ()
    """Further #SBATCH options."""

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
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is not a variable's name")
            if _SECRET.search(name):
                raise ValueError(
                    f"{name} looks like a secret; list its name under `secrets:` "
                    "and set it in the laptop's environment"
                )
            if name in _OURS:
                raise ValueError(f"{name} is set by the launch itself; remove it")
            if _is_taken(name):
                raise ValueError(f"{name} belongs to the job script or its shell; take another")
        return value

    @field_validator("secrets")
    @classmethod
    def _secret_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _VARIABLE.fullmatch(name):
                raise ValueError("an entry is not a variable's name; give names, never values")
            if _is_taken(name):
                raise ValueError(f"{name} belongs to the job script or its shell; take another")
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
                groups = regex.compile(pattern).groups
            except (regex.error, OverflowError, RecursionError) as error:
                raise ValueError(f"{name}: not a regular expression: {error}") from error
            if groups != 1:
                raise ValueError(f"{name}: the pattern needs exactly one (group)")
        return value

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if (self.trainer is None) == (self.script is None):
            raise ValueError("give either `trainer:` (a bundled one) or `script:` (your own)")
        if self.trainer and self.strategy not in TRAINERS[self.trainer].strategies:
            fitting = ", ".join(TRAINERS[self.trainer].strategies)
            raise ValueError(f"the trainer {self.trainer} does {fitting}, not {self.strategy}")
        return self

    def to_yaml(self) -> str:
        """Return the job file that says this, without what is default."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def read_job(path: Path) -> JobSpec:
    """Return the job that the file at `path` describes.

    Raises:
        InputError: every mistake in it, with its line.
    """
    from lumitui.remote.site.yaml_document import read_document

    document = read_document(path, plain=True)
    return validate(document, JobSpec, document.data)


def parse_job(text: str, name: str) -> JobSpec:
    """Return the job that `text` describes; `name` is what errors show."""
    document = Document(text, name, plain=True)
    return validate(document, JobSpec, document.data)


def changed(spec: JobSpec, changes: dict[str, Any], name: str) -> JobSpec:
    """Return `spec` with top-level keys replaced, validated again; `name` is what errors show."""
    data = spec.model_dump(mode="json", exclude_defaults=True) | changes
    return validate(Document("", name), JobSpec, data)


ALL_NODES = 16
"""Beyond so many nodes only the first and the last one are measured (templates/probe.sh)."""


def measured_nodes(nodes: int) -> int:
    """Return on how many of a job's nodes the probe measures."""
    return nodes if nodes <= ALL_NODES else 2


@dataclass(frozen=True)
class Layout:
    """How the ranks lie on nodes, GPUs and cores."""

    nodes: int
    ranks_per_node: int
    """One rank a GPU."""
    tasks_per_node: int
    """Slurm's tasks: the ranks, or one launcher a node that starts them."""
    cpus_per_task: int
    gpus_per_node: int
    whole_nodes: bool
    masks: tuple[str, ...] = ()
    """srun's CPU masks in local-rank order; empty: none given."""
    planned_cores: tuple[str, ...] = ()
    """Cores of each local rank as ranges; empty: nothing is promised."""
    exact: bool = True
    """Whether a rank must have all planned cores, or may have some of them."""
    unplanned: str = ""
    """Why no cores are promised, where `planned_cores` is empty."""

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Price:
    """What is billed if the job runs to its time limit."""

    amount: float
    unit: str
    per_hour: float


@dataclass(frozen=True)
class LaunchFile:
    """A small file that goes to the run's folder."""

    name: str
    content: str
    mode: int = 0o600


@dataclass(frozen=True)
class Launch:
    """A job made ready: what the preview shows and the cluster gets, byte for byte."""

    spec: JobSpec
    script: str
    """job.sh; independent of the run it is for."""
    layout: Layout
    price: Price
    files: tuple[LaunchFile, ...] = ()
    global_batch: int | None = None
    """Samples a step over all ranks, where it is known."""
    can_resume: bool = False
    notes: tuple[str, ...] = field(default=())
