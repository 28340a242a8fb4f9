"""Cancelling in Slurm: the mark in the run's folder, scancel, and the queue's confirmation.

scancel's output and exit status prove nothing. A complete answer of the queue does: a job of the
run has ended, or is ending and its next attempt would read the mark (templates/job/lumitui.sh). An
id alone is never enough to end a job: see `_CANCEL`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lumitui.remote.scheduler.scheduler_protocol import MOST_LIST, MOST_WORDS, Watch
from lumitui.remote.site.answer_fields import count
from lumitui.remote.site.errors import OutcomeUnknown, RefusedError
from lumitui.remote.site.run_folder import CANCELLED, CLAIM
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.records import parse_records, record_functions

NEXT = "The next poll settles it (`lumitui status`)."
"""The hint for an unconfirmed cancel."""


class CancelOutcome(NamedTuple):
    """The result of a cancel."""

    gone: dict[str, str]
    """The runs whose jobs left the queue, each with its message."""
    commands: int
    """Number of the scheduler's commands that ran."""


def cancel_script(marker: str, watches: Sequence[Watch], clean: str, ours: str) -> str:
    """Return the one request of a cancel; `clean` and `ours` are Slurm's functions in sh.

    A watch without a job id is for a run whose submission is not settled.
    """
    calls = "\n".join(
        f"one {index} {quote(watch.job_id)} {quote(watch.run)} {quote(watch.token or watch.run)}"
        f" {quote(watch.folder)}"
        for index, watch in enumerate(watches)
    )
    return fill(
        _CANCEL,
        clean=clean,
        records=record_functions(marker),
        ours=ours,
        job=f"{marker}-job",
        most=MOST_LIST,
        claim=CLAIM,
        cancelled=CANCELLED,
        over=_OVER,
        asked=calls,
    )


def parse_cancel(output: bytes, marker: str, watches: Sequence[Watch]) -> CancelOutcome:
    """Return the result in the answer of `cancel_script`.

    Raises:
        OutcomeUnknown: scancel was sent, but the queue does not confirm that nothing more can
            start.
        RefusedError: scancel failed and a job continues, or the answer is missing.
    """
    gone: dict[str, str] = {}
    commands, text, refused, opened = 0, "The site did not answer", "", ""
    for words, content in parse_records(output, marker):
        text = content[: 4 * MOST_WORDS].decode("utf-8", "replace").strip()[:MOST_WORDS]
        place = count(words[1]) if len(words) > 1 else None
        watch = watches[place] if place is not None and place < len(watches) else None
        match words[0], watch:
            case "gone", Watch():
                gone[watch.run] = _NOT_LISTED
            case "other", Watch():
                gone[watch.run] = _OTHER.format(job=watch.job_id, name=text)
            case "ended", Watch():
                pass
            case "open", Watch():
                opened = opened or text or "the site gave no reason"
            case "still", Watch():
                refused = refused or f"scancel did not end the job: {text or 'no output'}."
            case "done", None:
                if refused:
                    raise RefusedError(
                        refused, "Try again in a minute; the job keeps running until then."
                    )
                if opened:
                    raise OutcomeUnknown(f"{opened}.", NEXT)
                return CancelOutcome(gone, count(text) or commands)
            case _:
                break
    raise RefusedError(f"The jobs could not be cancelled: {text}.", "Try again in a minute.")


_NOT_LISTED = "The queue no longer has its job, so nothing was cancelled."
_OTHER = (
    "Its job's id {job} now belongs to another job ({name}), which keeps running: nothing was "
    "cancelled."
)

# Excludes COMPLETING, after which Slurm may requeue the job, and REVOKED, for a job that another
# cluster of a federation runs.
_OVER = "COMPLETED|CANCELLED|FAILED|TIMEOUT|DEADLINE|NODE_FAIL|PREEMPTED|OUT_OF_ME[A-Z]*|BOOT_FAIL"
"""The states of squeue in which a job no longer runs."""

