"""Settles a submission: reads the evidence, and records the outcome in the history."""

import hashlib
import re
import time
from collections.abc import Sequence

from lumitui.app.history.history import History
from lumitui.app.history.run import Changes, Run
from lumitui.remote.scheduler.scheduler_protocol import Answer, Scheduler, State, Submission
from lumitui.remote.site.errors import LinkError, OutcomeUnknown, RefusedError
from lumitui.remote.ssh.prompts import attendance, is_attended

GRACE_SECONDS = 180.0
"""Seconds that a submission without any sign of a job stays open before lumitui voids it: longer
than sbatch's own retries (120 s while the queue is full; MessageTimeout is 10 s by default,
slurm.conf(5))."""


def submission_of(run: Run) -> Submission:
    """Return the identity of the run's submission on the site."""
    digest = hashlib.sha256("".join(run.files.values()).encode()).hexdigest()
    return Submission(run.folder, run.id, run.token, digest)


def asks_the_site(run: Run) -> bool:
    """Return whether only the site knows the outcome of a submission."""
    # `submitted` is written before the request is sent.
    return run.state is not State.SENDING or run.submitted is not None


def settle(run: Run, scheduler: Scheduler) -> Answer:
    """Search for the job of a submission whose reply was lost.

    If the submit step began GRACE_SECONDS ago by the site's clock, and receipt, claim, queue and
    accounting show no job, this takes the claim, so that a job that still appears ends at once.
    The laptop's clock, which may be wrong, does not matter.
    """
    if not asks_the_site(run):
        return Answer(State.NOT_SENT, None, "lumitui stopped before it submitted the job")
    answer = scheduler.settle(submission_of(run), deep=True, void=True, grace=GRACE_SECONDS)
    return answer if answer.hidden_at is None else _hidden(run, answer.hidden_at)


def _hidden(run: Run, clock: float) -> Answer:
    """Judge a run whose folder is missing at `clock` and whose job is unknown.

    A disk may be unavailable for a moment. The run keeps the time when the folder was first
    missing, because another process may poll next.
    """
    first = run.missed if run.missed is not None and run.missed <= clock else clock
    if clock >= first + GRACE_SECONDS:
        return Answer(State.NOT_SENT, None, "neither the run's folder nor a job exists")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(first))
    reason = f"the run's folder has been missing since {when} UTC by the site's clock"
    return Answer(State.UNKNOWN, None, reason, hidden_at=first)


def settle_now(run: Run, scheduler: Scheduler, message: str, pauses: Sequence[float]) -> Answer:
    """Search for the job after each of `pauses` (seconds) until the outcome is known.

    Otherwise the outcome stays unknown, with the reason `message`, and a later refresh settles it.
    """
    for pause in pauses:
        time.sleep(pause)
        try:
            with attendance(is_attended() and not pause):  # do not repeat a declined prompt
                answer = scheduler.settle(submission_of(run), deep=False, void=False)
        except LinkError:
            continue
        if answer.state is not State.UNKNOWN:
            return answer
    return Answer(State.UNKNOWN, None, message)


def record(run: Run, answer: Answer, history: History) -> Run:
    """Record the outcome of a submission in the history, and return the updated run.

    Raises:
        RefusedError: there is certainly no job.
        OutcomeUnknown: there may be a job.
    """
    now = time.time()
    changes: Changes = {"state": answer.state, "reason": answer.message, "updated": now}
    if answer.hidden_at != run.missed:
        changes["missed"] = answer.hidden_at
    if answer.job_id is not None:
        changes |= {"job_id": answer.job_id, "submitted": now, "reason": ""}
    history.update(run.id, **changes)
    if answer.state is State.REFUSED:
        message = f"The scheduler refused the job: {answer.message}"
        raise RefusedError(message, scheduler_hint(answer.message))
    reason = answer.message.rstrip(".") or "no reply"
    if answer.state is State.NOT_SENT:
        raise RefusedError(f"No job was created: {reason}.", "Submit it again.")
    if answer.state is State.UNKNOWN:
        raise OutcomeUnknown(
            f"It is still unknown whether {run.id} became a job: {reason}.",
            "Do not submit it again until `lumitui status` shows the outcome.",
        )
    return history.get(run.id)


# -- hints for a run that a site or its scheduler refused

_NO_ACCESS = re.compile("permission denied|no such file", re.IGNORECASE)


def scheduler_hint(message: str) -> str:
    """Return a hint for sbatch's error (sources: LUMI's error messages; sbatch(1))."""
    for pattern, hint in _HINTS:
        if re.search(pattern, message, re.IGNORECASE):
            return hint
    return "Correct the job file, and submit again."


def membership_hint(message: str, run: Run) -> str | None:
    """Return a hint if the user may have no access to the account's folder.

    `message` is the site's answer to the creation of the folder of `run`.
    """
    account = run.spec.account
    if not _NO_ACCESS.search(message) or account not in run.root.split("/"):
        return None
    return (
        f"Are you a member of {account}? Check `account:` in the job file; "
        f"`lumitui site check {run.site} --account {account}` checks its folder."
    )


_HINTS = (
    (
        r"invalid account|account/partition combination",
        "Check `account:`: the project may be wrong, expired, or out of GPU-hours.",
    ),
    (
        r"QOSMax\w*PerJob",
        "One job may not request that much there: `lumitui site show` lists the limits of each "
        "partition, such as GPUs per job.",
    ),
    (
        r"accounting/QOS policy|AssocMaxSubmit|QOSMaxSubmit",
        "The account has no hours left, or too many of your jobs are waiting; see `lumitui "
        "status`.",
    ),
    (
        r"sleeping and retrying|Resource temporarily unavailable",
        "The site's queue was full for two minutes. Submit it again later.",
    ),
    (r"time limit|TimeLimit", "Request less time, or use another partition."),
    (r"partition", "Check `partition:`; `lumitui site show` lists the partitions."),
    (
        r"node configuration is not available|gres|more processors|CPU count",
        "Request only what a node has: `lumitui site show` shows its GPUs, cores and memory.",
    ),
)
