"""Slurm's records of partitions, QOS and accounts, typed, and parsers of its text. Pure.

Formats: `scontrol … -o`, sacctmgr(1) with -n -P. What cannot be read is left out; nothing raises.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lumitui.remote.site import walltime
from lumitui.remote.site.answer_fields import count, lines
from lumitui.remote.site.core_sets import parse_cores

_RECORD = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)")
_LONGEST = 200
"""Maximum characters of an accepted name."""
_GRES = re.compile(r"gpu(?::(?P<kind>[A-Za-z][\w.+-]*))?(?::no_consume)?:(?P<number>\d{1,4})$")
# `1g.5gb`, `a100_1g.5gb`, `nvidia_a100_3g.20gb`: a part of a GPU (MIG)
_SLICE = re.compile(r"(^|[_.-])\d+g\.\d+gb", re.IGNORECASE)
_NODES = re.compile(r"([^,\[\]\d]+(?:\d+[^,\[\]\d]+)*)(?:\[([\d,-]+)\]|(\d{1,18}))?")
_MOST_NODE_TEXT = 10_000
"""Maximum characters of a partition's nodes that are compared."""
MOST_ROWS = 20_000
"""Maximum number of associations or QOS that are read; a large site has some thousands of QOS."""
ENDLESS = frozenset({"UNLIMITED", "INFINITE", "NONE", "N/A", "(null)", "", "0"})
"""Slurm's words for no limit."""
QOS = "name,maxwall,maxtres,maxjobspu,mintres"
QOS_LIMITS = f"$t sacctmgr -n -P show qos format={QOS} 2>/dev/null"
"""Prints the limits of each QOS."""


@dataclass(frozen=True)
class PartitionRecord:
    """A partition from scontrol; None: without a limit."""

    name: str
    state: str = "UP"
    seconds: int | None = None
    """The longest time limit."""
    nodes: int | None = None
    """The maximum nodes of a job; None: only the partition's size limits it."""
    exclusive: bool = False
    is_default: bool = False
    accounts: frozenset[str] = frozenset()
    """The only accounts that may use it; empty: all."""
    refused_accounts: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    """The only QOS that may be used; empty: all."""
    own_qos: str = ""
    """The QOS whose limits apply to all its jobs, or ""."""
    groups: frozenset[str] = frozenset()
    """The only Unix groups that may use it; empty: all."""
    weights: tuple[tuple[str, str], ...] = ()
    """The price of each of its resources."""
    preempts: bool = False
    """Whether a partition of higher priority may end its jobs."""
    defaults: tuple[tuple[str, str], ...] = ()
    """What a job gets with each GPU without a request: `defmempergpu` (MiB), `defcpupergpu`."""
    forced: bool = False
    """Whether Slurm puts several jobs on the same cores (OverSubscribe=FORCE)."""


@dataclass(frozen=True)
class Association:
    """The user's limits in one account; None: without a limit."""

    account: str
    partition: str = ""
    """"" on all of them."""
    qos: tuple[str, ...] = ()
    max_jobs: int | None = None
    max_submit: int | None = None
    default_qos: str = ""
    cluster: str = ""


@dataclass(frozen=True)
class Qos:
    """A quality of service and its limits; None: no limit."""

    name: str
    max_jobs: int | None = None
    """Of one user, at a time."""
    max_submit: int | None = None
    seconds: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    least_gpus: int | None = None


def partitions(text: str) -> tuple[PartitionRecord, ...]:
    """Return the partitions of `scontrol show partition -o`."""
    every = named(text, "PartitionName")
    return tuple(_partition(record, every) for record in every)


