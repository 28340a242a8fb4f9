"""What is said of a run that may take several time limits, and of each of its attempts. Pure.

The words may hold text from a site: make it safe where it is drawn (`safe_text`).
"""

from typing import Protocol

from lumitui.app.explain import words
from lumitui.app.history.attempts import KILLED, AttemptRecord
from lumitui.app.history.run import Run

SAVED = "its checkpoint is saved"
_ENDS = {
    "requeue": f"{SAVED}, and the job went back into the queue",
    "done": "the training is done",
    "used-up": f"{SAVED}, and it was the last one",
    "no-progress": "nothing new was trained, so that no other attempt follows",
    "cancelled": "the run was cancelled before it did anything",
    "refused": f"{SAVED}, but the job could not go back into the queue",
    KILLED: "it was ended from outside: a node failed, or its job was requeued or preempted",
}


class Limits(Protocol):
    """The part of a job file that says how long it may take."""

    @property
    def time(self) -> str:
        """The time limit."""
        ...

    @property
    def chain(self) -> int:
        """How many of them it may take."""
        ...


def time_limit(limits: Limits) -> str:
    """Return `01:00:00`, or `4 x 01:00:00`."""
    return f"{limits.chain} x {limits.time}" if limits.chain > 1 else limits.time


def attempt(run: Run) -> str:
    """Return `attempt 2`, or `attempt 2 of at most 4`."""
    most = run.brief.chain
    return f"attempt {run.attempt}" + (f" of at most {most}" if most > 1 else "")


def began(record: AttemptRecord) -> str:
    """Return that an attempt began, as which job and on which nodes."""
    where = f" on {record.nodes}" if record.nodes else ""
    return f"attempt {record.number} started as job {record.job_id}{where}"


def ended(record: AttemptRecord, steps: int | None) -> str:
    """Return how an attempt ended, and how many steps it trained, as far as that is known."""
    done = f" after step {record.step:,}" if record.step is not None else ""
    done += f" ({words.count(steps, 'new step')})" if steps is not None else ""
    why = _ENDS.get(record.end) or f"the program failed (exit {record.rc})"
    said = f" ({record.said})" if record.said else ""
    return f"attempt {record.number} ended{done}: {why}{said}"
