"""The verb that compares where a job would start."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, say_rows
from lumitui.app.cli.series_verbs import Sizes
from lumitui.app.cli.session import columns, core, job_argument, json_option
from lumitui.app.cli.views.tables import table
from lumitui.app.explain import words
from lumitui.app.runs import InputError, LinkError

if TYPE_CHECKING:
    from lumitui.app.runs import StartPlace


@click.command()
@job_argument
@click.option(
    "--sites",
    metavar="SITE[=ACCOUNT],…",
    default="",
    help="Sites to compare. [default: the job's; ACCOUNT: that of your newest run there, else the "
    "profile's]",
)
@click.option(
    "--nodes",
    metavar="N,N,…",
    type=Sizes(),
    help="Node counts to compare. [default: the job's]",
)
@json_option
@click.pass_obj
def where(reply: Reply, job: Path, sites: str, nodes: tuple[int, ...] | None) -> None:
    """Compare where and when a job would start.

    Slurm estimates the start in each partition that accepts the job; nothing is submitted. For
    another site, CHANGES lists the job file keys that must change.
    """
    with core() as runs:
        places = runs.start_places(job, sites=accounts_of(sites), nodes=nodes or ())
    reply.give(places, places_table(places))


def accounts_of(sites: str) -> dict[str, str]:
    """Return the sites of `SITE[=ACCOUNT],…`, each with its account or ""."""
    pairs = (name.strip().partition("=") for name in sites.split(",") if name.strip())
    return {name: account for name, _, account in pairs}


def places_table(places: Sequence["StartPlace"]) -> str:
    """Return the table of places that accept a job; print on stderr why others do not.

    Raises:
        InputError: no place accepts the job.
        LinkError: no place accepts the job, and a site could not be queried.
    """
    accepting = (place for place in places if not place.refusal)
    open_places = sorted(accepting, key=lambda place: (place.start is None, place.start or 0.0))
    now = time.time()
    for line in _refusals(places):
        say_rows(line)
    rows = [
        (at.site, at.partition_words, at.nodes, *at.cells(now), at.change_words())
        for at in open_places
    ]
    if not rows and any(place.unreachable for place in places):
        raise LinkError(
            "A site could not be queried, and no other accepts the job.",
            "See the reasons above; `lumitui site check SITE` tests the connection.",
        )
    if not rows:
        raise InputError(
            "The job would not run in any of these partitions.",
            "See the reasons above; change the job file, or choose other sites.",
        )
    titles = ("SITE", "PARTITION", "NODES", "STARTS", "WAITING", "LATEST END", "PRICE", "CHANGES")
    return table(titles, rows, columns(), shrink=(7, 1))


def first_place(places: Sequence["StartPlace"]) -> "StartPlace":
    """Return the place with the earliest start.

    Among places that start in the same minute, it is the job file's own or else the cheapest. A
    trial or preemptible partition counts only if the job file names it or no other partition
    accepts the job.

    Raises:
        InputError: no site estimates a start.
    """
    accepting = [place for place in places if not place.refusal]
    suitable = [place for place in accepting if place.suits] or accepting
    known = [place for place in suitable if place.start is not None]
    if not known:
        raise InputError(
            "No site estimates when the job would start.",
            "Choose one yourself: `lumitui where` lists the necessary changes to the job file.",
        )
    now, units = time.time(), {place.price.unit for place in known if place.price}

    def rank(place: "StartPlace") -> tuple[float, bool, float]:
        price = place.price.amount if place.price and len(units) == 1 else 0.0
        return max(0.0, (place.start or now) - now) // 60, bool(place.changes), price

    return min(known, key=rank)


def _refusals(places: Sequence["StartPlace"]) -> Iterator[str]:
    """Yield why places refuse the job, one line per site and reason."""
    alike: dict[tuple[str, str], list[StartPlace]] = {}
    for place in places:
        alike.setdefault((place.site, place.refusal), []).append(place)
    for (site, refusal), group in alike.items():
        if refusal and len(group) == sum(place.site == site for place in places):
            yield f"{site}: {refusal}"
        elif refusal:
            names = (f"{place.partition} ({words.count(place.nodes, 'node')})" for place in group)
            yield f"{site}, {', '.join(names)}: {refusal}"
