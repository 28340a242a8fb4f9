"""The last steps, whose results are still on the device.

To read a number from a GPU the CPU has to wait until the GPU has come to it, and the GPU then
waits for the CPU's next orders. So the losses of several steps are read at once, with one
collective that also says whether a rank was asked to stop.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

WITHIN = 2.0
"""Seconds: a wish to stop waits for no longer than that, or for one step."""


@dataclass(frozen=True)
class Taken:
    """A step that was given to the device."""

    step: int
    epoch: int
    lr: float
    loss: Tensor
    """This rank's mean."""
    norm: Tensor
    """Of the gradient of all ranks; not finite where no weight was changed."""


@dataclass(frozen=True)
class Read:
    """A step whose results are known."""

    taken: Taken
    loss: float
    """The mean over all ranks."""
    norm: float
    seconds: float
    """The window's time, in equal parts: nobody saw when this step ended."""
    ended: float
    """By time.monotonic(), in the same way."""


class Window:
    """Every rank adds the same steps and reads after the same one of them."""

    def __init__(self, log_every: int, device: torch.device) -> None:
        """Begin with a window of one step: its time says how long the next may be."""
        self._log_every, self._device = log_every, device
        self._most = 1
        self._taken: list[Taken] = []
        self._began = 0.0

    def begin(self) -> None:
        """Note that a step begins."""
        if not self._taken:
            self._began = time.monotonic()

    def add(self, taken: Taken) -> None:
        """Add a step."""
        self._taken.append(taken)

    @property
    def full(self) -> bool:
        """Whether it is time to read."""
        at_line = bool(self._taken) and self._taken[-1].step % self._log_every == 0
        return at_line or len(self._taken) >= self._most

    def read(self, wanted: bool) -> tuple[list[Read], bool]:
        """Wait for the device; return the steps, and whether any rank is asked to stop.

        One collective, and none when there is nothing to read.
        """
        count = len(self._taken)
        if not count:
            return [], False
        own = torch.tensor([float(wanted), time.monotonic() - self._began], device=self._device)
        losses = [one.loss for one in self._taken]
        total = torch.cat([torch.stack([*losses, *(one.norm for one in self._taken)]), own])
        dist.all_reduce(total)
        values = (total / dist.get_world_size()).tolist()
        ended = time.monotonic()
        share = (ended - self._began) / count
        read = [
            Read(one, values[at], values[count + at], share, self._began + share * (at + 1))
            for at, one in enumerate(self._taken)
        ]
        self._taken = []
        # The same number on every rank, since it comes from the collective.
        a_step = max(values[-1] / count, 1e-9)
        self._most = max(1, min(self._log_every, math.floor(WITHIN / a_step)))
        return read, bool(values[-2])
