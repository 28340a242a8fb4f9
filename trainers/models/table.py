"""The networks that can be trained, and the table that names them.

To add one: its code in a file of this folder, and a row of MODELS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from data.shares import seed_of
from engine.reporting import UsageError
from models import digits, gpt2, llama, resnet, vit


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


IMAGENET = Shape("images", (3, 224, 224), 1000)
CIFAR = Shape("images", (3, 32, 32), 10)


def _text(length: int, vocabulary: int) -> Shape:
    return Shape("tokens", (length,), vocabulary)


def _of(make: Callable[..., nn.Module], *first: object) -> Callable[[Shape], nn.Module]:
    """Build from `first`, the input's axes and the number of classes."""
    return lambda shape: make(*first, *shape.input, shape.classes)


_PUBLISHED_WITH = {
    "resnet18-cifar": CIFAR,
    "resnet-tiny": CIFAR,
    "vit-tiny": CIFAR,
    "gpt2-tiny": _text(64, 256),
    "llama-tiny": _text(64, 256),
}


def _rows(
    task: str,
    make: Callable[..., nn.Module],
    sizes: Mapping[str, object],
    sample: Shape,
    blocks: tuple[str, ...],
) -> dict[str, Model]:
    return {
        name: Model(task, _of(make, size), _PUBLISHED_WITH.get(name, sample), blocks)
        for name, size in sizes.items()
    }


MODELS: dict[str, Model] = {
    # Batch norm sees a rank's own images only: its results depend on the world size.
    "cnn": Model("classify", _of(digits.Cnn, nn.BatchNorm2d), DIGITS),
    # Group norm looks at one image at a time: any world size gives the same training.
    "cnn-gn": Model("classify", _of(digits.Cnn, digits.groups_of_four), DIGITS),
    "vit": Model("classify", _of(digits.VisionTransformer), DIGITS, ("TransformerEncoderLayer",)),
    "autoencoder": Model("rebuild", _of(digits.Autoencoder), DIGITS),
    **_rows("classify", vit.Vit, vit.SIZES, IMAGENET, ("Block",)),
    **_rows("classify", resnet.ResNet, resnet.SIZES, IMAGENET, ("BasicBlock", "Bottleneck")),
    **_rows("next-token", gpt2.Gpt2, gpt2.SIZES, _text(1024, 50_257), ("Block",)),
    **_rows("next-token", llama.Llama, llama.SIZES, _text(2048, 32_000), ("Layer",)),
}
"""Rows whose name ends with -tiny are the same code as the others, small enough for a test."""


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
    try:
        return row.build(shape)
    except ValueError as error:
        height, width = shape.input[1:]
        raise UsageError(
            f"The model {name} can't take images of {height}x{width}: {error}. "
            "Choose another --model, or images of another size."
        ) from error


def size(model: nn.Module) -> int:
    """How many parameters a model has; ZeRO stage 3 keeps their full size beside its parts."""
    return sum(getattr(weight, "ds_numel", weight.numel()) for weight in model.parameters())
