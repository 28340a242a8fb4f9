"""The states of a run, and Slurm's words for them."""

import re
from collections.abc import Mapping
from enum import StrEnum

BY_YOU = "by you"
"""The reason of a job that its owner cancelled."""
HANGS = re.compile(r"(?:Ranks? \d|No rank has ).{0,200}\bmoved for \d")
"""How the sentences of trainers/monitor/watchdog.py begin, in the reason of a run."""


class State(StrEnum):
    """The state of a run, the same for every scheduler."""

    SENDING = "sending"
    """It is being sent; nothing is known to be on the cluster yet."""
    UNKNOWN = "unknown"
    """It may or may not be on the cluster, or its end was not seen; it is settled later."""
    REFUSED = "refused"
    NOT_SENT = "not sent"
    """There is certainly no job: none was created, and none can start."""
    QUEUED = "queued"
    RUNNING = "running"
    FINISHING = "finishing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out of memory"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self in _FINAL


_FINAL = frozenset(
    {
        State.REFUSED,
        State.NOT_SENT,
        State.DONE,
        State.FAILED,
        State.CANCELLED,
        State.TIMEOUT,
        State.OUT_OF_MEMORY,
        State.NODE_FAILED,
        State.PREEMPTED,
    }
)

STATES: Mapping[str, State] = {
    "PENDING": State.QUEUED,
    "REQUEUED": State.QUEUED,
    "EXPEDITING": State.QUEUED,
    "REQUEUE_FED": State.QUEUED,
    "REQUEUE_HOLD": State.QUEUED,
    "RESV_DEL_HOLD": State.QUEUED,
    "SPECIAL_EXIT": State.QUEUED,
    "CONFIGURING": State.QUEUED,
    "POWER_UP_NODE": State.QUEUED,
    "RUNNING": State.RUNNING,
    "RESIZING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "STOPPED": State.RUNNING,
    "COMPLETING": State.FINISHING,
    "STAGE_OUT": State.FINISHING,
    "COMPLETED": State.DONE,
    "FAILED": State.FAILED,
    "BOOT_FAIL": State.NODE_FAILED,
    "LAUNCH_FAILED": State.NODE_FAILED,
    "RECONFIG_FAIL": State.NODE_FAILED,
    "NODE_FAIL": State.NODE_FAILED,
    "CANCELLED": State.CANCELLED,
    "DEADLINE": State.TIMEOUT,
    "TIMEOUT": State.TIMEOUT,
    "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
    "PREEMPTED": State.PREEMPTED,
}
"""Slurm's states (squeue(1), "JOB STATE CODES") as ours; any other is UNKNOWN.

So is REVOKED, of a federation: another of its clusters runs the job, or this one may again."""
