"""Where the time of the steps goes: the data, the passes, the optimizer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

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


def communication(module: nn.Module) -> dict[str, float]:
    """Seconds of a backward pass in which DDP's gradients were on their way, as DDP measured them.

    `communication_s` counts the wait for slower ranks, too; `exposed_s` is the part of it after
    the last gradient was computed, which costs time. DDP measures the first ten passes and then
    each hundredth. Of another strategy nothing is known.
    """
    if not isinstance(module, DistributedDataParallel):
        return {}
    # The name says private, but the class documents it (torch 2.13, nn/parallel/distributed.py).
    told = module._get_ddp_logging_data()  # type: ignore[no-untyped-call]
    sending = told.get("avg_backward_comm_time", 0)
    if not sending:
        return {}
    hidden = told.get("avg_backward_compute_comm_overlap_time", 0)
    return {"communication_s": sending / 1e9, "exposed_s": max(0, sending - hidden) / 1e9}
