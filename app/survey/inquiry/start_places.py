"""Where a job would start first: the partitions of some sites that take it, beside each other."""

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
from lumitui.remote.survey.inquiry.ask_starts import MOST_SCRIPTS, ask_starts

if TYPE_CHECKING:
    from lumitui.app.launch.send.preview import Preview
    from lumitui.remote.connect import Connection
    from lumitui.remote.site.profile import Site

_OF_A_SITE = ("memory", "cpus_per_task", "local_disk", "modules", "sbatch", "container",
              "after")  # fmt: skip
"""Keys that are left out at another site: what they name is one site's."""


@dataclass(frozen=True)
class StartPlace:
    """A partition and a number of nodes for a job, and what is known of it there."""

    site: str
    partition: str
    nodes: int
    changes: Mapping[str, object]
    """Keys of the job file that have other values there; None: left out."""
    refusal: str = ""
    """Why the job would not run there, in a sentence; "": it would."""
    unreachable: bool = False
    """Whether the site could not be asked."""
    start: float | None = None
    """When it would start by Slurm's estimate, in epoch seconds."""
    waiting: int | None = None
    """Jobs of all users that wait in the partition."""
    latest_end: float | None = None
    """When its time limit would end it, in epoch seconds."""
    price: Price | None = None
    """What it is billed at most."""

    def cells(self, now: float) -> tuple[str, ...]:
        """Return start, waiting jobs, latest end and price, as people read them."""
        start, end = self.start, self.latest_end
        soon = start is not None and start - now < 60
        return (
            "not known" if start is None else "now" if soon else words.minute(start, now),
            "-" if self.waiting is None else str(self.waiting),
            "-" if end is None else words.minute(end, now),
            words.amount(self.price) if self.price else "-",
        )

    def change_words(self, *shown: str) -> str:
        """Return the keys that have other values there, but for those `shown` already."""
        changes = ((key, value) for key, value in self.changes.items() if key not in shown)
        return ", ".join(f"no {k}" if v is None else f"{k}={v}" for k, v in changes)

    @property
    def values(self) -> dict[str, Any]:
        """The changes as values of the keys: one that is left out has its default."""
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
    """Return the places for a job at one site, the earliest start first. One request at most.

    `home` is the job's own site; `account` pays at `site`. More than MOST_SCRIPTS places get no
    start. A site that cannot be asked is a refusal, not an error.
    """
    places = list(_variants(spec, site, home, account, nodes))
    if site.account.required and site.name != spec.site and not account:
        unpaid = f"{site.name} needs an account, and none of your runs there has one."
        return tuple(replace(each, refusal=unpaid) for each in places)
    candidates = [_composed(spec, each, preview) for each in places]
    tried = [each for each in candidates if each.preview is not None]
    if site.scheduler != "slurm":
        now = time.time()
        candidates = [_starting(each, now, None) if each in tried else each for each in candidates]
    elif tried:
        candidates = [*_asked(tried, site, connection), *_without(candidates, tried)]
    return tuple(sorted((each.place for each in candidates), key=_order))


def _order(place: StartPlace) -> tuple[bool, float, int]:
    return bool(place.refusal), place.start or math.inf, place.nodes


def _without(candidates: list[_Candidate], tried: list[_Candidate]) -> list[_Candidate]:
    return [each for each in candidates if each not in tried]


def _variants(
    spec: JobSpec, site: "Site", home: "Site", account: str, nodes: Sequence[int]
) -> Iterator[StartPlace]:
    """Yield what would be tried: each partition with each number of nodes."""
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
    for name in site.partitions:
        for size in sizes:
            own = {"partition": name} if name != spec.partition else {}
            more: dict[str, object] = {"nodes": size} if size != spec.nodes else {}
            yield StartPlace(site.name, name, size, changes | own | more)


def _default(key: str) -> object:
    return JobSpec.model_fields[key].get_default()


def _composed(
    spec: JobSpec, place: StartPlace, preview: "Callable[[JobSpec], Preview]"
) -> _Candidate:
    try:
        made = preview(changed(spec, place.values, f"{place.site}, {place.partition}"))
    except LumiError as error:
        return _Candidate(replace(place, refusal=error.message))
    price = made.launch.price
    if made.errors:
        return _Candidate(replace(place, refusal=made.errors[0].message, price=price))
    return _Candidate(replace(place, price=price), made)


def _asked(
    tried: list[_Candidate], site: "Site", connection: "Callable[[Site], Connection]"
) -> Iterator[_Candidate]:
    """Yield the candidates with what the site says of them."""
    scripts = [each.preview.launch.script for each in tried if each.preview]
    try:
        starts = ask_starts(connection(site).transport, scripts[:MOST_SCRIPTS])
    except LumiError as error:
        silence = f"{site.name} could not be asked: {error.message}"
        for each in tried:
            yield replace(each, place=replace(each.place, refusal=silence, unreachable=True))
        return
    for number, each in enumerate(tried):
        name = site.partitions[each.place.partition].slurm_partition or each.place.partition
        waiting = None if starts.waiting is None else starts.waiting.get(name, 0)
        trial = starts.trials[number] if number < MOST_SCRIPTS else None
        if trial is not None and not trial.accepted:
            refusal = f"sbatch refuses the script: {trial.words}."
            yield replace(each, place=replace(each.place, refusal=refusal, waiting=waiting))
        else:
            yield _starting(each, trial.start if trial else None, waiting)


def _starting(candidate: _Candidate, start: float | None, waiting: int | None) -> _Candidate:
    assert candidate.preview is not None
    seconds = walltime.seconds_of(candidate.preview.launch.spec.time)
    end = None if start is None else start + seconds
    return replace(
        candidate, place=replace(candidate.place, start=start, waiting=waiting, latest_end=end)
    )
