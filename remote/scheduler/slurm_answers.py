"""Slurm's answers to a poll, parsed; nothing that it prints makes these functions raise."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lumitui.remote.scheduler.run_files import parse_files
from lumitui.remote.scheduler.scheduler_protocol import (
    MOST_WORDS,
    STATES,
    JobStatus,
    Poll,
    State,
    Watch,
)
from lumitui.remote.site.answer_fields import lines, moment
from lumitui.remote.site.run_folder import JOB_SCRIPT
from lumitui.remote.site.states import BY_YOU
from lumitui.remote.transport.records import parse_records

QUEUE_FIELDS = "%A|%T|%V|%S|%e|%P|%N|%r|%j|%k"
"""What squeue prints of a job, after the marker; a name and a comment may hold anything."""
ACCOUNT_FIELDS = (
    "JobIDRaw,State,Submit,Start,End,Partition,ExitCode,NodeList,UID,JobName,Comment,WorkDir"
)

MOST_LIST = 8 << 20
"""Most bytes of a list of jobs. 20,000 jobs of one person have some 5 MB; a part of a longer list
would make the jobs beyond it look as if they had ended, so nothing of it counts."""
_TOO_LONG = f"prints more than a list of one person's jobs has (over {MOST_LIST >> 20} MiB)"


def parse_poll(output: bytes, marker: str, watches: Sequence[Watch]) -> Poll:
    """Return the answer of `slurm.poll_script`."""
    queue: list[JobStatus] = []
    account: list[JobStatus] = []
    places: dict[str, str] = {}
    warning, silent, clock, answered = "", "", None, False
    for words, content in parse_records(output, marker):
        long = len(content) > MOST_LIST
        text = "" if long else content.decode("utf-8", "replace")
        match words:
            case ["queue", code] if long or code == "long":
                warning = f"squeue {_TOO_LONG}"
            case ["account", code] if long or code == "long":
                silent = f"sacct {_TOO_LONG}"
            case ["clock"]:
                clock = moment(text.strip())
            case ["queue", "0"]:
                queue = parse_queue(text, marker)
                # Words, none of which is a job: squeue failed, whatever its status is. Its own
                # warnings begin with its name, and a site's squeue may warn each time.
                strange = (line for line in lines(text) if line.strip() and line[:8] != "squeue: ")
                answered = bool(queue) or not any(strange)
                warning = "" if answered else f"squeue lists no job, but says: {_words(text)}"
            case ["queue", _]:
                warning = text.strip()[:300] or "squeue failed"
            case ["places"]:
                places = _places(text, marker)
            case ["account", "0"]:
                account = parse_account(text)
            case ["account", _]:
                silent = text.strip()[:300] or "sacct failed"
            case _:
                pass
    if warning:  # accounting was asked for jobs that may be in the queue
        account, silent = [], ""
    queue = [replace(job, signs=f"{job.signs}|{places.get(job.job_id, '')}") for job in queue]
    jobs = _jobs_of(queue, watches)
    gone = frozenset({watch.run for watch in watches} - set(jobs)) if answered else frozenset()
    taken = {(job.job_id, job.signs) for job in jobs.values()}
    going = [job for job in queue if not job.state.is_final and job.state is not State.FINISHING]
    others = tuple(job.signs for job in going if (job.job_id, job.signs) not in taken)
    jobs = {**_jobs_of(account, watches), **jobs}
    files = parse_files(output, marker, watches)
    return Poll(jobs, files, warning, clock, gone, silent, others)


def _words(text: str) -> str:
    return " ".join(text.split())[:300]


def _jobs_of(jobs: Iterable[JobStatus], watches: Sequence[Watch]) -> dict[str, JobStatus]:
    """Return the job of each run; of several records with its id the last one of the run counts."""
    by_id: dict[str, list[JobStatus]] = {}
    for job in jobs:
        by_id.setdefault(job.job_id, []).append(job)
    by_run: dict[str, JobStatus] = {}
    for watch in watches:
        mine = [job for job in by_id.get(watch.job_id, ()) if is_of(job, watch)]
        if mine:
            # Each time a job was requeued accounting has a record more.
            by_run[watch.run] = replace(mine[-1], restarts=len(mine) - 1)
    return by_run


def is_of(job: JobStatus, watch: Watch) -> bool:
    """Whether `job`, which has the watched run's id, is the run's.

    An id alone proves nothing: a controller that lost its state begins its ids anew. The run's
    job has its name, its token, or its folder with its script (accounting does not have that); a
    site may rename jobs and take comments away.
    """
    signs = f"|{job.signs}|"
    return (
        f"|{watch.run}|" in signs
        or (watch.token != "" and f"lumitui:{watch.token}" in signs)
        or signs.endswith((f"|{watch.folder}|", f"|{watch.folder}|{watch.folder}/{JOB_SCRIPT}|"))
    )


def parse_queue(text: str, marker: str) -> list[JobStatus]:
    """Return the jobs that squeue listed; lines without the marker are warnings."""
    jobs = []
    for line in lines(text):
        head, _, rest = line.partition("|")
        fields = rest.split("|", 8)
        if head != f"{marker}-job" or len(fields) != 9:
            continue
        job_id, word, submitted, started, ended, partition, nodes, reason, signs = fields
        state = STATES.get(word, State.UNKNOWN)
        jobs.append(
            JobStatus(
                job_id=job_id,
                state=state,
                word=word[:40],
                reason="" if reason in ("None", "") else reason[:MOST_WORDS],
                submitted=moment(submitted),
                started=moment(started),
                ended=moment(ended),
                nodes=nodes[:MOST_WORDS],
                partition=partition,
                signs=signs[:MOST_WORDS],
            )
        )
    return jobs


def _places(text: str, marker: str) -> dict[str, str]:
    """Return the folders in which jobs work and what they run, by id."""
    rows = (line.split("|", 2) for line in lines(text))
    return {fields[1]: fields[2] for fields in rows if fields[0] == f"{marker}-job" and fields[2:]}


def parse_account(text: str) -> list[JobStatus]:
    """Return the records that sacct listed, a requeued job's several ones too.

    Only State says how a job ended: ExitCode is 0:0 for TIMEOUT and CANCELLED.
    """
    jobs = []
    for line in lines(text):
        fields = line.split("|", 9)
        if len(fields) != 10 or not fields[0].isascii() or not fields[0].isdecimal():
            continue
        job_id, words, submitted, started, ended, partition, exit_code, nodes, user, signs = fields
        word = words.split()[0] if words.split() else ""
        who = words.partition(" ")[2][:MOST_WORDS]
        jobs.append(
            JobStatus(
                job_id=job_id,
                state=STATES.get(word, State.UNKNOWN),
                word=word[:40],
                # "CANCELLED by 1000"
                reason=BY_YOU if who == f"by {user}" else who,
                submitted=moment(submitted),
                started=moment(started),
                ended=moment(ended),
                nodes="" if nodes == "None assigned" else nodes[:MOST_WORDS],
                exit_code=exit_code[:40],
                partition=partition,
                signs=signs[:MOST_WORDS],
            )
        )
    return jobs
