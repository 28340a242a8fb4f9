"""Slurm: its commands as sh, and its answers, parsed by pure functions.

No JSON: squeue --json differs between versions (22.05 and 24.05 here). Fields are separated by
`|`, every line of squeue starts with the marker, free text comes last; times are epoch seconds by
SLURM_TIME_FORMAT=%s (squeue(1), sacct(1)).
"""

from collections.abc import Mapping, Sequence

from lumitui.remote.errors import RefusedError
from lumitui.remote.run_folder import JOB_SCRIPT, POLL_SECONDS, attempt_log
from lumitui.remote.scheduler.protocol import (
    STATES,
    Answer,
    JobStatus,
    Poll,
    State,
    Submission,
    Watch,
)
from lumitui.remote.scheduler.run_files import files_script, parse_files
from lumitui.remote.scheduler.submission import settle_by_evidence, submit_once
from lumitui.remote.transport.fields import moment
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.shell import quote

SUBMIT = (
    'sbatch --parsable --chdir="$RUN" --job-name="$NAME" --comment="lumitui:$TOKEN" '
    f'--output="$RUN/{attempt_log(1)}" "$RUN/{JOB_SCRIPT}"'
)
"""sbatch with all its arguments; what is in the script's #SBATCH lines is not repeated here."""

# A person's variables override options and the script's lines (INPUT ENVIRONMENT VARIABLES of each
# man page): SBATCH_ACCOUNT, SLURM_HINT and SLURM_EXPORT_ENV would make another job than the preview
# shows, SQUEUE_QOS hides jobs, SCANCEL_STATE=PENDING lets them run on. The variables that stay say
# where Slurm is and who asks.
_PLAIN = r"""unset $(env | sed -nE '/^SLURM_(CONF|CONF_SERVER|JWT|SACK_JWKS|SACK_KEY)=/d
s/^((SBATCH|SRUN|SQUEUE|SACCT|SCANCEL|SLURM)_[A-Z0-9_]*)=.*/\1/p')"""
_CLEAN = f"{_PLAIN}\nLC_ALL=C SLURM_TIME_FORMAT=%s; export LC_ALL SLURM_TIME_FORMAT"
# A job cancelled before it was eligible (--begin, which a site's filter may add) is listed by name
# only when the time range reaches that far. Where there is no accounting sacct fails for good, so
# that its answer is not waited for.
_BY_ACCOUNTING = """\
rows=$(sacct -n -P -X -D -S now-30days -E now+365days --name={name} -o JobIDRaw 2>&1) ||
  case $rows in
  (*'accounting storage is disabled'*) rows= ;;
  (*) echo "$rows"; exit 1 ;;
esac
printf '%s\\n' "$rows"
"""
_QUEUE_FIELDS = "%A|%T|%V|%S|%e|%P|%N|%j|%r"
MOST_WORDS = 4000
"""Most characters that are kept of a reason or of a list of nodes."""
_ACCOUNT_FIELDS = "JobIDRaw,State,Submit,Start,End,Partition,ExitCode,NodeList,JobName"
ANOTHERS_SECONDS = 3600.0
"""A job with another name that was submitted this much earlier or later is not the run's."""


class Slurm:
    """Scheduler over one transport."""

    def __init__(self, transport: Transport) -> None:
        """Ask over `transport`; nothing is sent yet."""
        self._transport = transport
        self.commands = 0
        """Slurm commands run so far, for the footprint."""

    def command(self) -> str:
        """Return the sbatch command line."""
        return SUBMIT

    def submit(self, submission: Submission) -> Answer:
        """See Scheduler.submit."""
        # sbatch(1), "filename pattern": in folders too; such a job ends before its first line.
        if wrong := {"%", "\\"} & set(submission.folder):
            signs = " and ".join(sorted(wrong))
            words = f"Slurm cannot write a log below a folder with {signs} in its name"
            return Answer(State.NOT_SENT, None, words)
        self.commands += 1
        return submit_once(self._transport, submission, f"{_PLAIN}\n{SUBMIT}")

    def settle(
        self, submission: Submission, *, deep: bool, void: bool, grace: float = 0.0
    ) -> Answer:
        """See Scheduler.settle; the unique name finds the job where comments are not kept."""
        self.commands += 2 if deep else 1
        name = quote(submission.name)
        find = f"{_CLEAN}\nsqueue --me -a -h -t all --name={name} -o %A 2>&1 || exit 1"
        if deep:
            find += f"\n{_BY_ACCOUNTING.format(name=name)}"
        return settle_by_evidence(self._transport, submission, find, void=void, grace=grace)

    def poll(self, watches: Sequence[Watch]) -> Poll:
        """See Scheduler.poll."""
        marker = new_marker()
        result = self._transport.run(poll_script(marker, watches), timeout=POLL_SECONDS)
        self.commands += 1 + (f"{marker} account ".encode() in result.out)
        return parse_poll(result.out, marker, watches)

    def cancel(self, job_ids: Sequence[str]) -> None:
        """See Scheduler.cancel."""
        ids = " ".join(quote(job_id) for job_id in job_ids)
        self.commands += 1
        result = self._transport.run(f"{_CLEAN}\nscancel {ids} 2>&1 </dev/null")
        # For a job that has ended scancel says so and exits 0 or 1, depending on the version.
        harmless = ("already completed", "Invalid job id", "already finished", "being completed")
        if result.code and not any(word in result.text for word in harmless):
            raise RefusedError(
                f"scancel failed: {result.text.strip() or result.code}.", "Try again in a minute."
            )


