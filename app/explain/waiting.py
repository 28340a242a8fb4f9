"""Why a run waits, and when it starts and ends, in words. Pure.

The reasons are Slurm's (squeue(1), "JOB REASON CODES"; slurm.schedmd.com/job_reason_codes.html).
"""

from collections.abc import Iterable

from lumitui.app.explain.words import ahead, count, heard, length, reason, scheduler_reason, seen
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

REASONS = {
    "None": "the scheduler has not considered it yet",
    "Resources": "it waits for free nodes and is next in line",
    "Priority": "jobs with a higher priority wait for the same nodes",
    "Dependency": "it waits for another job to end",
    "DependencyNeverSatisfied": "the job it waits for did not end as required: cancel it",
    "BeginTime": "its start time has not come yet, or it was requeued after a failure",
    "JobHeldUser": "you hold it: release it with `scontrol release`",
    "JobHeldAdmin": "an administrator holds it: ask the site's support",
    "Licenses": "it waits for a license",
    "Reservation": "it waits for its reservation to begin",
    "ReqNodeNotAvail": "nodes it could run on are down, drained or reserved for maintenance",
    "NodeDown": "a node it needs is down",
    "PartitionDown": "the partition accepts jobs but currently starts none",
    "PartitionInactive": "the partition currently accepts no jobs",
    "PartitionNodeLimit": "it requests more nodes than the partition has: cancel it and use fewer",
    "PartitionTimeLimit": "it requests more time than the partition allows: cancel it and use less",
    "InvalidAccount": "its account cannot be billed: cancel it and check `account:`",
    "InvalidQOS": "you may not use its quality of service",
    "MaxJobsPerAccount": "the account already runs as many jobs as it may",
    "JobArrayTaskLimit": "its array already runs as many jobs as it may",
    "Prolog": "its nodes are being prepared",
    "Cleaning": "it was requeued: its last attempt is being cleaned up",
}
"""The scheduler's reason, and its meaning."""
BEGINNINGS = {
    "ReqNodeNotAvail": REASONS["ReqNodeNotAvail"],
    "QOSGrp": "the jobs of its quality of service have reached its limit",
    "QOSMaxGRESPerJob": "it requests more GPUs than a job may have: cancel it and use fewer",
    "QOSMax": "your jobs have reached the limit of its quality of service",
    "AssocGrp": "the account's jobs have reached its limit: others must end first, or the project "
    "has no hours left",
    "AssocMax": "your jobs have reached the account's limit per user",
    "Nodes required": REASONS["ReqNodeNotAvail"],
}
"""Families of reasons, by prefix."""


def again(run: Run) -> bool:
    """Return whether a chain is queued because its last attempt requeued it."""
    begins = scheduler_reason(run).split(",")[0] == "BeginTime"
    return begins and run.between_attempts and run.attempts[-1].end == "requeue"


def plain_reason(run: Run) -> str:
    """Return why a queued run waits, with the scheduler's word; '' if it does not wait."""
    if run.state is not State.QUEUED:
        return ""
    word = scheduler_reason(run) or "None"
    if again(run):
        return f"its last attempt requeued it; Slurm delays such a job a little ({word})"
    return reason_words(word)


def reason_words(word: str) -> str:
    """Return the meaning of the scheduler's reason, with the scheduler's word."""
    # "ReqNodeNotAvail, UnavailableNodes:nid[005001-005002]"
    meaning = REASONS.get(word.split(",")[0]) or next(
        (words for begin, words in BEGINNINGS.items() if word.startswith(begin)), ""
    )
    return f"{meaning} ({word})" if meaning and word != "None" else meaning or word


def waited(run: Run, now: float) -> float:
    """Return the seconds from a run's send to its start, or to `now`."""
    end = run.started or (run.ended if run.state.is_final else now) or now
    return max(0.0, end - (run.submitted or run.created))


def _start(expected: float, now: float) -> str:
    late = "; due any moment" if now - expected >= 60 else ""
    return ahead(expected, now) + late


def expectations(run: Run, now: float) -> list[tuple[str, str]]:
    """Return when an unfinished run starts and ends, as (label, words); empty for others.

    While its site is silent, these are the times of the last answer.
    """
    old = heard(run, now)
    since = f", as of {old}" if old else ""
    # The limit ends only one attempt.
    number = run.attempts[-1].number + 1 if run.between_attempts else run.attempt
    left = run.brief.chain - number
    follow = f"; {count(left, 'attempt')} more may follow" if left > 0 else ""
    if run.state is State.QUEUED:
        start = run.expected_start
        begins = _start(start, now) if start else "the scheduler has not estimated a time yet"
        if start and old:
            begins = f"{ahead(start, now)}{since}"
        lines = [
            ("waits for", plain_reason(run)),
            ("waiting for", length(waited(run, now))),
            ("expected start", begins),
        ]
        if not (start and (end := run.latest_end)):
            return lines
        # A later start does not shorten it.
        return [*lines, ("expected end", ahead(end + max(0.0, now - start), now) + since + follow)]
    if run.state is State.RUNNING and run.latest_end:
        # The remaining time cannot exceed the limit; otherwise the clocks differ.
        moment = max(now, run.started or now)
        return [("latest end", ahead(run.latest_end, moment) + since + follow)]
    return []


def left_waiting(unfinished: Iterable[Run], cancelled: Run) -> list[str]:
    """Return the effect of a cancel on the runs that wait for this one, one sentence each.

    `unfinished` is sorted, oldest first: runs wait only for older ones.
    """
    sentences, never = [], {cancelled.id}
    for run in unfinished:
        awaited = next((name for name in run.awaited if name in never), None)
        after = run.spec.after if awaited else None
        if after is None:
            continue
        if after.when == "done":
            never.add(run.id)
            sentences.append(f"{run.id} waits for {awaited} to be done, so it can never start.")
        else:
            sentences.append(f"{run.id} starts once {awaited} has ended.")
    return sentences


def no_failure(run: Run, now: float) -> str:
    """Return why there is no failure to explain; '' for a run that may have failed.

    If a run is still running, or its end is unknown, the log may show more.
    """
    match run.state:
        case State.DONE:
            return "It did not fail: it is done."
        case State.CANCELLED:
            why = reason(run)
            return f"It did not fail: it was cancelled{f' ({why})' if why else ''}."
        case State.SENDING:
            return "It is on its way to the site; nothing has failed so far."
        case State.NOT_SENT:
            why = scheduler_reason(run)
            return f"It never became a job{f': {why}' if why else ''}. Nothing was billed."
        case State.QUEUED:
            start = run.expected_start
            begins = f" It is expected to start {_start(start, now)}." if start else ""
            since, old = length(waited(run, now)), heard(run, now) or seen(run, now)
            so_far = f"As of {old}, it had not failed" if old else "It has not failed"
            return f"{so_far}. Queued for {since}: {plain_reason(run)}.{begins}"
        case _:
            return ""
