"""The sizes of a training run, measured and predicted, with time and price. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from lumitui.app.history.run import Run
from lumitui.app.job.setting import argument_value, batch_argument, is_batch_global
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES
from lumitui.app.launch.deepspeed_batch import whole
from lumitui.app.scale.scaling.measured import (
    LeftOut,
    MeasuredRun,
    MeasuredSize,
    Training,
    awaited,
    doubts,
    measured_sizes,
    why_unmeasured,
)
from lumitui.app.scale.scaling.model import SLOWEST, Estimate, Model
from lumitui.app.scale.scaling.step_time import CalibratedSize, GradientExchange, StepModel
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site import walltime
from lumitui.remote.site.device import Device
from lumitui.remote.site.node import Links

MILLION = 1_000_000
_AT_ONCE = Estimate(0.0, 0.0, 0.0)
"""No start-up."""


@dataclass(frozen=True)
class Work:
    """A number of samples to train."""

    samples: int
    words: str
    """The samples in words: `an epoch of 60,000 samples`."""


@dataclass(frozen=True)
class StartUp:
    """The time of a measured size's runs outside their training steps."""

    nodes: int
    gpus: int
    seconds: Estimate
    """From the shortest to the longest of the runs; `likely` is set."""


@dataclass(frozen=True)
class Offer:
    """A site's offer for a run on a number of nodes."""

    nodes: int
    gpus: int
    per_hour: float
    limit: float
    """The time limit in seconds; for a chain, that of all its attempts."""
    most: float
    """The price at the time limit."""
    partition: str = ""
    batch: float | None = None
    """The argument with the samples per rank and step; None if unknown."""
    refused: str = ""
    """Why the run cannot be sent on this number of nodes; '' if it can."""
    idle: int = 0
    """GPUs per node that the job has and no rank uses."""
    work: float | None = 1.0
    """Its samples as a multiple of the run's; None if unknown."""
    offered: bool = True
    """Whether a job can be sent so; otherwise only an earlier run had so many GPUs per node."""


@dataclass(frozen=True)
class Cost:
    """The cost of some work at a size."""

    seconds: Estimate
    gpu_hours: Estimate
    price: Estimate
    """In the site's billing unit."""


@dataclass(frozen=True)
class Bill:
    """What a run has cost."""

    run: str
    amount: float
    samples: int | None
    """The samples that it trained."""


@dataclass(frozen=True)
class ScalingSize:
    """A number of nodes, with its measurement or prediction."""

    nodes: int
    gpus: int
    measured: bool
    source: str
    """The measured runs; '' for a prediction."""
    speed: Estimate | None = None
    """Samples per second. For a measured size, 8 of 10 steps lie between low and high."""
    speed_up: Estimate | None = None
    """Speed-up against the smallest measured size."""
    efficiency: Estimate | None = None
    """Percent: the speed-up divided by the ratio of GPUs."""
    part: Cost | None = None
    """Cost of an epoch, or of a million samples if the epoch is unknown; only training steps."""
    whole: Cost | None = None
    """Cost of all the work, including the time outside the steps."""
    offer: Offer | None = None
    """The site's offer; None if the profile does not contain it."""
    bill: Bill | None = None
    """The bill of its newest run that has ended."""
    start_up: float | None = None
    """Seconds outside the training steps (start, tests, checkpoints); None if no run tells."""
    start_up_of: int | None = None
    """The nodes of the measured size that `start_up` comes from."""
    ran: bool = False
    """Whether one of its runs trained just this work: then its time is measured."""

    @property
    def refused(self) -> str:
        """Why nothing can be sent on this number of nodes."""
        return self.offer.refused if self.offer else ""

    @property
    def over_limit(self) -> bool:
        """Whether the work probably exceeds the time limit."""
        if not self.whole or not self.offer:
            return False
        seconds = self.whole.seconds
        return (seconds.likely or seconds.low) > self.offer.limit


