"""Keys that let only one laptop send a run; all copies of a history compute the same keys."""

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
    """Return the mark that makes the shipment's run unique; None if it may be sent repeatedly.

    `place` is the run's place in a series; this or another laptop may have sent it as the runs
    `tried`. A resubmission is identified by its number among its parent's resubmissions with the
    same job file and code: a user may want a second one, and another laptop's copy of the history
    yields the same number.
    """
    keys, dead = [place] if place else [], list(tried)
    if resubmission is not None:
        parent = resubmission.plan.parent
        again = [run for run in history.lineage(parent.id) if run.parent == parent.id]
        job, snapshot = _job(shipment.run), shipment.snapshot
        again = [run for run in again if (_job(run), run.snapshot) == (job, snapshot)]
        jobs = [run for run in again if run.state not in NEVER_A_JOB]
        # A history copied during a send lacks job ids that the site knows.
        dead += [run.id for run in (parent, *again) if run.job_id is None]
        identity = f"{job} {snapshot} {resubmission.plan.start}"
        digest = hashlib.sha256(identity.encode()).hexdigest()
        keys.append(f"{parent.id}-{digest[:12]}-{len(jobs) + 1}")
    if not keys:
        return None
    unique = tuple(dict.fromkeys(dead))
    return Once(tuple(keys), unique, shipment.run.id, platform.node().partition(".")[0])


def _job(run: Run) -> str:
    return run.spec.model_dump_json(exclude_defaults=True)
