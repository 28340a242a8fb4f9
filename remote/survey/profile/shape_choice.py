"""Which nodes and partitions a profile is about: a profile has one shape of node. Pure."""

from collections import Counter
from dataclasses import dataclass, replace

from lumitui.remote.site.errors import InputError
from lumitui.remote.survey.profile.ask_cluster import Cluster, Group
from lumitui.remote.survey.slurm_records import Gpus, PartitionRecord


@dataclass(frozen=True)
class ProfilePartition:
    """A partition that the profile will have."""

    name: str
    """In the profile: the partition's, or the QOS's where one partition has several."""
    record: PartitionRecord
    groups: tuple[Group, ...]
    """Its nodes of the chosen shape."""
    qos: str = ""
    """The QOS that a job here must name, or ""."""

    @property
    def nodes(self) -> int:
        """How many nodes of the chosen shape it has."""
        return sum(group.nodes for group in self.groups)


@dataclass(frozen=True)
class ShapeChoice:
    """The nodes and partitions of a profile, and the omitted ones."""

    gpus: Gpus
    cores: int
    threads: int
    memory_mib: int
    queues: tuple[ProfilePartition, ...]
    typed: bool
    """Whether a job must name the type of its GPUs, because its partitions also have others."""
    left_out: tuple[str, ...]
    """Sentences for the profile's reader."""


def choose(cluster: Cluster, partition: str = "", gpus: int = 0) -> ShapeChoice:
    """Return the nodes that a profile is about: those with the GPUs that there are most of.

    `partition` limits the choice to its nodes. `gpus` is how many GPUs a node has where Slurm
    shows none: sites that give whole nodes need not tell it.

    Raises:
        InputError: Slurm shows no partition, none of that name, or no GPUs.
    """
    _check(cluster, partition)
    usable, refused = _usable(cluster, partition)
    shapes = _shapes(usable, gpus)
    if not shapes:
        raise InputError(
            f"Slurm shows no GPUs in {_among(partition, cluster)}.",
            "If its nodes have GPUs anyway, pass the number per node with --gpus N.",
        )
    # Whole GPUs before parts of them, then the kind of which there are most nodes.
    best = max(shapes, key=lambda shape: (not shape.sliced, shapes[shape], shape.number))
    having = [group for _, groups in usable for group in groups if best in _of(group, gpus)]
    cores, threads = _most_common(having)
    kept = [group for group in having if (group.cores, group.threads) == (cores, threads)]
    others = sorted({group.cores for group in having} - {cores})
    queues: list[ProfilePartition] = []
    mixed = False
    for record, groups in usable:
        if here := tuple(group for group in groups if group in kept):
            queues += _queues(record, here, cluster)
            mixed = mixed or any(set(_of(group, gpus)) - {best} for group in groups)
    without = [*refused, *_left(shapes, best)]
    without += [f"nodes with {number} cores and the same GPUs" for number in others]
    if gpus not in (0, best.number) and all(group.gpus for group in kept):
        without.append(f"--gpus {gpus}, but Slurm itself shows {best.number} GPUs in each node")
    memory = min(group.memory_mib for group in kept)
    typed = mixed and bool(best.kind)
    return ShapeChoice(best, cores, threads, memory, _distinct(queues), typed, tuple(without))


def _most_common(groups: list[Group]) -> tuple[int, int]:
    """Return the cores and threads that most nodes of one partition have."""
    nodes: Counter[tuple[int, int]] = Counter()
    for group in groups:
        shape = group.cores, group.threads
        nodes[shape] = max(nodes[shape], group.nodes)
    return nodes.most_common(1)[0][0]


def _distinct(queues: list[ProfilePartition]) -> tuple[ProfilePartition, ...]:
    """Return the queues with their own names: a QOS may belong to several partitions."""
    names = Counter(queue.name for queue in queues)
    return tuple(
        queue
        if names[queue.name] == 1
        else replace(queue, name=f"{queue.record.name}-{queue.name}")
        for queue in queues
    )


