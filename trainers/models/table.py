"""The networks that can be trained, and the table that names them.

To add one: its code in a file of this folder, and a row of MODELS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from data.shares import seed_of
from engine.reporting import UsageError
from models import digits


@dataclass(frozen=True)
class Shape:
    """What one sample of the data is like."""

    kind: str
    """"images" or "tokens"."""
    input: tuple[int, ...]
    """(channels, height, width) of an image, or (length,) of a text."""
    classes: int
    """How many classes there are, or how many words the vocabulary has."""


@dataclass(frozen=True)
class Model:
    """A row of MODELS.

    The network's forward pass takes floats (batch, channels, height, width) or int64 tokens
    (batch, length). It gives logits (batch, classes) for the task "classify", logits (batch,
    length, vocabulary) for "next-token", and images like its input for "rebuild".
    """

    task: str
    """What it learns, and by which loss: "classify", "next-token" or "rebuild"."""
    build: Callable[[Shape], nn.Module]
    """Makes it for data of this shape."""
    sample: Shape
    """The data it was published with; synthetic data look like this."""
    blocks: tuple[str, ...] = ()
    """Names of the classes of its repeated layers: fsdp gathers the weights of one at a time,
    and activations can be computed again from one to the next."""


DIGITS = Shape("images", (1, 28, 28), 10)
"""MNIST."""


def _image(make: Callable[[int, int, int], nn.Module]) -> Callable[[Shape], nn.Module]:
    """Turn a maker for (channels, side, classes) of square images into one for a Shape."""

    def build_it(shape: Shape) -> nn.Module:
        channels, height, width = shape.input
        if height != width:
            raise UsageError(
                f"This model needs square images, but the data have {height}x{width} pixels. "
                "Crop them when they are packed."
            )
        return make(channels, height, shape.classes)

    return build_it


MODELS: dict[str, Model] = {
    # Batch norm sees a rank's own images only: its results depend on the world size.
    "cnn": Model("classify", _image(digits.cnn), DIGITS),
    # Group norm looks at one image at a time: any world size gives the same training.
    "cnn-gn": Model("classify", _image(digits.cnn_with_groups), DIGITS),
    "vit": Model(
        "classify", _image(digits.VisionTransformer), DIGITS, ("TransformerEncoderLayer",)
    ),
}


def build(name: str, shape: Shape, seed: int) -> nn.Module:
    """Build a model of MODELS for these data, with the same first weights on every rank.

    Under `torch.device("meta")` it takes no memory: enough to count its parameters.

    Raises:
        UsageError: the model reads another kind of data, or images of another size.
    """
    row = MODELS[name]
    if row.sample.kind != shape.kind:
        raise UsageError(
            f"The model {name} reads {row.sample.kind}, but the data are {shape.kind}. "
            "Choose another --model or other --data."
        )
    torch.manual_seed(seed_of(seed))
    return row.build(shape)


def size(model: nn.Module) -> int:
    """How many parameters a model has; ZeRO stage 3 keeps their full size beside its parts."""
    return sum(getattr(weight, "ds_numel", weight.numel()) for weight in model.parameters())
