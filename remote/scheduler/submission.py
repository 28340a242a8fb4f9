"""The submit step and its evidence, in POSIX sh, the same for every scheduler.

`mkdir attempt-1.submit` is the lock: it is atomic on every file system, while flock on Lustre is
local to a node. The job's id is written to another name and renamed: the receipt. The first thing
the job does is to make the link `attempt-1.claim` to its id. Without the lock nothing is submitted,
and a job without the claim ends at once. The disk may be full and the folder may be out of sight:
evidence that is missing proves nothing.
"""

import math
import re

from lumitui.remote.errors import LinkLost
from lumitui.remote.run_folder import CLAIM, JOB_SCRIPT, LOCK, RECEIPT, SUBMIT_SECONDS
from lumitui.remote.scheduler.protocol import Answer, State, Submission
from lumitui.remote.transport.protocol import Result, Transport
from lumitui.remote.transport.shell import SHA, quote

_SUBMIT = r"""
{sha}
umask 077
trap '' HUP PIPE
RUN={folder} NAME={name} TOKEN={token}
cd "$RUN" || {{ echo 'evidence no-folder'; exit 0; }}
[ "$(sha <{job_script} | cut -c1-64)" = {sum} ] || {{ echo 'evidence changed'; exit 0; }}
if ! why=$(mkdir {lock} 2>&1); then
  [ -d {lock} ] || {{ echo 'evidence no-lock'; echo "$why"; exit 0; }}
  # The job of the first submission, when it is known already.
  [ -s {receipt} ] && {{ echo "evidence id $(cat {receipt})"; exit 0; }}
  echo 'evidence locked'; exit 0
fi
echo "$$ $(hostname) $(date +%s)" >{lock}/shell
{command} >{lock}/out 2>{lock}/err </dev/null
rc=$?
echo "$rc" >{lock}/rc
id=$(sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{{0,1\}}$/\1/p' {lock}/out | head -n 1)
if [ -n "$id" ]; then
  echo "$id" >{receipt}.new && mv {receipt}.new {receipt}
  echo "evidence id $id"
else
  echo "evidence rc $rc"; cat {lock}/out
fi
cat {lock}/err
exit 0
"""

_SETTLE = r"""
LC_ALL=C; export LC_ALL
RUN={folder} NAME={name}
found() {{ echo "evidence id $1"; exit 0; }}
by_name() {{
  ids=$({find}) || {{ echo 'evidence unreachable'; echo "$ids"; exit 0; }}
  id=$(printf '%s\n' "$ids" | grep -x '[0-9][0-9]*' | head -n 1)
  [ -z "$id" ] || found "$id"
}}
if ! cd "$RUN" 2>/dev/null; then
  # A disk that is away for a moment looks the same.
  by_name; echo 'evidence {gone}'; exit 0
fi
if mkdir {lock} 2>/dev/null; then
  # Nobody had the lock, and now nobody can take it. The claim answers the next settle.
  ln -s void {claim} 2>/dev/null
  echo 'evidence never'; exit 0
fi
[ -s {receipt} ] && found "$(cat {receipt})"
claim=$(readlink {claim}) && {{
  [ "$claim" = void ] && {{ echo 'evidence never'; exit 0; }}
  found "$claim"
}}
by_name
pid= host= since=
[ ! -f {lock}/shell ] || read -r pid host since <{lock}/shell
if [ -n "$pid" ] && [ "$host" = "$(hostname)" ] && [ ! -f {lock}/rc ] &&
  kill -0 "$pid" 2>/dev/null; then
  echo 'evidence busy'; exit 0
fi
void() {{
  # The lock's age by the login nodes' clock: the laptop's time is from before the request left.
  [ -z "$since" ] || [ "$(($(date +%s) - since))" -ge {grace} ] || return
  {void}
}}
if [ -f {lock}/rc ] && ! [ -s {lock}/out ]; then
  echo "evidence rc $(cat {lock}/rc)"; cat {lock}/err; echo
  void
  exit 0
fi
void
echo 'evidence none'
exit 0
"""

