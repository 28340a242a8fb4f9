"""A mark on the site that makes a run unique for its place in a series or its resubmission.

Two copies of a history on two laptops have the same plan without knowing of each other. The mark is
a link whose name both compute, so that only one can create it. It is created with the run's folder,
before the submit step. A run that can no longer have a job gives its place to the next number.
"""

import re
import time
from dataclasses import dataclass

from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.run_folder import CLAIM, COPYING_SECONDS, LOCK, RECEIPT
from lumitui.remote.site.shell_text import fill

SENT = "sent"
"""The folder of the marks, beside `runs/`."""
_LONGEST = 2 * COPYING_SECONDS
"""Seconds after which a send without a lock counts as abandoned: copying and building take less."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Once:
    """The unique identity of a run."""

    keys: tuple[str, ...]
    """Names of marks, the same in all copies of the history."""
    gone: tuple[str, ...]
    """Earlier attempts that this history considers unsent; the site decides."""
    run: str
    host: str
    """This laptop's name, to show on another one."""


class AlreadySent(RefusedError):
    """Another laptop has sent the same run, or is sending it."""

    def __init__(self, run: str, host: str, since: float | None, job: str, *, begun: bool) -> None:
        """Report sender and time; `begun`: whether its submit step was reached."""
        at = time.strftime(" at %Y-%m-%d %H:%M", time.localtime(since)) if since else ""
        verb, by = "already sent" if begun else "being sent", f" by {host}" if host else ""
        super().__init__(
            f"{run} was {verb}{by}{at}: job {job}." if job else f"{run} was {verb}{by}{at}.",
            "lumitui sent nothing twice. `lumitui status` shows that run; to train it once "
            "more, resubmit it again.",
        )
        self.run, self.job = run, job


# Runs in the run's folder, under set -e. `undo` calls unmark.
_SCRIPT = r"""
unmark() {
  for key in {keys}; do
    for mark in "../../{sent}/$key".*; do
      case $(readlink "$mark") in "{run}|"*) rm -f "$mark" ;; esac
    done
  done
}
# Whether no job of a run can start any more. Who takes the lock first decides that.
over() {
  [ -d "../$1" ] || return 1
  if mkdir "../$1/{lock}" 2>/dev/null; then ln -s void "../$1/{claim}" 2>/dev/null || :; fi
  [ "$(readlink "../$1/{claim}")" = void ]
}
sent_already() {
  begun=; job=
  if [ -d "../${1%%|*}/{lock}" ]; then begun=yes; fi
  job=$(readlink "../${1%%|*}/{claim}" || head -c 40 "../${1%%|*}/{receipt}" 2>/dev/null) || job=
  printf 'sent-already %s|%s|%s\n' "$1" "$begun" "$job"
  exit 8
}
now=$(date +%s)
for run in {gone}; do [ ! -d "../$run" ] || over "$run" || sent_already "$run||"; done
mkdir -p ../../{sent}
for key in {keys}; do
  n=0
  until n=$((n + 1)); mark="../../{sent}/$key.$n"; ln -s "{run}|{host}|$now" "$mark" 2>/dev/null; do
    by=$(readlink "$mark") || { echo "the mark $key could not be made" >&2; exit 9; }
    run=${by%%|*} since=${by##*|}
    if [ "$(readlink "../$run/{claim}")" = void ]; then continue; fi
    case $since in ''|*[!0-9]*) since=0 ;; esac
    case " {gone} " in *" $run "*) since=0 ;; esac
    if [ $((now - since)) -gt {longest} ] && over "$run"; then continue; fi
    sent_already "$by"
  done
done
"""


def once_script(once: Once) -> str:
    """Return sh that marks a run, or exits with 8 if another run has its place."""
    return fill(
        _SCRIPT,
        keys=_names(once.keys),
        gone=_names(once.gone),
        run=_names([once.run]),
        host=_names([re.sub(r"[^A-Za-z0-9._-]+", "-", once.host)[:60]]) or "laptop",
        sent=SENT,
        lock=LOCK,
        claim=CLAIM,
        receipt=RECEIPT,
        longest=int(_LONGEST),
    )


def already_sent(text: str) -> AlreadySent:
    """Return the error for the script's exit code 8."""
    line = text.partition("sent-already ")[2].splitlines()[0]
    run, host, since, begun, job = (part[:100] for part in (line + "|||||").split("|")[:5])
    when = float(since) if re.fullmatch("[0-9]{1,12}", since) else None
    number = job.strip() if re.fullmatch("[0-9]{1,18}", job.strip()) else ""
    return AlreadySent(run, host, when, number, begun=bool(begun))


def _names(words: "list[str] | tuple[str, ...]") -> str:
    return " ".join(word for word in words if _NAME.fullmatch(word))
