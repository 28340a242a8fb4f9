"""Comparison of a grid's runs: seconds per epoch, time spent waiting for data, and advice.

The numbers come from the steps after the first epoch, which fills caches and compiles kernels; with
only one epoch, from the steps after the warm-up. Pure, except `Sweeps`.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from lumitui.app.explain import words
from lumitui.app.follow.results.summary import summarize
from lumitui.app.history.history import History
from lumitui.app.history.listing.series_runs import RunSeries
from lumitui.app.history.metric_points import WARM_UP_STEPS, MetricPoint
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError

ENOUGH = 0.05
"""Workers that make an epoch shorter by less than this share are not worth their cores: repeated
runs differ by as much."""
STARVED = 0.2
"""Minimum share of a step's time spent waiting for data that lumitui reports."""
_OVER = frozenset(state.value for state in State if state.is_final)
_WORKERS = re.compile(r"^-{1,2}(?:num[-_])?workers=(\d+)$|^-j=(\d+)$")


@dataclass(frozen=True)
class StepPace:
    """Figures from the steps of a training run; None if they are not reported."""

    epoch_s: float | None = None
    """Duration of an epoch's steps in seconds."""
    waiting: float | None = None
    """The share of these steps' time spent waiting for data, 0 to 1."""
    samples_per_s: float | None = None
    """The median step's, like a run's own speed."""
    is_mean: bool = False
    """Whether it is the mean instead, with steps that wait: only bundled trainers report them."""
    loss: float | None = None
    """The last one."""
    others: Mapping[str, float] = field(default_factory=dict)
    """The last value of each other metric."""


@dataclass(frozen=True)
class SweepRow:
    """One run of a grid."""

    setting: str
    """Its setting, such as `--workers=4`."""
    run: str | None = None
    state: str = "not sent"
    pace: StepPace = StepPace()
    others: tuple[float | None, ...] = ()
    """The last values of the grid's metrics, in its order."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The table row under the grid's titles."""
        pace = self.pace
        waits = "-" if pace.waiting is None else f"{100 * pace.waiting:.0f} %"
        speed, numbers = words.rate(pace.samples_per_s), (pace.epoch_s, pace.loss, *self.others)
        epoch, *losses = ("-" if each is None else f"{each:.4g}" for each in numbers)
        return self.setting, epoch, speed, waits, *losses, self.state, self.run or "-"

    @property
    def going(self) -> bool:
        """Whether its run was sent and has not ended, so that its figures may change."""
        return self.run is not None and self.state not in (*_OVER, State.UNKNOWN)

    @property
    def workers(self) -> int | None:
        """Its number of workers, if the runs differ only in that."""
        return workers_in(self.setting)


@dataclass(frozen=True)
class Sweep:
    """The runs of a grid, in its order."""

    series: str
    rows: tuple[SweepRow, ...]
    advice: tuple[str, ...]
    """The conclusions, in sentences."""
    metrics: tuple[str, ...] = ()
    """Names under `metrics:` that have their own columns."""
    advised: str = ""
    """The advised setting, if the grid varies only the number of workers."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The title of each column."""
        mean = "mean " if any(row.pace.is_mean for row in self.rows) else ""
        first = ("setting", "s/epoch", f"{mean}samples/s", "waits for data", "loss")
        return (*first, *self.metrics, "state", "run")


class Sweeps:
    """Reads the grids of a history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def of(self, run_id: str) -> Sweep:
        """Return the grid of a run, without querying a site; InputError if it is in none."""
        run = self._history.get(run_id)
        series = self._history.series.of_run(run.id)
        if series is None or series.kind != "grid":
            raise InputError(
                f"{run.id} is not part of a grid.",
                "A job file with `grid:` becomes one run for each combination of its values: "
                "`lumitui new --example loader-workers` writes one.",
            )
        entries = self._history.finder.with_ids([one.run for one in series.members if one.run])
        states = {name: run.state.value for name, run in entries.items()}
        names = dict.fromkeys(name for run in entries.values() for name in run.spec.metrics)
        return sweep(
            series, states, lambda name: pace_of(self._history.metrics.of(name)), tuple(names)
        )


def workers_in(setting: str) -> int | None:
    """Return the number of workers in a grid's setting; None if it sets something else."""
    match = _WORKERS.match(setting)
    return int(match[1] or match[2]) if match else None


def sweep(
    series: RunSeries,
    states: Mapping[str, str],
    pace: Callable[[str], StepPace],
    metrics: Sequence[str] = (),
) -> Sweep:
    """Return the rows of the grid `series`, with the conclusions.

    `states` has its runs in the history by id, `pace` returns what a run has measured, and
    `metrics` are the names under `metrics:` in the job file.
    """
    paces = {one.run: pace(one.run) for one in series.members if one.run and one.run in states}
    own = tuple(name for name in metrics if any(name in each.others for each in paces.values()))
    rows = tuple(
        SweepRow(
            one.words,
            one.run,
            states[one.run],
            paces[one.run],
            tuple(paces[one.run].others.get(name) for name in own),
        )
        if one.run and one.run in states
        else SweepRow(one.words, others=(None,) * len(own))
        for one in series.members
    )
    advised, sentences = _advice(rows, metrics)
    return Sweep(series.id, rows, tuple(sentences), own, advised)


