"""What a run is the only one of, named alike in each copy of a history."""

import hashlib
import platform
from collections.abc import Sequence

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.launch.send.shipment import Shipment
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.scale.series_words import NEVER_A_JOB
from lumitui.remote.transfer.snapshots.once_mark import Once


def once_of(
    shipment: Shipment,
    resubmission: Resubmission | None,
    history: History,
    place: str,
    tried: Sequence[str],
) -> Once | None:
    """Return what the shipment's run is the only one of; None: it may be sent as often as wanted.

    `place` is its place in a series, which this or another laptop sent before as the runs `tried`.
    A resubmission is the first, second … that a history knows of its parent with the same job file
    and code: a user may want a second one, and another laptop's copy knows as many.
    """
    keys, gone = [place] if place else [], list(tried)
    if resubmission is not None:
        parent = resubmission.plan.parent
        again = [run for run in history.lineage(parent.id) if run.parent == parent.id]
        again = [run for run in again if _same(run, shipment)]
        like = [run for run in again if run.state not in NEVER_A_JOB]
        # Of a copy that was made while they were sent, the site knows more.
        gone += [run.id for run in (parent, *again) if run.job_id is None]
        made_of = f"{_job(shipment.run)} {shipment.snapshot} {resubmission.plan.start}"
        digest = hashlib.sha256(made_of.encode()).hexdigest()
        keys.append(f"{parent.id}-{digest[:12]}-{len(like) + 1}")
    if not keys:
        return None
    unique = tuple(dict.fromkeys(gone))
    return Once(tuple(keys), unique, shipment.run.id, platform.node().partition(".")[0])


def _same(run: Run, shipment: Shipment) -> bool:
    return run.snapshot == shipment.snapshot and _job(run) == _job(shipment.run)


def _job(run: Run) -> str:
    return run.spec.model_dump_json(exclude_defaults=True)
