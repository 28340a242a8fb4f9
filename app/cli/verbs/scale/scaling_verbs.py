"""The verbs that show how a training run scales, and compare the runs of a grid."""

from typing import TypedDict, Unpack

import click

from lumitui.app.cli.output import Reply
from lumitui.app.cli.session import MOST, columns, core, json_option, run_argument
from lumitui.app.cli.views.scaling_page import grid_text, scaling_text

_MOST_SAMPLES = 10**15


class _ScalingOptions(TypedDict):
    """The options of `scaling` that describe the training to predict."""

    samples: int | None
    epochs: int | None
    deadline: str | None
    budget: float | None
    predict: bool


@click.command()
@run_argument
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=1, max=_MOST_SAMPLES),
    help="Predict training on N samples. [default: RUN's]",
)
@click.option(
    "--epochs", metavar="N", type=click.IntRange(min=1, max=1_000_000), help="Predict N epochs."
)
@click.option(
    "--deadline", metavar="TIME", help="Recommend a size that takes at most TIME, such as 6h."
)
@click.option(
    "--budget",
    metavar="AMOUNT",
    type=click.FloatRange(min=0, max=MOST),
    help="Recommend a size that costs at most AMOUNT, in the site's unit.",
)
@click.option(
    "--nodes",
    metavar="N",
    type=click.IntRange(min=1, max=10_000),
    multiple=True,
    help="Also predict N nodes; repeatable.",
)
@click.option(
    "--predict",
    is_flag=True,
    help="Predict from RUN alone: its computation per step and the site's link speeds.",
)
@json_option
@click.pass_obj
def scaling(
    reply: Reply,
    run_id: str,
    nodes: tuple[int, ...],
    **question: Unpack[_ScalingOptions],
) -> None:
    """Show how a run scales, and predict other sizes.

    Compares the sizes in RUN's lineage, predicts others, and recommends one.
    """
    from lumitui.app.runs import ScalingQuestion, SizeGoal, advise_size, seconds_in

    deadline = None if question["deadline"] is None else seconds_in(question["deadline"])
    with core() as runs:
        study = runs.scaling.of(
            run_id,
            ScalingQuestion(
                nodes, question["samples"], question["epochs"], alone=question["predict"]
            ),
        )
    advice = advise_size(study, SizeGoal(deadline, question["budget"]))
    reply.give({"scaling": study, "advice": advice}, scaling_text(study, advice, columns()))


@click.command()
@run_argument
@json_option
@click.pass_obj
def grid(reply: Reply, run_id: str) -> None:
    """Compare the runs of a grid, and recommend a setting.

    RUN is any run of the grid. Prints each run's seconds per epoch, samples per second and share
    of time spent waiting for data. If the runs differ in their number of workers, recommends a
    number; otherwise, names the setting with the lowest loss.
    """
    with core() as runs:
        sweep = runs.sweeps.of(run_id)
    reply.give(sweep, grid_text(sweep, columns()))