def poll_script(marker: str, watches: Sequence[Watch]) -> str:
    """Return the one request of a poll: the queue, accounting of vanished jobs, files."""
    ids = " ".join(dict.fromkeys(quote(watch.job_id) for watch in watches))
    earliest = int(min((watch.submitted for watch in watches), default=0)) - 86_400
    return f"""
{_CLEAN}
{record_functions(marker)}
begin clock; date +%s; finish
queue=$(squeue --me -a -h -t all -o '{marker}-job|{_QUEUE_FIELDS}' 2>&1); rc=$?
begin queue $rc; printf '%s\\n' "$queue"; finish
if [ $rc -eq 0 ]; then
  gone=
  for id in {ids}; do
    case $queue in *"{marker}-job|$id|"*) ;; *) gone=$gone,$id ;; esac
  done
  if [ -n "$gone" ]; then
    since=$(date -d @{earliest} +%Y-%m-%dT%H:%M:%S)
    rows=$(sacct -n -P -D -X -S "$since" -j "${{gone#,}}" -o {_ACCOUNT_FIELDS} 2>&1); rc=$?
    begin account $rc; printf '%s\\n' "$rows"; finish
  fi
fi
{files_script(watches)}
exit 0
"""


def parse_poll(output: bytes, marker: str, watches: Sequence[Watch]) -> Poll:
    """Return the answer of `poll_script`."""
    jobs: dict[str, JobStatus] = {}
    warning, silent, clock = "", "", None
    watched = {watch.job_id: watch for watch in watches}
    gone: frozenset[str] = frozenset()
    for words, content in parse_records(output, marker):
        text = content.decode("utf-8", "replace")
        match words:
            case ["clock"]:
                clock = moment(text.strip())
            case ["queue", "0"]:
                found = parse_queue(text, marker)
                jobs = {job.job_id: job for job in found if _is_of(job, watched.get(job.job_id))}
                gone = frozenset(set(watched) - set(jobs))
            case ["queue", _]:
                warning = text.strip()[:300] or "squeue failed"
            case ["account", "0"]:
                for job in parse_account(text, watched):
                    jobs.setdefault(job.job_id, job)
            case ["account", _]:
                silent = text.strip()[:300] or "sacct failed"
            case _:
                pass
    return Poll(jobs, parse_files(output, marker, watches), warning, clock, gone, silent)


def _is_of(job: JobStatus, watch: Watch | None) -> bool:
    """Whether `job` is the watched run's: a controller that lost its state begins its ids anew.

    A site may rename jobs, and a requeue changes the time: both must differ for another job.
    """
    if watch is None:
        return False
    apart = abs((job.submitted or watch.submitted) - watch.submitted)
    return job.name == watch.run or apart <= ANOTHERS_SECONDS


def parse_queue(text: str, marker: str) -> list[JobStatus]:
    """Return the jobs that squeue listed; lines without the marker are warnings."""
    jobs = []
    for line in text.splitlines():
        head, _, rest = line.partition("|")
        fields = rest.split("|", 8)
        if head != f"{marker}-job" or len(fields) != 9:
            continue
        job_id, word, submitted, started, ended, partition, nodes, name, reason = fields
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
                name=name,
            )
        )
    return jobs


def parse_account(text: str, watched: Mapping[str, Watch] | None = None) -> list[JobStatus]:
    """Return the jobs of `watched` that sacct listed; the last record of a requeued job counts.

    Only State says how a job ended: ExitCode is 0:0 for TIMEOUT and CANCELLED.
    """
    jobs: dict[str, JobStatus] = {}
    for line in text.splitlines():
        fields = line.split("|", 8)
        if len(fields) != 9 or not fields[0].isascii() or not fields[0].isdecimal():
            continue
        job_id, words, submitted, started, ended, partition, exit_code, nodes, name = fields
        word = words.split()[0] if words.split() else ""
        state = STATES.get(word, State.UNKNOWN)
        job = JobStatus(
            job_id=job_id,
            state=state,
            word=word[:40],
            # "CANCELLED by 1000"
            reason=words.partition(" ")[2][:MOST_WORDS],
            submitted=moment(submitted),
            started=moment(started),
            ended=moment(ended),
            nodes="" if nodes == "None assigned" else nodes[:MOST_WORDS],
            restarts=(jobs[job_id].restarts + 1) if job_id in jobs else 0,
            exit_code=exit_code[:40],
            partition=partition,
            name=name,
        )
        if watched is None or _is_of(job, watched.get(job_id)):
            jobs[job_id] = job
    return list(jobs.values())