@dataclass(frozen=True)
class Scaling:
    """A training run's speed on different numbers of nodes."""

    run: str
    site: str
    unit: str
    """Of all prices."""
    sizes: tuple[ScalingSize, ...]
    """Measured and predicted sizes, smallest first."""
    left_out: tuple[LeftOut, ...]
    doubts: tuple[LeftOut, ...]
    """Runs compared although they differ in more than size, with the difference."""
    part: Work
    whole: Work
    device: Device
    """The ranks' device, in words."""
    serial_share: float | None
    """As a share of the smallest size's time; None with fewer than two sizes."""
    epoch: int | None = None
    """Samples of an epoch; None if unknown."""
    steps: StepModel | None = None
    """The model, if the predictions are based on one size; None: Amdahl's law."""
    partition: str = ""
    """That of the run."""
    falls: bool = False
    """Whether the largest measured size is slower than a smaller one."""
    unmeasured: str = ""
    """Why no size was measured, and what to do; '' if one was."""
    billing_note: str = ""
    """How the site counts what it bills."""
    awaited: tuple[str, ...] = ()
    """The runs that should measure further sizes, in words."""
    assumed: tuple[str, ...] = ()
    """The arguments that lumitui counts as the batch of each rank."""
    changed: tuple[str, ...] = ()
    """What a resubmission changes of the training: then no time is predicted."""

    def moves_to(self, size: ScalingSize) -> str:
        """Return the partition that a job of `size` moves to; '' if it stays."""
        other = size.offer.partition if size.offer else ""
        return other if other != self.partition else ""

    @property
    def knows_work(self) -> bool:
        """Whether the run's work is known; otherwise `whole` only compares sizes."""
        return self.whole != self.part and not self.changed

    @property
    def measured(self) -> tuple[ScalingSize, ...]:
        """The measured sizes."""
        return tuple(size for size in self.sizes if size.measured)


def scaling_of(
    run: Run,
    family: Sequence[MeasuredRun],
    offers: Sequence[Offer],
    samples: int | None = None,
    links: Links | None = None,
    billing_note: str = "",
    changed: tuple[str, ...] = (),
) -> Scaling:
    """Return the scaling of `run`, from its `family`, at the sizes in `offers`.

    `samples` is the work; None: what `run` trained, or was to train. With the site's `links`, other
    sizes can be predicted from a single measured one. `billing_note` is how the site counts,
    `changed` what a resubmission changes of the training.
    """
    measured, omissions = measured_sizes(family, run)
    model = Model([point for size in measured for point in size.points]) if measured else None
    steps = _step_model(measured[0], links) if links and len(measured) == 1 else None
    starts = [start for size in measured if (start := _start_up(size, run))]
    part, whole = _works(run, family, starts, samples)
    by_nodes = {offer.nodes: offer for offer in offers}
    base = measured[0] if measured else None
    paces = {(size.gpus, size.nodes): _pace(size, run) for size in measured}
    sizes = [_measured(size, by_nodes.get(size.nodes), whole) for size in measured]
    sizes += [
        _predicted(offer, model, steps)
        for offer in offers
        if (offer.gpus, offer.nodes) not in paces
    ]
    sizes.sort(key=lambda size: (size.gpus, size.nodes))
    priced = tuple(
        _with_costs(
            size, paces.get((size.gpus, size.nodes), size.speed), base, part, whole,
            _nearest(starts, size.gpus, size.nodes),
        )
        for size in sizes
    )  # fmt: skip
    doubtful, share = tuple(doubts(measured, run)), model.serial_share if model else None
    return Scaling(
        run.id, run.site, run.price.unit, priced, tuple(omissions), doubtful, part, whole,
        run.layout.device, share, epoch_of(family), steps, run.spec.partition,
        model is not None and model.falls, "" if measured else why_unmeasured(family),
        billing_note, awaited(family, measured, run), _assumed(measured), changed,
    )  # fmt: skip


def _step_model(size: MeasuredSize, links: Links) -> StepModel | None:
    """Return the model of a step; None if network or batch is unknown."""
    item = size.runs[-1]
    training, strategy = item.training, STRATEGIES.get(item.run.spec.strategy)
    if strategy is None or not training.parameters or not training.global_batch:
        return None
    batch = training.global_batch / size.gpus
    noise = max(point.error for point in size.points)
    exchange = GradientExchange(
        training.parameters, strategy.passes, links, micro_steps=training.micro_steps
    )
    wire, alone = training.wire, exchange.seconds(size.gpus, size.nodes)
    step = training.global_batch / size.speed
    if wire is not None and (not alone or wire.seconds > step):
        wire = None  # more than the step itself: the figure does not describe one step
    if wire is not None:
        exchange = replace(exchange, slower=wire.seconds / alone)
    argument = batch_of(item.run.spec, item.run.layout.world_size)
    return StepModel(
        CalibratedSize(size.gpus, size.nodes, size.speed, batch, noise, argument, wire), exchange
    )


