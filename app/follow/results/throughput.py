"""How fast a run trains in the units of papers and data sheets, and where its time goes."""

from collections.abc import Sequence

from lumitui.app.explain.training_summary import Throughput
from lumitui.app.history.metric_points import WARM_UP_STEPS, MetricPoint

WIRE = ("communication_s", "exposed_s")
"""Seconds of a backward pass in which gradients are on their way, and those it waits for them."""
PARTS = ("data_s", "forward_backward_s", "optimizer_s", *WIRE)
"""Seconds of a step that a trainer tells (trainers/engine/speed.py)."""


def throughput_of(points: Sequence[MetricPoint], median: float | None) -> Throughput:
    """Return the figures of a run's points; `median` is its samples a second.

    Operations and tokens are so many a sample: those of the median are told.
    """
    starts = [at for at, point in enumerate(points) if point.event == "start"]
    mine = points[starts[-1] if starts else 0 :]
    start = mine[0].extra if starts else {}
    steps = [point for point in mine if point.event == "step" and point.step is not None]
    told = [point for point in steps if point.samples_per_s]

    def scaled(name: str) -> float | None:
        having = [point for point in told if isinstance(point.extra.get(name), float)]
        if not having or median is None:
            return None
        per_sample = _number(having[-1], name) / (having[-1].samples_per_s or 1.0)
        return per_sample * median

    precision = start.get("precision")
    return Throughput(
        over_all=_over_all(mine, steps),
        tokens_per_s=scaled("tokens_per_s"),
        tflops=scaled("tflops"),
        mfu=scaled("mfu"),
        peak_tflops=_last([mine[0]] if starts else [], "peak_tflops"),
        precision=precision if isinstance(precision, str) else None,
        memory_gib=_last(steps, "memory_gib"),
        parts=_parts(mine, told),
    )


def _over_all(mine: Sequence[MetricPoint], steps: Sequence[MetricPoint]) -> float | None:
    """Return the samples of the steps after the warm-up by the time that went by."""
    batch = next((point.global_batch for point in mine if point.global_batch), None)
    timed = [point for point in steps if point.seconds is not None]
    after = [point for point in timed if (point.step or 0) >= (timed[0].step or 0) + WARM_UP_STEPS]
    if batch is None or len(after) < 2:
        return None
    seconds = (after[-1].seconds or 0.0) - (after[0].seconds or 0.0)
    samples = ((after[-1].step or 0) - (after[0].step or 0)) * batch
    return samples / seconds if seconds > 0 and samples > 0 else None


def _parts(
    mine: Sequence[MetricPoint], told: Sequence[MetricPoint]
) -> tuple[tuple[str, float], ...]:
    batch = next((point.global_batch for point in mine if point.global_batch), None)
    split = [point for point in told if isinstance(point.extra.get(PARTS[0]), float)]
    if not split or batch is None:
        return ()
    step_s = batch / (split[-1].samples_per_s or 1.0)
    return tuple(
        (name, _number(split[-1], name) / step_s) for name in PARTS if name in split[-1].extra
    )


def _last(points: Sequence[MetricPoint], name: str) -> float | None:
    having = [point for point in points if isinstance(point.extra.get(name), float)]
    return _number(having[-1], name) if having else None


def _number(point: MetricPoint, name: str) -> float:
    value = point.extra[name]
    return value if isinstance(value, float) else 0.0
