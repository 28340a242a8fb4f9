"""Submitting a job exactly once: scripts in POSIX sh for every scheduler, and the outcome.

`mkdir attempt-1.submit` is the lock: it is atomic on every file system, while flock on Lustre may
be local to a node. The job first creates the link `attempt-1.claim` to its id; if the claim belongs
to another job, it ends immediately. The submit command's output and status prove nothing, because a
site may wrap it; the claim and the queue decide. An id that one of them confirmed is written to a
temporary name and renamed: the receipt. The disk may be full and the folder temporarily invisible,
so missing evidence proves nothing.

A scheduler adds three functions. `mine` prints the ids of the run's jobs in the queue, `accounted`
those in accounting; each returns 1 and prints the reason if it cannot tell. `drop ID...` cancels
jobs that `mine` has just printed.
"""

import math
from typing import NamedTuple

from lumitui.remote.scheduler.scheduler_protocol import MOST_WORDS, Answer, State, Submission
from lumitui.remote.site.answer_fields import count, moment
from lumitui.remote.site.errors import LinkLost
from lumitui.remote.site.run_folder import CLAIM, LOCK, RECEIPT, SCRIPTS, SUBMIT_SECONDS
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport

UNDECIDED = (
    "timed? ?out|communicat|try again|temporar|unable to contact|zero bytes|connection"
    "|socket|transport endpoint|slurmctld.*down|unexpected message|i/o error"
)
"""Messages of sbatch, for `grep -Ei`, after which the controller may still create the job: if
slurmctld stalls, sbatch exits with 1 after its timeout, but the job runs."""

FULL = (
    "unable to accept job, sleeping and retrying|queue full, sleeping and retrying"
    "|job submission failed: resource temporarily unavailable"
)
"""Messages of sbatch about a full queue (MaxJobCount): it retries 15 times, after 1, 2, … 15 s, and
is then refused (sbatch.c, MAX_RETRIES). The outcome is certain, although the messages contain
"temporarily".
"""

_COMMON = r"""
RUN={folder} NAME={name} TOKEN={token}
why= asked=0
{records}
# Prints the answer: what it is, how many commands of the scheduler it took, the id or the clock.
say() { begin answer "$1" $asked "$2"; printf '%s\n' "$why"; finish; exit 0; }
part() {
  if [ "$(wc -c <"$1")" -le {most} ]; then cat "$1"; else
    head -c {half} "$1"; printf '\n[...]\n'; tail -c {half} "$1"
  fi
}
# The words of the submit command; a wrapper may print without end.
said() { for f in {lock}/out {lock}/err; do [ ! -s $f ] || part $f; done | tr -d '\000'; }
# The numbers in its words: one of them may be the job's id.
numbers() {
  cat {lock}/out {lock}/err 2>/dev/null | { head -c 65536; tail -c 65536; } |
    tr -cs 0-9 '\n' | grep -x '[1-9][0-9]\{0,17\}' | head -n 40
}
# Whether the submit command refused: the words in `why` leave nothing open. From 128 on it was
# killed: its request may have left before. So may a silent one's.
refusal() {
  rc=$(cat {lock}/rc 2>/dev/null)
  case $rc in ''|0|*[!0-9]*) return 1 ;; esac
  [ "$rc" -lt 128 ] && [ -n "$why" ] &&
    ! printf '%s\n' "$why" | grep -Eiv {full} | grep -Eiq {undecided}
}
{functions}
# Answers when an id was confirmed before.
received() {
  r=$(head -c 40 {receipt} 2>/dev/null)
  case $r in ''|*[!0-9]*) ;; *) say id "$r" ;; esac
}
in_queue() {
  asked=$((asked + 1)); ids=$(mine) || return 1
  id=${ids%%[!0-9]*}
}
# Of several jobs, which a wrapper that tries again may make, one stays.
single() {
  rest=${ids#"$id"}
  case $rest in *[0-9]*) asked=$((asked + 1)); drop $rest; claimed ;; esac
}
# Answers when somebody has the claim. A job of a run that was given up is cancelled.
claimed() {
  c=$(readlink {claim}) || return 0
  case $c in
  void)
    if in_queue && [ -n "$ids" ]; then asked=$((asked + 1)); drop $ids; fi
    why=$(said); refusal && say refused
    why=; say never ;;
  ''|*[!0-9]*) ;;
  *) why=; keep "$c"; say id "$c" ;;
  esac
}
"""

