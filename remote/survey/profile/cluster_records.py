"""What Slurm said of a cluster, typed: nodes, partitions, accounts, QOS. Pure; never raises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, lines
from lumitui.remote.survey import slurm_records as slurm
from lumitui.remote.survey.slurm_records import (
    Association,
    Gpus,
    PartitionRecord,
    Qos,
    gpus_of,
)


@dataclass(frozen=True)
class Group:
    """Nodes of one partition that are alike (a line of sinfo)."""

    partition: str
    nodes: int
    cores: int
    threads: int
    memory_mib: int
    gpus: tuple[Gpus, ...]
    names: str
    """Slurm's list of their names."""


@dataclass(frozen=True)
class WritableFolder:
    """A folder in which the user may write."""

    source: str
    """`$SCRATCH`, `found` or `home`."""
    path: str
    free_gib: int | None


@dataclass(frozen=True)
class Cluster:
    """All that one request brought. What was not answered is empty."""

    user: str
    host: str
    arch: str
    home: str
    unix_groups: frozenset[str]
    version: str
    config: Mapping[str, str]
    partitions: tuple[PartitionRecord, ...]
    groups: tuple[Group, ...]
    nodes: Sequence[Mapping[str, str]]
    """One node of each kind that has GPUs, as scontrol shows it."""
    associations: tuple[Association, ...]
    default: str
    """The account without another word."""
    qos: tuple[Qos, ...]
    commands: frozenset[str]
    places: tuple[WritableFolder, ...]

    @property
    def name(self) -> str:
        """The cluster's own name; "": unknown."""
        name = self.config.get("ClusterName", "")
        return name if slurm.is_name(name) else ""

    @property
    def own(self) -> list[Association]:
        """The associations of this cluster, without those of a federation's others."""
        here = ("", self.config.get("ClusterName", "").lower())
        return [one for one in self.associations if not here[1] or one.cluster.lower() in here]

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that the user may use, the default one first."""
        names = [one.account for one in self.own]
        first = [self.default] if self.default in names else []
        return tuple(dict.fromkeys([*first, *names]))


def login(text: str) -> tuple[str, str, str, str, frozenset[str]]:
    """Return the user's name there, the host, its architecture, the home, and the groups."""
    words = [line.strip() if line.isprintable() else "" for line in lines(text, most=100)]
    user, host, arch, home, groups, *_ = [*words, *[""] * 5]
    return user, host, arch, home if home.startswith("/") else "", frozenset(groups.split())


def version(text: str) -> str:
    """Return Slurm's version as sbatch prints it; "": it prints none."""
    words = text.split()
    last = words[-1] if words and words[-1][:1].isdigit() else ""
    return last if slurm.is_name(last) else ""


def groups(text: str) -> tuple[Group, ...]:
    """Return the lines of sinfo, but for those that are none, like an error message."""
    return tuple(filter(None, map(_group, lines(text))))


def places(text: str) -> tuple[WritableFolder, ...]:
    """Return the folders that were found."""
    return tuple(filter(None, map(_place, lines(text))))


def _group(line: str) -> Group | None:
    fields = line.split("|")
    if len(fields) != 9 or not slurm.is_name(fields[0]):
        return None
    # `96+` stands for nodes with 96 and more
    nodes, cpus, sockets, each, threads, memory = (
        count(text.strip().rstrip("+")) or 0 for text in fields[1:7]
    )
    if not nodes or not cpus:
        return None
    cores, threads = _cores(cpus, sockets * each, max(1, threads))
    return Group(
        fields[0].rstrip("*"), nodes, cores, threads, memory, gpus_of(fields[7]), fields[8]
    )


def _cores(cpus: int, cores: int, threads: int) -> tuple[int, int]:
    """Return a node's cores, and threads of each that Slurm counts.

    A site that switches the second threads off in Slurm alone has as many CPUs as cores; one that
    describes its nodes by their CPUs alone has one core in one socket.
    """
    if cores * threads == cpus:
        return cores, threads
    return (cores, 1) if cores == cpus else (cpus, 1)


def _place(line: str) -> WritableFolder | None:
    fields = line.split("|")
    if len(fields) != 3 or not fields[1].startswith("/") or not slurm.is_name(fields[1]):
        return None
    kib = count(fields[2].strip())
    return WritableFolder(
        fields[0], fields[1].rstrip("/") or "/", None if kib is None else kib >> 20
    )
