"""A site: one cluster as its profile describes it. Facts as data, no code a site.

Profiles are YAML files in `templates/sites/`; a person's own, in the platform's configuration
folder, override them by name. `extends:` inherits another profile, key by key.
"""

import re
import string
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lumitui.remote import walltime
from lumitui.remote.cores import parse_cores
from lumitui.remote.errors import InputError
from lumitui.remote.site.yaml_document import Document, read_document, validate


def _time(text: str) -> str:
    walltime.seconds_of(text)
    return text


def _core_list(value: object) -> object:
    # A single core reads as a number; everything else is text.
    text = str(value) if type(value) is int else value
    if isinstance(text, str):
        parse_cores(text)
    return text


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text[:60]!r} is not a regular expression: {error}") from error
    return text


def _fills(*names: str) -> AfterValidator:
    """Return the check that in braces there is nothing but `names`."""

    def check(text: str) -> str:
        known = ", ".join(f"{{{name}}}" for name in names)
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(f"its braces are wrong: {error}; known are {known}") from error
        for _, field, form, conversion in parts:
            if field is not None and (field not in names or form or conversion):
                raise ValueError(f"{{{field}}} is not known; known are {known}")
        return text

    return AfterValidator(check)


Pattern = Annotated[str, AfterValidator(_is_pattern)]
"""A regular expression."""
Time = Annotated[str, AfterValidator(_time)]
"""A wall-clock limit in one of Slurm's forms, as text."""
Cores = Annotated[str, BeforeValidator(_core_list)]
"""Core numbers as a list of ranges, like `1-7,9`."""


class Facts(BaseModel):
    """The base of every part of a profile: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Hosts(Facts):
    """Where to connect."""

    login: str = ""
    """Name or ssh_config alias of the login node; empty for this machine."""
    port: int | None = None
    user: str | None = None
    transfer: str | None = None
    """A host of its own for data, where a site has one."""
    ssh_config: str | None = None
    """An ssh_config file other than the person's own."""
    fingerprints: dict[str, str] = {}
    """Published host keys: key type (`ed25519`, `rsa`, `ecdsa`) to `SHA256:…`."""


class Account(Facts):
    """What an account (project) looks like here."""

    required: bool = True
    pattern: Pattern = r"^\S+$"
    example: str = ""


class NodeShape(Facts):
    """One GPU node. Cores are numbered as Slurm's masks number them (hardware thread 0)."""

    cores: int
    threads_per_core: int = 1
    reserved_cores: Cores = ""
    """Cores no job may use."""
    memory_gib: int
    """Memory a job may ask for."""
    gpus: int
    gpu: str
    """What one GPU is, in the site's words."""
    gpu_memory_gib: int
    gpu_cores: tuple[Cores, ...] = ()
    """The cores nearest to each GPU, in local-rank order: they become its mask. Empty: unknown."""
    gpu_numa: tuple[int, ...] = ()
    """NUMA domain of each GPU, in local-rank order."""
    gpu_bus: tuple[str, ...] = ()
    """PCI bus of each GPU, in local-rank order."""
    hostnames: str = ""
    local_disk: str = ""

    @cached_property
    def usable_cores(self) -> frozenset[int]:
        """Every core a job may use."""
        return frozenset(range(self.cores)) - frozenset(parse_cores(self.reserved_cores))

    @cached_property
    def cores_of_gpu(self) -> tuple[frozenset[int], ...]:
        """The cores of each GPU as sets, in local-rank order."""
        return tuple(frozenset(parse_cores(text)) for text in self.gpu_cores)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("gpu_cores", "gpu_numa", "gpu_bus"):
            if (count := len(getattr(self, key))) not in (0, self.gpus):
                raise ValueError(f"{key} lists {count} GPUs, the node has {self.gpus}")
        taken: set[int] = set()
        for rank, cores in enumerate(self.cores_of_gpu):
            if wrong := sorted(cores - self.usable_cores):
                raise ValueError(f"gpu_cores of GPU {rank}: {wrong} are reserved or not there")
            if twice := sorted(cores & taken):
                raise ValueError(f"gpu_cores of GPU {rank}: {twice} belong to another GPU")
            taken |= cores
        return self


class NodeBilling(Facts):
    """Whole nodes are billed, whatever is used of them."""

    kind: Literal["node"] = "node"
    per_node_hour: float


