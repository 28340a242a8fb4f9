"""A site: one cluster as its profile describes it. Facts as data, no code for a site."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from lumitui.remote.site.container import Container, Mpi, VenvRecipe
from lumitui.remote.site.facts import (
    Count,
    Day,
    Facts,
    NodePath,
    OneWord,
    Pattern,
    Variable,
    WorkPath,
    fills,
)
from lumitui.remote.site.meters import Budget, GpuReadings, Quota
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.partition import Partition

_LAUNCHERS = Path(__file__).resolve().parents[2] / "templates" / "launchers"
_TEMPLATE = ".sh.j2"


def _has_template(name: str) -> str:
    launchers = sorted(
        path.name.removesuffix(_TEMPLATE) for path in _LAUNCHERS.glob(f"*{_TEMPLATE}")
    )
    if name not in launchers:
        raise ValueError(f"{name!r} is not a launcher; the launchers are {', '.join(launchers)}")
    return name


Launcher = Annotated[str, AfterValidator(_has_template)]
"""The name of a launcher with a template."""


class Hosts(Facts):
    """Where to connect."""

    login: str = ""
    """Name or ssh_config alias of the login node; empty for this machine."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """SSH port, e.g. `2222`; None: that of ssh's configuration."""
    user: str | None = None
    """The login name; None: that of ssh's configuration."""
    transfer: str | None = None
    """A separate host for data transfer, if the site has one."""
    renew: str = ""
    """The user's action after the credentials expire, as a sentence; shown with the error."""
    identity: str | None = None
    """A private key that is tried first."""
    ssh_config: str | None = None
    """An ssh_config file other than the user's own."""
    fingerprints: dict[str, str] = Field(default={})
    """Published host keys: key type (`ed25519`, `rsa`, `ecdsa`) to `SHA256:…`."""

    @field_validator("login")
    @classmethod
    def _named(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it is empty; write the login node, or omit the key")
        if value.startswith("-"):
            raise ValueError(f"{value!r} begins with `-`, so ssh would treat it as an option")
        return value


class Account(Facts):
    """The format of an account (project) name at this site."""

    required: bool = True
    """Whether a job must name an account (`sbatch --account`)."""
    pattern: Pattern = r"^\S+$"
    """A regular expression for valid accounts, e.g. `^project_\\d{9}$`."""
    example: str = ""
    """An example. It is a placeholder: lumitui does not send a job with it."""
    default: str = ""
    """The account of the profile's user, for their new job files."""
    small_in_paths: bool = False
    """Whether folder names use lower case, like Slurm's accounts, however written."""

    def in_path(self, account: str) -> str:
        """Return the name of the folders of `account`."""
        return account.lower() if self.small_in_paths else account

    def objection(self, account: str) -> str:
        """Return why a job at this site cannot use `account`, as a clause, or ""."""
        if not self.required or (self.default and account == self.default):
            return ""
        if account in ("", "none"):
            return "names no account, but the site bills every job to one"
        if account == self.example:
            return f"names {account!r}, which is only an example of an account"
        if not re.match(self.pattern, account):
            return f"names {account!r}, which is not an account there"
        return ""


class LocalDisk(Facts):
    """A disk of the node, allocated as requested with `local_disk:` in the job file."""

    request: Annotated[str, fills("gib")]
    """The request to Slurm for `{gib}` GiB on each node, as one item of `--gres`."""
    max_gib: Count
    """The maximum that a job may request on a node."""
    variable: Variable
    """The variable with the job's folder on it."""


RULE_FIELDS = (
    "sbatch", "srun", "partition", "launcher", "args", "module", "words",
    "container.image", "container.call", "container.binds", "gpus.divided", "links", "workdir",
)  # fmt: skip
"""The possible fields of a site's rule, besides `env.NAME`."""


class SiteRule(Facts):
    """A rule of this site, as data for the adviser; it applies if all conditions hold."""

    id: str
    """Its name in reports and in `ignore=`, e.g. `lumi-kdreg2`, unique at the site."""
    severity: Literal["error", "warning", "note"]
    """`error` stops a submission; `warning` and `note` are only shown."""
    field: str
    """The field that it checks, of an sbatch script or of the one that a job file becomes:
    `sbatch` is each option as `--name=value`, such as `--account=NAME`. Others are `env.NAME` and
    keys like `launcher`. Besides: `srun` (its options), `module` (each loaded), `words` (each word
    of a command and each value of a variable), `container.call` (like `singularity exec`),
    `container.binds` (joined by commas) and `gpus.divided` (the GPUs that simultaneous programs
    divide)."""
    matches: Pattern | None = None
    """A regular expression on the field's text, or on one of its texts."""
    absent: bool = False
    """Instead of `matches`: the rule applies if the job does not set the field."""
    when: dict[str, Pattern] = Field(default={})
    """Further conditions: field to regular expression, or to `absent`, which means: not set."""
    unless: dict[str, Pattern] = Field(default={})
    """Exceptions: field to regular expression, for example the rule's own cure in another place."""
    images: Pattern | None = None
    """A regular expression for the path of the job's image; the rule applies only to these images.
    None: it applies with any image."""
    launchers: tuple[str, ...] = ()
    """The launchers of its jobs; empty: any launcher."""
    allocation: Literal["whole", "shared"] | None = None
    """Whether it applies to jobs with nodes to themselves, or on shared ones; None: both."""
    nodes_from: Count = 1
    """The minimum number of nodes of a job to which the rule applies."""
    message: Annotated[str, fills("value", "nodes")]
    """The message. `{value}` is the matched text, `{nodes}` the job's number of nodes."""
    do: str
    """The fix, as a sentence: `Remove it.`"""
    cure: str | None = None
    """The variable's value that ends the finding, if setting it is enough."""
    source: str
    """The source of the rule: the address of a page, or a job."""

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if (self.matches is None) != self.absent:
            raise ValueError(f"the rule {self.id} needs `matches` or `absent: true`")
        if self.cure is not None and not self.field.startswith("env."):
            raise ValueError(f"the rule {self.id} has a `cure`, which works only for a variable")
        for field in (self.field, *self.when, *self.unless):
            if field not in RULE_FIELDS and not field.startswith("env."):
                raise ValueError(
                    f"the rule {self.id} has the unknown field {field!r}; use env.NAME or one of"
                    f" {', '.join(RULE_FIELDS)}. `sbatch` lists options as `--name=value`"
                )
        return self


class Site(Facts):
    """One cluster."""

    name: str
    """The site's name, as in the name of the file and in `site:` of a job file, e.g. `ostrich`."""
    title: str
    """The name that screens show, e.g. `LUMI-G`."""
    scheduler: Literal["slurm", "process"] = "slurm"
    """`slurm`; `process` starts jobs as plain processes on this machine."""
    slurm_version: str = ""
    """Slurm's version, e.g. `22.05.8`, as `sbatch --version` prints it; empty: unknown."""
    hosts: Hosts = Hosts()
    """Where and how to log in, e.g. `{login: login.ostrich.example}`."""
    account: Account = Account()
    """The form of an account, e.g. `{required: true, example: proj123}`."""
    work_root: WorkPath
    """Where runs and snapshots live on the site; `{account}`, `{user}`, `{home}` are filled in."""
    folders: dict[Variable, WorkPath] = Field(default={})
    """Folders by names like `SCRATCH`: `$SCRATCH` in a job file becomes the path. `USER` is
    predefined; `HOME` is not."""
    shared_folders: tuple[NodePath, ...] = ()
    """More folders that all nodes share, e.g. `[/projappl]`, besides those in which `work_root` and
    `folders` are."""
    poll_seconds: Annotated[float, Field(ge=0.1, le=86_400)] = 60
    """Seconds from one request for all runs to the next, while one is unfinished. In a profile of
    the system's folder, it is the least for the profiles that extend it."""
    node: NodeShape
    """One GPU node, e.g. `{cores: 96, memory_gib: 720, gpus: 4, …}`."""
    node_folder: NodePath | Literal[""] = ""
    """A node-local folder in which a job may create `${NODE_TMP}`: a private folder with a random
    name, removed at the end of the job. lumitui unpacks the code of a large project there. `$NAME`
    is expanded. Empty: there is none."""
    partitions: dict[str, Partition]
    """Each partition by its name, e.g. `{gpu: {max_time: 2-00:00:00, max_nodes: 40, …}}`."""
    default_partition: OneWord | None = None
    """The partition of a job that names none; None: unknown, or there is none."""
    partition_required: bool = False
    """Whether sbatch refuses a job that names no partition."""
    other_partitions: tuple[OneWord, ...] | None = None
    """Slurm's partitions that this profile does not describe, as they have other nodes. If set,
    these and `partitions` are all that there are; `[]`: there are no others. None: unknown."""
    srun_inherits_cpus: bool | None = None
    """Whether `srun` inherits `--cpus-per-task` from sbatch, which Slurm's own 22.05 to 23.02 do
    not. None: as `slurm_version` says."""
    task_gpus_apart: bool | None = None
    """Whether options that give each task its own GPU (`--gpus-per-task`, `--gpu-bind`) prevent the
    ranks of a node from exchanging data between their GPUs. None: unknown."""
    gpu_request: Annotated[str, fills("gpus")] = "--gpus-per-node={gpus}"
    """The #SBATCH option for `{gpus}` GPUs per node."""
    memory_per_gpu: str = ""
    """`--mem-per-gpu` of a job with one task per GPU; empty: the site decides."""
    memory_per_node: str = ""
    """`--mem` of a job with one task per node that takes all GPUs; empty: the site decides."""
    memory_option: bool = True
    """Whether a job may request memory; if not, lumitui never writes `--mem`."""
    cores_per_gpu: Count
    """`--cpus-per-task` of one rank."""
    cores_with_gpus: bool = False
    """Whether a job that does not request cores gets `cores_per_gpu` of them with each GPU."""
    cores_fixed: bool = False
    """Whether a job must request exactly `cores_per_gpu` cores for each GPU."""
    local_disk: LocalDisk | None = None
    """A node's disk that jobs can request; None: there is none, or no request is necessary."""
    sbatch_arguments: tuple[str, ...] = ()
    """#SBATCH options of every job, e.g. `--hint=nomultithread`."""
    modules: tuple[str, ...] = ()
    """Shell lines of a job that uses no container."""
    environment: dict[str, str] = Field(default={})
    """Exported in every job script; `$NAME` is expanded there, and `${NODE_TMP}` is known."""
    node_directories: tuple[NodePath, ...] = ()
    """Folders to create on every node before the launch. Those in `${NODE_TMP}/` are private."""
    python: str = "python3"
    """The interpreter of a job without a container."""
    python_on_compute_nodes: bool | None = None
    """Whether a node has `python` without a module. None: not known."""
    torchrun_binding: Literal["numa", "masks", "script", "none"] = "none"
    """As in `containers`, for a job without one."""
    torchrun_signals: bool = False
    """As in `containers`."""
    venv: VenvRecipe = VenvRecipe()
    """How `venv:` of a job file becomes an environment."""
    containers: dict[str, Container] = Field(default={})
    """Container commands and images by a name that job files use, e.g. `{apptainer: {…}}`."""
    default_container: str | None = None
    """The container of a job whose file names none: an entry of `containers`, the first if the
    profile lacks this key. `none`: such a job runs without a container."""
    launchers: Annotated[tuple[Launcher, ...], Field(min_length=1)] = ("srun", "torchrun")
    """Launchers that work at this site, the preferred first."""
    mpi: Mpi | None = None
    """The MPI of the launcher mpirun; None: the profile has none."""
    requeue: bool = True
    """Whether a job may requeue itself (`scontrol requeue` on its node), as `chain:` requires."""
    internet_on_compute_nodes: bool = True
    """Whether a job can download weights or report to the internet."""
    mail: bool = False
    """Whether Slurm sends mail when a job ends (`--mail-user`); False: no, or unknown."""
    offline_environment: dict[str, str] = Field(default={})
    """Exported in jobs where `internet_on_compute_nodes` is false, e.g. `HF_HUB_OFFLINE`."""
    file_group: Annotated[str, fills("account", "user")] = ""
    """The group that staged files get on the site; empty: the site decides."""
    visible_gpus: str = "CUDA_VISIBLE_DEVICES"
    """The variable that lists a task's GPUs, for the launcher `mpirun` and the rules."""
    gpu_readings: GpuReadings | None = None
    """How to read the GPUs of a running job; None: not possible."""
    preflight: Literal["warn", "end", "off"] = "off"
    """The default of the job file's key `preflight`. Its half minute is worthwhile if a slow node
    would cost hours."""
    billing_unit: str = "GPU-hours"
    """The unit of all prices, e.g. `node-hours`, as screens show it."""
    billing_note: Annotated[str, Field(max_length=90)] = ""
    """How the site counts, as a sentence below each price: `An hour of one GPU costs 100 BU.`"""
    retired: Day | None = None
    """The date from which it runs no more jobs."""
    replaced_by: str | None = None
    """The site to use instead."""
    readable_until: Day | None = None
    """The date until which files can be read there once it is retired."""
    rules: tuple[SiteRule, ...] = ()
    """Mistakes that are possible only at this site."""
    commands: dict[str, str] = Field(default={})
    """Useful commands: `balance`, `quota`, `shell` …; shown by `lumitui site show NAME`."""
    quota: Quota | None = None
    """How the site's command lists used and allowed bytes and files; None: unknown."""
    budget: Budget | None = None
    """How to parse the output of `commands: balance:`; None: it is only shown."""
    notes: tuple[str, ...] = ()
    """Further remarks for the user; shown by `lumitui site show NAME`."""
    unverified: tuple[str, ...] = ()
    """Unverified keys of this profile."""

    @property
    def srun_has_cpus(self) -> bool | None:
        """Whether `srun` inherits `--cpus-per-task`: as the profile says, or by Slurm's version."""
        version = re.match(r"(\d+)\.(\d+)", self.slurm_version)
        if self.srun_inherits_cpus is None and version and "slurm_version" not in self.unverified:
            return not (22, 5) <= (int(version[1]), int(version[2])) < (23, 11)
        return self.srun_inherits_cpus

    def is_shared(self, path: str) -> bool:
        """Return whether a path is on a file system that all nodes share, as far as known."""
        paths = (self.work_root, *self.folders.values(), *self.shared_folders)
        roots = {f"/{root.split('/')[1]}/" for root in paths if root.startswith("/")}
        return f"{path}/".startswith(tuple(roots))

    def is_closed(self, today: date) -> bool:
        """Return whether it runs no jobs any more."""
        return self.retired is not None and today >= date.fromisoformat(self.retired)

    def summary(self, today: date) -> str:
        """Return a short description: its title and a node's GPUs, or that it is closed."""
        if self.is_closed(today):
            instead = f"; use {self.replaced_by}" if self.replaced_by else ""
            return f"{self.title}: closed on {self.retired}{instead}"
        return f"{self.title}: {self.node.gpus} x {self.node.gpu} per node"

    def slurm_partition(self, name: str) -> Partition | None:
        """Return the entry of the partition with Slurm's name `name`, or None."""
        items = self.partitions.items()
        return next((item for key, item in items if (item.slurm_partition or key) == name), None)

    def partitions_from(self, name: str) -> Iterator[tuple[str, Partition]]:
        """Yield the partition `name`, and the larger ones to which a job moves, each once."""
        following: str | None = name
        seen = set[str]()
        while following in self.partitions and following not in seen:
            seen.add(following)
            yield following, self.partitions[following]
            following = self.partitions[following].grows_to

    @model_validator(mode="before")
    @classmethod
    def _first_container(cls, data: object) -> object:
        """Fill in the first container as the default if the profile does not name one."""
        if not isinstance(data, Mapping) or not isinstance(data.get("containers"), Mapping):
            return data
        name = data.get("default_container", next(iter(data["containers"]), None))
        return {**data, "default_container": None if name == "none" else name}

    @model_validator(mode="after")
    def _references(self) -> Self:
        if self.scheduler == "slurm" and "{home}" in self.work_root:
            raise ValueError("work_root: {home} is unknown before the login; write the path")
        for name, path in self.folders.items():
            if self.scheduler == "slurm" and "{home}" in path:
                raise ValueError(f"folders: {{home}} of {name} is unknown before the login")
            if name == "USER" or name.startswith(("STAGE_", "SLURM_")):
                raise ValueError(f"folders: {name} already has another meaning")
        values = [*self.environment.values(), *self.node_directories]
        values += [
            value for item in self.containers.values() for value in item.environment.values()
        ]
        if not self.node_folder and any("NODE_TMP" in value for value in values):
            raise ValueError("${NODE_TMP} needs `node_folder`, in which a job creates it")
        if self.default_container and self.default_container not in self.containers:
            raise ValueError(f"default_container {self.default_container!r} is not in containers")
        for name, partition in self.partitions.items():
            if partition.grows_to and partition.grows_to not in self.partitions:
                raise ValueError(
                    f"{name} grows to {partition.grows_to!r}, which is not a partition. "
                    "Add that partition, or correct `grows_to`"
                )
        return self
