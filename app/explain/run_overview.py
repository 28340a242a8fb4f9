"""The overview of a run: progress, efficiency and next step. Pure.

The words may contain text from a site: escape it when drawing (`safe_text`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumitui.app.explain import run_phrases, words
from lumitui.app.explain.idle_words import idle
from lumitui.app.explain.waiting import waited
from lumitui.app.history.listing.state_filter import WENT_WRONG
from lumitui.app.history.run import FETCHED_TAG, NODE_PROBE, SAVED_TAG
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.explain.run_facts import Row
    from lumitui.app.explain.training_summary import Speedup, Summary
    from lumitui.app.history.run import Run

NEXT = {
    State.UNKNOWN: "Refresh. Once the site answers, lumitui knows what happened to the job.",
    State.REFUSED: "Fix the problem that the reason names, then resubmit it. Nothing was billed.",
    State.NOT_SENT: "Resubmit it. Nothing was billed.",
    State.RUNNING: "Follow its log.",
    State.DONE: "Fetch its results, or resubmit it on a different number of nodes.",
    State.FAILED: "Find out why it failed, fix the cause, then resubmit it.",
    State.CANCELLED: "Resubmit it if you still need it.",
    State.TIMEOUT: "Resubmit it to resume from its last checkpoint, or give it more time.",
    State.OUT_OF_MEMORY: "Resubmit it with more `memory:`, or with fewer data-loader workers.",
    State.NODE_FAILED: "Resubmit it: a node failed, not your program.",
    State.PREEMPTED: "Resubmit it: a job with a higher priority took its nodes.",
}
"""The next step for a run in each state; empty if the user can only wait."""
MORE_TIME = "Resubmit it with more time."
"""After a time limit, for a program that the job file does not say how to resume."""
CONTINUE = "Resubmit it to resume from its last checkpoint."
CONTINUE_CANCELLED = (
    "If you still need it, resubmit it from its last checkpoint: its training is saved."
)
EXPLAINED = "Fix the displayed cause, then resubmit it."
UNPROVED = (
    "Check the proof: some ranks have different cores or GPUs than planned, so the run may be slow."
)

_PROBE = "`lumitui site check {run.site} --probe --run {run.id} --write`"
HANGS = "Wait in case it recovers, or cancel it and resubmit it without the nodes named here."

MOST_DEPTH = 8
"""Maximum number of indented generations: a chain of a hundred would not fit the screen."""


def story(run: Run, now: float) -> str:
    """Return how long the run waited, ran and may run, in one line; '' before the send."""
    if run.job_id is None:
        return ""
    queue = f"{words.length(waited(run, now))} in the queue"
    if run.attempts and (run.state.is_final or run.between_attempts):
        return _chain_story(run, now)
    if run.started is None:
        return f"ended after {queue}" if run.state.is_final else queue
    ran = f"{words.length(run.elapsed(now))} of {words.time_limit(run)}"
    again = f", {run_phrases.attempt(run)}" if run.attempt > 1 or run.brief.chain > 1 else ""
    ended = f"; ended {words.length(now - run.ended)} ago" if run.ended else ""
    verb, old = "ran" if run.state.is_final else "runs for", words.as_of(run, now)
    if old or run.state is State.UNKNOWN:  # its end is unknown
        verb = "was seen running for"
    return f"{verb} {ran}{again}, after {queue}{ended}{f'; {old}' if old else ''}"


def _chain_story(run: Run, now: float) -> str:
    """Return the total time of a chain's attempts, once it has ended or waits for the next."""
    attempts = words.count(len(run.attempts), "attempt")
    most = f"{run.brief.chain} x {words.time_limit(run)}"
    ran = f"ran {words.length(run.ran(now))} in {attempts} of at most {most}"
    if not run.state.is_final:
        return f"{ran}; in the queue again for {words.length(waited(run, now))}"
    return ran + (f"; ended {words.length(now - run.ended)} ago" if run.ended else "")


def _reason(run: Run) -> str:
    """Return why it failed in a few words, if known, else the scheduler's reason."""
    if run.cause and run.state in WENT_WRONG and not words.chain_end(run):
        return run.cause
    return words.reason(run)


def next_step(run: Run, proof: Verdict | None, now: float = 0.0, *, explained: bool = False) -> str:
    """Return the next step; '' if the user can only wait.

    `explained`: whether the failure's cause is shown beside it.
    """
    if words.heard(run, now):
        return f"Wait for {run.site}: lumitui shows the job's state once the site answers again."
    if run.hang:
        return HANGS
    if proof and proof.kind == "differs" and not run.state.is_final:
        return UNPROVED
    if run.name == NODE_PROBE and run.state.is_final and run.state is not State.DONE:
        return f"Measure again: F5 in the guide (0), or `lumitui site check {run.site} --probe`."
    if run.state in {State.CANCELLED, State.FAILED} and run_phrases.may_go_on(run):
        return CONTINUE if run.state is State.FAILED else CONTINUE_CANCELLED
    if explained and run.state is State.FAILED:
        return EXPLAINED
    if run.state is State.RUNNING and "#debug" in run.note.split():
        return "Open a shell on its nodes, and cancel the run when you are done."
    if run.state is State.TIMEOUT and run.spec.trainer is None and not run.spec.resume:
        return MORE_TIME
    if run.name == NODE_PROBE and run.state is State.DONE:
        if SAVED_TAG in run.note.split():
            return "Create a job on New (2): the profile contains its measurements."
        return f"Save its measurements: F5 in the guide (0), or {_PROBE.format(run=run)}."
    if run.state is State.DONE and FETCHED_TAG in run.note.split():
        return "Resubmit it on a different number of nodes."
    return NEXT.get(run.state, "")


