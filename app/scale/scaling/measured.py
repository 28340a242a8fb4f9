"""Measurements of a lineage's runs: throughput and work by size. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from lumitui.app.explain import words
from lumitui.app.follow.results.summary import SPEEDS, WIRE, summarize
from lumitui.app.history.metric_points import MetricPoint, speeds_of
from lumitui.app.history.run import Run
from lumitui.app.job.setting import batch_argument, rate_argument, without_arguments
from lumitui.app.job.spec import JobSpec
from lumitui.app.scale.scaling.model import FASTEST, SLOWEST, Point
from lumitui.app.scale.scaling.step_time import Wire
from lumitui.remote.scheduler.scheduler_protocol import State

_DEVIATIONS = 2.563
"""Standard deviations between the 10th and the 90th percentile of a normal distribution."""

NOTHING = (
    "No run of this lineage has reported samples/s, so lumitui cannot predict a time. A bundled "
    "trainer reports them after its first step. For your own script that prints them, add "
    r"`metrics: {samples_per_s: 'samples/s (\d+)'}` to the job file; or have it write a line like "
    '{"step": 1, "samples_per_s": 812.5} to $RUN_DIR/metrics.jsonl at each step.'
)
_SHORTEST = 1e-9
"""Minimum duration of a measured exchange, in seconds; a shorter one counts as unmeasured."""


@dataclass(frozen=True)
class Training:
    """A run's speed and work, according to its metrics."""

    speed: float | None = None
    """Samples per second: the median step after the warm-up."""
    low: float = 0.0
    """The 10th percentile of those steps' speeds."""
    high: float = 0.0
    """The 90th."""
    steps: int = 0
    """Number of steps trained; if unknown, number of lines with a speed after the warm-up."""
    unit: str = "step"
    """What `steps` counts: `step`, `line` or `epoch`."""
    warm: bool = True
    """Whether `speed` is from steps after the warm-up."""
    ranks: int | None = None
    """Number of steps, as the training counts them."""
    samples: int | None = None
    """Trained so far."""
    epoch: int | None = None
    """Samples of an epoch."""
    rounded: bool = False
    """Whether that is a number of whole steps, the last of which may be filled up."""
    planned: int | None = None
    """Samples of all epochs."""
    global_batch: int | None = None
    """Samples of a step, over all ranks."""
    parameters: int | None = None
    """Of the network."""
    micro_steps: int = 1
    """Number of batches accumulated in a step."""
    wire: Wire | None = None
    """The latest measurement of the exchange, or None."""
    seconds: float | None = None
    """From the begin of the first step to the end of the last, in the last attempt."""
    began: float | None = None
    """When the first step of the last attempt began, in epoch seconds."""
    missing: str = ""
    """The key missing from metrics.jsonl, if steps without speed are reported."""
    assumed: str = ""
    """The argument that lumitui counts as the batch of each rank; '' if the batch is known."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run and its measurements."""

    run: Run
    training: Training

    @property
    def gpus(self) -> int:
        """Number of all GPUs of the job."""
        return self.run.layout.nodes * self.run.layout.gpus_per_node


@dataclass(frozen=True)
class LeftOut:
    """A run of the lineage that is not compared, or only with reservations, and the reason."""

    run: str
    why: str


@dataclass(frozen=True)
class MeasuredSize:
    """All runs of one size, as one throughput."""

    nodes: int
    gpus: int
    speed: float
    """Samples per second: the mean of the runs' medians."""
    low: float
    """The lowest 10th percentile of the runs' steps."""
    high: float
    """The highest 90th."""
    runs: tuple[MeasuredRun, ...]

    @property
    def points(self) -> list[Point]:
        """The input of the fit: one point per run."""
        return [
            Point(self.gpus, own.speed, (own.high - own.low) / own.speed / _DEVIATIONS)
            for own in (item.training for item in self.runs)
            if own.speed
        ]

    @property
    def source(self) -> str:
        """Its source in words."""
        return ", ".join(map(_source, self.runs))


