"""What a look at a site means for each run: pure judgement of the scheduler's and files' words."""

from lumitui.app.history import Changes
from lumitui.app.records import Run
from lumitui.remote.scheduler import JobStatus, Poll, RunFiles, State, Watch

REQUEUE_SECONDS = 60.0
"""NODE_FAIL and PREEMPTED are not the end when Slurm requeues the job; it does so at once."""


def watch(run: Run) -> Watch:
    """Return what to ask about a run that has a job."""
    return Watch(
        run=run.id,
        folder=run.folder,
        job_id=run.job_id or "",
        submitted=run.submitted or run.created,
        metrics_offset=run.metrics_offset,
        has_binding=run.binding is not None,
        exits=run.exits,
    )


def judge(run: Run, poll: Poll, now: float) -> Changes:
    """Return what the answer changes for `run`; {} when nothing was learned of it."""
    changes: Changes = {}
    files = poll.files.get(run.id, RunFiles())
    if files.log_sizes:
        changes["log_sizes"] = dict(files.log_sizes)
        changes["attempt"] = max(run.attempt, *files.log_sizes)
    if files.binding is not None:
        changes["binding"] = files.binding
    if files.exits:
        last = files.exits[-1]
        changes |= {"exits": last.attempt, "rc": last.rc, "failed_rank": last.rank}
        changes["attempt"] = max(run.attempt, last.attempt)
    job = poll.jobs.get(run.job_id or "")
    if job is not None:
        changes |= _from_job(run, job, poll, files)
        changes["updated"] = now
    elif not poll.warning:
        changes |= _vanished(run, files)
        changes["updated"] = now
    return changes


def _from_job(run: Run, job: JobStatus, poll: Poll, files: RunFiles) -> Changes:
    state, reason = job.state, job.reason
    if state.is_final and job.word in ("NODE_FAIL", "PREEMPTED"):
        clock = poll.clock or 0.0
        if job.ended is None or clock - job.ended < REQUEUE_SECONDS:
            state, reason = State.FINISHING, f"{job.word}: Slurm may run it again"
    changes: Changes = {
        "state": state,
        "word": job.word,
        "reason": reason,
        "nodes_used": job.nodes or run.nodes_used,
    }
    if job.submitted is not None:
        changes["submitted"] = job.submitted
    if job.started is not None and state is not State.QUEUED:
        changes["started"] = job.started
    if state.is_final and job.ended is not None:
        changes["ended"] = job.ended
    if state is State.DONE:
        changes["rc"] = 0
    elif state is State.FAILED and not files.exits and run.rc is None and job.exit_code:
        code = job.exit_code.partition(":")[0]
        if code.isascii() and code.isdecimal() and len(code) < 10:
            changes["rc"] = int(code)
    return changes


def _vanished(run: Run, files: RunFiles) -> Changes:
    """The scheduler was asked and knows nothing of the job: the exit file may."""
    rc = files.exits[-1].rc if files.exits else run.rc
    ended = files.exits[-1].ended if files.exits else None
    if rc is not None and (files.exits or run.exits):
        changes: Changes = {"state": State.DONE if rc == 0 else State.FAILED}
        changes["reason"] = "from the exit file; accounting does not know the job"
        if ended is not None:
            changes["ended"] = ended
        return changes
    words = "the job left the queue, and accounting does not know it yet"
    if files.missing:
        words = "neither the job nor its folder is there any more"
    return {"state": State.UNKNOWN, "reason": words}
