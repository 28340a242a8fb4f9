"""Turns a shipment into a job, exactly once: the steps of a send."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.launch.send.settle import membership_hint, record, settle_now, submission_of
from lumitui.app.launch.send.shipment import Shipment, folder_plan
from lumitui.app.launch.send.staging_plan import ship
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import Scheduler, State
from lumitui.remote.site.errors import (
    HistoryError,
    InputError,
    LinkError,
    LinkLost,
    OutcomeUnknown,
    RefusedError,
)
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import source_of
from lumitui.remote.transfer.environments.venvs import build
from lumitui.remote.transfer.snapshots.once_mark import AlreadySent
from lumitui.remote.transfer.snapshots.prepare import SnapshotGone, prepare
from lumitui.remote.transfer.snapshots.snapshot_store import sync
from lumitui.remote.transport.transport import Transport

SEND_STEPS = ("begin", "sync", "prepare", "submit", "record")
"""The steps of a send, in order. Before `submit` there is certainly no job."""

_SEND_AGAIN = "Send it again when the site answers."

_LATE_SECONDS = 10.0
_LATE = "no answer yet; while the site's queue is full, sbatch retries for up to two minutes"

Report = Callable[[str, str], None]
"""Called with the name of each new step, and a text for the user."""


def send(
    shipment: Shipment,
    connection: Connection,
    history: History,
    report: Report = lambda step, words: None,
    last_check: Callable[[], None] = lambda: None,
) -> Run:
    """Submit the shipment's run as a job, and return the updated run.

    An upload may take hours, so `last_check` may still raise an InputError just before the submit
    step. If the reply of the submit step is lost, lumitui reads the evidence at once; a run whose
    outcome it cannot settle stays UNKNOWN in the history.

    Raises:
        AlreadySent: another laptop has sent this run.
        RefusedError: the site refused; there is certainly no job.
        InputError: the code changed, or cannot be sent; there is certainly no job.
        LinkError: the connection was lost before the submit step; there is certainly no job.
        OutcomeUnknown: there may be a job; a later refresh settles it.
        HistoryError: the history cannot be written; there is certainly no job.
    """
    report("begin", "writing history")
    # Recorded before the snapshot is on the site, so that no prune removes it.
    history.begin(replace(shipment.run, snapshot=shipment.snapshot))
    with _without_a_job(shipment.run, history):
        staged = ship(shipment.staging, connection, lambda words: report("sync", words))
        run = _with_code(shipment, connection.transport, history, report)
    with _without_a_job(run, history):
        try:
            continues = _prepare(shipment, run, staged, connection.transport, report)
        except SnapshotGone:
            # Another machine pruned the snapshot, since its history lacks this run.
            if isinstance(shipment.code, str):
                raise
            run = _with_code(shipment, connection.transport, history, report)
            continues = _prepare(shipment, run, staged, connection.transport, report)
        if not continues and run.resumed_from is not None:
            run = replace(run, resumed_from=None)
            history.update(run.id, resumed_from=None)
        last_check()
    history.update(run.id, submitted=time.time())
    try:
        return _submit(run, connection.scheduler, history, report)
    except HistoryError as error:
        raise OutcomeUnknown(
            f"{run.id} was submitted, but the history could not record it: {error.message}",
            f"{error.hint} Then `lumitui status` finds the job; do not submit it again before "
            "that.",
        ) from error


@contextmanager
def _without_a_job(run: Run, history: History) -> Iterator[None]:
    """Record in the history if a step fails before the run could become a job."""
    try:
        yield
    except (LinkError, InputError, RefusedError) as error:
        # The site did not refuse if this laptop did, or if another laptop has sent the run.
        refused = isinstance(error, RefusedError) and not isinstance(error, AlreadySent)
        state, words = State.REFUSED if refused else State.NOT_SENT, error.message
        history.update(run.id, state=state, reason=words, snapshot=run.snapshot)
        if isinstance(error, LinkError):
            # The lost request cannot have created a job.
            advice = _SEND_AGAIN if isinstance(error, LinkLost) else error.hint
            raise type(error)(f"{words} No job was submitted.", advice) from error
        if refused and (hint := membership_hint(words, run)):
            raise RefusedError(words, hint) from error
        raise


def _prepare(
    shipment: Shipment, run: Run, staged: Mapping[str, str], transport: Transport, report: Report
) -> bool:
    """Create the run's folder, and the environment of `venv:` if the login host builds it.

    Return whether the run continues from a checkpoint.
    """
    report("prepare", "creating the run's folder")
    continues = prepare(transport, folder_plan(replace(shipment, run=run), staged))
    if (seconds := shipment.login_build_seconds) is not None:
        report("prepare", "checking the `venv:` environment")
        build(transport, run.folder, seconds, lambda words: report("prepare", words))
    return continues


def _submit(run: Run, scheduler: Scheduler, history: History, report: Report) -> Run:
    report("submit", "submitting")
    late = threading.Timer(_LATE_SECONDS, report, ("submit", _LATE))
    late.daemon = True
    late.start()
    try:
        answer = scheduler.submit(submission_of(run))
    except LinkError as error:
        history.update(run.id, state=State.UNKNOWN, reason="the reply to the submission was lost")
        answer = settle_now(run, scheduler, error.message, (0.0, 2.0))
    else:
        if answer.state is State.UNKNOWN:
            # The queue does not answer, or does not list the new job yet: it may exist.
            answer = settle_now(run, scheduler, answer.message, (0.0, 2.0))
    finally:
        late.cancel()
    report("record", "")
    return record(run, answer, history)


def _with_code(shipment: Shipment, transport: Transport, history: History, report: Report) -> Run:
    """Upload the code unless the site has it; return the run with its snapshot."""
    run, code = shipment.run, shipment.code
    report("sync", "sending the code")
    if isinstance(code, str):
        return replace(run, snapshot=code)
    where, target = source_of(code.root, code.extra), f"{run.root}/code"
    text = history.snapshots.manifest(run.site, run.root)
    synced = sync(transport, target, code.manifest, where, Manifest.parse(text) if text else None)
    history.snapshots.remember(run.site, run.root, code.manifest.text, code.manifest.id)
    return replace(run, snapshot=synced.id)
