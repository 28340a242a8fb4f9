"""Compares where a job would start first, among the partitions of several sites."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lumitui.app.explain import words
from lumitui.app.job.launch import Price
from lumitui.app.job.spec import JobSpec, changed
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import LumiError
from lumitui.remote.survey.ask_inquiry import MOST_SCRIPTS, ask_starts

if TYPE_CHECKING:
    from lumitui.app.launch.send.preview import Preview
    from lumitui.remote.connect import Connection
    from lumitui.remote.site.profile import Site

_OF_A_SITE = ("memory", "cpus_per_task", "local_disk", "modules", "python", "activate", "sbatch",
              "container", "after")  # fmt: skip
"""Keys that apply only to one site, and are left out at another."""


@dataclass(frozen=True)
class StartPlace:
    """A partition and a node count for a job, with start, price and changes."""

    site: str
    partition: str
    nodes: int
    changes: Mapping[str, object]
    """Keys of the job file with different values there; None: omitted."""
    refusal: str = ""
    """Why the job would not run there, as a sentence; "" if it would."""
    unreachable: bool = False
    """Whether the site could not be queried."""
    start: float | None = None
    """Slurm's estimate of its start, in epoch seconds."""
    waiting: int | None = None
    """Waiting jobs of all users in the partition."""
    latest_end: float | None = None
    """The time of its time limit, in epoch seconds."""
    price: Price | None = None
    """Its maximum price."""
    caution: str = ""
    """Why the partition does not suit a production job, in a word or two; "" if it does."""

    @property
    def partition_words(self) -> str:
        """The partition, with what speaks against it."""
        return f"{self.partition} ({self.caution})" if self.caution else self.partition

    @property
    def suits(self) -> bool:
        """Whether the partition is for production, or the job file itself names it."""
        return not self.caution or "partition" not in self.changes

    def cells(self, now: float) -> tuple[str, ...]:
        """Return start, waiting jobs, latest end and price in readable form."""
        start, end = self.start, self.latest_end
        soon = start is not None and start - now < 60
        return (
            "unknown" if start is None else "now" if soon else words.minute(start, now),
            "-" if self.waiting is None else str(self.waiting),
            "-" if end is None else words.minute(end, now),
            words.amount(self.price) if self.price else "-",
        )

    def change_words(self, *shown: str) -> str:
        """Return the keys with different values there, except those already `shown`."""
        changes = ((key, value) for key, value in self.changes.items() if key not in shown)
        return ", ".join(f"no {k}" if v is None else f"{k}={v}" for k, v in changes)

    @property
    def values(self) -> dict[str, Any]:
        """The changes as values of the keys: an omitted one has its default."""
        return {
            key: _default(key) if value is None else value for key, value in self.changes.items()
        }


@dataclass(frozen=True)
class _Candidate:
    place: StartPlace
    preview: "Preview | None" = None


def start_places(
    spec: JobSpec,
    site: "Site",
    home: "Site",
    account: str,
    nodes: Sequence[int],
    preview: "Callable[[JobSpec], Preview]",
    connection: "Callable[[Site], Connection]",
) -> tuple[StartPlace, ...]:
    """Return the places for a job at one site, the earliest start first, in at most one request.

    `home` is the job's own site; `account` is billed at `site`. Only the first MOST_SCRIPTS places
    get a start. If the site cannot be queried, its places have a refusal.
    """
    places = list(_variants(spec, site, home, account, nodes))
    if site.account.required and site.name != spec.site and not account:
        reason = (
            f"{site.name} needs an account, but none of your runs there has one. "
            f"Name yours: `--sites {site.name}=ACCOUNT`, or `--first {site.name}=ACCOUNT`."
        )
        return tuple(replace(each, refusal=reason) for each in places)
    candidates = [_composed(spec, each, preview) for each in places]
    valid = [each for each in candidates if each.preview is not None]
    refused = [each for each in candidates if each.preview is None]
    if site.scheduler != "slurm":
        now = time.time()
        valid = [_starting(each, now, None) for each in valid]
    elif valid:
        valid = list(_queried(valid, site, connection))
    return tuple(sorted((each.place for each in (*valid, *refused)), key=_order))


def _order(place: StartPlace) -> tuple[bool, float, int]:
    return bool(place.refusal), place.start or math.inf, place.nodes


def _variants(
    spec: JobSpec, site: "Site", home: "Site", account: str, nodes: Sequence[int]
) -> Iterator[StartPlace]:
    """Yield each partition with each node count."""
    changes: dict[str, object] = {} if account in ("", spec.account) else {"account": account}
    sizes: Sequence[int] = nodes or (spec.nodes,)
    if site.name != spec.site:
        changes = {"site": site.name, "account": account or "none"}
        changes = {key: value for key, value in changes.items() if getattr(spec, key) != value}
        changes |= {key: None for key in _OF_A_SITE if getattr(spec, key) != _default(key)}
        if spec.container.none:
            del changes["container"]
        per_node = spec.gpus_per_node or home.node.gpus
        if per_node > site.node.gpus:
            ranks = per_node * spec.nodes
            changes["gpus_per_node"] = site.node.gpus
            sizes = nodes or (math.ceil(ranks / site.node.gpus),)
    for name, partition in site.partitions.items():
        caution = "for trials" if partition.trials else "preemptible" if partition.preempts else ""
        for size in sizes:
            own = {"partition": name} if name != spec.partition else {}
            more: dict[str, object] = {"nodes": size} if size != spec.nodes else {}
            yield StartPlace(site.name, name, size, changes | own | more, caution=caution)


def _default(key: str) -> object:
    return JobSpec.model_fields[key].get_default()


def _composed(
    spec: JobSpec, place: StartPlace, preview: "Callable[[JobSpec], Preview]"
) -> _Candidate:
    try:
        job = preview(changed(spec, place.values, f"{place.site}, {place.partition}"))
    except LumiError as error:
        return _Candidate(replace(place, refusal=error.message))
    price = job.launch.price
    if job.errors:
        return _Candidate(replace(place, refusal=job.errors[0].message, price=price))
    return _Candidate(replace(place, price=price), job)


def _queried(
    candidates: list[_Candidate], site: "Site", connection: "Callable[[Site], Connection]"
) -> Iterator[_Candidate]:
    scripts = [each.preview.launch.script for each in candidates if each.preview]
    try:
        starts = ask_starts(connection(site).transport, scripts[:MOST_SCRIPTS])
    except LumiError as error:
        for each in candidates:
            reason = f"Could not query {site.name}: {error.message}"
            yield replace(each, place=replace(each.place, refusal=reason, unreachable=True))
        return
    for number, each in enumerate(candidates):
        name = site.partitions[each.place.partition].slurm_partition or each.place.partition
        waiting = None if starts.waiting is None else starts.waiting.get(name, 0)
        trial = starts.trials[number] if number < MOST_SCRIPTS else None
        if trial is not None and not trial.accepted:
            reason = f"sbatch refuses the script: {trial.words}."
            yield replace(each, place=replace(each.place, refusal=reason, waiting=waiting))
        else:
            yield _starting(each, trial.start if trial else None, waiting)


def _starting(candidate: _Candidate, start: float | None, waiting: int | None) -> _Candidate:
    assert candidate.preview is not None
    seconds = walltime.seconds_of(candidate.preview.launch.spec.time)
    end = None if start is None else start + seconds
    return replace(
        candidate, place=replace(candidate.place, start=start, waiting=waiting, latest_end=end)
    )