# scancel gets the name with the id, so it signals only a job that has both (scancel(1), -n). If the
# site has changed the name, the queue's row read just before is the check: the token, or the script
# in the run's folder. A job that is not listed is also cancelled by name and id, because the list
# may lack it; without such a job, this has no effect.
_CANCEL = r"""
{clean}
{records}
{ours}
umask 077
asked=0
numbers() { echo "$id"; readlink "$RUN/{claim}" 2>/dev/null; }
# `rows`: all jobs of the person. `whole`: squeue printed its header, whole rows, and ended well. An
# empty answer, a part of one, and words are no list.
list() {
  asked=$((asked + 1)) whole=no
  told=$({ squeue --me -a -t all -o '{job}|%A|%T %r|%j|%k|%Z|%o|{job}' 2>&1; echo "{job}=$?"; } |
    head -c {most})
  rows=$(printf '%s\n' "$told" | sed -n 's/^{job}|\([0-9].*\)|{job}$/\1/p')
  case $told in *"{job}=0") ;; *) return ;; esac
  printf '%s\n' "$told" | grep -q '^{job}|JOBID|' &&
    [ "$(printf '%s\n' "$told" | grep -c '^{job}|')" -eq \
      "$(printf '%s\n' "$told" | grep -c '|{job}$')" ] && whole=yes
}
# The words of a list that is none.
excuse() {
  said=$(printf '%s\n' "$told" | grep -v '{job}' | head -n 3 | tr '\n' ' ')
  echo "squeue gave no list of jobs: ${said:-it printed nothing useful}"
}
# A job with another id than those that are known has two signs of the run: its name may be copied.
signs() {
  row=$(printf '%s\n' "$rows" | grep "^$1|") count=0
  case $row in *"|$NAME|"*) count=1 ;; esac
  case $row in *"lumitui:$TOKEN"*) count=$((count + 1)) ;; esac
  case "$row|" in *"|$RUN|"*) count=$((count + 1)) ;; esac
  [ $count -ge 2 ]
}
of() {
  printf '%s\n' "$rows" | grep -Ev "^[0-9]+\|($1) " | ours | while read -r job; do
    if numbers | grep -qx "$job" || signs "$job"; then echo "$job"; fi
  done
}
end() { asked=$((asked + 1)); words="$words$(scancel "$@" 2>&1 </dev/null) " || rc=$?; }
one() {
  index=$1 id=$2 NAME=$3 TOKEN=$4 RUN=$5 words= rc=0 left=
  # Before scancel: each attempt reads it first of all, and before it requeues itself.
  [ ! -d "$RUN" ] || (: >"$RUN/{cancelled}") 2>/dev/null
  list
  # All of them: a submit command that is wrapped may make several, and the one that has the claim
  # may be another than the one that is known.
  jobs=$(of '{over}')
  for job in $jobs; do
    case $(printf '%s\n' "$rows" | grep "^$job|") in
    *"|$NAME|"*) end --name="$NAME" "$job" ;; *) end "$job" ;;
    esac
  done
  known() { [ -n "$id" ] && of none | grep -qx "$id"; }
  # Without an id and with a whole list there is nothing to end; the mark waits for what appears.
  known || { [ -z "$id" ] && [ $whole = yes ]; } || end --name="$NAME" $id
  # The queue tells whether the jobs end.
  [ -z "$jobs" ] && [ $whole = yes ] || for pause in 0 1; do
    sleep $pause
    list
    left=$(of '{over}|COMPLETING')
    if [ $whole = yes ] && [ -z "$left" ]; then break; fi
  done
  if [ $whole = no ]; then begin open $index; excuse; finish; return; fi
  if [ -n "$left" ]; then
    if [ $rc -ne 0 ]; then begin still $index; else
      begin open $index
      echo "the queue still lists job" $left "as $(printf '%s\n' "$rows" |
        sed -n "s/^${left%%[!0-9]*}|\([A-Z_]*\).*/\1/p" | head -n 1)"
    fi
    printf '%s\n' "$words"; finish; return
  fi
  if [ -n "$(of '{over}')" ] && [ ! -e "$RUN/{cancelled}" ]; then
    begin open $index
    echo "no mark could be made in $RUN, so another attempt may start"; finish; return
  fi
  if [ -z "$jobs" ] && ! known; then
    if [ -z "$id" ]; then
      begin open $index
      if [ -e "$RUN/{cancelled}" ]; then echo "it has no known job; one that appears ends at once"
      else echo "it has no known job, and no mark could be made in $RUN"; fi
      finish; return
    fi
    other=$(printf '%s\n' "$rows" | sed -n "s/^$id|[^|]*|\([^|]*\)|.*/\1/p" | head -n 1)
    if [ -n "$other" ]; then begin other $index; printf '%.100s\n' "$other"; finish
    else begin gone $index; finish; fi
    return
  fi
  # Its claim, if it has none yet: a job of the run that is still to come ends at it.
  [ -z "$id" ] || ln -s "$id" "$RUN/{claim}" 2>/dev/null
  begin ended $index; finish
}
{asked}
begin done; echo "$asked"; finish
exit 0
"""