def _check(cluster: Cluster, partition: str) -> None:
    if not cluster.partitions or not cluster.groups:
        raise InputError(
            f"Slurm at {cluster.host or 'the host'} shows no partitions or no nodes.",
            "Log in and try `sinfo` and `scontrol show partition` manually.",
        )
    names = [record.name for record in cluster.partitions]
    if partition and partition not in names:
        raise InputError(
            f"{partition!r} is not a partition.", f"The partitions are: {', '.join(names)[:500]}."
        )


def _usable(
    cluster: Cluster, partition: str
) -> tuple[list[tuple[PartitionRecord, tuple[Group, ...]]], list[str]]:
    """Return the partitions that the user may use with their nodes, and sentences on others."""
    usable, refused = list[tuple[PartitionRecord, tuple[Group, ...]]](), list[str]()
    for record in cluster.partitions:
        if partition and record.name != partition:
            continue
        groups = tuple(group for group in cluster.groups if group.partition == record.name)
        if why := _refusal(record, cluster):
            # One without GPUs is nothing that a reader misses.
            refused += [f"partition {record.name}: {why}"] if any(g.gpus for g in groups) else []
        elif groups:
            usable.append((record, groups))
    if not usable:
        raise InputError(
            f"You may not use any partition of {_among(partition, cluster)}: "
            f"{'; '.join(refused)[:500] or 'they have no nodes'}.",
            "Ask the site which partition and account you may use.",
        )
    return usable, refused


def _refusal(record: PartitionRecord, cluster: Cluster) -> str:
    """Return why the user cannot use a partition now; "" if nothing indicates that."""
    own = frozenset(cluster.accounts)
    if record.state != "UP":
        return "it is not up"
    if own and record.accounts and not own & record.accounts:
        return "it is for other accounts"
    if own and own <= record.refused_accounts:
        return "it refuses your accounts"
    if cluster.unix_groups and record.groups and not cluster.unix_groups & record.groups:
        return "it is for other groups"
    qos = {name for one in cluster.own for name in one.qos}
    if qos and record.qos and not qos & record.qos:
        return "it is for a QOS that you do not have"
    return ""


def _of(group: Group, gpus: int) -> tuple[Gpus, ...]:
    return group.gpus or ((Gpus("", gpus),) if gpus else ())


def _shapes(usable: list[tuple[PartitionRecord, tuple[Group, ...]]], gpus: int) -> dict[Gpus, int]:
    """Return each number of GPUs of a type, and in how many nodes of one partition it is."""
    nodes_of: dict[Gpus, int] = {}
    for _, groups in usable:
        here: Counter[Gpus] = Counter()
        for group in groups:
            for one in _of(group, gpus):
                here[one] += group.nodes
        for one, nodes in here.items():
            nodes_of[one] = max(nodes_of.get(one, 0), nodes)
    return {one: nodes for one, nodes in nodes_of.items() if one.number <= 64}


def _left(shapes: dict[Gpus, int], best: Gpus) -> list[str]:
    return [
        f"{nodes} node{'' if nodes == 1 else 's'} with {one.number} x {one.kind or 'GPU'}"
        + (", parts of GPUs (MIG)" if one.sliced else "")
        for one, nodes in shapes.items()
        if one != best
    ]


def _queues(
    record: PartitionRecord, groups: tuple[Group, ...], cluster: Cluster
) -> list[ProfilePartition]:
    """Return the profile's partitions for one of Slurm's: one for each required QOS."""
    own = tuple(dict.fromkeys(name for one in cluster.own for name in one.qos))
    default = next((one.default_qos for one in cluster.own if one.default_qos), "")
    enforced = "qos" in cluster.config.get("AccountingStorageEnforce", "").lower()
    fitting = [name for name in own if not record.qos or name in record.qos]
    # Slurm takes `normal` where there is no default.
    without = default or ("normal" if "normal" in own else "")
    if not fitting or without in fitting or not (enforced or record.qos):
        return [ProfilePartition(record.name, record, groups)]
    if len(fitting) == 1:
        return [ProfilePartition(record.name, record, groups, fitting[0])]
    return [ProfilePartition(name, record, groups, name) for name in fitting]


def _among(partition: str, cluster: Cluster) -> str:
    return f"partition {partition}" if partition else cluster.name or cluster.host or "the cluster"