_SUBMIT = r"""
{sha}
umask 077
trap '' HUP PIPE
{common}
keep() { echo "$1" >{receipt}.new && mv {receipt}.new {receipt}; }
cd "$RUN" 2>/dev/null || say no-folder
[ "$(cat {scripts} 2>/dev/null | sha | cut -c1-64)" = {sum} ] || say changed
if ! why=$(mkdir {lock} 2>&1); then
  [ -d {lock} ] || say no-lock
  # The job of the first submission, when it is known already.
  why=; claimed; received
  say unknown
fi
echo "$$ $(hostname) $(date +%s)" >{lock}/shell
asked=1
{command} >{lock}/out 2>{lock}/err </dev/null
echo "$?" >{lock}/rc
for f in {lock}/out {lock}/err; do
  if [ "$(wc -c <$f)" -gt 100000 ]; then
    { head -c 50000 $f; tail -c 50000 $f; } >$f.cut && mv $f.cut $f
  fi
done
claimed
if in_queue; then
  if [ -n "$id" ]; then
    keep "$id"
    # Another machine may have given the run up meanwhile.
    claimed; single
    say id "$id"
  fi
  why=$(said)
  if refusal; then ln -s void {claim} 2>/dev/null; claimed; fi
  say unknown
fi
why="$(said)
$ids"
say unknown
"""

_SETTLE = r"""
LC_ALL=C; export LC_ALL
{common}
keep() { :; }
by_queue() {
  in_queue || { why=$ids; say unknown; }
  [ -z "$id" ] || { single; say id "$id"; }
}
by_accounting() {
  asked=$((asked + 1)); ids=$(accounted) || { why=$ids; say unknown; }
  id=${ids%%[!0-9]*}
  [ -z "$id" ] || say id "$id"
}
if ! cd "$RUN" 2>/dev/null; then
  # A disk that is away for a moment looks the same.
  by_queue; {deep}; say hidden "$(date +%s)"
fi
if mkdir {lock} 2>/dev/null; then
  # Nobody had the lock, and now nobody can take it. The claim answers the next settle.
  ln -s void {claim} 2>/dev/null
  say never
fi
claimed
received
by_queue
pid= host= since=
[ ! -f {lock}/shell ] || read -r pid host since <{lock}/shell
if [ -n "$pid" ] && [ "$host" = "$(hostname)" ] && [ ! -f {lock}/rc ] &&
  kill -0 "$pid" 2>/dev/null; then
  why='the submit step is still under way'; say unknown
fi
why=$(said)
if refusal; then ln -s void {claim} 2>/dev/null; claimed; fi
# The age of the lock by this site's clock. A clock that was set back since then begins anew.
now=$(date +%s)
case $since in ''|*[!0-9]*) since=$(stat -c %Y {lock} 2>/dev/null || stat -f %m {lock}) ;; esac
if [ "$since" -gt "$now" ]; then
  echo "${pid:--} ${host:--} $now" >{lock}/shell; since=$now
fi
if [ $((now - since)) -ge {grace} ]; then
  {deep}
  {void}
fi
why=$(said)
say unknown
"""


def submit_script(submission: Submission, command: str, functions: str, marker: str) -> str:
    """Return the submit step, with the scheduler's `command` and `functions` for the evidence.

    Repeating it submits nothing. The answer is one record with `marker`.
    """
    return fill(
        _SUBMIT,
        sha=SHA,
        scripts=" ".join(SCRIPTS),
        sum=quote(submission.script_sha256),
        command=command,
        common=_common(submission, functions, marker),
        **_NAMES,
    )


