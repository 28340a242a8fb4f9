"""Measurements of a run and its relatives, from the history, for the overview."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lumitui.app.explain.proof.binding_proof import Verdict, verdict_of
from lumitui.app.explain.timeline import Attempt, attempts_of
from lumitui.app.explain.training_summary import Speedup, Summary, TrainedRun, speedups
from lumitui.app.follow.results.summary import Figures, figures_from
from lumitui.app.follow.results.sweep import StepPace, pace_of, sweep, workers_in
from lumitui.app.history.history import History
from lumitui.app.history.listing.series_runs import RunSeries
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

_MOST = 200
"""Maximum number of runs with cached metrics; each takes about 10 kB."""


@dataclass(frozen=True)
class Relative:
    """A run of a lineage, with its depth and measurements."""

    run: Run
    depth: int
    """Number of ancestors in the lineage; 0 for the root."""
    summary: Summary
    beside_parent: Speedup | None
    """Speed-up relative to its parent; None without a parent or a throughput, or if it ended
    early."""


@dataclass(frozen=True)
class RunOverview:
    """What the overview shows of a run besides its fields."""

    run: Run
    proof: Verdict
    figures: Figures
    relatives: tuple[Relative, ...]
    """The run with its ancestors, its descendants and the other sizes of its ladder, each below
    its parent."""
    attempts: tuple[Attempt, ...] = ()
    """Its attempts, from its metrics."""
    advice: tuple[str, ...] = ()
    """The grid's advice on the number of loader workers."""
    planned: int | None = None
    """Steps of the whole training of an unfinished chain; None if unknown."""

    @property
    def comparison(self) -> tuple[Run, Speedup] | None:
        """The run's parent, with the comparison; None if there is none."""
        own = next((item for item in self.relatives if item.run.id == self.run.id), None)
        parent = next((item.run for item in self.relatives if item.run.id == self.run.parent), None)
        if own is None or parent is None or own.beside_parent is None:
            return None
        return parent, own.beside_parent


class Overviews:
    """Reads overviews from a history; recomputes only changed ones."""

    def __init__(self, history: History) -> None:
        """Read from `history`; threads may share it."""
        self._history = history
        self.last: RunOverview | None = None
        """The overview read last, with which a screen can begin."""
        self._kept = lru_cache(_MOST)(self._read)

    def of(self, run_id: str) -> RunOverview:
        """Return the overview of a run, without querying a site.

        Raises:
            InputError: no such run.
        """
        run = self._history.get(run_id)
        own = self._metrics(run)
        family = {one.id: one for one in self._history.lineage(run.id)}
        advice: tuple[str, ...] = ()
        if series := self._history.series.of_run(run.id):
            members = [one.run for one in series.members if one.run]
            runs = self._history.finder.with_ids(members)
            advice = self._advice(series, runs)
            family = runs | family if series.kind == "ladder" else family
        relatives = self._relatives(sorted(family.values(), key=lambda one: (one.created, one.id)))
        verdict = verdict_of(run)
        self.last = RunOverview(
            run, verdict, own.figures, relatives, own.attempts, advice, _planned(run, own.planned)
        )
        return self.last

    def _advice(self, series: RunSeries, runs: Mapping[str, Run]) -> tuple[str, ...]:
        """Return the advice from a grid if it varies loader workers."""
        if any(workers_in(one.words) is None for one in series.members):
            return ()
        states = {name: one.state.value for name, one in runs.items()}
        return sweep(series, states, lambda name: self._metrics(runs[name]).pace).advice

    def figures(self, run: Run) -> Figures:
        """Return the metrics of a run; 20,000 steps take 0.3 s, once."""
        return self._metrics(run).figures

    def _metrics(self, run: Run) -> "_RunMetrics":
        return self._kept(run.id, run.metrics_offset)

    def _read(self, run_id: str, _offset: int) -> "_RunMetrics":
        points = self._history.metrics.of(run_id)
        figures = figures_from(points, self._history.metrics.broken(run_id))
        start = next((one for one in reversed(points) if one.event == "start"), MetricPoint())
        told = [start.extra.get(name) for name in ("train_samples", "epochs")]
        samples, epochs = (one if isinstance(one, float) else 0.0 for one in told)
        planned = int(samples * epochs / batch) if (batch := figures.summary.global_batch) else None
        return _RunMetrics(figures, attempts_of(points), pace_of(points), planned or None)

    def _relatives(self, family: Sequence[Run]) -> tuple[Relative, ...]:
        relatives: dict[str, Relative] = {}
        for run, depth in _tree(family):
            summary = self.figures(run).summary
            parent = relatives.get(run.parent or "")
            beside = _beside(parent, run, summary) if parent else None
            relatives[run.id] = Relative(run, depth, summary, beside)
        return tuple(relatives.values())


@dataclass(frozen=True)
class _RunMetrics:
    """A summary of one run's metrics."""

    figures: Figures
    attempts: tuple[Attempt, ...]
    pace: StepPace
    planned: int | None
    """Steps of all epochs, if the trainer reports them."""


def _planned(run: Run, reported: int | None) -> int | None:
    """Return the steps of a chain's training; for any other run, its overview needs none."""
    if run.state.is_final or run.brief.chain < 2:
        return None
    from lumitui.app.scale.scaling.sent_work import steps_in

    return steps_in(run.spec) or reported


def _tree(family: Sequence[Run]) -> Iterator[tuple[Run, int]]:
    """Yield each run below its parent, with its depth; siblings keep their order."""
    ids = {run.id for run in family}
    below: dict[str | None, list[Run]] = {}
    for run in family:
        below.setdefault(run.parent if run.parent in ids else None, []).append(run)
    waiting = [(run, 0) for run in reversed(below.get(None, []))]
    while waiting:
        run, depth = waiting.pop()
        yield run, depth
        waiting += [(child, depth + 1) for child in reversed(below.get(run.id, []))]


def _beside(parent: Relative, run: Run, own: Summary) -> Speedup | None:
    first = parent.summary
    if not (first.samples_per_s and own.samples_per_s) or _ended_early(parent, run, own):
        return None
    both = [(parent.run, first), (run, own)]
    return speedups([TrainedRun(one.id, one.layout.nodes, told) for one, told in both])[1]


def _ended_early(parent: Relative, run: Run, own: Summary) -> bool:
    """Return whether a run ended before it trained half as much as its parent, which is done.

    The speed of so few steps says little; `lumitui scaling` leaves such runs out, too.
    """
    if not run.state.is_final or run.state is State.DONE or parent.run.state is not State.DONE:
        return False
    batches = (own.global_batch or 0, parent.summary.global_batch or 0)
    size, whole = batches if all(batches) else (1, 1)
    return 2 * own.steps * size < parent.summary.steps * whole
