"""A run's printed progress: the steps of its send, its log, its end."""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, has_person, put_bytes, run_data, say, warn
from lumitui.app.cli.session import columns
from lumitui.app.cli.views.tables import cut
from lumitui.app.runs import (
    LogFilter,
    NeverStarts,
    OutcomeUnknown,
    RunFailed,
    State,
    WaitTimedOut,
    spell_out,
)

if TYPE_CHECKING:
    from lumitui.app.runs import Run, Runs


class _Steps:
    """Prints the steps of a send on a terminal; a transfer's line replaces the one before it."""

    def __init__(self) -> None:
        self._open = False

    def __call__(self, step: str, words: str) -> None:
        """Print the step that begins, or its progress."""
        if not words or not has_person():
            return
        moves = words.startswith(("reading ", "staging "))
        if self._open:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)
        line = spell_out(f"… {words}")
        # A line that wraps could not be replaced.
        click.echo(cut(line, columns() - 1) if moves else line, err=True, nl=not moves)
        self._open = moves


show_step = _Steps()


def show_sent(reply: Reply, run: "Run") -> None:
    """Print that a run was sent, and its id on stdout."""
    say(f"Job {run.job_id} at {run.site}. Follow its log: lumitui logs -f {run.id}")
    reply.give(run_data(run), run.id)


def log_writer() -> Callable[[bytes], None]:
    """Return a function that writes a log's bytes to stdout, made safe if that is a terminal.

    Call it with b"" at the end of the log.
    """
    if not sys.stdout.isatty():
        return put_bytes
    colours = not os.environ.get("NO_COLOR")
    safe = LogFilter(colours=colours)

    def shown(chunk: bytes) -> None:
        # At the end, reset a colour that the log left on.
        off = "\x1b[0m" if colours and not chunk else ""
        sys.stdout.write(safe.feed(chunk, end=not chunk) + off)
        sys.stdout.flush()

    return shown


def print_log(runs: "Runs", run_id: str, attempt: int | None, last: int) -> None:
    """Print the last bytes of a log."""
    write = log_writer()
    write(runs.read_log(run_id, attempt=attempt, last=last)[1])
    write(b"")


def follow_log(runs: "Runs", run_id: str, last: int) -> None:
    """Print a run's log from its last bytes on until the run has ended, or can never start.

    Raises:
        LumiError: as `show_end`.
    """
    run = runs.history.get(run_id)
    write_log(runs, run.id, last)
    run = runs.history.get(run.id)
    runs.mark_told(run)
    show_end(run)


def write_log(runs: "Runs", run_id: str, last: int) -> None:
    """Write a run's log to stdout, from its `last` bytes on until the run has ended."""
    from lumitui.app.runs import LogGrew

    write = log_writer()
    for event in runs.follow(run_id, last=last):
        if isinstance(event, LogGrew):
            write(event.data)
    write(b"")


def wait_for_end(reply: Reply, runs: "Runs", run: "Run", timeout: float | None) -> None:
    """Wait for a run's end.

    Raises:
        OutcomeUnknown: Slurm no longer knows the job.
        WaitTimedOut: the run has not ended after `timeout` seconds.
        LumiError: as `show_end`.
    """
    began = time.monotonic()

    def tell(run: "Run") -> None:  # a sign of life
        if sys.stderr.isatty() and not (reply.json or run.state.is_final):
            say(f"{run.id} is {run.state}.")

    tell(run)
    run = runs.wait(run.id, timeout=timeout, warn=warn, moved_to=tell)
    reply.keep(run_data(run))
    waits = not (run.state.is_final or run.never_starts)
    if waits and (timeout is None or time.monotonic() - began < timeout):
        raise OutcomeUnknown(
            f"{run.id} is {run.reason}.",
            f"Read its log with `lumitui logs {run.id}`, or query again with `lumitui status`.",
        )
    if waits:
        raise timed_out([run], timeout or 0.0)
    runs.mark_told(run)
    show_end(run)


def timed_out(late: Sequence["Run"], timeout: float) -> WaitTimedOut:
    """Return the error that names all runs that have not ended after `timeout` seconds."""
    still = ", ".join(f"{run.id} is still {run.state}" for run in late)
    seconds = math.ceil(timeout * 10) / 10 if timeout < 1 else round(timeout)
    stays = "The jobs stay in the queue or keep running."
    if len(late) == 1:
        queued = late[0].state is State.QUEUED
        stays = f"The job {'stays in the queue' if queued else 'keeps running'}."
    return WaitTimedOut(f"{still} after {seconds:g} s.", stays)


def show_end(run: "Run") -> None:
    """Print that a run is done.

    Raises:
        RunFailed: the run failed.
        NeverStarts: a run that this one waits for did not end as required.
        OutcomeUnknown: the run's outcome is unknown.
    """
    if run.never_starts:
        raise NeverStarts(
            f"{run.id} can never start: {' or '.join(run.awaited) or 'the job it waits for'} did "
            "not end as required.",
            f"Remove it from the queue with `lumitui cancel {run.id}`.",
        )
    if not run.state.is_final:
        raise OutcomeUnknown(
            f"{run.id} is {run.reason or run.state}.",
            f"Query again with `lumitui status`; `lumitui show {run.id}` shows its last state.",
        )
    if run.state is not State.DONE:
        raise RunFailed(f"{run.id}: {run.state}.", f"Run `lumitui why {run.id}`.")
    say(f"{run.id}: done.")
