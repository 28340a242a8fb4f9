"""How long before the time limit a job is asked to stop, and how long its saves need. Pure."""

import math

from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import TRAINERS
from lumitui.remote.site import walltime

LEAST_SECONDS = 60
MARGIN_SECONDS = 30
"""For the step that continues, and for the second in which the stop file is looked for."""
SAVES = 3
"""The lead has room for so many of the slowest save: one may be going on, one follows, and a busy
file system makes both slow."""


def signal_of(spec: JobSpec) -> str | None:
    """Return the signal that a job asks for, like `USR1@60`; None: none."""
    trainer = TRAINERS.get(spec.trainer or "")
    return spec.signal or (trainer.signal if trainer else None)


def lead_of(spec: JobSpec) -> int | None:
    """Return the seconds between the stop signal and the time limit; None: there is no signal."""
    signal = signal_of(spec)
    return int(signal.partition("@")[2]) if signal else None


def needed(slowest_save: float) -> int:
    """Return the lead that saves of so many seconds need, in whole tens of seconds."""
    return max(LEAST_SECONDS, 10 * math.ceil((SAVES * slowest_save + MARGIN_SECONDS) / 10))


def longer_signal(spec: JobSpec, slowest_save: float | None) -> str | None:
    """Return the signal that leaves time for the saves; None where that of the job does.

    Only of a bundled trainer is it known what it does on its signal. At most half of the time
    limit goes to it. A lead that a user gave never becomes shorter.
    """
    signal, lead = signal_of(spec), lead_of(spec)
    if spec.trainer is None or not slowest_save or not signal or lead is None:
        return None
    most = min(walltime.seconds_of(spec.time) // 2, 65_535)  # sbatch(1), --signal
    seconds = min(needed(slowest_save), most)
    return f"{signal.partition('@')[0]}@{seconds}" if seconds > lead else None


def short_lead(spec: JobSpec, slowest_save: float | None) -> str:
    """Return what to say of saves that took more than half of the lead; '' where they did not."""
    lead = lead_of(spec)
    if spec.trainer is None or not slowest_save or lead is None or slowest_save <= lead / 2:
        return ""
    return (
        f"up to {slowest_save:.0f} s, more than half of the {lead} s between the stop signal and "
        "the time limit; a resubmission gives them more"
    )
