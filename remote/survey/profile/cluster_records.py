"""What Slurm said of a cluster, typed: nodes, partitions, accounts, QOS. Pure; never raises."""

from collections.abc import Mapping
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, lines
from lumitui.remote.survey.profile import slurm_records as slurm
from lumitui.remote.survey.profile.gres import Gpus, gpus_of


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
class PartitionRecord:
    """A partition as scontrol shows it."""

    name: str
    seconds: int | None
    """The longest job; None: no limit."""
    nodes: int | None
    """The most nodes of a job; None: no limit but the partition's size."""
    exclusive: bool
    up: bool
    is_default: bool
    accounts: frozenset[str]
    """The only accounts that may use it; empty: all."""
    refused_accounts: frozenset[str]
    qos: frozenset[str]
    """The only QOS that may be used; empty: all."""
    own_qos: str
    """The QOS whose limits hold for all its jobs; "": none."""
    groups: frozenset[str]
    """The only Unix groups that may use it; empty: all."""
    weights: tuple[tuple[str, str], ...]
    """What is billed for each of its resources."""


@dataclass(frozen=True)
class Qos:
    """A quality of service and its limits; None: there is none."""

    name: str
    seconds: int | None
    nodes: int | None
    gpus: int | None
    least_gpus: int | None
    jobs: int | None


@dataclass(frozen=True)
class Association:
    """An account that the person may use, and with which QOS."""

    account: str
    qos: tuple[str, ...]
    default_qos: str


@dataclass(frozen=True)
class Place:
    """A folder in which the person may write."""

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
    nodes: tuple[Mapping[str, str], ...]
    """One node of each kind that has GPUs, as scontrol shows it."""
    associations: tuple[Association, ...]
    default_account: str
    qos: Mapping[str, Qos]
    commands: frozenset[str]
    places: tuple[Place, ...]

    @property
    def name(self) -> str:
        """The cluster's own name; "": unknown."""
        name = self.config.get("ClusterName", "")
        return name if slurm.is_name(name) else ""

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that the person may use, the default one first."""
        names = [one.account for one in self.associations]
        first = [self.default_account] if self.default_account in names else []
        return tuple(dict.fromkeys([*first, *names]))


def read(parts: Mapping[str, str]) -> Cluster:
    """Return what the records of the request say, by name."""
    said = [line if line.isprintable() else "" for line in lines(parts.get("login", ""), most=100)]
    user, host, arch, home, groups, *_ = [*said, *[""] * 5]
    config = slurm.settings(parts.get("config", ""))
    words = parts.get("version", "").split()
    version = words[-1] if words and words[-1][:1].isdigit() else ""
    return Cluster(
        user=user.strip(),
        host=host.strip(),
        arch=arch.strip(),
        home=home.strip() if home.startswith("/") else "",
        unix_groups=frozenset(groups.split()),
        version=version if slurm.is_name(version) else "",
        config=config,
        partitions=tuple(map(_partition, _named(parts.get("partitions", ""), "PartitionName"))),
        groups=tuple(filter(None, map(_group, lines(parts.get("groups", ""))))),
        nodes=tuple(_named(parts.get("nodes", ""), "NodeName")),
        associations=_associations(parts.get("associations", ""), config.get("ClusterName", "")),
        default_account=parts.get("default", "").strip().partition("\n")[0],
        qos={one.name: one for one in map(_qos, lines(parts.get("qos", ""))) if one.name},
        commands=frozenset(parts.get("commands", "").split()),
        places=tuple(filter(None, map(_place, lines(parts.get("places", ""))))),
    )


def _named(text: str, key: str) -> list[dict[str, str]]:
    return [one for one in slurm.records(text) if slurm.is_name(one.get(key, ""))]


def _group(line: str) -> Group | None:
    """Return a line of sinfo; None where it is none, like an error message."""
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


def _partition(record: Mapping[str, str]) -> PartitionRecord:
    most = count(record.get("MaxNodes", "")) or None
    return PartitionRecord(
        name=record["PartitionName"],
        seconds=slurm.seconds(record.get("MaxTime", "")),
        nodes=most,
        exclusive=slurm.gives_whole_nodes(record),
        up=record.get("State", "UP") == "UP",
        is_default=record.get("Default") == "YES",
        accounts=_names(record.get("AllowAccounts", "ALL")),
        refused_accounts=_names(record.get("DenyAccounts", "")),
        qos=_names(record.get("AllowQos", record.get("AllowQOS", "ALL"))),
        own_qos="" if record.get("QoS", "") in slurm.ENDLESS else record["QoS"],
        groups=_names(record.get("AllowGroups", "ALL")),
        weights=tuple(slurm.tres(record.get("TRESBillingWeights", "")).items()),
    )


def _names(text: str) -> frozenset[str]:
    """Return the names of a list; none where it names all."""
    names = frozenset(filter(slurm.is_name, text.split(",")))
    return names if not names & {"ALL", "(null)", "N/A"} else frozenset()


def _associations(text: str, cluster: str) -> tuple[Association, ...]:
    """Return the accounts that hold on this cluster; a federation's others are left out."""
    found: dict[str, Association] = {}
    for line in lines(text):
        fields = line.split("|")
        if len(fields) < 5 or not slurm.is_name(fields[1]):
            continue
        if cluster and fields[0] and fields[0].lower() != cluster.lower():
            continue
        qos = tuple(filter(slurm.is_name, fields[3].split(",")))
        before = found.get(fields[1])
        if before:
            qos = tuple(dict.fromkeys((*before.qos, *qos)))
        default = fields[4] or (before.default_qos if before else "")
        found[fields[1]] = Association(fields[1], qos, default)
    return tuple(found.values())


def _qos(line: str) -> Qos:
    name, wall, most, jobs, least, *_ = [*line.split("|"), *[""] * 5]
    limits, lowest = slurm.tres(most), slurm.tres(least)
    return Qos(
        name=name if slurm.is_name(name) else "",
        seconds=slurm.seconds(wall),
        nodes=count(limits.get("node", "")) or None,
        gpus=_gpus(limits),
        least_gpus=_gpus(lowest),
        jobs=count(jobs) or None,
    )


def _gpus(limits: Mapping[str, str]) -> int | None:
    found = [count(value) or 0 for key, value in limits.items() if key.startswith("gres/gpu")]
    return max(found, default=0) or None


def _place(line: str) -> Place | None:
    fields = line.split("|")
    if len(fields) != 3 or not fields[1].startswith("/") or not slurm.is_name(fields[1]):
        return None
    kib = count(fields[2].strip())
    return Place(fields[0], fields[1].rstrip("/") or "/", None if kib is None else kib >> 20)
