"""Throughput at unmeasured sizes: Amdahl's law with an interval. Pure.

The model: one sample takes `serial + parallel / GPUs` seconds. So the GPU-seconds of a sample,
`parallel + serial x GPUs`, lie on a straight line, which least squares fit to the measured sizes.
What does not shrink with more GPUs (a fixed cost of each step, the exchange of gradients) is in
`serial`. Neither part is ever below 0: a training run that scaled better than ideal is ideal here.

The uncertainty of the prediction depends on the number of measured sizes:

- one: it lies between no gain and the ideal line; nothing is more likely than the rest;
- two: the model fits both exactly, so nothing checks it: the same bounds, from the sizes nearest;
- three or more: Student's t interval of the fit, which holds 8 of 10 runs, within those bounds.

If more GPUs were slower, the law does not hold: beyond the largest size only bounds are known.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# The 90 % quantile of Student's t by degrees of freedom, from 1 on: 8 of 10 values lie within.
_STUDENT = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372)
_NORMAL = 1.282
SLOWEST, FASTEST = 1e-9, 1e15
"""Samples per second; a value outside this range comes from a broken clock."""


@dataclass(frozen=True)
class Point:
    """A measured throughput."""

    gpus: int
    speed: float
    """Samples per second, from `SLOWEST` to `FASTEST`."""
    error: float = 0.0
    """Its relative standard deviation from step to step."""


@dataclass(frozen=True)
class Estimate:
    """A predicted number with its interval."""

    low: float
    high: float
    likely: float | None
    """None: the measured sizes do not determine it."""

    @property
    def middle(self) -> float:
        """The likely value, or the high end if no value is more likely."""
        return self.high if self.likely is None else self.likely

    def each(self, change: Callable[[float], float]) -> "Estimate":
        """Return it with each of its numbers changed; they keep their order."""
        likely = None if self.likely is None else change(self.likely)
        return Estimate(change(self.low), change(self.high), likely)


class Model:
    """Amdahl's law, fitted to measured throughputs."""

    def __init__(self, points: Sequence[Point]) -> None:
        """Fit to `points`, at least one, in any order."""
        self._points = sorted(points, key=lambda point: (point.gpus, point.speed))
        self._sizes = sorted({point.gpus for point in points})
        self._unit = self._points[0]
        self._noise = math.sqrt(math.fsum(one.error * one.error for one in points) / len(points))
        self._parallel, self._serial = self._fit()
        self._spread = self._residual()

    @property
    def sizes(self) -> int:
        """Number of different measured sizes."""
        return len(self._sizes)

    @property
    def serial_share(self) -> float | None:
        """Share of a sample's time on the smallest size that more GPUs do not shorten."""
        return None if self.sizes < 2 else self._serial / (self._parallel + self._serial)

    @property
    def falls(self) -> bool:
        """Whether the largest size is slower than a smaller one, which the law excludes."""
        speeds = list(map(self._mean, self._sizes))
        return speeds[-1] * (1 + self._noise) < max(speeds)

    def at(self, gpus: int) -> Estimate:
        """Return the throughput on `gpus` GPUs, in samples per second."""
        low, high = self._bounds(gpus)
        if self.sizes == 1 or (self.falls and gpus > self._sizes[-1]):
            return Estimate(low, high, low if low == high else None)
        likely = min(self._likely(gpus), self._ideal(gpus))
        half = self._half_width(gpus)
        if half is not None:
            low, high = max(low, likely / (1 + half)), min(high, likely / max(1 - half, 1e-9))
        return Estimate(min(low, likely), max(high, likely), likely)

    # -- the fit; sizes and GPU-seconds are multiples of the smallest size's

    def _relative(self, point: Point) -> tuple[float, float]:
        """Return a point's size, and its GPU-seconds per sample."""
        size = point.gpus / self._unit.gpus
        return size, size * self._unit.speed / point.speed

    def _design(self) -> list[tuple[float, float]]:
        """Return the rows of the least squares, with relative errors so that sizes count alike."""
        relative = map(self._relative, self._points)
        return [(1 / seconds, size / seconds) for size, seconds in relative]

    def _normal(self) -> tuple[float, float, float]:
        rows = self._design()
        return (
            math.fsum(a * a for a, _ in rows),
            math.fsum(a * b for a, b in rows),
            math.fsum(b * b for _, b in rows),
        )

    def _fit(self) -> tuple[float, float]:
        """Return the parallel and the serial part, both at least 0."""
        if self.sizes == 1:
            return 1.0, 0.0
        rows, (aa, ab, bb) = self._design(), self._normal()
        a, b = math.fsum(a for a, _ in rows), math.fsum(b for _, b in rows)
        determinant = aa * bb - ab * ab
        if determinant <= 0:  # lost in rounding: sizes or speeds differ too little
            return a / aa, 0.0
        parallel, serial = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
        if serial < 0 or parallel + serial <= 0:
            return a / aa, 0.0
        return (parallel, serial) if parallel >= 0 else (0.0, b / bb)

    def _seconds(self, size: float) -> float:
        return self._parallel + self._serial * size

    def _likely(self, gpus: int) -> float:
        size = gpus / self._unit.gpus
        return self._unit.speed * size / self._seconds(size)

    def _residual(self) -> float:
        """Return the relative error of one run: that of the fit, at least that between steps."""
        freedom = len(self._points) - 2
        if self.sizes < 3:
            return self._noise
        misses = (
            self._seconds(size) / seconds - 1 for size, seconds in map(self._relative, self._points)
        )
        return max(self._noise, math.sqrt(math.fsum(miss * miss for miss in misses) / freedom))

    def _half_width(self, gpus: int) -> float | None:
        """Return half the relative interval of a new run's GPU-seconds; None if unverified."""
        if self.sizes < 3:
            return None
        aa, ab, bb = self._normal()
        size, determinant = gpus / self._unit.gpus, aa * bb - ab * ab
        if determinant <= 0:
            return None
        lever = (bb - 2 * ab * size + aa * size * size) / determinant / self._seconds(size) ** 2
        freedom = len(self._points) - 2
        student = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL
        return student * self._spread * math.sqrt(1 + max(0.0, lever))

    # -- what is assumed without the model

    def _bounds(self, gpus: int) -> tuple[float, float]:
        """Return the throughput's bounds: more GPUs are never slower, and never more efficient."""
        speeds = {size: self._mean(size) for size in self._sizes}
        at = bisect_right(self._sizes, gpus)
        below = self._sizes[at - 1] if at else None
        above = self._sizes[at] if at < len(self._sizes) else None
        low, high = 0.0, math.inf
        if below is not None:
            low, high = speeds[below], speeds[below] * gpus / below
        if above is not None:
            low, high = max(low, speeds[above] * gpus / above), min(high, speeds[above])
        elif speeds[self._sizes[-1]] < max(speeds.values()):
            # More GPUs were slower, so even more may be slower still.
            low, high = low * self._sizes[-1] / gpus, low
        low, high = min(low, high), max(low, high)
        return low / (1 + self._noise), high * (1 + self._noise)

    def _ideal(self, gpus: int) -> float:
        """Return the upper bound: the ideal lines of the smallest and the largest size.

        Between measured sizes, only the fit counts.
        """
        if gpus <= self._sizes[-1]:
            return math.inf
        return gpus * min(self._mean(size) / size for size in (self._sizes[0], self._sizes[-1]))

    def _mean(self, size: int) -> float:
        speeds = [point.speed for point in self._points if point.gpus == size]
        return math.fsum(speeds) / len(speeds)
