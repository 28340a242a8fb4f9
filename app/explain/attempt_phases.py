"""How each attempt of a run spent its time: a bar of characters, and the same in words. Pure.

Starting ends with the first step that the metrics tell of; without metrics a job only runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumitui.app.explain import words
from lumitui.app.explain.timeline import Attempt
from lumitui.app.history.run import Run

MARKS = {
    "queued": "·",
    "requeued": "~",
    "starting": "░",
    "training": "█",
    "running": "█",
    "saving": "▒",
}
"""The character of each phase: they differ where there is no colour."""
_EARLY = 60.0
"""Seconds by which the clock of a node may be behind Slurm's."""
_WIDEST = 60


@dataclass(frozen=True)
class Phase:
    """What an attempt did for a while."""

    kind: str
    """A key of MARKS."""
    seconds: float


@dataclass(frozen=True)
class AttemptPhases:
    """One attempt, from the queue on."""

    number: int
    phases: tuple[Phase, ...]
    lasts: bool
    """Whether the last phase goes on."""

    def bar(self, width: int) -> list[tuple[str, str]]:
        """Return each phase with its part of at most `width` characters; each has at least one."""
        width = min(width, _WIDEST)
        total = sum(phase.seconds for phase in self.phases)
        cells = [max(1, round(phase.seconds / total * width)) for phase in self.phases]
        while sum(cells) > width and max(cells) > 1:
            cells[cells.index(max(cells))] -= 1
        return [(p.kind, MARKS[p.kind] * n) for p, n in zip(self.phases, cells, strict=True)]

    @property
    def words(self) -> str:
        """The phases with their characters and how long each took."""
        texts = [f"{MARKS[p.kind]} {p.kind} {words.short_length(p.seconds)}" for p in self.phases]
        return "  ".join(texts) + (" …" if self.lasts else "")


def attempt_phases(run: Run, starts: Sequence[Attempt], now: float) -> list[AttemptPhases]:
    """Return the attempts of `run`; `starts` are those of its program, as its metrics tell."""
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
    """Yield what an attempt did from its start on."""
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
