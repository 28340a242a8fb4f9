"""Measurements of a run and its relatives, from the history, for the overview."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lumitui.app.explain.proof.binding_proof import Verdict, verdict_of
from lumitui.app.explain.timeline import Attempt, attempts_of
from lumitui.app.explain.training_summary import Speedup, Summary, TrainedRun, speedups
from lumitui.app.follow.results.summary import Figures, figures_from
from lumitui.app.follow.results.sweep import StepPace, pace_of, sweep, workers_in
from lumitui.app.history.history import History
from lumitui.app.history.run import Run

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
    """Speed-up relative to its parent; None without a parent, or if a throughput is missing."""


@dataclass(frozen=True)
class RunOverview:
    """What the overview shows of a run besides its fields."""

    run: Run
    proof: Verdict
    figures: Figures
    relatives: tuple[Relative, ...]
    """The run with its ancestors and descendants, each below its parent."""
    attempts: tuple[Attempt, ...] = ()
    """Its attempts, from its metrics."""
    advice: tuple[str, ...] = ()
    """The grid's advice on the number of loader workers."""

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
        self._kept = lru_cache(_MOST)(self._read)

    def of(self, run_id: str) -> RunOverview:
        """Return the overview of a run, without querying a site.

        Raises:
            InputError: no such run.
        """
        run = self._history.get(run_id)
        own = self._metrics(run)
        relatives = self._relatives(self._history.lineage(run.id))
        advice = self._advice(run)
        return RunOverview(run, verdict_of(run), own.figures, relatives, own.attempts, advice)

    def _advice(self, run: Run) -> tuple[str, ...]:
        """Return the advice from a run's grid if it varies loader workers."""
        series = self._history.series.of_run(run.id)
        if series is None or any(workers_in(one.words) is None for one in series.members):
            return ()
        names = [one.run for one in series.members if one.run]
        runs = self._history.finder.with_ids(names)
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
        return _RunMetrics(figures, attempts_of(points), pace_of(points))

    def _relatives(self, family: Sequence[Run]) -> tuple[Relative, ...]:
        trained: dict[str, TrainedRun] = {}
        relatives = []
        for run, depth in _tree(family):
            summary = self.figures(run).summary
            trained[run.id] = TrainedRun(run.id, run.layout.nodes, summary)
            parent = trained.get(run.parent or "")
            beside = _beside(parent, trained[run.id]) if parent else None
            relatives.append(Relative(run, depth, summary, beside))
        return tuple(relatives)


@dataclass(frozen=True)
class _RunMetrics:
    """A summary of one run's metrics."""

    figures: Figures
    attempts: tuple[Attempt, ...]
    pace: StepPace


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


def _beside(parent: TrainedRun, run: TrainedRun) -> Speedup | None:
    known = parent.summary.samples_per_s and run.summary.samples_per_s
    return speedups((parent, run))[1] if known else None
