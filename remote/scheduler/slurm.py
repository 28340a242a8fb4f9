"""Slurm: its commands as sh, and parsers of their output, which raise no errors.

No JSON: squeue --json differs between versions (22.05 and 24.05 here). Fields are separated by
`|`, free text comes last; times are epoch seconds by SLURM_TIME_FORMAT=%s (squeue(1), sacct(1)).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lumitui.remote.scheduler.cancelling import cancel_script, parse_cancel
from lumitui.remote.scheduler.cluster_overview import ClusterOverview, ask_overview
from lumitui.remote.scheduler.evidence import SubmissionOutcome, settle_by_evidence, submit_once
from lumitui.remote.scheduler.job_step import GpuReading, StepCall, node_of, place_step, read_gpus
from lumitui.remote.scheduler.run_files import files_script, parse_files
from lumitui.remote.scheduler.scheduler_protocol import (
    MOST_LIST,
    MOST_WORDS,
    SBATCH,
    STATES,
    Answer,
    JobStatus,
    Poll,
    State,
    Submission,
    Watch,
)
from lumitui.remote.site.answer_fields import lines, moment
from lumitui.remote.site.run_folder import JOB_SCRIPT, LOCK, POLL_SECONDS
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.site.states import BY_YOU
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

if TYPE_CHECKING:
    from lumitui.remote.site.meters import GpuReadings

QUEUE_FIELDS = "%A|%T|%V|%S|%e|%P|%N|%r|%j|%k"
"""Format of squeue's line for a job, after the marker; name and comment may contain anything."""
ACCOUNT_FIELDS = (
    "JobIDRaw,State,Submit,Start,End,Partition,ExitCode,NodeList,UID,JobName,Comment,WorkDir"
)

_TOO_LONG = f"prints too much for one user's job list (over {MOST_LIST >> 20} MiB)"


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
                # Text without a job: squeue failed, whatever its status. Its warnings begin with
                # its name, and a site's squeue may warn each time.
                strange = (line for line in lines(text) if line.strip() and line[:8] != "squeue: ")
                answered = bool(queue) or not any(strange)
                printed = " ".join(text.split())[:300]
                warning = "" if answered else f"squeue lists no job, but prints: {printed}"
            case ["queue", _]:
                warning = text.strip()[:300] or "squeue failed"
            case ["places"]:
                places = _places(text, marker)
            case ["account", "0"]:
                account = parse_account(text)
            case ["account", _]:
                silent = text.strip()[:300] or "sacct failed"
    if warning:  # accounting was queried for jobs that may be in the queue
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


def _jobs_of(jobs: Iterable[JobStatus], watches: Sequence[Watch]) -> dict[str, JobStatus]:
    """Return the job of each run; of several records with its id, the run's last counts."""
    by_id: dict[str, list[JobStatus]] = {}
    for job in jobs:
        by_id.setdefault(job.job_id, []).append(job)
    by_run: dict[str, JobStatus] = {}
    for watch in watches:
        mine = [job for job in by_id.get(watch.job_id, ()) if is_of(job, watch)]
        if mine:  # accounting has one more record for each requeue
            by_run[watch.run] = mine[-1]
    return by_run


def is_of(job: JobStatus, watch: Watch) -> bool:
    """Return whether `job`, which has the watched job's id, is the run's.

    An id alone proves nothing: a controller that lost its state restarts its ids. The run's job has
    its name, its token, or its folder with its script (unknown to accounting); a site may rename
    jobs and remove comments.
    """
    signs = f"|{job.signs}|"
    return (
        f"|{watch.run}|" in signs
        or (watch.token != "" and f"lumitui:{watch.token}" in signs)
        or signs.endswith((f"|{watch.folder}|", f"|{watch.folder}|{watch.folder}/{JOB_SCRIPT}|"))
    )


def parse_queue(text: str, marker: str) -> list[JobStatus]:
    """Return the jobs listed by squeue; lines without the marker are warnings."""
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
    """Return the jobs' working folders and commands, by id."""
    rows = (line.split("|", 2) for line in lines(text))
    return {fields[1]: fields[2] for fields in rows if fields[0] == f"{marker}-job" and fields[2:]}