class SliceBilling(Facts):
    """The largest share of cores, memory or GPUs is billed."""

    kind: Literal["slice"] = "slice"
    cores: float
    memory_gib: float
    gpus: float = 1
    per_slice_hour: float


class SumBilling(Facts):
    """Everything allocated is billed, each at its own rate."""

    kind: Literal["sum"] = "sum"
    per_core_hour: float = 0
    per_gib_hour: float = 0
    per_gpu_hour: float = 0


Billing = Annotated[NodeBilling | SliceBilling | SumBilling, Field(discriminator="kind")]


class Partition(Facts):
    """A queue and its limits."""

    max_time: Time
    max_nodes: int
    max_gpus_per_node: int | None = None
    allocation: Literal["node", "shared"]
    """`node`: a job gets whole nodes, so that masks are right; `shared`: what it asked for."""
    billing: Billing
    grows_to: str | None = None
    """The partition to move to when a job outgrows this one."""
    max_jobs: int | None = None
    purpose: str = ""
    arguments: tuple[str, ...] = ()
    """Further #SBATCH options that it always needs, e.g. a QOS."""


class ImageVariant(Facts):
    """What is otherwise with some images of a generation; None: as with the others."""

    matches: Pattern
    """A regular expression on the image's path."""
    torchrun_binding: Literal["numa", "script", "none"] | None = None
    torchrun_signals: bool | None = None


class Container(Facts):
    """One generation of a site's containers: what belongs together, never mixed."""

    image: str
    images: Pattern | None = None
    """A regular expression that the path of each image of this generation matches, and of no
    other's; None: their names say nothing."""
    variants: tuple[ImageVariant, ...] = ()
    """Images that need other options; the first that matches counts."""
    call: tuple[str, ...]
    """The words before the image, e.g. `singularity run`."""
    modules: tuple[str, ...] = ()
    """Shell lines that make the container command and its binds available."""
    environment: dict[str, str] = {}
    """Exported in the job script; `$NAME` is expanded there, on the first node."""
    activate: str = ""
    """A command run inside the container before the program, e.g. `$WITH_CONDA`."""
    python: str = "python"
    torchrun_binding: Literal["numa", "script", "none"] = "none"
    """How torchrun's workers get their cores: its own `--numa-binding`, the training
    script, or not at all."""
    torchrun_signals: bool = False
    """Whether its torchrun has `--signals-to-handle` (torch 2.10 and newer): without it SIGUSR1
    kills the agent and leaves its ranks running, so that SIGTERM must tell them."""
    venv_mount: str = "/user-software"
    """Where a squashed environment is mounted inside."""
    venv_environment: dict[str, str] = {}
    """Exported besides `environment` when a squashed environment is mounted."""
    unbind: tuple[str, ...] = ()
    forbidden_environment: tuple[str, ...] = ()
    """Variables known to break this generation."""
    note: str = ""


class Rule(Facts):
    """A rule that holds only at this site, as data for the adviser."""

    id: str
    severity: Literal["error", "warning", "note"]
    field: str
    """Which field of the job file it looks at, e.g. `launcher` or `env.NCCL_NET_GDR_LEVEL`."""
    matches: Pattern
    """A regular expression on the field's text."""
    message: str
    do: str
    source: str


