"""The cluster's findings on a job, shown beside the adviser's, and its price."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import say

if TYPE_CHECKING:
    from lumitui.app.runs import Preview, Runs

cluster_option = click.option(
    "--cluster",
    is_flag=True,
    help="Also query the cluster: image, folders, quotas, limits, budget and start time.",
)
"""Adds `--cluster` to a verb."""


def with_cluster(runs: "Runs", every: Sequence["Preview"]) -> "tuple[Preview, ...]":
    """Return the previews; the first has the cluster's findings, which apply to all of them.

    If the cluster cannot be queried, a note among the findings says so.
    """
    from lumitui.app.explain.words import length

    first, *others = every
    answer = runs.inquiries.of_preview(*every)
    age = time.time() - answer.at
    if age > 1:
        say(f"{first.site.name} answered {length(age)} ago.")
    return (replace(first, findings=(*first.findings, *answer.findings)), *others)


def price_line(runs: "Runs", preview: "Preview") -> str:
    """Return a job's maximum and probable price, and its account's remaining budget."""
    from lumitui.app.explain.run_phrases import price_outlook_sentence

    return price_outlook_sentence(runs.price_outlook(preview), time.time())
