"""How a training run is distributed over ranks: the interface of a strategy.

engine/training.py handles data, steps and checkpoints; a strategy handles the model, the optimizer
and the distribution of their parts. A new strategy is a class with these members, and a start
script in the top folder. Keep this file: Python prefers any regular package on PYTHONPATH to a
folder without one.
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
"""Returns the mean loss of a batch, from the model's outputs, its inputs and the targets."""


class Strategy(Protocol):
    """A model and its optimizer on all ranks. Every rank calls every method, in the same order."""

    name: str
    """Its name: ddp, zero1, …"""
    module: nn.Module
    """The model without its training wrapper, for evaluation and reading weights."""
    optimizer_name: str
    lr: float
    """The highest learning rate."""
    micro_batch: int
    """Samples per rank and forward pass."""
    accumulate: int
    """Micro batches per step. A global batch is micro_batch x accumulate x ranks."""
    precision: str
    """Precision of the matrix products: fp32, bf16, or DeepSpeed's fp16."""

    def rate(self, done: float, step: int) -> float:
        """Return the learning rate after `step` steps and this share (0 to 1) of the samples."""

    def loss(self, inputs: Tensor, targets: Tensor, last: bool) -> Tensor:
        """Return the mean loss of a micro batch in float32; `last` as in `backward`."""

    def predict(self, inputs: Tensor) -> Tensor:
        """Return the model's outputs in evaluation, in float32.

        Every rank calls it equally often, possibly with an empty batch.
        """

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add a micro batch's gradient; after the step's `last`, the ranks' gradients are averaged.

        `loss` is the mean over the micro batch, divided by `accumulate` here. If not finite, it
        makes the gradient on all ranks not finite.
        """

    def step(self, lr: float) -> Tensor:
        """Update the weights, unless the gradient is not finite; clear the gradient.

        Returns the gradient norm over all weights and ranks, before clipping. If it is not finite,
        no weight was changed on any rank.
        """

    def communication(self) -> dict[str, float]:
        """Return the seconds of a backward pass spent on communication, if known."""

    def stage(self, folder: Path, copy: bool) -> Write:
        """Capture this rank's state for a save in an existing folder; see saving/saver.py.

        All ranks write when the returned function is called: with `copy`, in a thread during
        training. Both raise OSError or RuntimeError on failures.
        """

    def load(self, folder: Path, saved_by: int) -> None:
        """Resume from a save by `saved_by` ranks, at this run's rate; UsageError if it is bad."""


@dataclass(frozen=True)
class Setup:
    """What a strategy is built from, in an existing process group."""

    args: argparse.Namespace
    me: Ranks
    device: torch.device
    build: Callable[[], nn.Module]
    """Builds the model on the CPU, with the same initial weights on every rank; or under
    `torch.device("meta")`, without memory."""
    loss: Loss
    example: tuple[Tensor, Tensor]
    """Two inputs of the model with their targets, on the device."""


Make: TypeAlias = Callable[[Setup], Strategy]
