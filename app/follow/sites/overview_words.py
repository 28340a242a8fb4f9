"""A cluster's overview as rows and sentences, the same in CLI and TUI. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from lumitui.app.explain.waiting import reason_words
from lumitui.app.explain.words import clock, count, price, recent_clock, short_length
from lumitui.app.launch.job_price import node_rate
from lumitui.remote.scheduler.cluster_overview import ClusterOverview, Nodes, QueuedJob
from lumitui.remote.site.profile import Site

PARTS = (
    ("nodes", "Partitions"),
    ("queue", "Your jobs"),
    ("reservations", "Reservations"),
    ("budget", "Budget"),
)


@dataclass(frozen=True)
class OverviewPart:
    """A part of an overview: a heading with rows under titles, or with a sentence."""

    heading: str
    titles: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    right: frozenset[int] = frozenset()
    """Right-aligned columns."""
    narrow: tuple[int, ...] = ()
    """The columns to keep if there is no room for all; () means all."""
    sentence: str = ""
    """The sentence to show instead of rows."""
    fault: bool = False
    """Whether the sentence reports that the part is unavailable."""


def overview_age(answered: float | None, tried: float | None, now: float, *, asking: bool) -> str:
    """Return the age of a site's answer and, if the last attempt failed, that attempt.

    `answered` and `tried` are the times of the last answer and the last query, in epoch seconds.
    """
    if asking:
        return "querying …"
    age = "" if answered is None else f"{short_length(now - answered)} ago"
    if tried is None or (answered is not None and answered >= tried):
        return age or "not queried"
    return f"{age}{', ' if age else ''}queried {short_length(now - tried)} ago, no answer"


def no_overview_yet(site: str, *, asking: bool) -> str:
    """Return the message for a site that has not answered yet."""
    if asking:
        return f"Querying {site} for its nodes, your queue, reservations and budget …"
    return "It has not answered yet. Press r to query it again."


def overview_parts(overview: ClusterOverview, now: float) -> list[OverviewPart]:
    """Return all parts in display order."""
    made = (_nodes(overview), _queue(overview, now), _reservations(overview), _budget(overview))
    return [
        OverviewPart(heading, sentence=overview.faults[kind], fault=True)
        if kind in overview.faults
        else part
        for (kind, heading), part in zip(PARTS, made, strict=True)
    ]


def _nodes(overview: ClusterOverview) -> OverviewPart:
    titles = ("Partition", "Idle", "Mixed", "Alloc", "Other", "Down", "All", "Limit", "Nodes/job")
    rows = [
        (
            row.partition + ("" if row.available == "up" else f" ({row.available})"),
            *(
                f"{number:,}" if number else "-"
                for number in (row.idle, row.mixed, row.allocated, row.other, row.down)
            ),
            f"{row.total:,}",
            row.max_time,
            _job_nodes(row),
        )
        for row in overview.partitions
    ]
    right = frozenset(range(1, 7))
    none = "The site lists no partitions."
    return OverviewPart("Partitions", titles, rows, right, narrow=(0, 1, 6, 7), sentence=none)


def _job_nodes(row: Nodes) -> str:
    """Return how many nodes a job may have: the limit, but no more than the partition has."""
    least, _, most = row.job_nodes.partition("-")
    if most == "infinite" or (most.isdecimal() and int(most) > row.total):
        most = f"{row.total}"
        if least.isdecimal() and 0 < int(least) <= row.total:
            return least if least == most else f"{least}-{most}"
    return row.job_nodes.replace("infinite", "any")


def _queue(overview: ClusterOverview, now: float) -> OverviewPart:
    titles = ("Job", "State", "Partition", "Nodes", "Time", "Start", "Reason", "Name")
    rows = [
        (
            job.job_id,
            job.state.lower(),
            job.partition,
            str(job.nodes),
            f"{job.elapsed}/{job.limit}",
            _start(job.start, now) if job.start else "-",
            "" if job.reason == "None" else job.reason,
            job.name,
        )
        for job in overview.queue
    ]
    running = sum(job.state == "RUNNING" for job in overview.queue)
    heading = f"Your jobs: {len(rows)}, {running} running" if rows else "Your jobs"
    none = "You have no jobs at this site."
    return OverviewPart(heading, titles, rows, frozenset({3}), narrow=(0, 1, 3, 7), sentence=none)


def _start(moment: float, now: float) -> str:
    """Return the time if it is today, else the date."""
    text = recent_clock(moment, now)
    return text[:5] if len(text) < len("2026-11-26") else text[5:10]


def partition_part(
    site: Site, nodes: Nodes, queue: Sequence[QueuedJob], now: float
) -> OverviewPart:
    """Return the limit, price and start of whole-node jobs in a partition.

    A start is Slurm's estimate for the user's queued job; without one, only idle nodes are known.
    """
    item = site.slurm_partition(nodes.partition)
    if item is None:
        return OverviewPart("Sizes")
    node, waits = (
        site.node,
        {
            job.nodes: job.start
            for job in queue
            if job.partition == nodes.partition
            and job.state == "PENDING"
            and (job.start or 0) > now
        },
    )
    rate = node_rate(item.billing, len(node.usable_cores), node.memory_gib, node.gpus)
    most = min(item.max_nodes, nodes.total)
    sizes = sorted({*(2**power for power in range(most.bit_length())), most, *waits} - {0})
    rows = [
        (
            f"{size:,}",
            f"{size * node.gpus:,}",
            f"~{_start(waits[size] or 0, now)}" if size in waits
            else "nodes idle" if size <= nodes.idle else "-",
            item.max_time_for(size),
            price(size * rate),
        )
        for size in sizes
    ]  # fmt: skip
    titles = ("Nodes", node.device.plural, "Start", "Limit", "Billed an hour")
    limits = {row[3] for row in rows}
    kept = [title != "Limit" or len(limits) > 1 for title in titles]  # one is among the facts
    lines = [tuple(compress(row, kept)) for row in rows]
    right = frozenset({0, 1, sum(kept) - 1})
    return OverviewPart(f"Sizes on {nodes.partition}", tuple(compress(titles, kept)), lines, right)


def job_lines(job: QueuedJob, now: float) -> list[tuple[str, str]]:
    """Return all facts of a queued job as (label, text) pairs."""
    word = "" if job.reason == "None" else job.reason
    pending, start = job.state == "PENDING", _start(job.start, now) if job.start else ""
    lines = [
        ("name", job.name),
        ("state", job.state.lower()),
        ("waits for", reason_words(word or "None") if pending else ""),
        ("would start" if pending else "started", f"~{start}" if pending and start else start),
        ("runs for", "" if pending else job.elapsed),
        ("limit", job.limit),
        ("requests", f"{count(job.nodes, 'node')} of {job.partition}"),
    ]
    return [(label, words) for label, words in lines if words]


def _reservations(overview: ClusterOverview) -> OverviewPart:
    titles = ("Reservation", "State", "Start", "End", "Nodes", "Partition")
    rows = [
        (
            row.name,
            row.state.lower(),
            clock(row.start)[:16] or "-",
            clock(row.end)[:16] or "-",
            f"{row.nodes:,}",
            row.partition,
        )
        for row in overview.reservations
    ]
    none = "There are none."
    return OverviewPart("Reservations", titles, rows, frozenset({4}), narrow=(0, 2), sentence=none)


def _budget(overview: ClusterOverview) -> OverviewPart:
    rows = [(line,) for line in overview.budget]
    none = "The profile has no command for it (`commands: balance:`)."
    return OverviewPart("Budget", ("",), rows, sentence=none)
