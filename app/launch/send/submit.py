"""From a shipment to a job, exactly once: the steps of a send."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.launch.send.shipment import Shipment
from lumitui.app.launch.send.staging.staging_plan import ship
from lumitui.app.launch.send.submission.folder_contents import folder_plan
from lumitui.app.launch.send.submission.refusal import membership_hint
from lumitui.app.launch.send.submission.settle import record, settle_now, submission_of
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
from lumitui.remote.transfer.environments.build import build
from lumitui.remote.transfer.snapshots.archive import sync_archive
from lumitui.remote.transfer.snapshots.once_mark import AlreadySent
from lumitui.remote.transfer.snapshots.prepare import SnapshotGone, prepare
from lumitui.remote.transfer.snapshots.upload import sync
from lumitui.remote.transport.transport import Transport

SEND_STEPS = ("begin", "sync", "prepare", "submit", "record")
"""The steps of a send, in order. Before `submit` there is certainly no job."""

_SEND_AGAIN = "Send it again when the site answers."

_LATE_SECONDS = 10.0
_LATE = "no answer yet; while the site's queue is full, sbatch tries again for two minutes"

Report = Callable[[str, str], None]
"""Called with the name of the step that begins, and a few words for the user."""


def send(
    shipment: Shipment,
    connection: Connection,
    history: History,
    report: Report = lambda step, words: None,
) -> Run:
    """Make the shipment's run a job, and return the run as it is then.

    The reply of the submit step may be lost: then the evidence is read at once, and a run that
    it cannot settle stays UNKNOWN in history.

    Raises:
        AlreadySent: another laptop has sent this run.
        RefusedError: the site said no; certainly no job.
        InputError: the code could not be sent as it was read; certainly no job.
        LinkError: the link was lost before the submit step; certainly no job.
        OutcomeUnknown: there may be a job; a refresh settles it later.
        HistoryError: the history cannot be written; certainly no job.
    """
    report("begin", "writing history")
    run = shipment.run
    # The snapshot's name is known before it is on the site, so that no prune removes it.
    history.begin(replace(run, snapshot=shipment.snapshot))
    tries = 1 if isinstance(shipment.code, str) else 2
    try:
        staged = ship(shipment.staging, connection, lambda words: report("sync", words))
        while True:
            report("sync", "sending the code")
            run = replace(run, snapshot=_ship(shipment, connection.transport, history))
            report("prepare", "making the run's folder")
            try:
                plan = folder_plan(replace(shipment, run=run), staged)
                continues = prepare(connection.transport, plan)
                _build_environment(shipment, connection.transport, report)
                break
            except SnapshotGone:
                # Another machine's prune came in between: its history does not know this run.
                tries -= 1
                if not tries:
                    raise
        if not continues and run.resumed_from is not None:
            run = replace(run, resumed_from=None)
            history.update(run.id, resumed_from=None)
    except LinkError as error:
        words = error.message
        history.update(run.id, state=State.NOT_SENT, reason=words, snapshot=run.snapshot)
        # The request that was lost made no job, whatever became of it.
        advice = _SEND_AGAIN if isinstance(error, LinkLost) else error.hint
        raise type(error)(f"{words} No job was submitted.", advice) from error
    except InputError as error:
        # It is this laptop that said no: the site refused nothing.
        history.update(run.id, state=State.NOT_SENT, reason=error.message, snapshot=run.snapshot)
        raise
    except AlreadySent as error:
        # Of this run there is no job; of the other laptop's there is one, or will be.
        history.update(run.id, state=State.NOT_SENT, reason=error.message, snapshot=run.snapshot)
        raise
    except RefusedError as error:
        words = error.message
        history.update(run.id, state=State.REFUSED, reason=words, snapshot=run.snapshot)
        if hint := membership_hint(words, run):
            raise RefusedError(words, hint) from error
        raise
    history.update(run.id, submitted=time.time())
    try:
        return _submit(run, connection.scheduler, history, report)
    except HistoryError as error:
        raise OutcomeUnknown(
            f"{run.id} was submitted, but the history could not record it: {error.message}",
            f"{error.hint} `lumitui status` finds the job then; until then, do not submit it "
            "again.",
        ) from error


def _build_environment(shipment: Shipment, transport: Transport, report: Report) -> None:
    """Build what `venv:` asks for, where the site wants that done before the job."""
    if shipment.login_build_seconds is None:
        return
    report("prepare", "looking for the environment of venv:")
    build(
        transport,
        shipment.run.folder,
        shipment.login_build_seconds,
        lambda words: report("prepare", words),
    )


def _submit(run: Run, scheduler: Scheduler, history: History, report: Report) -> Run:
    report("submit", "submitting")
    late = threading.Timer(_LATE_SECONDS, report, ("submit", _LATE))
    late.daemon = True
    late.start()
    try:
        answer = scheduler.submit(submission_of(run))
    except LinkError as error:
        history.update(run.id, state=State.UNKNOWN, reason="the reply to the submit was lost")
        answer = settle_now(run, scheduler, error.message, (0.0, 2.0))
    else:
        if answer.state is State.UNKNOWN:
            # The queue does not answer, or shows a new job late; the job may be there.
            answer = settle_now(run, scheduler, answer.message, (0.0, 2.0))
    finally:
        late.cancel()
    report("record", "")
    return record(run, answer, history)


def _ship(shipment: Shipment, transport: Transport, history: History) -> str:
    """Put the code on the site, unless it is there already; return its snapshot's id."""
    run, code = shipment.run, shipment.code
    if isinstance(code, str):
        return code
    where = source_of(code.root, code.extra)
    if run.spec.ship == "archive":
        synced = sync_archive(transport, f"{run.root}/code", code.manifest, where)
        # Nothing builds on an archive, so its list of files is not kept.
        history.snapshots.remember(run.site, run.root, "", code.manifest.id)
        return synced.id
    known_text = history.snapshots.manifest(run.site, run.root)
    known = Manifest.parse(known_text) if known_text else None
    synced = sync(transport, f"{run.root}/code", code.manifest, where, known)
    history.snapshots.remember(run.site, run.root, code.manifest.text, code.manifest.id)
    return synced.id