def training_of(
    points: Sequence[MetricPoint], given_batch: int | None = None, *, resumed: bool = False
) -> Training:
    """Return a run's speed and work from its points, in the order written.

    `given_batch` is the global batch that its arguments give, if it reports none. `resumed`: the
    run counts on from its parent's steps, which it did not train.
    """
    speeds, total = speeds_of(points), summarize(points)
    values = sorted(speed for speed in speeds.values if SLOWEST <= speed <= FASTEST)
    start = next((point for point in reversed(points) if point.event == "start"), MetricPoint())
    epoch, epochs = _count(start.extra.get("train_samples")), _count(start.extra.get("epochs"))
    batch = total.global_batch or (given_batch if total.unit == "step" else None)
    steps = _timed(points)
    trained = total.steps - (total.before if resumed else 0)
    trained = 0 if _counts_in_epochs(points) else trained  # unknown
    at = start.extra.get("time")
    took = (steps[-1] - steps[0]) / (len(steps) - 1) if len(steps) > 1 else 0.0
    told, epoch = epoch, epoch or _epoch_steps(points) * max(0, batch or 0) or None
    return Training(
        speed=median(values) if values else None,
        low=_percentile(values, 10),
        high=_percentile(values, 90),
        steps=trained if trained > 0 else len(values),
        unit="line" if values and trained <= 0 else total.unit,
        warm=speeds.warm,
        ranks=total.world_size,
        samples=trained * batch if batch and trained > 0 and batch > 0 else None,
        epoch=epoch,
        rounded=told is None and epoch is not None,
        planned=epoch * epochs if epoch and epochs else None,
        global_batch=batch if batch and batch > 0 else None,
        parameters=_count(start.extra.get("parameters")),
        micro_steps=_count(start.extra.get("accumulate")) or 1,
        wire=_wire(points),
        seconds=took * len(steps) if took > 0 else None,
        began=at + max(0.0, steps[0] - took) if isinstance(at, float) and took > 0 else None,
        missing="" if values else _missing(points),
    )


def measured_sizes(
    family: Sequence[MeasuredRun], of: Run
) -> tuple[list[MeasuredSize], list[LeftOut]]:
    """Return the sizes measured by runs comparable with `of`, smallest first.

    The second list has the runs left out; runs without steps are in neither list.
    """
    sizes: dict[tuple[int, int], list[MeasuredRun]] = {}
    omissions = []
    for item in family:
        if why := _incomparable(item, of):
            omissions.append(LeftOut(item.run.id, why))
        elif item.training.speed is not None:
            sizes.setdefault((item.gpus, item.run.layout.nodes), []).append(item)
        elif key := item.training.missing:
            why = f"its lines in metrics.jsonl have no `{key}`"
            if item.run.has_metrics and not item.run.spec.trainer:
                why = "no pattern under its `metrics:` finds samples/s"
            omissions.append(LeftOut(item.run.id, why))
    for of_size in sizes.values():
        done = [item.training.steps for item in of_size if item.run.state is State.DONE]
        for item in [item for item in of_size if 2 * item.training.steps < min(done, default=0)]:
            of_size.remove(item)
            steps = f"{item.training.steps:,} of {words.count(min(done), item.training.unit)}"
            omissions.append(LeftOut(item.run.id, f"it is {item.run.state}, with {steps}"))
    return [_size(gpus, nodes, runs) for (gpus, nodes), runs in sorted(sizes.items())], omissions


def _size(gpus: int, nodes: int, runs: list[MeasuredRun]) -> MeasuredSize:
    # A run too short to warm up counts only if no other run of its size did.
    warm = [item for item in runs if item.training.warm] or runs
    trainings = [item.training for item in warm]
    speeds = [training.speed for training in trainings if training.speed]
    low, high = min(each.low for each in trainings), max(each.high for each in trainings)
    return MeasuredSize(nodes, gpus, sum(speeds) / len(speeds), low, high, tuple(warm))


def awaited(
    family: Sequence[MeasuredRun], sizes: Sequence[MeasuredSize], of: Run
) -> tuple[str, ...]:
    """Return the runs that should measure further sizes: `vit-1a2b3c on 2 nodes is queued`."""
    measured = {size.nodes for size in sizes}
    return tuple(
        f"{run.id} on {words.count(run.layout.nodes, 'node')} is {run.state}"
        for run in (item.run for item in family if not _incomparable(item, of))
        if not run.state.is_final and run.state is not State.UNKNOWN
        if run.layout.nodes not in measured
    )


def _incomparable(item: MeasuredRun, of: Run) -> str:
    """Return why a run cannot be compared with `of`; '' if it can."""
    run, training, ranks = item.run, item.training, item.training.ranks
    for what, one, other in (
        ("site", run.site, of.site),
        ("trainer", run.spec.trainer, of.spec.trainer),
        ("script", run.spec.script, of.spec.script),
        ("strategy", run.spec.strategy, of.spec.strategy),
    ):
        if one != other:
            return f"its {what} is {one or 'none'}, not {other or 'none'}"
    if ranks is not None and ranks != run.layout.world_size:
        started = words.count(run.layout.world_size, "rank")
        return f"it reports only {words.count(ranks, 'rank')} of {started}"
    # Half of the steps are at most as fast as the median, so they took half of this at least.
    seconds = (training.samples or 0) / (training.speed or 1.0)
    if run.state.is_final and run.attempt == 1 and seconds > 2 * run.elapsed(run.updated) + 10:
        speed = f"{training.samples:,} samples at {words.number(training.speed)} samples/s"
        return f"its {speed} take longer than it ran"
    return ""


