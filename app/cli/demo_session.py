"""The demo: a real training on this machine, then again on twice the nodes, compared."""

from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.cli.confirmation import show_changes, show_findings
from lumitui.app.cli.output import say, say_rows, show
from lumitui.app.cli.send_progress import write_log
from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.runs import RunFailed, State, TrainedRun, speedups, summarize

if TYPE_CHECKING:
    from lumitui.app.runs import Preview, Run, Runs


def headless(runs: "Runs", job: Path) -> int:
    """Train, prove, train again on two nodes with the same code, and print the comparison.

    Raises:
        RunFailed: a training did not end well.
    """
    preview = runs.preview(job)
    _show(preview)
    first = _follow(runs, runs.send(preview))
    nodes = 2 * preview.launch.spec.nodes
    planned = runs.plan_resubmission(first.id, nodes=nodes, code="same", start="scratch")
    say_rows(f"\n{first.id} again on {nodes} nodes:")
    show_changes(planned, 100)
    second = _follow(runs, runs.resubmit(planned))
    show("\n" + comparison(runs, (first, second)))
    say("note: both nodes share this machine's cores, so the second one gains little.")
    return 0


def comparison(runs: "Runs", family: "tuple[Run, ...]") -> str:
    """Return the table of runs of one training on different numbers of nodes."""
    sums = [summarize(runs.history.metrics.of(run.id)) for run in family]
    scaling = speedups(
        [TrainedRun(run.id, run.layout.nodes, s) for run, s in zip(family, sums, strict=True)]
    )
    rows = [
        (
            run.id,
            run.layout.nodes,
            found.world_size,
            found.global_batch,
            words.number(found.samples_per_s),
            words.number(row.speed_up, " x"),
            words.number(row.efficiency, " %"),
            words.number(found.test_accuracy),
            words.amount(run.price),
        )
        for run, found, row in zip(family, sums, scaling, strict=True)
    ]
    titles = (
        "RUN",
        "NODES",
        "RANKS",
        "GLOBAL BATCH",
        "SAMPLES/S",
        "SPEED-UP",
        "EFFICIENCY",
        "TEST ACCURACY",
        "BILLED",
    )
    return tables.table(titles, rows, 200)


def _show(preview: "Preview") -> None:
    launch = preview.launch
    show(f"{launch.spec.name}: {launch.spec.strategy} by {launch.spec.launcher}")
    show(f"{words.layout_size(launch.layout)}; {words.price_sentence(launch.price)}")
    show(f"job.sh: {len(launch.script.splitlines())} lines, submitted by: {preview.command}")
    show_findings(preview)


def _follow(runs: "Runs", run: "Run") -> "Run":
    show(f"Sent {run.id}.")
    write_log(runs, run.id, last=65536)
    run = runs.history.get(run.id)
    if run.state is not State.DONE:
        why = runs.why(run.id)
        reason = f" {why[0].sentence}" if why else ""
        raise RunFailed(
            f"{run.id}: {run.state}.{reason}", f"Run `lumitui show {run.id}` to see more."
        )
    proof = runs.proof(run)
    show(f"Binding of {run.id}: {proof.kind}. {proof.sentence}")
    return run