def settle_script(
    submission: Submission, functions: str, marker: str, *, deep: bool, void: bool, grace: int
) -> str:
    """Return sh that reads the evidence; `grace` is in seconds."""
    return fill(
        _SETTLE,
        common=_common(submission, functions, marker),
        deep="by_accounting" if deep else ":",
        void=f"ln -s void {CLAIM} 2>/dev/null; claimed" if void else ":",
        grace=grace,
        **_NAMES,
    )


_NAMES = {"lock": LOCK, "receipt": RECEIPT, "claim": CLAIM}


def _common(submission: Submission, functions: str, marker: str) -> str:
    return fill(
        _COMMON,
        folder=quote(submission.folder),
        name=quote(submission.name),
        token=quote(submission.token),
        records=record_functions(marker),
        functions=functions,
        undecided=quote(UNDECIDED),
        full=quote(FULL),
        # Maximum bytes of each of two files, plus a few words between.
        most=MOST_WORDS // 2 - 200,
        half=MOST_WORDS // 4 - 100,
        **_NAMES,
    )


class SubmissionOutcome(NamedTuple):
    """The outcome of a submission, and the number of commands it took."""

    answer: Answer
    commands: int
    """Commands of the scheduler that were run."""


@purpose("submit")
def submit_once(
    transport: Transport, submission: Submission, command: str, functions: str
) -> SubmissionOutcome:
    """Run the submit step with the scheduler's `command`; a second call submits nothing.

    `functions` are the scheduler's sh functions for the evidence.

    Raises:
        LinkLost: the reply was lost.
    """
    marker = new_marker()
    script = submit_script(submission, command, functions, marker)
    return outcome_of(transport.run(script, timeout=SUBMIT_SECONDS), marker)


@purpose("settle")
def settle_by_evidence(
    transport: Transport,
    submission: Submission,
    functions: str,
    *,
    deep: bool,
    void: bool,
    grace: float,
) -> SubmissionOutcome:
    """Read the evidence, see Scheduler.settle; LinkLost if the reply was lost."""
    marker = new_marker()
    script = settle_script(
        submission, functions, marker, deep=deep, void=void, grace=math.ceil(grace)
    )
    return outcome_of(transport.run(script, timeout=SUBMIT_SECONDS), marker)


def outcome_of(result: Result, marker: str) -> SubmissionOutcome:
    """Return the evidence in an answer with `marker`; LinkLost if the output is no answer."""
    for words, content in parse_records(result.out, marker):
        match words:
            case ["answer", kind, asked, *more]:
                # Check the size first: an answer may be of any size.
                message = content[: 4 * MOST_WORDS].decode("utf-8", "replace").strip()
                answer = answer_of(kind, more[0] if more else "", message[:MOST_WORDS])
                return SubmissionOutcome(answer, count(asked) or 0)
    raise LinkLost(
        f"The submit step gave no evidence (status {result.code}: {result.err[:200]!r}).",
        "The next poll settles it.",
    )


def answer_of(kind: str, detail: str, message: str) -> Answer:
    """Return the outcome in the script's answer; UNKNOWN for anything unexpected."""
    match kind:
        case "id" if detail.isascii() and detail.isdecimal() and len(detail) < 19:
            return Answer(State.QUEUED, detail)
        case "refused":
            return Answer(State.REFUSED, None, message)
        case "never":
            return Answer(State.NOT_SENT, None, "no job was created, and none can start")
        case "hidden":
            words = "the run's folder does not exist"
            return Answer(State.UNKNOWN, None, words, hidden_at=moment(detail))
        case "no-folder":
            return Answer(State.NOT_SENT, None, "the run's folder does not exist")
        case "changed":
            return Answer(
                State.NOT_SENT, None, "job.sh or a file it calls differs from the composed one"
            )
        case "no-lock":
            return Answer(State.NOT_SENT, None, message or "lumitui could not create the lock")
        case _:
            if message.partition(";")[0].isdecimal():
                message = f"sbatch printed {message!r}, but no job of the run was found"
            return Answer(State.UNKNOWN, None, message or "the scheduler did not confirm it")