def batch_of(spec: JobSpec, ranks: int) -> float | None:
    """Return the samples per rank and step that the arguments give; None if unknown."""
    name = batch_argument(spec)
    given = whole(argument_value(spec.args, name)) if name else None
    return given / ranks if given and is_batch_global(spec) else given


def _measured(size: MeasuredSize, offer: Offer | None, whole: Work) -> ScalingSize:
    paid = size.runs[-1].run
    if offer is None or offer.gpus != size.gpus:
        limit = float(paid.spec.chain * walltime.seconds_of(paid.spec.time))
        hour, most = paid.price.per_hour, paid.price.amount
        offer = Offer(size.nodes, size.gpus, hour, limit, most, offered=False)
    speed = Estimate(size.low, size.high, size.speed)
    ended = (item for item in reversed(size.runs) if item.run.state.is_final)
    bills = (Bill(one.run.id, one.run.billed(one.run.updated), one.training.samples)
             for one in ended)  # fmt: skip
    bill = next(bills, None)
    whole = _sent(whole, offer)
    ran = any(one.training.samples == whole.samples for one in size.runs)
    ran = ran and offer.work is not None
    return ScalingSize(
        size.nodes, size.gpus, True, size.source, speed, offer=offer, bill=bill, ran=ran
    )


def _predicted(offer: Offer, model: Model | None, steps: StepModel | None) -> ScalingSize:
    speed = model.at(offer.gpus) if model and offer.gpus else None
    if speed and steps:
        before = steps.measured.argument
        ratio = offer.batch / before if offer.batch and before else 1.0
        speed = steps.at(offer.gpus, offer.nodes, ratio)
    return ScalingSize(offer.nodes, offer.gpus, False, "", speed, offer=offer)


def _with_costs(
    size: ScalingSize,
    pace: Estimate | None,
    base: MeasuredSize | None,
    part: Work,
    whole: Work,
    start: StartUp | None,
) -> ScalingSize:
    """Return a size with everything that follows from its throughput, and `pace` in its time."""
    if size.speed is None or pace is None or base is None:
        return size
    speed_up = _times(size.speed, 1 / base.speed)
    efficiency = _times(speed_up, 100 * base.gpus / size.gpus)
    if not size.measured and size.gpus > base.gpus:
        # A higher value would be measurement noise.
        efficiency = efficiency.each(lambda each: min(each, 100.0))
    seconds = start.seconds if start else _AT_ONCE
    costs = (
        _cost(size, size.speed, part, _AT_ONCE),
        _cost(size, pace, _sent(whole, size.offer), seconds),
    )
    return replace(
        size, speed_up=speed_up, efficiency=efficiency, part=costs[0], whole=costs[1],
        start_up=seconds.likely if start else None, start_up_of=start.nodes if start else None,
    )  # fmt: skip


def _cost(size: ScalingSize, speed: Estimate, work: Work, start: Estimate) -> Cost:
    likely = None if speed.likely is None else start.middle + work.samples / speed.likely
    seconds = Estimate(
        start.low + work.samples / speed.high, start.high + work.samples / speed.low, likely
    )
    per_hour = size.offer.per_hour if size.offer else 0.0
    return Cost(seconds, _times(seconds, size.gpus / 3600), _times(seconds, per_hour / 3600))


def _sent(whole: Work, offer: Offer | None) -> Work:
    """Return the work of the job in `offer`, which may differ from that of the run."""
    ratio = (offer.work if offer else None) or 1.0
    return whole if ratio == 1 else replace(whole, samples=round(whole.samples * ratio))


def _times(value: Estimate, factor: float) -> Estimate:
    return value.each(lambda each: each * factor)


def _pace(size: MeasuredSize, of: Run) -> Estimate:
    """Return the speed in a size's time: that of `of` alone, else the mean of its runs."""
    paces = {item.run.id: _own_pace(item) for item in size.runs}
    likely = paces.get(of.id) or sum(paces.values()) / len(paces)
    return Estimate(size.low, max(size.high, *paces.values()), likely)


def _own_pace(item: MeasuredRun) -> float:
    """Return a run's median speed, or its samples over its duration if that is higher."""
    run, training = item.run, item.training
    ran, median_speed = run.ran(run.updated), training.speed or SLOWEST
    if not training.samples or ran <= 0 or not (_is_whole(run, training) or _is_cut(run)):
        return median_speed
    return max(median_speed, training.samples / ran)


