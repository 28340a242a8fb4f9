"""What the cluster says of a job, put beside what the adviser says, and its price."""

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
    help="Also ask the cluster about image, folders, quotas, limits, budget and start time.",
)
"""Gives a verb `--cluster`."""


def with_cluster(runs: "Runs", every: Sequence["Preview"]) -> "tuple[Preview, ...]":
    """Return the previews, the first with what its cluster says: the runs of a grid ask alike.

    A cluster that cannot be asked is a note among the findings, and no error.
    """
    from lumitui.app.explain.words import length

    first, *others = every
    answer = runs.inquiries.of_preview(first)
    age = time.time() - answer.at
    if age > 1:
        say(f"{first.site.name} was asked {length(age)} ago.")
    return (replace(first, findings=(*first.findings, *answer.findings)), *others)


def price_line(runs: "Runs", preview: "Preview") -> str:
    """Return what a job is billed at most and probably, and what its account has left."""
    from lumitui.app.explain.phrases.price_words import price_outlook_sentence

    return price_outlook_sentence(runs.price_outlook(preview), time.time())
