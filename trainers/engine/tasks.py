"""What a model learns: the loss of a micro batch, and the figure that a test gives.

A model names its task in its row of models/table.py. To add one: a row of TASKS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

Of = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes the model's outputs, its inputs, and the targets."""


@dataclass(frozen=True)
class Task:
    """A row of TASKS."""

    loss: Of
    """The mean over the samples."""
    score: Of
    """The sum, over the samples, of what a test reports the mean of."""
    figure: str
    """That mean's name in metrics.jsonl."""


def _right(logits: Tensor, inputs: Tensor, classes: Tensor) -> Tensor:
    return (logits.argmax(dim=1) == classes).sum()


def _next(logits: Tensor, inputs: Tensor, tokens: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def _next_in_all(logits: Tensor, inputs: Tensor, tokens: Tensor) -> Tensor:
    flat = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="sum")
    return flat / tokens.shape[1]


def _distance_in_all(images: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
    return functional.mse_loss(images, inputs.float(), reduction="sum") / inputs[:1].numel()


TASKS: dict[str, Task] = {
    "classify": Task(
        lambda logits, inputs, classes: functional.cross_entropy(logits, classes),
        _right,
        "test_accuracy",
    ),
    "next-token": Task(_next, _next_in_all, "test_loss"),
    "rebuild": Task(
        lambda images, inputs, targets: functional.mse_loss(images, inputs.float()),
        _distance_in_all,
        "test_loss",
    ),
}
"""By name: name a class, say the next token, give the image back."""