def _partition(record: Mapping[str, str], every: Sequence[Mapping[str, str]]) -> PartitionRecord:
    return PartitionRecord(
        name=record["PartitionName"],
        state=record.get("State", "UP")[:_LONGEST],
        seconds=seconds(record.get("MaxTime", "")),
        nodes=count(record.get("MaxNodes", "")),
        exclusive=gives_whole_nodes(record),
        is_default=record.get("Default") == "YES",
        accounts=_names(record.get("AllowAccounts", "ALL")),
        refused_accounts=_names(record.get("DenyAccounts", "")),
        qos=_names(record.get("AllowQos", record.get("AllowQOS", "ALL"))),
        own_qos="" if record.get("QoS", "") in ENDLESS else record["QoS"],
        groups=_names(record.get("AllowGroups", "ALL")),
        weights=tuple(tres(record.get("TRESBillingWeights", "")).items()),
        preempts=preempts(record, every),
        defaults=tuple(tres(record.get("JobDefaults", "")).items()),
        forced=record.get("OverSubscribe", "").startswith("FORCE"),
    )


def _names(text: str) -> frozenset[str]:
    """Return the names of a list; empty if it contains all."""
    names = frozenset(filter(is_name, text.split(",")))
    return names if not names & {"ALL", "(null)", "N/A"} else frozenset()


def rows(text: str, columns: str) -> Iterator[dict[str, str]]:
    """Yield the complete rows, divided by `|`, by the columns' names."""
    names = columns.split(",")
    for line in islice(lines(text), MOST_ROWS):
        row = [word.strip() for word in line.split("|")]
        if len(row) == len(names):
            yield dict(zip(names, row, strict=True))


def associations(columns: str, text: str) -> tuple[Association, ...]:
    """Return the user's limits in each account, from sacctmgr with `format=` and `columns`."""
    return tuple(
        Association(
            row["account"],
            row["partition"],
            tuple(filter(is_name, row["qos"].split(","))),
            count(row.get("maxjobs", "")),
            count(row.get("maxsubmit", "")),
            row.get("defaultqos", ""),
            row.get("cluster", ""),
        )
        for row in rows(text, columns)
        if is_name(row["account"])
    )


def qualities(columns: str, text: str) -> tuple[Qos, ...]:
    """Return the QOS and their limits, by sacctmgr with `format=` and `columns`."""
    return tuple(_qos(row) for row in rows(text, columns) if is_name(row["name"]))


def _qos(row: Mapping[str, str]) -> Qos:
    limits, lowest = tres(row.get("maxtres", "")), tres(row.get("mintres", ""))
    return Qos(
        name=row["name"],
        max_jobs=count(row.get("maxjobspu", "")),
        max_submit=count(row.get("maxsubmitpu", "")),
        seconds=seconds(row.get("maxwall", "")),
        nodes=count(limits.get("node", "")) or None,
        gpus=_gpus(limits),
        least_gpus=_gpus(lowest),
    )


def _gpus(limits: Mapping[str, str]) -> int | None:
    counts = [count(value) or 0 for key, value in limits.items() if key.startswith("gres/gpu")]
    return max(counts, default=0) or None


def named(text: str, key: str) -> list[dict[str, str]]:
    """Return the records with a name by `key`."""
    return [one for one in records(text) if is_name(one.get(key, ""))]


def records(text: str) -> list[dict[str, str]]:
    """Return the `Key=value` records of `scontrol … -o`, a line each."""
    return [dict(_RECORD.findall(line)) for line in lines(text) if "=" in line]


def settings(text: str) -> dict[str, str]:
    """Return the output of `scontrol show config`: a `Key = value` per line."""
    values = {}
    for line in lines(text):
        key, sign, value = line.partition("=")
        if sign and re.fullmatch(r"[\w/]+", key.strip()):
            values[key.strip()] = value.strip()
    return values


def seconds(text: str) -> int | None:
    """Return a time limit in seconds; None if Slurm names none, or it is unreadable."""
    if text in ENDLESS:
        return None
    try:
        return walltime.seconds_of(text) or None
    except ValueError:
        return None


