"""What a run's metrics come to: a few figures, the curve of its loss, and what its log says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.results.log_patterns import series_of
from lumitui.app.results.summary import Curve, Summary, curve, summarize
from lumitui.remote.errors import LumiError

LOG_BYTES = 262_144
"""Of a log, searched for the job file's `metrics:`."""


@dataclass(frozen=True)
class Figures:
    """The figures of one run, as far as history has its metrics."""

    summary: Summary
    loss: Curve
    points: int
    """Lines of metrics.jsonl."""
    broken: int
    """Lines of it that could not be read."""


@dataclass(frozen=True)
class LogFigures:
    """What the job file's `metrics:` found at the end of the log."""

    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    warning: str = ""
    """Why it could not be looked at."""


def figures_of(history: History, run_id: str) -> Figures:
    """Return the figures of a run; 100,000 steps take about a second."""
    points = history.metrics.of(run_id)
    broken = history.metrics.broken(run_id)
    return Figures(summarize(points), curve(points), len(points), broken)


def log_figures_of(run: Run, read: Callable[[int], bytes]) -> LogFigures:
    """Search the end of a run's log for what its job file names under `metrics:`.

    `read` brings the last so many bytes of the log; it is asked once, or not at all.
    """
    if not run.spec.metrics or not run.log_sizes:
        return LogFigures()
    try:
        log = read(LOG_BYTES).decode("utf-8", "replace")
        return LogFigures(series_of(log, run.spec.metrics))
    except LumiError as error:
        return LogFigures(warning=f"`metrics:` cannot be read from the log: {error}")
