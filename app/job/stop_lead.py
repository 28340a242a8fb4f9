"""The lead of a job's stop signal before its time limit, and the duration of its saves. Pure."""

import math

from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import TRAINERS
from lumitui.remote.site import walltime

LEAST_SECONDS = 60
MARGIN_SECONDS = 30
"""Seconds for the current step, and for the one second between two checks of the stop file."""
SAVES = 3
"""Number of slowest saves that the lead allows for: one may be in progress, one follows, and a busy
file system slows both."""


def signal_of(spec: JobSpec) -> str | None:
    """Return the stop signal of a job, like `USR1@60`, if any."""
    if spec.debug:
        return f"B:USR1@{LEAST_SECONDS}"  # its end is not a failure
    trainer = TRAINERS.get(spec.trainer or "")
    return spec.signal or (trainer.signal if trainer else None)


def lead_of(spec: JobSpec) -> int | None:
    """Return the seconds between the stop signal and the time limit; None without a signal."""
    signal = signal_of(spec)
    return int(signal.partition("@")[2]) if signal else None


def needed(slowest_save: float) -> int:
    """Return the lead for saves of `slowest_save` seconds, in whole tens of seconds."""
    return max(LEAST_SECONDS, 10 * math.ceil((SAVES * slowest_save + MARGIN_SECONDS) / 10))


def longer_signal(spec: JobSpec, slowest_save: float | None) -> str | None:
    """Return a signal that leaves time for the saves; None if the job's signal already does.

    Only for bundled trainers, whose reaction to the signal is known. The lead is at most half the
    time limit, and never shorter than the user's.
    """
    signal, lead = signal_of(spec), lead_of(spec)
    if spec.trainer is None or not slowest_save or not signal or lead is None:
        return None
    most = min(walltime.seconds_of(spec.time) // 2, 65_535)  # sbatch(1), --signal
    seconds = min(needed(slowest_save), most)
    return f"{signal.partition('@')[0]}@{seconds}" if seconds > lead else None


def short_lead(spec: JobSpec, slowest_save: float | None) -> str:
    """Return a warning if saves took more than half of the lead; else ''."""
    lead = lead_of(spec)
    if spec.trainer is None or not slowest_save or lead is None or slowest_save <= lead / 2:
        return ""
    return (
        f"up to {slowest_save:.0f} s, more than half of the {lead} s between the stop signal and "
        "the time limit; a resubmission allows more"
    )
