"""What a run with `chain:` wrote of its attempts, and what they come to. Pure.

The job (templates/job/chain.sh) appends two lines to attempts.jsonl for each attempt: `began` and
`ended`. An attempt that was killed has no second one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lumitui.remote.site.answer_fields import json_of, moment, short, whole

MOST_ATTEMPTS = 999
"""As in run_files.MOST_ATTEMPT; a program may write any number of lines."""
_MOST_NODES = 4000  # characters of a list of nodes
_MOST_STEPS = 10**15
_CODES = 256

KILLED = "killed"
"""What becomes of an attempt that wrote no end: a node failed, or someone requeued its job."""
ENDS = ("requeue", "done", "failed", "used-up", "no-progress", "unsaved", "cancelled", "refused")
"""What a job says of an attempt's end; `refused`: Slurm did not take it back into the queue."""

SAVED = ("requeue", "used-up", "refused")
"""The ends of an attempt that was asked to stop, and saved."""


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt of a run, as its job wrote it. Times are epoch seconds of the site's clock."""

    number: int
    """Counted from 1."""
    job_id: str
    nodes: str
    started: float
    ended: float | None = None
    """When it ended; of a killed one, when it last wrote to its log."""
    rc: int | None = None
    step: int | None = None
    """The last one that it trained; None: the program reports no steps."""
    end: str = ""
    """One of ENDS, or KILLED; empty while it runs."""
    said: str = ""
    """Slurm's words, where it refused."""


def merged(records: Iterable[AttemptRecord], lines: bytes) -> tuple[AttemptRecord, ...]:
    """Return the attempts after some more lines of attempts.jsonl; what is no such line is none."""
    by_number = {record.number: record for record in records}
    for data in map(json_of, lines.splitlines()):
        if not isinstance(data, dict):
            continue
        number, when = whole(data.get("attempt"), 1, MOST_ATTEMPTS), moment(data.get("time"))
        if number is None or when is None:
            continue
        if data.get("event") == "began":
            _close(by_number, number, moment(data.get("alive")))
            nodes, job_id = short(data.get("nodes"), _MOST_NODES), short(data.get("job"), 40)
            by_number[number] = AttemptRecord(number, job_id, nodes, when)
        elif number in by_number and by_number[number].end != KILLED:  # else its node came back
            by_number[number] = _after(by_number[number], data, when)
    return tuple(by_number[number] for number in sorted(by_number))


def _close(by_number: dict[int, AttemptRecord], number: int, alive: float | None) -> None:
    """Note that the attempt before `number` was killed, if it wrote no end."""
    before = by_number.get(number - 1)
    if before is not None and not before.end:
        ended = None if alive is None else max(before.started, alive)
        by_number[number - 1] = replace(before, end=KILLED, ended=ended)


def _after(record: AttemptRecord, data: dict[object, object], when: float) -> AttemptRecord:
    if data.get("event") == "refused":
        return replace(record, end="refused", said=short(data.get("said"), 300))
    end = data.get("next")
    if data.get("event") != "ended" or end not in ENDS:
        return record
    rc, step = whole(data.get("rc"), 0, _CODES), whole(data.get("step"), 0, _MOST_STEPS)
    ended = max(record.started, when)  # a node's clock may have been set back
    return replace(record, ended=ended, rc=rc, step=step, end=str(end))


def seconds_ended(records: Iterable[AttemptRecord]) -> float:
    """Return how long the attempts ran that have ended, as far as that is known."""
    over = (record for record in records if record.end)
    return sum((record.ended or record.started) - record.started for record in over)


def saved(records: Iterable[AttemptRecord]) -> bool:
    """Return whether an attempt ended with a checkpoint to go on from."""
    return any(record.end in SAVED for record in records)


def trained(records: Iterable[AttemptRecord]) -> Iterator[tuple[AttemptRecord, int | None]]:
    """Yield each attempt with how many steps it trained; None: that is not known."""
    before: int | None = 0
    for record in records:
        is_known = record.step is not None and before is not None
        yield record, max(0, record.step - before) if is_known else None  # type: ignore[operator]
        # What a killed attempt trained after its last checkpoint is trained again.
        before = record.step if record.step is not None else before
