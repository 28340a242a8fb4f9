"""Throughput at unmeasured sizes, from one size: a step's computation and exchange. Pure.

A step of one rank takes `compute + exposed`. `compute` is measured: it is what is left of the
step on the size that was run. The exchange of a step takes

    bytes x passes x (n - 1) / n / bandwidth  +  messages x latency x log2(n)

for n ranks: the bytes that a rank sends in ring all-reduces (two passes), or with split
parameters (three), over the slowest part of the ring, and what each message waits. DDP sends
gradients in messages of 25 MiB while the backward pass continues, which is two thirds of the
computing. What fits into that time is hidden, but not free: it slows the computing down. The last
message has nothing left to hide behind. Where the run measured its own exchange, that counts: the
profile's links then only say how many times as long it takes on other sizes.

What the model does not know: the start of a run, loaders that cannot follow, ranks that wait for
a slow one. The tests hold it to the published tables, row by row.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from lumitui.app.scale.scaling.model import Estimate
from lumitui.remote.site.node import Links

HIDDEN_COST = 0.61
"""Cost in seconds of a second of hidden exchange. Source: arXiv 2507.03114 (A100, H100, MI210,
MI250): overlapped computing is 18.9 % slower than alone, and both in sequence take 10.2 % longer
than overlapped; so exchanging 0.31 of the computing's time costs 0.189 of it."""
BACKWARD = 2 / 3
"""The share of the computing in which gradients appear: twice the forward pass."""
MESSAGE = 25 * 2**20
"""Bytes of a message. Source: PyTorch, DistributedDataParallel, bucket_cap_mb."""
LOW, HIGH = 0.75, 1.1
"""Range of the prediction that 8 of 10 published trainings reached; verified by a test."""
_LEAST_COMPUTE = 0.05
"""Minimum rest of a measured step if the profile's links are implausibly slow."""


@dataclass(frozen=True)
class GradientExchange:
    """The exchange of a training's ranks in a step, and its links."""

    parameters: int
    passes: int
    """How often their size is sent by each rank: 2 for an all-reduce, 0 where nothing is."""
    links: Links
    bytes_each: int = 4
    """Of a gradient: autocast keeps float32."""
    micro_steps: int = 1
    """Batches that are accumulated in a step; only the last one's backward pass hides anything."""
    slower: float = 1.0
    """Factor of its time over `links` alone, if a run measured it."""

    @property
    def bytes(self) -> int:
        """Of all gradients."""
        return self.parameters * self.bytes_each

    @property
    def messages(self) -> int:
        """How many messages carry them."""
        return max(1, math.ceil(self.bytes / MESSAGE))

    def seconds(self, ranks: int, nodes: int) -> float:
        """Return how long the exchange of a step takes."""
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
        """Return the exchange's extension of a step with `compute` seconds of computation."""
        whole = self.seconds(ranks, nodes)
        last = whole / self.messages
        room = BACKWARD * compute / self.micro_steps
        hidden = min(whole - last, room)
        return whole - hidden + HIDDEN_COST * hidden


@dataclass(frozen=True)
class Wire:
    """A run's measured exchange, in seconds per step."""

    seconds: float
    """In which gradients were on their way, with the wait for slower ranks."""
    exposed: float
    """The part after the last gradient was computed, which extends the step."""


@dataclass(frozen=True)
class StepTime:
    """Where the seconds of a step go."""

    compute: float
    exchange: float
    """All of it, hidden or not."""
    exposed: float
    """The extension of the step."""

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
    """Samples a second of all ranks."""
    batch: float
    """Samples of one rank in a step."""
    noise: float = 0.0
    """The relative standard deviation of a step."""
    argument: int | None = None
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
        """The parts of the measured step's time: everything except exchange is computation."""
        here = self.measured
        step = here.batch * here.gpus / here.speed
        if here.wire is not None:
            exposed = min(here.wire.exposed, (1 - _LEAST_COMPUTE) * step)
            return StepTime(step - exposed, here.wire.seconds, exposed)
        low, high = _LEAST_COMPUTE * step, step
        for _ in range(60):  # what is exposed grows with what hides it
            middle = (low + high) / 2
            if middle + self.exchange.exposed(here.gpus, here.nodes, middle) < step:
                low = middle
            else:
                high = middle
        exchange = self.exchange.seconds(here.gpus, here.nodes)
        return StepTime(low, exchange, step - low)

    def step(self, gpus: int, nodes: int, batch: float = 1.0) -> StepTime:
        """Return the parts of a step's time at another size.

        `batch` is how many times the samples a rank has in a step, there.
        """
        compute, exchange = self.calibrated.compute * batch, self.exchange
        seconds = exchange.seconds(gpus, nodes)
        exposed = exchange.exposed(gpus, nodes, compute)
        here = self.measured
        if here.wire is not None and seconds:
            # What the model gives for the measured size is known to be wrong by so much.
            expected = exchange.exposed(here.gpus, here.nodes, self.calibrated.compute)
            exposed = max(0.0, exposed + self.calibrated.exposed - expected)
        return StepTime(compute, seconds, exposed)

    def at(self, gpus: int, nodes: int, batch: float = 1.0) -> Estimate:
        """Return the throughput in samples a second, and the range of 8 of 10 trainings."""
        step, size = self.step(gpus, nodes, batch), self.measured.batch * batch * gpus
        likely = size / step.seconds
        # More than ideal, and faster than the measured steps may be, is nothing to hope for.
        ideal = size / min(step.compute, self.calibrated.seconds * batch)
        most = max(likely, min(likely * HIGH, ideal * (1 + self.measured.noise)))
        return Estimate(likely * LOW, most, likely)
