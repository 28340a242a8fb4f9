"""The `metrics:` patterns of a job file, searched in a log for a bounded time.

Users write these regular expressions, and one like `(a|aa)+$` would take years on a line of sixty
characters. Python's `re` cannot be stopped and holds the interpreter's lock; `regex` stops at a
time limit and lets other threads run meanwhile.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from lumitui.app.follow.results.summary import Figures, figures_from
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
from lumitui.app.history.run import Run
from lumitui.remote.site.errors import InputError, LumiError

SECONDS = 3.0
"""Time limit for all patterns of a job on one piece of its log, in seconds; usually they take
milliseconds."""
LOG_BYTES = 262_144
"""Bytes to search at the end of a log."""
_LOG_LINE = 2000
"""Characters to search in each line."""
_SPEEDS = ("images_per_s", "examples_per_s", "sequences_per_s")
"""Common names for `samples_per_s`."""


@dataclass(frozen=True)
class LogFigures:
    """The values of the job file's `metrics:` at the end of the log."""

    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    warning: str = ""
    """Why the log could not be searched."""
    figures: Figures = field(default_factory=lambda: figures_from(()))
    """The values as those of a metrics.jsonl."""


def log_figures_of(run: Run, read: Callable[[int], tuple[int, bytes] | None]) -> LogFigures:
    """Search the end of a run's log for the patterns of its job file's `metrics:`.

    `read` returns the requested number of bytes from the log's end, with their offset, or None if
    there is no log; it is called at most once.
    """
    if not run.has_metrics:
        return LogFigures()
    try:
        if (end := read(LOG_BYTES)) is None:
            return LogFigures()
        series = series_of(end[1].decode("utf-8", "replace"), run.spec.metrics)
        points = [point for line in lines_of(series) if (point := parse_line(line))]
        return LogFigures(series, figures=figures_from(points))
    except LumiError as error:
        return LogFigures(warning=f"lumitui cannot read `metrics:` from the log: {error}")


def keep_log_figures(history: History, run: Run, figures: LogFigures) -> None:
    """Store the values found in an ended run's log, unless it wrote metrics.jsonl."""
    lines = lines_of(figures.series)
    if lines and run.state.is_final:
        # The offset ensures that only one of two processes adds them.
        history.metrics.add(run.id, lines, (0, sum(map(len, lines))))


def series_of(
    text: str, patterns: Mapping[str, str], *, seconds: float = SECONDS
) -> dict[str, list[float]]:
    """Return the numbers that each pattern's group finds in `text`, at most one per line.

    A match that is not a number is omitted. An invalid regular expression gives an empty series;
    the job file's check refuses it.

    Raises:
        InputError: a pattern takes too long; the message names it.
    """
    deadline = time.monotonic() + seconds
    series: dict[str, list[float]] = {}
    for name, pattern in patterns.items():
        try:
            series[name] = list(_numbers(text, pattern, deadline))
        except TimeoutError as error:
            raise InputError(
                f"The pattern {name} under `metrics:` needs more than {seconds:g} s on the log.",
                "Write it without alternatives inside repeats, such as (a|aa)+.",
            ) from error
    return series


def lines_of(series: Mapping[str, Sequence[float]]) -> list[bytes]:
    """Return the values as lines of metrics.jsonl, one per logged step.

    Matches are paired from the end, because the beginning of the log may be missing. Without a
    pattern named `step`, the steps are counted.
    """
    count = max(map(len, series.values()), default=0)
    steps: list[dict[str, float]] = [{"step": index} for index in range(count)]
    for name, values in series.items():
        key = "samples_per_s" if name in _SPEEDS else name
        for step, value in zip(steps[count - len(values) :], values, strict=True):
            step[key] = value
    return [json.dumps(step).encode() for step in steps]


def _numbers(text: str, pattern: str, deadline: float) -> Iterator[float]:
    try:
        compiled = regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError):
        return
    if not compiled.groups:
        return
    for line in text.splitlines():
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        match = compiled.search(line[:_LOG_LINE], timeout=rest, concurrent=True)
        if match and (number := _parsed(match[1])) is not None:
            yield number


def _parsed(text: str | None) -> float | None:
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
