"""What is known of a run's end: from the history, and from the end of its log on the site."""

from collections.abc import Callable

from lumitui.app.explain.diagnose import STOPPED_EARLY, Ending
from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.remote.errors import RefusedError

LOG_BYTES = 200_000
"""Bytes of the log's end: the tracebacks of many ranks, and what was written before them."""


def ending_of(run: Run, history: History, read_log: Callable[[int], tuple[int, bytes]]) -> Ending:
    """Return what is known of the end of `run`; `read_log` returns the last bytes of its log.

    Raises:
        LinkError: `read_log` could not reach the site.
    """
    log = ""
    if run.job_id is not None:
        try:
            log = read_log(LOG_BYTES)[1].decode("utf-8", "replace")
        except RefusedError:
            log = ""  # the job ended before it wrote any
    # torchrun loses the trainer's own exit code: the last event that it wrote says the same.
    stopped = run.spec.trainer is not None and any(
        point.event == "stop" for point in history.metrics.of(run.id, last=1)
    )
    return Ending(
        state=run.state,
        word=run.word,
        reason=run.reason,
        rc=STOPPED_EARLY if stopped and run.rc else run.rc,
        failed_rank=run.failed_rank,
        log=log,
        spec=run.spec,
        world_size=run.layout.world_size,
    )
