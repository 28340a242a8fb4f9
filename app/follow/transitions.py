"""Changes to each run from a poll: the scheduler's state and the run's files. Pure.

The scheduler's state decides. squeue's NODE_FAIL and PREEMPTED end a run immediately: if Slurm
requeues the job, it writes such a state to accounting and makes the job PENDING in one step, under
the lock that squeue waits for (seen with 22.05, test_true_ends.py).
"""

import time

from lumitui.app.history.run import Changes, Run, merged
from lumitui.remote.scheduler.scheduler_protocol import (
    ExitFile,
    JobStatus,
    NewRunFiles,
    Poll,
    State,
    Watch,
)
from lumitui.remote.site.states import BY_YOU

ACCOUNTING_SECONDS = 600.0
"""Seconds to wait for accounting once a job that a signal ended has left the queue: the reason may
be the time limit, memory or a cancel. slurmctld keeps the records that slurmdbd cannot accept
yet."""
_NOBODY = "accounting does not list it"
"""Part of the run's reason, where `nobody_knows` finds it: existing histories have it."""
_UNBEGUN = "before it started"
STALE_SECONDS = 5.0
"""An exit file so much older than the job's start is an earlier attempt's; clocks of nodes
differ by less, and a requeued job waits for longer (AuthInfo=cred_expire, 120 s by default)."""


HANG_SECONDS = 180.0
"""Seconds after which a hang report is out of date: it is repeated every few seconds during a
hang."""


def watch_of(run: Run) -> Watch:
    """Return the query for a run that has a job."""
    return Watch(
        run=run.id,
        folder=run.folder,
        job_id=run.job_id or "",
        token=run.token,
        metrics_offset=max(0, run.metrics_offset),
        has_binding=run.binding is not None,
        attempt=run.attempt,
        exits=run.exits,
        attempts_read=run.attempts_read,
    )


def nobody_knows(run: Run) -> bool:
    """Return whether neither the queue nor accounting listed the job at the last poll."""
    return run.state is State.UNKNOWN and run.job_id is not None and _NOBODY in run.reason


def is_over(ended: float | None, clock: float | None) -> bool:
    """Return whether the wait for accounting since `ended` is over, by the site's `clock`."""
    return ended is not None and clock is not None and clock - ended > ACCOUNTING_SECONDS


def transition(run: Run, poll: Poll, now: float) -> Changes:
    """Return the changes to `run` from a poll's answer; {} if the answer does not mention it."""
    changes: Changes = {}
    files = poll.files.get(run.id, NewRunFiles())
    attempt = max(run.attempt, *files.log_sizes, *(item.attempt for item in files.exits), 1)
    if files.log_sizes:
        changes["log_sizes"] = dict(files.log_sizes)
    if files.gpu_use is not None and files.gpu_use != run.gpu_use:
        changes["gpu_use"] = files.gpu_use
    if files.attempts:
        changes["attempts"] = merged(run.attempts, files.attempts)
        changes["attempts_read"] = run.attempts_read + len(files.attempts)
    if attempt != run.attempt:
        changes["attempt"] = attempt
    if files.binding is not None or attempt > run.attempt:
        # A later attempt may get other nodes, so the previous attempt's proof does not apply.
        changes["binding"] = files.binding
    if files.claim:
        # The submit command created two jobs, and this one trains: the known job ends at its first
        # line. The next poll queries the job that has the claim.
        return changes | {"job_id": files.claim}
    job = poll.jobs.get(run.id)
    exit_file = _exit_file(run, files, attempt, job)
    # The newest exit file is read again until it has decided how the run ended.
    last_exit = max((item.attempt for item in files.exits if item != exit_file), default=run.exits)
    if job is not None and (job.state.is_final or run.id not in poll.gone):
        changes |= _from_job(run, job, exit_file)
        if changes["reason"] == _UNBEGUN and (begun := _attempts_begun(run, files)):
            changes["reason"] = f"before attempt {begun + 1} started"
        if changes["state"] is State.RUNNING and (hang := _hang(files, poll.clock)):
            changes["reason"] = hang
    elif run.id in poll.gone:
        changes |= _vanished(run, job, exit_file, poll, files)
    state = changes.get("state")
    if state is not None and state is not State.UNKNOWN:
        changes["updated"] = now
    if state is not None and state.is_final and exit_file is not None:
        last_exit = exit_file.attempt
    if last_exit != run.exits:
        changes["exits"] = last_exit
    return changes


def _attempts_begun(run: Run, files: NewRunFiles) -> int:
    """Return the number of attempts that left a trace; 0 if none is known to have begun."""
    records = merged(run.attempts, files.attempts)
    ended = (item.attempt for item in files.exits)
    return max(
        run.exits, *ended, *(item.number for item in records), *files.log_sizes, *run.log_sizes, 0
    )