def pace_of(points: Sequence[MetricPoint]) -> StepPace:
    """Return the figures from the steps of a training run's last attempt."""
    starts = [at for at, point in enumerate(points) if point.event == "start"]
    mine = points[starts[-1] if starts else 0 :]
    start = mine[0] if starts else MetricPoint(event="start")
    batch, loss = start.global_batch, summarize(points).last_loss
    steps = [point for point in mine if point.event == "step" and point.samples_per_s]
    later = [point for point in steps if (point.epoch or 0) > (steps[0].epoch or 0)]
    counted = later or steps[WARM_UP_STEPS:] or steps
    others = {
        name: value
        for point in mine
        if point.event == "step"
        for name, value in point.extra.items()
        if isinstance(value, float)
    }
    if not counted:
        return StepPace(loss=loss, others=others)
    if not batch:  # not a bundled trainer
        speed = median(point.samples_per_s or 0.0 for point in counted)
        return StepPace(samples_per_s=speed, loss=loss, others=others)
    seconds = [batch / (point.samples_per_s or math.inf) for point in counted]
    mean = math.fsum(seconds) / len(seconds)
    samples = start.extra.get("train_samples")
    whole = samples // batch if isinstance(samples, float) else _epoch_steps(steps)
    waits = [point.extra.get("data_s") for point in counted]
    told = [pair for pair in zip(waits, seconds, strict=True) if isinstance(pair[0], float)]
    waited = math.fsum(wait for wait, _ in told if isinstance(wait, float))
    share = waited / math.fsum(spent for _, spent in told) if told else None
    epoch_s = whole * mean if whole else None
    return StepPace(epoch_s, share, batch / mean, True, loss, others)


def _epoch_steps(steps: Sequence[MetricPoint]) -> float | None:
    """Return the steps of an epoch, from the first step of the first and of the last epoch."""
    first = steps[0]
    last = next((point for point in steps if point.epoch == steps[-1].epoch), first)
    if None in (first.step, first.epoch, last.step, last.epoch) or first.epoch == last.epoch:
        return None
    return (last.step - first.step) / (last.epoch - first.epoch)  # type: ignore[operator]


_FIND = (
    "If the program prints its loss, as in `loss=0.25`, add a pattern with one group to the job "
    "file: `metrics: {loss: 'loss[ :=]+([-+0-9.eE]+)'}`."
)


def _unmatched(metrics: Sequence[str]) -> str:
    """Return what to do for the figures of runs that report none; `metrics` are the job file's."""
    if not metrics:
        return _FIND
    return (
        f"No line of their logs matches `metrics:` ({', '.join(metrics)}): compare the patterns "
        "with `lumitui logs RUN`."
    )


def _advice(rows: Sequence[SweepRow], metrics: Sequence[str]) -> tuple[str, list[str]]:
    """Return the advised setting, if the grid varies only the number of workers, and sentences."""
    paced = [row for row in rows if row.pace.samples_per_s is not None]
    sentences = []
    silent = [row for row in rows if row.pace == StepPace()]
    if ended := sum(row.run is not None and row.state in _OVER for row in silent):
        sentences.append(
            f"{ended} of {len(rows)} runs ended without figures. {_unmatched(metrics)}"
        )
    if len(silent) > ended:
        sentences.append(f"No figures yet from {len(silent) - ended} of {len(rows)} runs.")
    if going := sum(row.going for row in rows):
        still = f"lumitui recommends no setting yet ({going} of {len(rows)} runs unfinished)."
        return "", [*sentences, still]
    if any(row.workers is None for row in rows):
        return "", [*sentences, *_lowest_loss(rows)]
    if len(paced) < 2:
        return "", sentences
    ordered = sorted(paced, key=lambda row: row.workers or 0)
    fastest = max(ordered, key=_speed)
    best = next(row for row in ordered if _speed(row) >= (1 - ENOUGH) * _speed(fastest))
    sentences.append(_choice(best, ordered))
    waiting = best.pace.waiting
    if waiting is not None and waiting >= STARVED:
        sentences.append(
            f"With this setting, a step still spends {100 * waiting:.0f} % of its time waiting for "
            "data: pack the samples into shards (`python trainers/pack.py`), or put them on the "
            "node's disk."
        )
    return best.setting, sentences


def _lowest_loss(rows: Sequence[SweepRow]) -> Iterator[str]:
    if any(row.pace != StepPace() for row in rows) and all(
        row.pace.loss is None and not row.pace.others for row in rows
    ):
        yield f"No run reports a loss to compare. {_FIND}"
    known = [(loss, row.setting) for row in rows if (loss := row.pace.loss) is not None]
    finite = [(loss, setting) for loss, setting in known if math.isfinite(loss)]
    if len(finite) > 1 and len({loss for loss, _ in finite}) == 1:
        yield f"The runs end with the same loss, {finite[0][0]:.4g}."
    elif len(finite) > 1:
        loss, setting = min(finite)
        other = "" if len(finite) == len(rows) else f" of the {len(finite)} runs that report one"
        yield f"{setting} has the lowest loss{other}, {loss:.4g}."


def _choice(best: SweepRow, ordered: Sequence[SweepRow]) -> str:
    least, most = ordered[0], ordered[-1]
    if best is least:
        return (
            f"Use {best.setting}: higher values shorten an epoch by less than {100 * ENOUGH:.0f} %."
        )
    gain = _speed(best) / _speed(least)
    first = f"Use {best.setting}: {gain:.1f} times as fast as {least.setting}"
    if best is most:
        return f"{first}. This is the largest value tried: if a rank has more cores, try more."
    return f"{first}; higher values shorten an epoch by less than {100 * ENOUGH:.0f} %."


def _speed(row: SweepRow) -> float:
    return row.pace.samples_per_s or 0.0
