"""From a launch to a job, exactly once: the steps of a send, and what settles a lost reply."""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lumitui.app.history.history import History
from lumitui.app.history.run import Changes, Run
from lumitui.app.job.launch import Launch
from lumitui.app.send.run_folder import folder_plan
from lumitui.app.send.source import Code
from lumitui.remote.errors import HistoryError, InputError, LinkError, OutcomeUnknown, RefusedError
from lumitui.remote.scheduler.protocol import Answer, Scheduler, State, Submission
from lumitui.remote.snapshots.archive import sync_archive
from lumitui.remote.snapshots.prepare import SnapshotGone, prepare
from lumitui.remote.snapshots.upload import sync
from lumitui.remote.source.manifest import Manifest, source_of
from lumitui.remote.ssh.prompts import attendance, is_attended
from lumitui.remote.transport.protocol import Transport

STEPS = ("begin", "sync", "prepare", "submit", "record")
"""The steps of a send, in order. Up to and without `submit` there is certainly no job."""

GRACE_SECONDS = 120.0
"""How long a submission without any sign of a job stays open before it is voided: longer than
sbatch's own retries (MessageTimeout is 10 s by default, slurm.conf(5))."""

Report = Callable[[str, str], None]
"""Called with the name of the step that begins, and a few words for the person."""


def new_id(name: str) -> str:
    """Return a run's id: the job's name as a slug, and six random digits; unique for good."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-") or "run"
    return f"{slug}-{secrets.token_hex(3)}"


def submission_of(run: Run) -> Submission:
    """Return what identifies the run's submission on the site."""
    digest = hashlib.sha256(run.script.encode()).hexdigest()
    return Submission(run.folder, run.id, run.token, digest)


def send(
    run: Run,
    launch: Launch,
    code: Code | str,
    *,
    history: History,
    transport: Transport,
    scheduler: Scheduler,
    secret_values: Mapping[str, str],
    checkpoints_from: str | None = None,
    checkpoints_needed: bool = True,
    report: Report = lambda step, words: None,
) -> Run:
    """Make `run` a job, and return it as it is then.

    `code` is what to ship, or the id of a snapshot that is already there. The reply of the
    submit step may be lost; then the evidence is looked at at once, and what it cannot settle
    stays UNKNOWN in history.

    Raises:
        RefusedError: the site said no; certainly no job.
        LinkError: the link was lost before the submit step; certainly no job.
        OutcomeUnknown: there may be a job; a refresh settles it later.
        HistoryError: the history cannot be written; certainly no job.
    """
    report("begin", "writing history")
    # The snapshot's name is known before it stands there, so that no prune takes it.
    planned = code if isinstance(code, str) else code.manifest.id
    history.begin(replace(run, snapshot=planned))
    tries = 1 if isinstance(code, str) else 2
    try:
        while True:
            report("sync", "sending the code")
            run = replace(run, snapshot=_ship(run, code, history, transport))
            report("prepare", "making the run's folder")
            try:
                plan = folder_plan(
                    run,
                    launch,
                    secret_values,
                    checkpoints_from,
                    needs_checkpoints=checkpoints_needed,
                )
                continues = prepare(transport, plan)
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
        raise type(error)(f"{words} No job was submitted.", error.hint) from error
    except (RefusedError, InputError) as error:
        words = error.message
        history.update(run.id, state=State.REFUSED, reason=words, snapshot=run.snapshot)
        if _NO_ACCESS.search(words) and run.spec.account in run.root.split("/"):
            raise RefusedError(words, membership_hint(run.site, run.spec.account)) from error
        raise
    history.update(run.id, submitted=time.time())
    try:
        return _submit(run, history, scheduler, report)
    except HistoryError as error:
        raise OutcomeUnknown(
            f"{run.id} was submitted, and that could not be written down: {error.message}",
            f"{error.hint} `lumitui status` finds the job then; do not submit it again before.",
        ) from error


