"""The events of a run, and how each attempt spent its time. Pure.

Slurm, the trainer and the laptop have separate clocks, which may differ by seconds. Events dated by
the laptop are placed by their kind, all others by their time. Slurm writes whole seconds: events in
the same second are in the order of a job's life. The words may contain text from a site: escape it
when drawing (`safe_text`).

In the bar of an attempt, starting ends with the first step in the metrics; without metrics, the bar
shows only that the job ran.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lumitui.app.explain import run_phrases, words
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import Run, trained
from lumitui.remote.site.states import State

_BEHIND = 60.0
_NO_DATE = 1e15
"""Maximum epoch seconds; only a broken clock exceeds it, and larger floats are not exact."""


@dataclass(frozen=True)
class Happening:
    """One past or expected event."""

    moment: float | None
    """Epoch seconds; None if only its position is known."""
    what: str
    ahead: bool = False
    """Whether it is expected."""
    leads: bool = False
    """Whether it is the first event, whatever its time."""


@dataclass
class Attempt:
    """One start of the program, from its metrics."""

    began: float | None = None
    """Start in epoch seconds on the site's clock; None if the trainer does not write it."""
    ranks: int | None = None
    first_step: MetricPoint | None = None
    last_checkpoint: MetricPoint | None = None
    checkpoints: int = 0
    saving: float = 0.0
    """Total duration of its saves in seconds."""
    ends: list[MetricPoint] = field(default_factory=list)
    """How it stopped or ended; empty if it was killed or is running."""


def attempts_of(points: Iterable[MetricPoint]) -> tuple[Attempt, ...]:
    """Return the attempts in a run's metrics, in order."""
    attempts: list[Attempt] = []
    for point in points:
        if point.event == "start" or not attempts:
            began = point.extra.get("time") if point.event == "start" else None
            attempts.append(Attempt(began if isinstance(began, float) else None, point.world_size))
        attempt = attempts[-1]
        if point.event == "step":
            attempt.first_step = attempt.first_step or point
        elif point.event == "checkpoint":
            attempt.last_checkpoint = point
            attempt.checkpoints += 1
            took = point.extra.get("save_s", 0.0)
            attempt.saving += max(0.0, took) if isinstance(took, float) else 0.0
        elif point.event in ("stop", "end"):
            attempt.ends.append(point)
    return tuple(attempts)


def happenings(run: Run, attempts: Sequence[Attempt], proof: Verdict | None) -> list[Happening]:
    """Return the past and expected events of `run`, in order of time."""
    is_each = len(attempts) == run.attempt
    kind = "attempt" if is_each else "program start"
    trained = {
        number: [*_trained(one, f" ({kind} {number})" if len(attempts) > 1 else "")]
        for number, one in enumerate(attempts, 1)
    }
    own = {one.number: trained.pop(one.number, []) for one in run.attempts if is_each}
    rest = [item for events in trained.values() for item in events]
    return _in_order([*_before(run, proof, own), *rest, *_after(run)])


def rows(events: Sequence[Happening], now: float) -> list[tuple[str, str, str]]:
    """Return each event as its time, the time since the previous one, and its words."""
    shown = []
    before: float | None = None
    for item in events:
        since = ""
        if item.moment is not None:
            if item.ahead:
                left = item.moment - max(now, before or now)  # past events are not after now
                since = f"in {words.length(left)}" if left > 0 else "due"
            else:
                if before is not None and item.moment - before > -1:  # else the clocks differ
                    since = f"+{words.length(round(item.moment - before))}"
                before = item.moment
        shown.append((words.clock(item.moment), since, item.what))
    return shown


def _before(
    run: Run, proof: Verdict | None, own: Mapping[int, Sequence[Happening]]
) -> Iterator[Happening]:
    """Yield the events of the job; `own` has those of the program in each attempt."""
    late = run.created - min(filter(None, (run.submitted, run.started)), default=run.created)
    clock = f" (its clock is {words.length(round(late))} ahead of the site's)" if late >= 1 else ""
    if run.started and 0 < run.updated < run.started - _BEHIND:  # told before it was: it is behind
        gap = words.length(round((run.submitted or run.started) - run.created))
        clock = f" (its clock is about {gap} behind the site's)"
    yield Happening(run.created, f"created on a laptop{clock}", leads=True)
    begun = run.attempts[0].started if run.attempts else None
    requeued = run.submitted is not None and begun is not None and run.submitted > begun
    if run.submitted:
        job = f" as job {run.job_id}" if run.job_id else ""
        # Dated by the laptop until the site reports a time, which a requeue replaces.
        sent, leads = None if requeued else run.submitted, requeued or run.attempt == 1
        yield Happening(sent, f"submitted to {run.site}{job}", leads=leads)
    if requeued and run.state is State.QUEUED:
        yield Happening(run.submitted, "requeued")
    for record, steps in trained(run.attempts, resumed=run.resumed_from is not None):
        is_last = run.started is not None and record.number == run.attempt
        yield Happening(run.started if is_last else record.started, run_phrases.began(record))
        yield from own.get(record.number, ())
        if record.end:
            yield Happening(record.ended, run_phrases.ended(record, steps))
    if run.started and not any(record.number == run.attempt for record in run.attempts):
        again = f", attempt {run.attempt}" if run.attempt > 1 else ""
        where = f" on {run.nodes_used}" if run.nodes_used else ""
        yield Happening(run.started, f"job started{again}{where}")
    if run.binding is not None and proof is not None:
        yield Happening(None, f"binding of the ranks: {proof.kind}")


