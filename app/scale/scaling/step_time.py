"""Throughput at unmeasured sizes, from the computation and exchange of one size's step. Pure.

A step of one rank takes `compute + exposed`. `compute` is measured: the rest of the step at the
measured size. The exchange of a step takes

    bytes x passes x (n - 1) / n / bandwidth  +  messages x latency x log2(n)

for n ranks: the bytes that a rank sends in ring all-reduces (two passes, or three with split
parameters) over the slowest part of the ring, and the latency of each message. DDP sends gradients
in messages of 25 MiB during the backward pass, which is two thirds of the computation. The exchange
in that time is hidden, but not free: it slows the computation. The last message cannot be hidden.
If the run measured its exchange, that value counts, and the profile's links only give the ratio for
other sizes.

The model ignores the start of a run, slow data loaders, and waits for slow ranks. Tests compare it
with published tables, row by row.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from lumitui.app.scale.scaling.model import Estimate
from lumitui.remote.site.node import Links

HIDDEN_COST = 0.61
"""Cost in seconds of one second of hidden exchange. Source: arXiv 2507.03114 (A100, H100, MI210,
MI250): overlapped computation is 18.9 % slower than alone, and both in sequence take 10.2 % longer
than overlapped; so an exchange of 0.31 of the computation's time costs 0.189 of it."""
BACKWARD = 2 / 3
"""Share of the computation in which gradients appear: the backward pass, twice the forward pass."""
MESSAGE = 25 * 2**20
"""Bytes per message. Source: PyTorch, DistributedDataParallel, bucket_cap_mb."""
LOW, HIGH = 0.75, 1.1
"""Relative range that contains 8 of 10 published training runs; verified by a test."""
_LEAST_COMPUTE = 0.05
"""Minimum share of computation in a measured step if the profile's links are implausibly slow."""


@dataclass(frozen=True)
class GradientExchange:
    """The exchange between a training run's ranks in a step, with its links."""

    parameters: int
    passes: int
    """How many times their size each rank sends: 2 for an all-reduce, 0 without exchange."""
    links: Links
    bytes_each: int = 4
    """Bytes per gradient: autocast keeps float32."""
    micro_steps: int = 1
    """Batches accumulated in a step; only the last backward pass hides the exchange."""
    slower: float = 1.0
    """Factor of its time over `links` alone, if a run measured it."""

    @property
    def bytes(self) -> int:
        """Bytes of all gradients."""
        return self.parameters * self.bytes_each

    @property
    def messages(self) -> int:
        """Number of messages for the gradients."""
        return max(1, math.ceil(self.bytes / MESSAGE))

    def seconds(self, ranks: int, nodes: int) -> float:
        """Return the seconds of a step's exchange."""
        if ranks < 2 or not self.passes:
            return 0.0
        links = self.links
        if nodes > 1:
            bandwidth = min(links.in_node, links.between_nodes)
            latency = links.latency_between_nodes
        else:
            bandwidth, latency = links.in_node, links.latency_in_node
        sent = self.bytes * self.passes * (ranks - 1) / ranks
        alone = sent / (bandwidth * 1e9) + self.messages * latency * 1e-6 * math.log2(ranks)
        return self.slower * alone

    def exposed(self, ranks: int, nodes: int, compute: float) -> float:
        """Return the seconds that the exchange adds to a step with `compute` seconds."""
        whole = self.seconds(ranks, nodes)
        last = whole / self.messages
        room = BACKWARD * compute / self.micro_steps
        hidden = min(whole - last, room)
        return whole - hidden + HIDDEN_COST * hidden


@dataclass(frozen=True)
class Wire:
    """A run's measured exchange, in seconds per step."""

    seconds: float
    """Time in which gradients were transferred, with waits for slower ranks."""
    exposed: float
    """The part after the last gradient was computed, which lengthens the step."""


@dataclass(frozen=True)
class StepTime:
    """The parts of a step's time, in seconds."""

    compute: float
    exchange: float
    """The whole exchange, hidden or not."""
    exposed: float
    """The part that lengthens the step."""

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.compute + self.exposed


@dataclass(frozen=True)
class CalibratedSize:
    """The size that the model is calibrated on."""

    gpus: int
    nodes: int
    speed: float
    """Samples per second of all ranks."""
    batch: float
    """Samples per rank and step."""
    noise: float = 0.0
    """The relative standard deviation of a step."""
    argument: float | None = None
    """The value of the script's batch argument, if it has one."""
    wire: Wire | None = None
    """None if its run did not measure the exchange."""


@dataclass(frozen=True)
class StepModel:
    """Predicts the throughput of other sizes from one."""

    measured: CalibratedSize
    exchange: GradientExchange

    @cached_property
    def calibrated(self) -> StepTime:
        """The parts of the measured step's time: everything except the exchange is computation."""
        here = self.measured
        step = here.batch * here.gpus / here.speed
        if here.wire is not None:
            exposed = min(here.wire.exposed, (1 - _LEAST_COMPUTE) * step)
            return StepTime(step - exposed, here.wire.seconds, exposed)
        low, high = _LEAST_COMPUTE * step, step
        for _ in range(60):  # the exposed part depends on the computation
            middle = (low + high) / 2
            if middle + self.exchange.exposed(here.gpus, here.nodes, middle) < step:
                low = middle
            else:
                high = middle
        exchange = self.exchange.seconds(here.gpus, here.nodes)
        return StepTime(low, exchange, step - low)

    def step(self, gpus: int, nodes: int, batch: float = 1.0) -> StepTime:
        """Return the parts of a step's time at another size.

        `batch`: the ratio of samples per rank and step to the calibrated size.
        """
        compute, exchange = self.calibrated.compute * batch, self.exchange
        seconds = exchange.seconds(gpus, nodes)
        exposed = exchange.exposed(gpus, nodes, compute)
        here = self.measured
        if here.wire is not None and seconds:
            # The model's error at the measured size is known; correct for it.
            expected = exchange.exposed(here.gpus, here.nodes, self.calibrated.compute)
            exposed = max(0.0, exposed + self.calibrated.exposed - expected)
        return StepTime(compute, seconds, exposed)

    def at(self, gpus: int, nodes: int, batch: float = 1.0) -> Estimate:
        """Return the throughput in samples per second, with the range of 8 of 10 trainings."""
        step, size = self.step(gpus, nodes, batch), self.measured.batch * batch * gpus
        likely = size / step.seconds
        # Never more than ideal, nor faster than the measured steps allow.
        ideal = size / min(step.compute, self.calibrated.seconds * batch)
        most = max(likely, min(likely * HIGH, ideal * (1 + self.measured.noise)))
        return Estimate(likely * LOW, most, likely)
