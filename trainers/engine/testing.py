"""A test of the model on samples that it does not learn from, by all ranks together."""

from __future__ import annotations

from math import prod

import torch
import torch.distributed as dist
from torch import Tensor

from data.loading import Batches
from data.samples import DataSet
from data.shares import TestingShares
from engine.ranks import Ranks, average
from engine.stop_request import STOP
from engine.tasks import Task
from models.table import Shape
from strategies.strategy import Strategy

VALUES = 2**19
"""Inputs or logits of a batch, if that is more samples than a micro batch: a test keeps nothing
for a backward pass, and larger batches are faster."""


@torch.no_grad()
def test(
    strategy: Strategy,
    data: DataSet,
    task: Task,
    me: Ranks,
    device: torch.device,
    *,
    workers: int = 0,
) -> float | None:
    """The task's figure; each rank tests its part.

    Returns:
        None when a rank was asked to stop: a test may take longer than the time that is left.
    """
    for buffer in strategy.module.buffers():  # batch norm's means differ by rank; rank 0's count
        dist.broadcast(buffer, src=0)
    total = torch.zeros((), dtype=torch.float64, device=device)
    batch = max(strategy.micro_batch, VALUES // _values(data.shape))
    shares = TestingShares(len(data.test), batch, me.rank, me.world_size)
    strategy.module.eval()
    try:
        with Batches(data.test, shares, data.view(), device, workers=workers) as batches:
            for inputs, targets in batches:
                if average([STOP.wanted()], device)[0]:
                    return None
                total += _score(strategy, task, inputs, targets)
    finally:
        strategy.module.train()
    dist.all_reduce(total)
    return total.item() / len(data.test)


def _score(strategy: Strategy, task: Task, inputs: Tensor, targets: Tensor) -> Tensor:
    outputs = strategy.predict(inputs)  # of an empty batch too: ZeRO stage 3 gathers weights in it
    return task.score(outputs, inputs, targets).double()


def _values(shape: Shape) -> int:
    """Of a sample: its input, or what a language model says of it."""
    return prod(shape.input) * (shape.classes if shape.kind == "tokens" else 1)