def parse_account(text: str) -> list[JobStatus]:
    """Return the records listed by sacct, including several of a requeued job.

    Only State shows how a job ended: ExitCode is 0:0 for TIMEOUT and CANCELLED.
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


# A user's variables override options and the script's lines (INPUT ENVIRONMENT VARIABLES of each
# man page): with SBATCH_ACCOUNT, SLURM_HINT or SLURM_EXPORT_ENV, the job would differ from the
# preview; SQUEUE_QOS hides jobs; SCANCEL_STATE=PENDING spares running ones. The variables that stay
# locate Slurm and identify the user.
_PLAIN = r"""unset $(env | sed -nE '/^SLURM_(CONF|CONF_SERVER|JWT|SACK_JWKS|SACK_KEY)=/d
s/^((SBATCH|SRUN|SQUEUE|SACCT|SCANCEL|SLURM)_[A-Z0-9_]*)=.*/\1/p')"""
CLEAN = f"{_PLAIN}\nLC_ALL=C SLURM_TIME_FORMAT=%s; export LC_ALL SLURM_TIME_FORMAT"
"""sh that unsets the user's own variables and makes Slurm print epoch seconds, in English."""

# Prints the ids of the run's jobs in lines `ID|STATE|NAME|COMMENT|FOLDER`: those with its name or
# token. If a site removes both, a job that runs in the run's folder is the run's if `numbers`
# prints its id, because a user may have started other jobs there manually. If a line ends with the
# job's command, that must also be the run's script. A refused request may leave a record without a
# job (24.11).
_OURS = rf"""ours() {{
  while IFS='|' read -r number state signs; do
    case $number in ''|*[!0-9]*) continue ;; esac
    case $state in 'FAILED BadConstraints') continue ;; esac
    case "|$signs|" in
    *"|$NAME|"*|*"lumitui:$TOKEN"*) echo "$number" ;;
    *"|$RUN|" | *"|$RUN|$RUN/{JOB_SCRIPT}|") ! numbers | grep -qx "$number" || echo "$number" ;;
    esac
  done
  return 0
}}
queue() {{ squeue --me -a -h -t all -o '%A|%T %r|%j|%k|%Z' 2>&1; }}"""

# A job cancelled before it was eligible (--begin, which a site's filter may add) is listed by name
# only if the time range reaches that far. Without accounting, sacct always fails, so its answer is
# not awaited.
_EVIDENCE = rf"""{_OURS}
mine() {{
  {CLEAN}
  rows=$(queue) || {{ printf '%.{MOST_WORDS}s\n' "$rows"; return 1; }}
  printf '%s\n' "$rows" | ours
}}
rows_of() {{
  rows=$(sacct -n -P -X -D -S now-30days -E now+365days "$@" 2>&1) && return
  case $rows in
  *'accounting storage is disabled'*) rows= ;;
  *) printf '%.{MOST_WORDS}s\n' "$rows"; return 1 ;;
  esac
}}
accounted() {{
  {CLEAN}
  rows_of --name="$NAME" -o JobIDRaw,State,JobName || return
  found=$(printf '%s\n' "$rows" | ours)
  some=$(numbers | tr '\n' ,)
  if [ -z "$found" ] && [ -n "$some" ]; then
    rows_of -j "${{some%,}}" -o JobIDRaw,State,JobName,Comment,WorkDir || return
    found=$(printf '%s\n' "$rows" | ours)
  fi
  [ -z "$found" ] || printf '%s\n' "$found"
}}
drop() {{ ({CLEAN}
scancel "$@") >/dev/null 2>&1 </dev/null; }}"""


class Slurm:
    """Scheduler over one transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.commands = 0
        """Number of Slurm commands run so far, for the footprint."""

    def submit(self, submission: Submission) -> Answer:
        """See Scheduler.submit."""
        # sbatch(1), "filename pattern": also applies to folders; such a job ends before its first
        # line.
        if wrong := {"%", "\\"} & set(submission.folder):
            signs = " and ".join(sorted(wrong))
            words = f"Slurm cannot write a log below a folder with {signs} in its name"
            return Answer(State.NOT_SENT, None, words)
        command = f"{_PLAIN}\n{SBATCH}"
        return self._counted(submit_once(self._transport, submission, command, _EVIDENCE))

    def settle(
        self, submission: Submission, *, deep: bool, void: bool, grace: float = 0.0
    ) -> Answer:
        """See Scheduler.settle; the unique name finds the job if comments are not stored."""
        answer = settle_by_evidence(
            self._transport, submission, _EVIDENCE, deep=deep, void=void, grace=grace
        )
        return self._counted(answer)

    def _counted(self, outcome: SubmissionOutcome) -> Answer:
        self.commands += outcome.commands
        return outcome.answer

    @purpose("poll")
    def poll(self, watches: Sequence[Watch]) -> Poll:
        """See Scheduler.poll."""
        marker = new_marker()
        result = self._transport.run(poll_script(marker, watches), timeout=POLL_SECONDS)
        more = (f"{marker} {kind}".encode() for kind in ("places", "account"))
        self.commands += 1 + sum(words in result.out for words in more)
        return parse_poll(result.out, marker, watches)

    def overview(self, budget: str) -> ClusterOverview:
        """See Scheduler.overview."""
        self.commands += 3
        return ask_overview(self._transport, CLEAN, budget)

    def gpus(self, job_id: str, nodes: int, readings: "GpuReadings") -> tuple[GpuReading, ...]:
        """See Scheduler.gpus."""
        self.commands += 1
        return read_gpus(self._transport, CLEAN, job_id, nodes, readings)

    def place_step(self, call: StepCall) -> str:
        """See Scheduler.place_step."""
        self.commands += 3
        return place_step(self._transport, call, CLEAN)

    def node_of(self, call: StepCall) -> str:
        """See Scheduler.node_of."""
        self.commands += 2
        return node_of(self._transport, call, CLEAN)

    @purpose("cancel")
    def cancel(self, watches: Sequence[Watch]) -> Mapping[str, str]:
        """See Scheduler.cancel."""
        marker = new_marker()
        self.commands += 1
        script = cancel_script(marker, watches, CLEAN, _OURS)
        outcome = parse_cancel(self._transport.run(script).out, marker, watches)
        self.commands += outcome.commands - 1
        return outcome.gone


def poll_script(marker: str, watches: Sequence[Watch]) -> str:
    """Return the one request of a poll: queue, accounting of jobs that left it, files.

    If the queue lacks a job's name, its folder and script are queried, because a site may rename
    jobs. Accounting is queried from a day before the first submission, by the site's clock.
    """
    lines, parent = [], None
    for watch in watches:
        above, _, name = watch.folder.rpartition("/")
        if above != parent:
            lines.append(f"P={quote(above)}")
            parent = above
        folder = "" if name == watch.run else f" {quote(name)}"
        lines.append(f"$1 {quote(watch.job_id)} {quote(watch.run)}{folder}")
    return fill(
        _POLL,
        clean=CLEAN,
        records=record_functions(marker),
        job=f"{marker}-job",
        most=MOST_LIST,
        queue_fields=QUEUE_FIELDS,
        account_fields=ACCOUNT_FIELDS,
        lock=LOCK,
        script=JOB_SCRIPT,
        watches="\n".join(lines) or ":",
        files=files_script(watches),
        whose=quote(f"--user={watches[0].owner}") if watches and watches[0].owner else "--me",
    )


_POLL = r"""
{clean}
{records}
now=$(date +%s)
begin clock; echo $now; finish
# What a command prints, and its status after that. One that prints without end is ended by `head`,
# before it fills the memory of the login node; it has no status then.
words() { { "$@" 2>&1; echo "{job}=$?"; } | head -c {most}; }
status() {
  case $1 in
  *"{job}=0") rc=0 ;;
  *"{job}="*) rc=1 ;;
  *) if [ ${#1} -ge 1000000 ]; then rc=long; else rc=1; fi ;;
  esac
}
queue=$(words squeue {whose} -a -h -t all -o '{job}|{queue_fields}'); status "$queue"
case $rc in long) queue= ;; *) queue=${queue%{job}=*} ;; esac
begin queue $rc; printf '%s\n' "$queue"; finish
all() {
{watches}
}
lost() {
  gone=$gone,$1
  { read -r a b at <"$P/${3:-$2}/{lock}/shell"; } 2>/dev/null || at=
  case $at in ''|*[!0-9]*) at=$((now - 2592000)) ;; esac
  [ "$at" -gt "$since" ] || since=$at
}
first() {
  case $queue in
  *"{job}|$1|"*) case $queue in *"|$2|"*) ;; *) odd=$odd,$1 ;; esac ;;
  *) lost "$@" ;;
  esac
}
second() {
  d=$P/${3:-$2}
  case $odd, in *",$1,"*) case $places in *"{job}|$1|$d|$d/{script}
"*) ;; *) lost "$@" ;; esac ;; esac
}
if [ $rc -eq 0 ]; then
  gone= odd= since=$now
  all first
  if [ -n "$odd" ]; then
    places="$(words squeue -a -h -t all -j "${odd#,}" -o '{job}|%A|%Z|%o')
"
    begin places; printf '%s' "$places"; finish
    all second
  fi
  if [ -n "$gone" ]; then
    rows=$(words sacct -n -P -D -X -S now-$((now - since + 86400)) -j "${gone#,}" \
      -o {account_fields}); status "$rows"
    case $rc in long) rows= ;; *) rows=${rows%{job}=*} ;; esac
    # Just after a job's end accounting may not have its owner yet.
    begin account $rc
    printf '%s\n' "$rows" | sed "s/|CANCELLED by $(id -u)|/|CANCELLED by you|/"; finish
  fi
fi
{files}
exit 0
"""