def _trained(attempt: Attempt, name: str) -> Iterator[Happening]:
    """Yield the events that a program's metrics tell; their words end with its `name`."""
    if attempt.began is not None:
        on = f" on {words.count(attempt.ranks, 'rank')}" if attempt.ranks else ""
        yield Happening(attempt.began, f"program started{on}{name}")
    if attempt.first_step is not None:
        step = attempt.first_step.step or 0
        yield Happening(_moment(attempt, attempt.first_step), f"first step {step:,}{name}")
    if attempt.last_checkpoint is not None:
        last = attempt.last_checkpoint
        count = f"{words.count(attempt.checkpoints, 'checkpoint')}, the last"
        yield Happening(_moment(attempt, last), f"{count} after step {last.step or 0:,}{name}")
    for end in attempt.ends:
        signal = end.extra.get("signal")
        by = f" by {signal}" if signal else ""
        how = f"program stopped{by}" if end.event == "stop" else "program ended"
        yield Happening(_moment(attempt, end), f"{how} after step {end.step or 0:,}{name}")


def _moment(attempt: Attempt, point: MetricPoint) -> float | None:
    if attempt.began is None or point.seconds is None:
        return None
    moment = attempt.began + point.seconds
    return moment if math.isfinite(moment) else None


def _after(run: Run) -> Iterator[Happening]:
    if run.ended:
        reason = words.reason(run)
        yield Happening(run.ended, f"job ended: {run.state}{f' ({reason})' if reason else ''}")
    if run.state is State.QUEUED and run.expected_start:
        yield Happening(run.expected_start, "expected to start", ahead=True)
    if end := run.latest_end:
        yield Happening(end, "reaches its time limit", ahead=True)


def _in_order(events: Sequence[Happening]) -> list[Happening]:
    """Return the events by whole seconds; one without a time stays after the previous one."""
    keyed = []
    last = 0.0
    for at, item in enumerate(events):
        last = last if item.moment is None else item.moment
        second = last // 1 if abs(last) < _NO_DATE else last
        keyed.append((item.ahead, not item.leads, 0.0 if item.leads else second, at))
    return [events[at] for *_, at in sorted(keyed)]


MARKS = {
    "queued": "·", "requeued": "~", "starting": "░",
    "training": "█", "running": "█", "saving": "▒",
}  # fmt: skip
"""The character of each phase, distinguishable without colour."""
_EARLY = 60.0
"""Seconds by which the clock of a node may be behind Slurm's."""
_WIDEST = 60


@dataclass(frozen=True)
class Phase:
    """A phase of an attempt."""

    kind: str
    """A key of MARKS."""
    seconds: float


@dataclass(frozen=True)
class AttemptPhases:
    """One attempt, from its time in the queue on."""

    number: int
    phases: tuple[Phase, ...]
    lasts: bool
    """Whether the last phase is unfinished."""

    def bar(self, width: int, longest: float) -> list[tuple[str, str]]:
        """Return each phase with its characters, at least one: `width` are `longest` seconds."""
        width = min(width, _WIDEST)
        cells = [max(1, round(phase.seconds / longest * width)) for phase in self.phases]
        while sum(cells) > width and max(cells) > 1:
            cells[cells.index(max(cells))] -= 1
        return [(p.kind, MARKS[p.kind] * n) for p, n in zip(self.phases, cells, strict=True)]

    @property
    def words(self) -> str:
        """The phases with their characters and durations."""
        texts = [f"{MARKS[p.kind]} {p.kind} {words.short_length(p.seconds)}" for p in self.phases]
        return "  ".join(texts) + (" …" if self.lasts else "")


def attempt_phases(run: Run, starts: Sequence[Attempt], now: float) -> list[AttemptPhases]:
    """Return the attempts of `run` with their phases; `starts` are the attempts in its metrics."""
    jobs = [(record.number, record.started, record.ended) for record in run.attempts]
    if run.started is not None and run.attempt not in [number for number, *_ in jobs]:
        jobs.append((run.attempt, run.started, run.ended))
    found, before = [], run.submitted
    if run.queued_again or before is None:
        before = run.created if run.job_id is not None else None
    waited = "queued"
    for number, started, ended in jobs:
        end = min(ended or now, now)
        phases = [Phase(waited, started - before)] if before is not None else []
        inside = [
            one for one in starts if one.began is not None and started - _EARLY <= one.began <= end
        ]
        phases += _worked(inside, started, end)
        kept = tuple(phase for phase in phases if phase.seconds > 0)
        found.append(AttemptPhases(number, kept, ended is None and not run.state.is_final))
        before, waited = end, "requeued"
    if not run.state.is_final and before is not None and run.started is None:
        phase = Phase(waited, max(1.0, now - before))
        found.append(AttemptPhases(len(jobs) + 1, (phase,), lasts=True))
    return [attempt for attempt in found if attempt.phases]


def _worked(starts: Sequence[Attempt], started: float, end: float) -> Iterator[Phase]:
    """Yield the phases of an attempt from its start on."""
    if not starts:
        yield Phase("running", end - started)
        return
    first = starts[0]
    step = first.first_step.seconds if first.first_step is not None else None
    trains = min(end, (first.began or started) + step) if step is not None else end
    saving = min(end - trains, sum(one.saving for one in starts))
    yield Phase("starting", trains - started)
    yield Phase("training", end - trains - saving)
    yield Phase("saving", saving)
