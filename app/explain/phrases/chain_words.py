"""The message about a run that may take several time limits, and of each of its attempts. Pure.

The words may hold text from a site: make it safe where it is drawn (`safe_text`).
"""

from typing import TYPE_CHECKING

from lumitui.app.history.attempts import KILLED, SAVED, AttemptRecord, saved
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from lumitui.app.job.spec import JobSpec

_ENDS = {
    "requeue": "saved{at}, queued again",
    "done": "done{at}",
    "failed": "failed{at} with exit {rc}",
    "used-up": "saved{at}; no limit is left",
    "no-progress": "ended: it trained nothing new",
    "unsaved": "ended with 85{at}, saved nothing",
    "cancelled": "did nothing: the run was cancelled",
    "refused": "saved{at}; its requeue was refused",
    KILLED: "was ended: node, requeue or preemption",
}
"""Short: at 80 columns there is room for 50 characters."""


def time_limit(spec: "JobSpec") -> str:
    """Return `01:00:00`, or `4 x 01:00:00`."""
    return f"{spec.chain} x {spec.time}" if spec.chain > 1 else spec.time


def attempt(run: Run) -> str:
    """Return `attempt 2`, or `attempt 2 of at most 4`."""
    most = run.brief.chain
    number = run.attempt
    if run.between_attempts and not run.state.is_final:
        number = run.attempts[-1].number + 1
    return f"attempt {number}" + (f" of at most {most}" if most > 1 else "")


def began(record: AttemptRecord) -> str:
    """Return that an attempt began, as which job and on which nodes."""
    where = f" on {record.nodes}" if record.nodes else ""
    return f"attempt {record.number} started as job {record.job_id}{where}"


def ended(record: AttemptRecord, steps: int | None) -> str:
    """Return how an attempt ended, and how many steps it trained, as far as that is known."""
    at = f" at step {record.step:,}" if record.step is not None else ""
    at += f" ({steps:,} new)" if at and steps is not None else ""
    words = f" ({record.said})" if record.said else ""
    return f"attempt {record.number} {_ENDS[record.end].format(at=at, rc=record.rc)}{words}"


def may_go_on(run: Run) -> bool:
    """Return whether a chain ended with nothing wrong but that no attempt follows."""
    if run.state is State.CANCELLED:
        return saved(run.attempts)
    return bool(run.attempts) and run.attempts[-1].end in ("used-up", "refused")


def kept(run: Run) -> str:
    """Return what a cancel leaves of a chain that has trained; '' where no attempt saved."""
    steps = [item.step for item in run.attempts if item.end in SAVED and item.step is not None]
    if not saved(run.attempts):
        return ""
    return f"{f'step {steps[-1]:,}' if steps else 'its checkpoint'} is saved and stays"