def record(run: Run, answer: Answer, history: History) -> Run:
    """Write what became of a submission, and raise what a person must be told."""
    now = time.time()
    changes: Changes = {"state": answer.state, "reason": answer.message, "updated": now}
    if answer.job_id is not None:
        changes |= {"job_id": answer.job_id, "submitted": now, "reason": ""}
    history.update(run.id, **changes)
    if answer.state is State.REFUSED:
        words = f"The scheduler refused the job: {answer.message}"
        raise RefusedError(words, hint_for(answer.message))
    if answer.state is State.NOT_SENT:
        raise RefusedError(f"No job was created: {answer.message}.", "Submit it again.")
    if answer.state is State.UNKNOWN:
        raise OutcomeUnknown(
            f"Whether {run.id} became a job is not known yet: {answer.message or 'no reply'}.",
            "`lumitui status` settles it; do not submit it again before.",
        )
    return history.get(run.id)


def settle(run: Run, scheduler: Scheduler, now: float) -> Answer:
    """Look for the job of a submission whose reply was lost.

    Only when GRACE_SECONDS have passed, with no sign of a job in receipt, claim, queue and
    accounting, is the claim taken, so that a job that still appears ends at once.
    """
    if run.state is State.SENDING and run.submitted is None:
        # Written before the request leaves: nobody needs to be asked.
        return Answer(State.NOT_SENT, None, "sending ended before the job was submitted")
    old = now - (run.submitted or run.created) > GRACE_SECONDS
    return scheduler.settle(submission_of(run), deep=old, void=old, grace=GRACE_SECONDS)


_NO_ACCESS = re.compile("permission denied|no such file", re.IGNORECASE)


def membership_hint(site: str, account: str) -> str:
    """Return what to try when the folder of an account cannot be written to."""
    return (
        f"Are you a member of {account}? Check `account:` in the job file; "
        f"`lumitui doctor {site} --account {account}` looks at its folder."
    )


def hint_for(message: str) -> str:
    """Return what to try after sbatch's words (facts: LUMI error messages; sbatch(1))."""
    for pattern, hint in _HINTS:
        if re.search(pattern, message, re.IGNORECASE):
            return hint
    return "Mend what it names in the job file, and submit again."


_HINTS = (
    (
        r"invalid account|account/partition combination",
        "Check `account:`: the project may be wrong, ended, or without GPU-hours.",
    ),
    (
        r"accounting/QOS policy|AssocMaxSubmit|QOSMaxSubmit",
        "The account has no hours left, or too many of your jobs wait; look at `lumitui status`.",
    ),
    (r"time limit|TimeLimit", "Ask for less time, or another partition."),
    (r"partition", "Check `partition:`; `lumitui sites` lists them."),
    (
        r"node configuration is not available|gres|more processors|CPU count",
        "Ask for what a node has: `lumitui sites` shows its GPUs, cores and memory.",
    ),
)


def _settle_now(run: Run, scheduler: Scheduler, message: str, pauses: Sequence[float]) -> Answer:
    # At once; what this leaves open is a refresh's business.
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


def _submit(run: Run, history: History, scheduler: Scheduler, report: Report) -> Run:
    report("submit", "submitting")
    try:
        answer = scheduler.submit(submission_of(run))
    except LinkError as error:
        history.update(run.id, state=State.UNKNOWN, reason="the reply to the submit was lost")
        answer = _settle_now(run, scheduler, error.message, (0.0, 2.0))
    else:
        if answer.state is State.UNKNOWN:
            # sbatch was killed, or its words could not be written; the job may be there.
            answer = _settle_now(run, scheduler, answer.message, (0.0,))
    report("record", "")
    return record(run, answer, history)


def _ship(run: Run, code: Code | str, history: History, transport: Transport) -> str:
    if isinstance(code, str):
        return code
    where = source_of(code.root, code.extra)
    if run.spec.ship == "archive":
        synced = sync_archive(transport, f"{run.root}/code", code.manifest, where)
        # Nothing builds on an archive, so that its list of files is not kept.
        history.snapshots.remember(run.site, run.root, "", code.manifest.id)
        return synced.id
    known_text = history.snapshots.manifest(run.site, run.root)
    known = Manifest.parse(known_text) if known_text else None
    synced = sync(transport, f"{run.root}/code", code.manifest, where, known)
    history.snapshots.remember(run.site, run.root, code.manifest.text, code.manifest.id)
    return synced.id