def doubts(sizes: Sequence[MeasuredSize], of: Run) -> list[LeftOut]:
    """Return the measured runs that differ from `of` in something else, with the difference.

    If `of` is not measured, they are compared with the newest of the smallest size.
    """
    doubtful = []
    measured = [each.run for size in sizes for each in size.runs]
    base = of if of.id in [run.id for run in measured] or not sizes else sizes[0].runs[-1].run
    for run in measured:
        other = {
            "arguments": _other_arguments(run.spec, base.spec),
            "code": run.snapshot != base.snapshot,
            "launcher": run.spec.launcher != base.spec.launcher,
        }
        if what := " and ".join(f"its {name}" for name, differs in other.items() if differs):
            doubtful.append(LeftOut(run.id, what))
    return doubtful


def _other_arguments(one: JobSpec, other: JobSpec) -> bool:
    """Return whether two jobs differ in arguments that `scale:` of neither changes."""
    both = {batch_argument(one), rate_argument(one), batch_argument(other), rate_argument(other)}
    names = [name for name in both if name]
    return without_arguments(one.args, names) != without_arguments(other.args, names)


def _source(item: MeasuredRun) -> str:
    training = item.training
    steps = words.count(training.steps, training.unit)
    if not training.warm:
        steps += ", all within the warm-up"
    ended = "" if item.run.state is State.DONE else f", {item.run.state}"
    return f"{item.run.id} ({steps}{ended})"


def why_unmeasured(family: Sequence[MeasuredRun]) -> str:
    """Return why no size was measured, and what to do."""
    if any(item.training.speed for item in family):
        return "lumitui can compare no run of this lineage, so it cannot predict a time."
    for item in reversed(family):
        metrics = item.run.spec.metrics
        if metrics and metrics.keys().isdisjoint(SPEEDS) and not item.training.speed:
            return (
                f"{item.run.id} has no pattern for samples/s under `metrics:`, so lumitui cannot "
                r"predict a time. If its log contains them, add `samples_per_s: 'samples/s "
                r"(\d+)'`; the Metrics screen shows the pattern for a speed in the log."
            )
        if metrics and item.run.state is State.RUNNING and not item.training.missing:
            return (
                f"{item.run.id} is running, and lumitui has read no samples/s in its log yet. "
                "Wait until it has trained some steps."
            )
    return NOTHING


def _timed(points: Sequence[MetricPoint]) -> list[float]:
    """Return the times of the last attempt's steps, in seconds since its begin."""
    starts = [at for at, point in enumerate(points) if point.event == "start"]
    mine = points[starts[-1] if starts else 0 :]
    return [one.seconds for one in mine if one.event == "step" and one.seconds is not None]


def _missing(points: Sequence[MetricPoint]) -> str:
    steps = [point for point in points if point.event == "step"]
    for key in ("samples_per_s", "step"):
        if steps and not any(getattr(point, key) for point in steps):
            return key
    return ""


def _wire(points: Sequence[MetricPoint]) -> Wire | None:
    """Return the trainer's latest report on its exchange; None if it is implausible."""
    for point in reversed(points):
        sending, exposed = (point.extra.get(name) for name in WIRE)
        if isinstance(sending, float) and isinstance(exposed, float):
            return Wire(sending, exposed) if sending > _SHORTEST and exposed >= 0 else None
    return None


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[round((len(ordered) - 1) * percent / 100)] if ordered else 0.0


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and 1 <= value <= FASTEST else None


def _counts_in_epochs(points: Sequence[MetricPoint]) -> bool:
    """Return whether the steps of each epoch are counted from its begin."""
    told = [(point.epoch, point.step) for point in points if point.event == "step"]
    known = [(epoch, step) for epoch, step in told if epoch is not None and step is not None]
    return any(one[0] < other[0] and one[1] > other[1] for one, other in pairwise(known))


def _epoch_steps(points: Sequence[MetricPoint]) -> int:
    """Return the steps per epoch, from changes of the epoch number; 0 if none was complete.

    Ignores the first epoch, because a resumed run may begin within it.
    """
    first: dict[int, int] = {}
    for point in points:
        if point.event == "step" and point.epoch is not None and point.step is not None:
            first.setdefault(point.epoch, point.step)
    changes = [first[epoch] for epoch in sorted(first)][1:]
    lengths = [after - before for before, after in pairwise(changes)]
    return max(0, round(median(lengths))) if lengths else 0
