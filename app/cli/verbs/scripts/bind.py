"""`lumitui bind`: the cores of each rank of a node, or of each task for any set of masks."""

from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply
from lumitui.app.cli.session import json_option, own_settings, profile_file, site_argument
from lumitui.app.runs import InputError

if TYPE_CHECKING:
    from lumitui.app.runs import Site, Starter


@click.command()
@site_argument
@click.option(
    "--ranks",
    metavar="N",
    type=click.IntRange(min=1),
    help="Ranks per node. [default: one per GPU]",
)
@click.option(
    "--explain",
    "masks",
    metavar="MASK",
    help="Masks to explain: `mask_cpu:0xfe,…`, or a whole `--cpu-bind=…`.",
)
@click.option(
    "--launcher",
    type=click.Choice(["srun", "torchrun"]),
    default="srun",
    show_default=True,
    help="With --explain: the launcher of the ranks.",
)
@json_option
@click.pass_obj
def bind(
    reply: Reply, site_name: str, ranks: int | None, masks: str | None, launcher: "Starter"
) -> int:
    """Draw which cores each rank gets, or explain masks. SITE may be a profile's path.

    With --explain, exits with 1 if a job with these masks would fail, or if its ranks would share
    cores or GPUs. Pass several lists, such as --cpu-bind and --gpu-bind, in one argument:

    \b
        lumitui bind mahti --explain '--cpu-bind=map_cpu:1,33 --gpu-bind=map_gpu:0,1'
    """  # noqa: D301 - click needs the backspace itself, or it wraps the line
    from lumitui.app.runs import Sites, bind_text, rank_bindings

    sites, file = Sites(own_settings().profiles), profile_file(site_name)
    site = sites.load(site_name) if file is None else sites.with_file(file).load(file.stem)
    if masks is not None:
        return _explain(reply, site, masks, ranks, launcher)
    if launcher != "srun":
        raise InputError("--launcher works only with --explain.", "Add --explain MASK.")
    count = site.node.gpus if ranks is None else ranks
    reply.give(rank_bindings(site.node, count), bind_text(site, count))
    return 0


def _explain(reply: Reply, site: "Site", masks: str, ranks: int | None, launcher: "Starter") -> int:
    from lumitui.app.runs import explain_masks, masks_text

    explanation = explain_masks(site, masks, tasks=ranks, starter=launcher)
    reply.give(explanation, masks_text(site, explanation))
    return 1 if explanation.fails else 0