_VOID = rf"""if ln -s void {CLAIM} 2>/dev/null; then echo 'evidence never'; exit 0; fi
  [ -z "$(readlink {CLAIM})" ] || found "$(readlink {CLAIM})" """

# sbatch says these when the controller may have taken the job all the same: when slurmctld stalls,
# sbatch exits 1 after its timeout, and the job runs. Everything else is a refusal.
_UNDECIDED = re.compile(
    r"timed? ?out|communicat|try again|temporar|unable to contact|zero bytes|connection"
    r"|socket|transport endpoint|slurmctld.*down|unexpected message|i/o error",
    re.IGNORECASE,
)


def submit_once(transport: Transport, submission: Submission, command: str) -> Answer:
    """Run the submit step, with `command` as the scheduler's; a second call submits nothing.

    Raises:
        LinkLost: the reply was lost.
    """
    script = _SUBMIT.format(
        sha=SHA,
        job_script=JOB_SCRIPT,
        lock=LOCK,
        receipt=RECEIPT,
        folder=quote(submission.folder),
        name=quote(submission.name),
        token=quote(submission.token),
        sum=quote(submission.script_sha256),
        command=command,
    )
    return _answer(transport.run(script, timeout=SUBMIT_SECONDS))


def settle_by_evidence(
    transport: Transport, submission: Submission, find: str, *, void: bool, grace: float
) -> Answer:
    """Read the evidence; `find` is sh that prints the ids of jobs with the submission's name.

    With `void` the claim is taken when no job has it and the lock is `grace` seconds old.

    Raises:
        LinkLost: the reply was lost.
    """
    script = _SETTLE.format(
        lock=LOCK,
        receipt=RECEIPT,
        claim=CLAIM,
        folder=quote(submission.folder),
        name=quote(submission.name),
        find=find,
        void=_VOID if void else ":",
        grace=math.ceil(grace),
        gone="gone" if void else "hidden",
    )
    return _answer(transport.run(script, timeout=SUBMIT_SECONDS))


def _answer(result: Result) -> Answer:
    lines = result.text.splitlines()
    evidence = [line.split()[1:] for line in lines if line.startswith("evidence ")]
    if not evidence:
        raise LinkLost(
            f"The submit step gave no evidence (status {result.code}: {result.err[:200]!r}).",
            "It is settled at the next refresh.",
        )
    message = "\n".join(line for line in lines if not line.startswith("evidence ")).strip()
    answers = [_answer_of(words, message) for words in evidence]
    # sbatch's words may leave it open; the void claim then decides.
    certain = [answer for answer in answers if answer.state is not State.UNKNOWN]
    return (certain or answers)[0]


def _answer_of(words: list[str], message: str) -> Answer:
    match words:
        case ["id", job_id] if job_id.isascii() and job_id.isdecimal():
            return Answer(State.QUEUED, job_id, message)
        case ["never"]:
            return Answer(State.NOT_SENT, None, "no job was created, and none can start any more")
        # From 128 on sbatch was killed: its request may have left before. So may a silent one's.
        case ["rc", rc] if _is_refusal(rc, message):
            return Answer(State.REFUSED, None, message)
        case ["no-folder"]:
            return Answer(State.NOT_SENT, None, "the run's folder is not there")
        case ["gone"]:
            return Answer(State.NOT_SENT, None, "neither the run's folder nor a job is there")
        case ["hidden"]:
            return Answer(State.UNKNOWN, None, "the run's folder is not there")
        case ["changed"]:
            return Answer(State.NOT_SENT, None, "job.sh is not the composed one")
        case ["no-lock"]:
            return Answer(State.NOT_SENT, None, message or "the lock could not be made")
        case _:
            return Answer(State.UNKNOWN, None, message or " ".join(words))


def _is_refusal(rc: str, message: str) -> bool:
    """Whether sbatch's status and words are certainly a refusal."""
    certain = rc.isdecimal() and 0 < int(rc) < 128 and message != ""
    return certain and not _UNDECIDED.search(message)
