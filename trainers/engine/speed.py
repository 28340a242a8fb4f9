"""How fast a training is: its operations, memory, and where a step's time goes.

Operations are the matrix products, as is usual for MFU (Chowdhery et al. 2022, arXiv:2204.02311,
appendix B): a multiplication and an addition are two, and causal attention counts whole. Norms,
activations and what a checkpoint of activations computes again are not counted.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from data.samples import Shape
from models.table import build

DATA = "data_s"
"""Waiting for the next batch."""
PASSES = "forward_backward_s"
"""Forward and backward passes, with what the ranks send meanwhile."""
OPTIMIZER = "optimizer_s"
"""The gradient's length, clipping and the new weights, with what the ranks wait for there."""


class Clock:
    """Times the parts of steps, and never waits for the GPU until it is read.

    The host only queues a GPU's work: what happens between two events in that queue is measured
    by them. Waiting for data is the host's time on any device.
    """

    def __init__(self, device: torch.device) -> None:
        """Measure on this device."""
        self._on_gpu = device.type == "cuda"
        self._host: dict[str, float] = {}
        self._events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time inside as this part's."""
        if self._on_gpu and name != DATA:
            began, ended = _event(), _event()
            began.record()
            yield
            ended.record()
            self._events.append((name, began, ended))
        else:
            since = time.perf_counter()
            yield
            self._host[name] = self._host.get(name, 0.0) + time.perf_counter() - since

    def read(self) -> dict[str, float]:
        """Return the seconds of each part since the last call; wait until the GPU is there.

        On a GPU they may add up to more than went by: it works while the host waits for data.
        """
        spent = self._host
        for name, began, ended in self._events:
            ended.synchronize()
            spent[name] = spent.get(name, 0.0) + began.elapsed_time(ended) / 1000
        self._host, self._events = {}, []
        return spent


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Figures:
    """What turns samples a second into the other figures."""

    flops: int
    """Of one sample's forward pass."""
    tokens: int | None
    """Of one sample; None where it is no text."""
    ranks: int
    peak: float | None
    """Operations a second that a rank's card could do; None where the card isn't known."""
    precision: str
    """That the peak is of."""

    @classmethod
    def of(
        cls, model: str, shape: Shape, ranks: int, device: torch.device, precision: str
    ) -> Figures:
        """Count a model of the table, and look this rank's card up."""
        convolves = model.startswith(("cnn", "resnet"))
        most = None
        if device.type == "cuda":
            from engine.cards import arithmetic, device_name, peak

            precision = arithmetic(precision, convolves=convolves)
            most = peak(device_name(device), precision)
        return cls(
            flops(model, shape),
            shape.input[0] if shape.kind == "tokens" else None,
            ranks,
            most,
            precision,
        )

    def start(self) -> dict[str, float | str | None]:
        """Facts for the start line: with them anybody can check the others."""
        peak = None if self.peak is None else self.peak / 1e12
        return {"forward_flops": self.flops, "precision": self.precision, "peak_tflops": peak}

    def step(self, samples_per_s: float) -> dict[str, float]:
        """The figures of a speed over all ranks; those that have no meaning here are left out.

        `tflops` is of one rank's card, `mfu` the share of its peak (0 to 1), `tokens_per_s` is
        over all ranks.
        """
        achieved = TRAINING * self.flops * samples_per_s / self.ranks
        found = {"tflops": achieved / 1e12}
        if self.peak:
            found["mfu"] = achieved / self.peak
        if self.tokens:
            found["tokens_per_s"] = self.tokens * samples_per_s
        return found


def memory(device: torch.device) -> dict[str, float]:
    """The most memory that this process has used until now, in GiB: the GPU's, else the node's.

    `reserved_gib` is what PyTorch has taken from the GPU to divide it by itself.
    """
    if device.type == "cuda":
        return {
            "memory_gib": torch.cuda.max_memory_allocated(device) / 2**30,
            "reserved_gib": torch.cuda.max_memory_reserved(device) / 2**30,
        }
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return {"memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30}


TRAINING = 3
"""A step costs a forward pass and, for two gradients each product, a backward pass of twice it."""


def flops(model: str, shape: Shape) -> int:
    """Operations of one sample's forward pass through a model of the table.

    A copy of it without memory (torch.device("meta")) runs once: the result is the same whatever
    the strategy, the precision and the device are.
    """
    counter = FlopCounterMode(display=False)
    kind = torch.float32 if shape.kind == "images" else torch.int64
    # The random numbers of the training must not depend on whether this was called.
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        net = build(model, shape, 0).eval()
        with counter:
            net(torch.zeros((1, *shape.input), dtype=kind))
    return counter.get_total_flops()
