"""What is known of a run's end: from the history, and from the end of its log on the site."""

import contextlib

from lumitui.app.follow.log_follower import read_end
from lumitui.app.follow.refresh import Watcher
from lumitui.app.history.run import Run
from lumitui.app.knowledge.failure.diagnose import STOPPED_EARLY
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.site.errors import RefusedError

LOG_BYTES = 200_000
"""Bytes of the log's end: the tracebacks of many ranks, and what was written before them."""


def ending_of(watcher: Watcher, run: Run) -> RunEnd:
    """Return what is known of the end of `run`; its site is asked for the log of a job.

    Raises:
        LinkError: the site cannot be reached.
    """
    log, offset = "", 0
    if run.job_id is not None:
        transport = watcher.connection(run.site).transport
        # A job that ended before it wrote any has no log.
        with contextlib.suppress(RefusedError):
            offset, end = read_end(transport, run, None, LOG_BYTES)
            log = end.decode("utf-8", "replace")
    # torchrun loses the trainer's own exit code: the last event that it wrote says the same.
    stopped = run.spec.trainer is not None and any(
        point.event == "stop" for point in watcher.history.metrics.of(run.id, last=1)
    )
    return RunEnd(
        state=run.state,
        word=run.word,
        reason=run.reason,
        rc=STOPPED_EARLY if stopped and run.rc else run.rc,
        failed_rank=run.failed_rank,
        log=log,
        before=None if offset else 0,
        spec=run.spec,
        world_size=run.layout.world_size,
        chain_end=run.attempts[-1].end if run.attempts else "",
    )