def speed(run: Run, totals: Summary | None) -> str:
    """Return the throughput and the size at which it was measured."""
    if totals is None or not totals.samples_per_s:
        return ""
    ranks = totals.world_size or run.layout.world_size
    speed = words.rate(totals.samples_per_s)
    return f"{speed} samples/s (median step) on {words.count(ranks, 'rank')}"


def against(comparison: Speedup | None, parent: Run | None, run: Run) -> str:
    """Return how well the run scales from its parent; '' if unknown."""
    if comparison is None or parent is None or comparison.efficiency is None:
        return ""
    if parent.layout.nodes == run.layout.nodes:
        faster = words.number(_rounded(comparison.speed_up))
        return f"{faster} x the throughput of {parent.id}, on as many nodes"
    nodes = f"{parent.layout.nodes} to {words.count(run.layout.nodes, 'node')}"
    faster = words.number(_rounded(comparison.speed_up))
    noise = " (above 100 % is noise)" if comparison.efficiency >= 100.5 else ""
    shared = f"{comparison.efficiency:.0f} % of {parent.id}{noise}"
    return f"{shared}: {faster} x its throughput, {nodes}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def loss(totals: Summary | None) -> str:
    """Return the last loss and its step; '' if there is none yet."""
    if totals is None or totals.last_loss is None:
        return ""
    return f"{words.number(totals.last_loss)} after {words.count(totals.steps, totals.unit)}"


def _saves(run: Run, totals: Summary | None) -> str:
    """Return a warning that a running job's saves are too slow for its lead, or ''."""
    slowest = totals.slowest_save if totals else None
    if run.state is not State.RUNNING or not slowest or slowest < 1:
        return ""
    # Imported late: with pydantic, it takes as long as everything else on the page.
    from lumitui.app.job.stop_lead import short_lead

    return short_lead(run.spec, slowest)


RELATIVE_TITLES = ("run", "state", "nodes", "samples/s", "speed-up", "efficiency")
"""Titles for `relative`; the last two columns compare with the parent."""


def relative(
    run: Run, depth: int, totals: Summary, beside_parent: Speedup | None
) -> tuple[str, ...]:
    """Return the cells of one run of a lineage, one per title."""
    speed_up = beside_parent.speed_up if beside_parent else None
    efficiency = beside_parent.efficiency if beside_parent else None
    faster = "-" if speed_up is None else f"{words.number(_rounded(speed_up))} x"
    return (f"{'  ' * min(depth, MOST_DEPTH)}{run.id}", str(run.state), str(run.layout.nodes),
            words.rate(totals.samples_per_s), faster,
            "-" if efficiency is None else f"{efficiency:.0f} %")  # fmt: skip


def with_outlook(
    rows: list[Row], run: Run, planned: int | None, advice: Sequence[str]
) -> list[Row]:
    """Return the overview with how far a chain comes and the grid's verdict before the next step.

    `planned`: the steps of the whole training, if known.
    """
    told = (("chain", run_phrases.chain_outlook(run, planned)), ("grid", " ".join(advice)))
    return sorted([*rows, *(row for row in told if row[1])], key=lambda row: row[0] == "next")


def rows(
    run: Run,
    now: float,
    proof: Verdict | None,
    totals: Summary | None,
    comparison: tuple[Run, Speedup] | None,
    *,
    explained: bool = False,
) -> list[Row]:
    """Return the overview as (label, words) rows; omit unknown ones.

    `proof` and `totals`: None if not read yet. `comparison`: the run against its parent.
    `explained`: whether the failure's cause is shown beside the rows.
    """
    parent, beside = comparison or (None, None)
    told = explained and _reason(run) == run.cause
    facts = (
        ("timing", story(run, now)),
        ("proof", f"{proof.kind}: {proof.sentence}" if proof and run.name != NODE_PROBE else ""),
        ("throughput", speed(run, totals)),
        ("idle", idle(run, totals)),
        ("efficiency", against(beside, parent, run)),
        ("loss", loss(totals)),
        ("saves", _saves(run, totals)),
        ("billed", words.billed(run, now)),
        ("reason", "" if run.state is State.QUEUED or told else _reason(run)),
        ("next", next_step(run, proof, now, explained=explained or bool(run.cause))),
    )
    return [(label, text) for label, text in facts if text]