class Site(Facts):
    """One cluster."""

    name: str
    title: str
    scheduler: Literal["slurm", "process"] = "slurm"
    slurm_version: str = ""
    hosts: Hosts = Hosts()
    account: Account = Account()
    work_root: Annotated[str, _fills("account", "user", "home")]
    """Where runs and snapshots live there; `{account}`, `{user}`, `{home}` are filled in."""
    poll_seconds: float = 60
    node: NodeShape
    node_folder: str = ""
    """A folder of each node's own, where the code of a large project is unpacked; `$NAME` is
    expanded there. Empty: there is none."""
    partitions: dict[str, Partition]
    gpu_request: Annotated[str, _fills("gpus")] = "--gpus-per-node={gpus}"
    """The #SBATCH option for `{gpus}` GPUs a node."""
    memory_per_gpu: str = ""
    """`--mem-per-gpu` of a job with a task a GPU; empty: the site decides."""
    memory_per_node: str = ""
    """`--mem` of a job with one task a node that takes all GPUs; empty: the site decides."""
    cores_per_gpu: int
    """`--cpus-per-task` of one rank."""
    sbatch_arguments: tuple[str, ...] = ()
    """#SBATCH options of every job, e.g. `--hint=nomultithread`."""
    modules: tuple[str, ...] = ()
    """Shell lines of a job that uses no container."""
    environment: dict[str, str] = {}
    """Exported in every job script."""
    node_directories: tuple[str, ...] = ()
    """Folders made on every node before the launch. One with `${UNGUESSED}` in its name, which
    nobody can know before, is the job's alone and is removed when the job ends."""
    python: str = "python3"
    """The interpreter of a job without a container."""
    torchrun_binding: Literal["numa", "script", "none"] = "none"
    """As in `containers`, for a job without one."""
    torchrun_signals: bool = False
    """As in `containers`."""
    containers: dict[str, Container] = {}
    default_container: str | None = None
    launchers: tuple[str, ...] = ("srun", "torchrun")
    """Launchers that work here, the preferred first."""
    internet_on_compute_nodes: bool = True
    visible_gpus: str = "CUDA_VISIBLE_DEVICES"
    """The variable that lists a task's GPUs."""
    billing_unit: str = "GPU-hours"
    retired: str | None = None
    """The date from which it runs no more jobs."""
    rules: tuple[Rule, ...] = ()
    commands: dict[str, str] = {}
    """What to type there: `balance`, `quota`, `shell` …"""
    storage: dict[str, str] = {}
    """Areas of its file systems and what is known of them."""
    notes: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    """Keys of this profile that nobody has checked on the site."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        if self.default_container and self.default_container not in self.containers:
            raise ValueError(f"default_container {self.default_container!r} is not in containers")
        for name, partition in self.partitions.items():
            if partition.grows_to and partition.grows_to not in self.partitions:
                raise ValueError(f"{name} grows to {partition.grows_to!r}, which is not there")
        return self


BUILT_IN = Path(__file__).resolve().parents[2] / "templates" / "sites"
"""The profiles that come with the program."""


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Return `base` with `over` laid on it: mappings key by key, everything else replaced.

    A key whose value is null in `over` is removed.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


class Sites:
    """The profiles of some folders, by name; the first folder that has a name wins."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Look in `folders`, the most important first; files are read when asked for."""
        self._folders = tuple(folders)

    @property
    def _files(self) -> dict[str, list[Path]]:
        # Looked up each time: a profile that is added while the program runs is found.
        found: dict[str, list[Path]] = {}
        for folder in filter(Path.is_dir, self._folders):
            for path in sorted(folder.glob("*.yaml")):
                found.setdefault(path.stem, []).append(path)
        return found

    def names(self) -> list[str]:
        """Return the known names in order."""
        return sorted(self._files)

    def path(self, name: str) -> Path:
        """Return the file that describes `name`.

        Raises:
            InputError: no such profile.
        """
        return self._find(name)[0]

    def load(self, name: str) -> Site:
        """Return the site called `name`.

        Raises:
            InputError: no such profile, or a mistake in it.
        """
        document, data = self._merged(name, ())
        return validate(document, Site, data)

    def _find(self, name: str) -> list[Path]:
        if found := self._files.get(name):
            return found
        known = ", ".join(self.names()) or "none"
        raise InputError(f"There is no site called {name!r}.", f"Known are: {known}.")

    def _merged(self, name: str, seen: tuple[Path, ...]) -> tuple[Document, dict[str, object]]:
        # A person's own profile may extend the built-in one of the same name.
        candidates = [path for path in self._find(name) if path not in seen]
        if not candidates:
            raise InputError(f"The profile {name!r} extends itself.", "Remove its `extends:`.")
        document = read_document(candidates[0])
        data = dict(document.data)
        # Runs remember a site by its name, so it must lead back to the same file.
        if data.setdefault("name", name) != name:
            raise InputError(
                f"{document.where(('name',))}: the profile calls itself {data['name']!r}.",
                f"Its name is its file's name: write {name!r}, or leave `name:` out.",
            )
        parent = data.pop("extends", None)
        if parent is not None:
            document.below, inherited = self._merged(str(parent), (*seen, candidates[0]))
            data = merge(inherited, data)
        return document, data
