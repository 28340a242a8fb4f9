"""What became of a submission: the evidence for it is read, and history gets the outcome."""

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
"""How long a submission without any sign of a job stays open before it is voided: longer than
sbatch's own retries (120 s while the queue is full; MessageTimeout is 10 s by default,
slurm.conf(5))."""


def submission_of(run: Run) -> Submission:
    """Return what identifies the run's submission on the site."""
    digest = hashlib.sha256("".join(run.files.values()).encode()).hexdigest()
    return Submission(run.folder, run.id, run.token, digest)


def asks_the_site(run: Run) -> bool:
    """Return whether only the site knows what became of a submission."""
    # `submitted` is written before the request leaves.
    return run.state is not State.SENDING or run.submitted is not None


def settle(run: Run, scheduler: Scheduler) -> Answer:
    """Look for the job of a submission whose reply was lost.

    Only when the submit step began GRACE_SECONDS ago by the site's clock, with no sign of a job in
    receipt, claim, queue and accounting, is the claim taken, so that a job that still appears ends
    at once. The laptop's clock, which may be wrong, decides nothing.
    """
    if not asks_the_site(run):
        return Answer(State.NOT_SENT, None, "sending ended before the job was submitted")
    answer = scheduler.settle(submission_of(run), deep=True, void=True, grace=GRACE_SECONDS)
    return answer if answer.hidden_at is None else _hidden(run, answer.hidden_at)


def _hidden(run: Run, clock: float) -> Answer:
    """Judge a folder that is out of sight at `clock` and whose job nobody knows.

    A disk may be away for a moment. When it was first missed is kept with the run, because the next
    poll may be another process's.
    """
    first = run.missed if run.missed is not None and run.missed <= clock else clock
    if clock >= first + GRACE_SECONDS:
        return Answer(State.NOT_SENT, None, "neither the run's folder nor a job exists")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(first))
    words = f"the run's folder is not there; it was first missed at {when} UTC by the site's clock"
    return Answer(State.UNKNOWN, None, words, hidden_at=first)


def settle_now(run: Run, scheduler: Scheduler, message: str, pauses: Sequence[float]) -> Answer:
    """Look for the job at once, after each of `pauses` in seconds, until it is settled.

    What this leaves open, with `message` as its reason, is settled by a later refresh.
    """
    for pause in pauses:
        time.sleep(pause)
        try:
            with attendance(is_attended() and not pause):  # a declined question is not put again
                answer = scheduler.settle(submission_of(run), deep=False, void=False)
        except LinkError:
            continue
        if answer.state is not State.UNKNOWN:
            return answer
    return Answer(State.UNKNOWN, None, message)


def record(run: Run, answer: Answer, history: History) -> Run:
    """Write what became of a submission to history, and return the run as it is then.

    Raises:
        RefusedError: there is certainly no job.
        OutcomeUnknown: there may be one.
    """
    now = time.time()
    changes: Changes = {"state": answer.state, "reason": answer.message, "updated": now}
    if answer.hidden_at != run.missed:
        changes["missed"] = answer.hidden_at
    if answer.job_id is not None:
        changes |= {"job_id": answer.job_id, "submitted": now, "reason": ""}
    history.update(run.id, **changes)
    if answer.state is State.REFUSED:
        words = f"The scheduler refused the job: {answer.message}"
        raise RefusedError(words, scheduler_hint(answer.message))
    if answer.state is State.NOT_SENT:
        raise RefusedError(f"No job was created: {answer.message}.", "Submit it again.")
    if answer.state is State.UNKNOWN:
        raise OutcomeUnknown(
            f"It is not known yet whether {run.id} became a job: {answer.message or 'no reply'}.",
            "`lumitui status` settles it; until then, do not submit it again.",
        )
    return history.get(run.id)


# -- what a user can try when a site or its scheduler refused a run

_NO_ACCESS = re.compile("permission denied|no such file", re.IGNORECASE)


def scheduler_hint(message: str) -> str:
    """Return what to try after sbatch's words (facts: LUMI error messages; sbatch(1))."""
    for pattern, hint in _HINTS:
        if re.search(pattern, message, re.IGNORECASE):
            return hint
    return "Fix what the message names in the job file, and submit again."


def membership_hint(message: str, run: Run) -> str | None:
    """Return what to try when the account's folder may be closed to the user; None: it is not.

    `message` is what the site answered when the folder of `run` was made.
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
        "Check `account:`: the project may be wrong, ended, or without GPU-hours.",
    ),
    (
        r"accounting/QOS policy|AssocMaxSubmit|QOSMaxSubmit",
        "The account has no hours left, or too many of your jobs wait; see `lumitui status`.",
    ),
    (
        r"sleeping and retrying|Resource temporarily unavailable",
        "The site's queue is full, also after two minutes of tries. Submit it again later.",
    ),
    (r"time limit|TimeLimit", "Ask for less time, or another partition."),
    (r"partition", "Check `partition:`; `lumitui site show` lists them."),
    (
        r"node configuration is not available|gres|more processors|CPU count",
        "Ask for what a node has: `lumitui site show` shows its GPUs, cores and memory.",
    ),
)
