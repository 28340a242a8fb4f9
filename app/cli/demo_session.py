"""The demo: a real training run on this machine, then again on twice the nodes, compared."""

from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.cli.confirmation import show_changes, show_findings
from lumitui.app.cli.output import say, say_rows, show
from lumitui.app.cli.send_progress import write_log
from lumitui.app.cli.views.scaling_page import scaling_text
from lumitui.app.explain import words
from lumitui.app.runs import RunFailed, ScalingQuestion, SizeGoal, State, advise_size

if TYPE_CHECKING:
    from lumitui.app.runs import Preview, Run, Runs


def headless(runs: "Runs", job: Path) -> int:
    """Train, prove, train again on two nodes with the same code, and print the comparison.

    Raises:
        RunFailed: a training run failed.
    """
    preview = runs.preview(job)
    _show(preview)
    first = _follow(runs, runs.send(preview))
    nodes = 2 * preview.launch.spec.nodes
    planned = runs.plan_resubmission(first.id, nodes=nodes, code="same", start="scratch")
    say_rows(f"\n{first.id} again on {nodes} nodes:")
    show_changes(planned, 100)
    _follow(runs, runs.resubmit(planned))
    scaling = runs.scaling.of(first.id, ScalingQuestion())
    advice = advise_size(scaling, SizeGoal())
    show("\n" + scaling_text(scaling, advice, 200))
    say("note: both nodes share this machine's cores, so the second adds little.")
    return 0


def _show(preview: "Preview") -> None:
    launch = preview.launch
    show(f"{launch.spec.name}: {launch.spec.strategy} by {launch.spec.launcher}")
    show(f"{words.layout_size(launch.layout)}; {words.price_sentence(launch.price)}")
    show(f"job.sh: {len(launch.script.splitlines())} lines, submitted with: {preview.command}")
    show_findings(preview)


def _follow(runs: "Runs", run: "Run") -> "Run":
    show(f"Sent {run.id}.")
    write_log(runs, run.id, last=65536)
    run = runs.history.get(run.id)
    if run.state is not State.DONE:
        why = runs.why(run.id)
        reason = f" {why[0].sentence}" if why else ""
        raise RunFailed(
            f"{run.id}: {run.state}.{reason}", f"Run `lumitui show {run.id}` for details."
        )
    proof = runs.proof(run)
    show(f"Binding of {run.id}: {proof.kind}. {proof.sentence}")
    return run
