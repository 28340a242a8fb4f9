"""The reasons that `diagnose` finds in the log of a failed run."""

from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import Diagnosis, RunEnd
from lumitui.remote.scheduler.scheduler_protocol import State


def why(
    log: str,
    *,
    rc: int | None = 1,
    rank: int | None = None,
    world_size: int | None = None,
    spec: JobSpec | None = None,
) -> list[Diagnosis]:
    """Return the reasons for a run that ended with code `rc`; `rank` failed first, if known."""
    return diagnose(
        RunEnd(State.FAILED, "FAILED", "", rc, rank, log, spec=spec, world_size=world_size)
    )
