"""The spread of a training over its ranks: the interface of a strategy.

engine/training.py knows the data, the steps and the checkpoints; a strategy knows the model, the
optimizer and where their parts are. A new one is a class with these members, and a file at the
top that a person starts. This file must stay: Python prefers any regular package on PYTHONPATH to
a folder without one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn

from engine.ranks import Ranks
from saving.saver import Write

Loss: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The mean loss of a batch, from the model's outputs, its inputs, and the targets."""


class Strategy(Protocol):
    """A model and its optimizer, on all ranks. Every rank calls every method, in the same order."""

    name: str
    """As the table of strategies has it: ddp, zero1, …"""
    module: nn.Module
    """The model without its training wrapper: for tests, and to read its weights."""
    optimizer_name: str
    lr: float
    """The highest learning rate."""
    micro_batch: int
    """Samples of a rank in one forward pass."""
    accumulate: int
    """Micro batches of a step. A global batch is micro_batch x accumulate x ranks."""
    precision: str
    """Of the matrix products: fp32, bf16, or DeepSpeed's fp16."""

    def rate(self, done: float, step: int) -> float:
        """The learning rate after `step` steps, when this share (0 to 1) of the samples is done."""

    def loss(self, inputs: Tensor, targets: Tensor, last: bool) -> Tensor:
        """The mean loss of a micro batch, in float32; `last` as in `backward`."""

    def predict(self, inputs: Tensor) -> Tensor:
        """The model's outputs in a test, in float32.

        Every rank calls it equally often, perhaps with no sample at all.
        """

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add a micro batch's part to the gradient.

        Args:
            loss: the mean over the micro batch; it is divided by `accumulate` here. One that is not
                finite makes the gradient of all ranks not finite.
            last: whether it is the step's last, after which the ranks' gradients are averaged.
        """

    def step(self, lr: float) -> Tensor:
        """Change the weights, unless the gradient is not finite; forget the gradient.

        Returns:
            The length of the gradient of all weights and ranks, before clipping. Not finite: no
            weight was changed, on any rank.
        """

    def communication(self) -> dict[str, float]:
        """Seconds of a backward pass that the gradients were on their way, where that is known."""

    def stage(self, folder: Path, copy: bool) -> Write:
        """Take this rank's state for a save in an existing folder; see saving/saver.py.

        Args:
            folder: where all ranks write, when the function that is returned is called.
            copy: that happens in a thread while the training goes on.

        Raises:
            OSError, RuntimeError: it can't be taken; what it returns raises these when writing.
        """

    def load(self, folder: Path, saved_by: int) -> None:
        """Resume from a save by `saved_by` ranks, with the learning rate of this run.

        Raises:
            UsageError: it can't be read.
        """


@dataclass(frozen=True)
class Setup:
    """The basis of a strategy, in an existing process group."""

    args: argparse.Namespace
    me: Ranks
    device: torch.device
    build: Callable[[], nn.Module]
    """Makes the model on the CPU, with the same initial weights on every rank; or under
    `torch.device("meta")`, where it takes no memory."""
    loss: Loss
    example: tuple[Tensor, Tensor]
    """Two of the model's inputs with their targets, on the device."""


Make: TypeAlias = Callable[[Setup], Strategy]