def tres(text: str) -> dict[str, str]:
    """Return `cpu=8,gres/gpu:a100=4` as pairs in small letters."""
    pairs = (part.partition("=") for part in text.split(","))
    return {key.strip().lower(): value.strip() for key, sign, value in pairs if sign}


def reserved(listed: str, cores: int, threads: int) -> frozenset[int]:
    """Return the cores that `CPUSpecList` reserves; empty if it is not a list of CPUs.

    Slurm numbers the threads of a core in a row. Where the list does not have whole cores in that
    numbering, it is the kernel's: the first threads of all cores, then the second ones.
    """
    try:
        cpus = frozenset(parse_cores(listed))
    except ValueError:
        return frozenset()
    in_a_row = frozenset(cpu // threads for cpu in cpus)
    whole = all(core * threads + thread in cpus for core in in_a_row for thread in range(threads))
    return frozenset(core for core in (in_a_row if whole else cpus) if core < cores)


def preempts(partition: Mapping[str, str], every: Sequence[Mapping[str, str]]) -> bool:
    """Return whether another partition of `every` may end the jobs of `partition`.

    Slurm preempts by PriorityTier (PreemptType=preempt/partition_prio) on nodes that both have,
    unless the PreemptMode of the lower partition is OFF (slurm.conf(5)).
    """
    if partition.get("PreemptMode", "OFF") in ("OFF", "", "N/A"):
        return False
    tier = count(partition.get("PriorityTier", "")) or 0
    own = _node_ranges(partition.get("Nodes", ""))
    return any(
        (count(other.get("PriorityTier", "")) or 0) > tier
        and any(
            name == theirs and low <= last and first <= high
            for name, low, high in own
            for theirs, first, last in _node_ranges(other.get("Nodes", ""))
        )
        for other in every
    )


def _node_ranges(text: str) -> list[tuple[str, int, int]]:
    """Return the ranges of a list of nodes by their prefix: `n[1-3,5]` is n 1-3 and n 5."""
    ranges = []
    for prefix, listed, alone in _NODES.findall(text[:_MOST_NODE_TEXT]):
        for part in (listed or alone or "0").split(","):
            low, _, high = part.partition("-")
            if low.isdecimal() and (high or low).isdecimal():
                ranges.append((prefix, int(low), int(high or low)))
    return ranges


def gives_whole_nodes(partition: Mapping[str, str]) -> bool:
    """Return whether jobs of a partition get whole nodes, according to scontrol.

    Slurm 26.05 writes `Exclusive=NODE`, earlier ones `OverSubscribe=EXCLUSIVE`.
    """
    old = partition.get("OverSubscribe", "").startswith("EXCLUSIVE")
    return old or partition.get("Exclusive") == "NODE"


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a partition, an account or a folder."""
    return 0 < len(text) <= _LONGEST and text.isprintable()


def whole(text: str) -> int:
    """Return a number printed by Slurm; 0 if it is not one."""
    return count(text) or 0


# -- GPUs among a node's generic resources


@dataclass(frozen=True)
class Gpus:
    """Some GPUs of one type in a node."""

    kind: str
    """Slurm's type, or ""."""
    number: int

    @property
    def sliced(self) -> bool:
        """Whether each is a part of a GPU (MIG)."""
        return bool(_SLICE.search(self.kind))


def gpus_of(text: str) -> tuple[Gpus, ...]:
    """Return the GPUs of `gpu:a100:4(S:0-1),nvme:3600`, a row for each type; () without GPUs."""
    counts: dict[str, int] = {}
    # What is in brackets lists sockets or indexes, with commas of its own.
    for part in re.sub(r"\([^)]*\)?", "", text).split(","):
        if match := _GRES.match(part.strip().replace(":no_consume", "")):
            if int(match["number"]):
                kind = match["kind"] or ""
                counts[kind] = counts.get(kind, 0) + int(match["number"])
        elif part.strip() == "gpu":
            counts[""] = counts.get("", 0) + 1
    return tuple(Gpus(kind, number) for kind, number in counts.items())
