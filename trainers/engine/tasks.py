"""What a model learns, and a test on samples that it does not learn from, by all ranks together.

A model names its task in its row of models/table.py. To add one: a row of TASKS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from data.loading import TestingShares, open_batches
from data.samples import DataSet, Shape
from engine.ranks import Ranks, average
from monitor.stop_request import STOP
from strategies import Strategy

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
        with open_batches(data.test, shares, data.view(), device, workers=workers) as batches:
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
    if task.figure == ACCURACY:
        return (outputs.argmax(dim=1) == targets).sum()
    if not len(inputs):  # the mean of nothing is not a number
        return outputs.new_zeros(())
    return task.loss(outputs, inputs, targets).double() * len(inputs)


def _values(shape: Shape) -> int:
    """Of a sample: its input, or what a language model says of it."""
    return prod(shape.input) * (shape.classes if shape.kind == "tokens" else 1)


ACCURACY = "test_accuracy"


@dataclass(frozen=True)
class Task:
    """A row of TASKS."""

    loss: Callable[[Tensor, Tensor, Tensor], Tensor]
    """The mean over the samples, from the model's outputs, its inputs, and the targets."""
    figure: str = "test_loss"
    """What a test reports, by its name in metrics.jsonl: the loss, or ACCURACY."""


TASKS: dict[str, Task] = {
    "classify": Task(
        lambda logits, inputs, classes: functional.cross_entropy(logits, classes), ACCURACY
    ),
    "next-token": Task(
        lambda logits, inputs, tokens: functional.cross_entropy(
            logits.flatten(0, 1), tokens.flatten()
        )
    ),
    "rebuild": Task(lambda images, inputs, targets: functional.mse_loss(images, inputs.float())),
}
"""By name: name a class, say the next token, give the image back."""
