"""A job is submitted once, and what became of it is read from the evidence; see `evidence`."""

import math
from typing import NamedTuple

from lumitui.remote.scheduler.evidence import settle_script, submit_script
from lumitui.remote.scheduler.scheduler_protocol import MOST_WORDS, Answer, State, Submission
from lumitui.remote.site.answer_fields import count, moment
from lumitui.remote.site.errors import LinkLost
from lumitui.remote.site.run_folder import SUBMIT_SECONDS
from lumitui.remote.transport.records import new_marker, parse_records
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport


class SubmissionOutcome(NamedTuple):
    """What a submission came to, and what finding out has cost."""

    answer: Answer
    commands: int
    """Commands of the scheduler that were run."""


@purpose("submit")
def submit_once(
    transport: Transport, submission: Submission, command: str, functions: str
) -> SubmissionOutcome:
    """Run the submit step, with `command` as the scheduler's; a second call submits nothing.

    `functions` are the scheduler's for the evidence, in sh.

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
    """Read the evidence; see Scheduler.settle.

    Raises:
        LinkLost: the reply was lost.
    """
    marker = new_marker()
    script = settle_script(
        submission, functions, marker, deep=deep, void=void, grace=math.ceil(grace)
    )
    return outcome_of(transport.run(script, timeout=SUBMIT_SECONDS), marker)


def outcome_of(result: Result, marker: str) -> SubmissionOutcome:
    """Return what an answer says that carries `marker`.

    Raises:
        LinkLost: it is not an answer.
    """
    for words, content in parse_records(result.out, marker):
        match words:
            case ["answer", kind, asked, *more]:
                # Bytes first: an answer may be of any size.
                message = content[: 4 * MOST_WORDS].decode("utf-8", "replace").strip()
                answer = answer_of(kind, more[0] if more else "", message[:MOST_WORDS])
                return SubmissionOutcome(answer, count(asked) or 0)
            case _:
                pass
    raise LinkLost(
        f"The submit step gave no evidence (status {result.code}: {result.err[:200]!r}).",
        "It is settled at the next refresh.",
    )


def answer_of(kind: str, detail: str, message: str) -> Answer:
    """Return what the script's answer means; anything unexpected leaves it open."""
    match kind:
        case "id" if detail.isascii() and detail.isdecimal() and len(detail) < 19:
            return Answer(State.QUEUED, detail)
        case "refused":
            return Answer(State.REFUSED, None, message)
        case "never":
            return Answer(State.NOT_SENT, None, "no job was created, and none can start any more")
        case "hidden":
            words = "the run's folder is not there"
            return Answer(State.UNKNOWN, None, words, hidden_at=moment(detail))
        case "no-folder":
            return Answer(State.NOT_SENT, None, "the run's folder is not there")
        case "changed":
            return Answer(State.NOT_SENT, None, "job.sh or what it calls is not the composed one")
        case "no-lock":
            return Answer(State.NOT_SENT, None, message or "the lock could not be made")
        case _:
            return Answer(State.UNKNOWN, None, message or "the scheduler left it open")