def _start_up(size: MeasuredSize, of: Run) -> StartUp | None:
    """Return the seconds of a size's runs outside their steps; None if unknown.

    The likely value is that of `of` alone, so that the size's time for the work of `of` is what it
    took; else the median. Of runs that did not succeed, the time until the first step counts first.
    """
    done = [item for item in size.runs if _is_whole(item.run, item.training)]
    cut = [item for item in size.runs if _is_cut(item.run)]
    # A run that was cut short of a known goal does not measure the way to it.
    own = [item for item in (*done, *cut) if item.run.id == of.id]
    own = [item for item in own if item in done or not item.training.planned]
    known = (
        _outside(done)
        or [
            item.training.began - item.run.started
            for item in size.runs
            if item.training.began and item.run.started and item.training.began > item.run.started
        ]
        or _outside(cut)
    )
    likely = _outside(own) or known
    if not likely:
        return None
    every = [*known, *likely]
    return StartUp(size.nodes, size.gpus, Estimate(min(every), max(every), median(likely)))


def _outside(items: Sequence[MeasuredRun]) -> list[float]:
    """Return the durations of runs without those of their steps, where these are known."""
    return [
        max(0.0, item.run.ran(item.run.updated) - trained)
        for item in items
        if (trained := _trained(item))
    ]


def _nearest(starts: Sequence[StartUp], gpus: int, nodes: int) -> StartUp | None:
    """Return the start-up of the size nearest to `gpus`; of two as near, that of the larger."""
    return min(
        starts,
        key=lambda one: (max(one.gpus, gpus) / min(one.gpus, gpus), one.nodes != nodes, -one.gpus),
        default=None,
    )


def _assumed(sizes: Sequence[MeasuredSize]) -> tuple[str, ...]:
    told = (item.training.assumed for size in sizes for item in size.runs)
    return tuple(dict.fromkeys(filter(None, told)))


def _is_whole(run: Run, training: Training) -> bool:
    """Return whether the run trained all of its work from scratch, in a known time."""
    chained = training.samples is not None and len(run.attempts) == run.attempt
    return run.state is State.DONE and run.resumed_from is None and (run.attempt == 1 or chained)


def _is_cut(run: Run) -> bool:
    """Return whether the run has ended, in a known time."""
    return run.state.is_final and run.attempt == 1


def _trained(item: MeasuredRun) -> float | None:
    """Return the seconds of a run's steps; None if unknown."""
    samples = item.training.samples
    return samples / _own_pace(item) if samples else item.training.seconds


def epoch_of(family: Sequence[MeasuredRun]) -> int | None:
    """Return the samples of an epoch; None if no run of the family reports them or its steps."""
    told = [item.training.epoch for item in family if not item.training.rounded]
    exact = next((epoch for epoch in reversed(told) if epoch), None)
    return exact or min((one.training.epoch for one in family if one.training.epoch), default=None)


def _works(
    run: Run, family: Sequence[MeasuredRun], starts: Sequence[StartUp], samples: int | None
) -> tuple[Work, Work]:
    """Return the work for which costs are given: a part for comparison, and all of it."""
    own = next((item.training for item in family if item.run.id == run.id), None)
    part = Work(MILLION, "a million samples")
    if epoch := epoch_of(family):
        about = "about " * all(one.training.rounded for one in family if one.training.epoch)
        part = Work(epoch, f"an epoch of {about}{epoch:,} samples")
    if samples is not None:
        return part, Work(samples, f"{samples:,} samples")
    if own and own.planned and run.state is not State.DONE:
        return part, Work(own.planned, f"all {own.planned:,} samples of {run.id}")
    if own and own.samples:
        verb = "trained" if run.state.is_final else "has trained so far"
        return part, Work(own.samples, f"the {own.samples:,} samples that {run.id} {verb}")
    if own and own.speed and _is_whole(run, own):
        ran = run.elapsed(run.updated)
        start = _nearest(starts, run.layout.nodes * run.layout.gpus_per_node, run.layout.nodes)
        steps = (
            min(own.seconds, ran) if own.seconds else ran - start.seconds.middle if start else 0.0
        )
        if (rough := round(own.speed * steps)) > 0:
            words = f"about {rough:,} samples, the speed of {run.id} times its training time"
            return part, Work(rough, words)
    return part, part
