"""Figures and states as the screens write them. Pure."""

import time
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from lumitui.app.history.run import Run
from lumitui.app.job.launch import Layout, Price
from lumitui.app.tui.widgets.log_text import visible
from lumitui.remote import walltime
from lumitui.remote.scheduler.protocol import State

COLOURS: dict[State, str] = {
    State.SENDING: "cyan",
    State.UNKNOWN: "bold magenta",
    State.REFUSED: "red",
    State.NOT_SENT: "red",
    State.QUEUED: "yellow",
    State.RUNNING: "bold green",
    State.FINISHING: "green",
    State.DONE: "blue",
    State.FAILED: "bold red",
    State.CANCELLED: "bright_black",
    State.TIMEOUT: "bold red",
    State.OUT_OF_MEMORY: "bold red",
    State.NODE_FAILED: "bold red",
    State.PREEMPTED: "bold red",
}
"""The word itself is always shown; the colour only helps."""


def state_text(state: State) -> Text:
    """Return the state's word in its colour."""
    return Text(str(state), style=COLOURS[state], no_wrap=True)


def plain(text: str, style: str = "") -> Text:
    """Return text from anywhere as what it is: no markup, and nothing that a terminal obeys."""
    return Text("\n".join(visible(line) for line in text.split("\n")), style)


def labelled(lines: Iterable[tuple[str, str]]) -> Table:
    """Return lines of (label, value) as a table without rules; neither is markup."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in lines:
        table.add_row(Text(label, style="dim"), plain(value))
    return table


def duration(seconds: float) -> str:
    """Return a length of time in at most five or six characters: `45s`, `12m`, `3h05`, `2d04`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}"


def elapsed_of_limit(run: Run, now: float) -> str:
    """Return how long the job has run of how long it may, like `12m/1h00`."""
    limit = duration(walltime.seconds_of(run.spec.time))
    return f"{duration(run.elapsed(now)) if run.started else '-'}/{limit}"


def clock(moment: float | None) -> str:
    """Return an epoch time as the laptop's clock shows it; `-` for none."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment else "-"


def shorten(text: str, width: int) -> str:
    """Return `text` in at most `width` characters; its end stays, where ids of a name differ."""
    if len(text) <= width:
        return text
    end = min(7, width // 2)
    return f"{text[: width - end - 1]}…{text[-end:]}"


def count(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(count: int) -> str:
    """Return a number of bytes in at most eight characters: `812 B`, `1.4 kB`, `23 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000.0
    return f"{amount:.0f} {unit}" if amount >= 9.95 or unit == "B" else f"{amount:.1f} {unit}"


def size_of(layout: Layout) -> str:
    """Return `2 nodes, 16 ranks, 16 GPUs`."""
    return ", ".join(
        (
            count(layout.nodes, "node"),
            count(layout.world_size, "rank"),
            count(layout.nodes * layout.gpus_per_node, "GPU"),
        )
    )


def reason(run: Run) -> str:
    """Return why the run is as it is, in one line; of a failure, which rank and its exit code."""
    words = " ".join(run.reason.split())
    words = "" if words == "None" else words
    if run.state is not State.FAILED or not run.rc:
        return words
    rank = f"rank {run.failed_rank}, " if run.failed_rank is not None else ""
    # Slurm's NonZeroExitCode says no more than that.
    return f"{rank}exit {run.rc}" + (f", {words}" if words not in ("", "NonZeroExitCode") else "")


def price(price: Price) -> str:
    """Return what is billed at most; a site that bills nothing says so."""
    return f"at most {price.amount:g} {price.unit}" if price.amount else "nothing"