def _exit_file(
    run: Run, files: NewRunFiles, attempt: int, job: JobStatus | None
) -> ExitFile | None:
    """Return the exit file of the current attempt: an earlier attempt may have left another."""
    for item in files.exits:
        started = job.started if job is not None and job.state.is_final else None
        stale = started is not None and item.ended < started - STALE_SECONDS
        if item.attempt == attempt and item.job_id in ("", run.job_id) and not stale:
            return item
    return None


def _hang(files: NewRunFiles, clock: float | None) -> str:
    """Return the sentence about a hung rank; '' if nothing hangs any more."""
    if files.hang is None:
        return ""
    at = files.hang.said
    old = clock is not None and at is not None and clock - at > HANG_SECONDS
    return "" if old else files.hang.sentence


def _from_job(run: Run, job: JobStatus, exit_file: ExitFile | None) -> Changes:
    """Return the changes from the scheduler's state, with details from the exit file."""
    state, reason = job.state, job.reason
    waits = state is State.QUEUED
    never_ran = state.is_final and not job.nodes
    if state is State.CANCELLED and never_ran:
        # squeue still shows why the job waited, such as Priority, which does not explain its end.
        reason = _UNBEGUN
    elif run.reason == BY_YOU and (state is State.CANCELLED or not state.is_final):
        # squeue does not say who cancelled it.
        reason = BY_YOU
    elif state is State.FAILED and exit_file is not None and exit_file.oom:
        # A step that ran out of memory does not make its job OUT_OF_MEMORY.
        state, reason = State.OUT_OF_MEMORY, f"srun: task {exit_file.rank} ran out of memory"
    changes: Changes = {
        "state": state,
        "word": job.word,
        "reason": reason,
        "nodes_used": "" if waits or never_ran else job.nodes or run.nodes_used,
        "started": None if waits or never_ran else job.started,
        "ended": None,
        "expected_start": job.started if waits else None,
        "expected_end": None if state.is_final else job.ended,
        "rc": None,
        "failed_rank": None,
    }
    if job.submitted is not None:
        changes["submitted"] = job.submitted
    if state.is_final:
        # Cancelled while requeued: the exit file is the previous attempt's.
        unbegun = state is State.CANCELLED and never_ran
        changes |= _end(state, None if unbegun else exit_file)
        changes["ended"] = job.ended or changes.get("ended")
    if state is State.FAILED and exit_file is None:
        code = job.exit_code.partition(":")[0]
        right = code.isascii() and code.isdecimal() and len(code) < 10 and int(code)
        changes["rc"] = int(code) if right else None
    return changes


def _end(state: State, exit_file: ExitFile | None) -> Changes:
    if exit_file is None:
        return {"rc": 0 if state is State.DONE else None}
    if state is State.DONE:
        return {"rc": 0, "ended": exit_file.ended}
    return {"rc": exit_file.rc, "failed_rank": exit_file.rank, "ended": exit_file.ended}


def _vanished(
    run: Run,
    job: JobStatus | None,
    exit_file: ExitFile | None,
    poll: Poll,
    files: NewRunFiles,
) -> Changes:
    """Return the changes to a run whose job has left the queue.

    Accounting does not list it either, lags behind (`job`), or cannot be queried.
    """
    if poll.silent:
        why = f"accounting cannot be queried ({poll.silent.splitlines()[0]})"
    elif job is not None:
        why = f"accounting still reports {job.word}"
    else:
        why = _NOBODY
    changes: Changes = {}
    if job is not None and job.word == "REQUEUED" and is_over(job.ended, poll.clock):
        # Cancelled just before its last attempt ended: no other row follows (22.05).
        reason = "it left the queue while it was requeued"
        return {"state": State.CANCELLED, "word": job.word, "reason": reason, "ended": job.ended}
    if job is not None and job.started is not None and job.state is not State.QUEUED:
        changes = {"started": job.started, "nodes_used": job.nodes or run.nodes_used}
    if exit_file is not None:
        if exit_file.rc < 128 or is_over(exit_file.ended, poll.clock):
            state = State.DONE if exit_file.rc == 0 else State.FAILED
            if exit_file.oom:
                state = State.OUT_OF_MEMORY
            return changes | {
                "state": state,
                "word": "",
                "started": changes.get("started") or run.started or exit_file.started,
                "reason": f"from the exit file: {why}",
                **_end(state, exit_file),
            }
        why += f"; a signal ended the program (exit code {exit_file.rc})"
    if files.missing:
        why += "; its folder no longer exists"
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.updated or run.created))
    reason = f"unknown since {since}: the job left the queue; {why}"
    return changes | {"state": State.UNKNOWN, "reason": reason}
