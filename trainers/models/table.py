"""The available networks, in a table.

To add one, put its code into a file in this folder and add a row to MODELS. The file is imported
when the network is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

import torch
from torch import nn

from data.loading import seed_of
from data.samples import Shape
from engine.exits import UsageError


@dataclass(frozen=True)
class Model:
    """A row of MODELS.

    The network's forward pass takes floats (batch, channels, height, width) or int64 tokens (batch,
    length). It returns logits (batch, classes) for the task "classify", logits (batch, length,
    vocabulary) for "next-token", and images like its input for "rebuild".
    """

    task: str
    """Its task and loss: "classify", "next-token" or "rebuild"."""
    network: str
    """Its file in this folder and its class, which gets a sample's axes and the number of
    classes."""
    sample: Shape
    """Its original data, whose shape synthetic data have."""
    sizes: Mapping[str, object] = field(default_factory=dict)
    """Further arguments of the class."""
    blocks: tuple[str, ...] = ()
    """Class names of its repeated blocks: fsdp gathers the weights of one block at a time, and
    activations can be recomputed per block."""

    def build(self, shape: Shape) -> nn.Module:
        """Build the network for data of this shape."""
        module, name = self.network.split(".")
        made: nn.Module = getattr(import_module(f"models.{module}"), name)(
            *shape.input, shape.classes, **self.sizes
        )
        return made


DIGITS = Shape("images", (1, 28, 28), 10)
"""MNIST."""
IMAGENET = Shape("images", (3, 224, 224), 1000)
CIFAR = Shape("images", (3, 32, 32), 10)
WEB_TEXT = Shape("tokens", (1024,), 50_257)
LLAMA_TEXT = Shape("tokens", (2048,), 32_000)
TINY_TEXT = Shape("tokens", (64,), 256)


def _vit(dim: int, depth: int, heads: int, sample: Shape = IMAGENET, patch: int = 16) -> Model:
    sizes = {"dim": dim, "depth": depth, "heads": heads, "patch": patch}
    return Model("classify", "vit.Vit", sample, sizes, ("EncoderBlock",))


def _resnet(depths: tuple[int, ...], sample: Shape = IMAGENET, **sizes: object) -> Model:
    sizes |= {"depths": depths}
    return Model("classify", "resnet.ResNet", sample, sizes, ("BasicBlock", "Bottleneck"))


def _gpt2(dim: int, depth: int, heads: int, sample: Shape = WEB_TEXT) -> Model:
    sizes = {"dim": dim, "depth": depth, "heads": heads}
    return Model("next-token", "gpt2.Gpt2", sample, sizes, ("DecoderBlock",))


def _llama(
    dim: int, depth: int, heads: int, groups: int, hidden: int,
    sample: Shape = LLAMA_TEXT, tied: bool = False,
) -> Model:  # fmt: skip
    sizes = {"dim": dim, "depth": depth, "heads": heads, "groups": groups, "hidden": hidden}
    return Model("next-token", "llama.Llama", sample, sizes | {"tied": tied}, ("DecoderLayer",))


MODELS: dict[str, Model] = {
    # Batch norm uses only a rank's own images, so its results depend on the world size.
    "cnn": Model("classify", "digits.Cnn", DIGITS),
    # Group norm uses one image at a time, so the training does not depend on the world size.
    "cnn-gn": Model("classify", "digits.Cnn", DIGITS, {"groups": True}),
    "vit": Model(
        "classify", "digits.VisionTransformer", DIGITS, blocks=("TransformerEncoderLayer",)
    ),
    "autoencoder": Model("rebuild", "digits.Autoencoder", DIGITS),
    # Table 1 of the paper; the smallest is Touvron et al. 2020, arXiv:2012.12877, as DeiT-S.
    "vit-s16": _vit(384, 12, 6),
    "vit-b16": _vit(768, 12, 12),
    "vit-l16": _vit(1024, 24, 16),
    "vit-tiny": _vit(64, 2, 4, CIFAR, patch=8),  # far smaller than others' "tiny"
    # Table 1 of the paper.
    "resnet18": _resnet((2, 2, 2, 2), bottleneck=False),
    "resnet50": _resnet((3, 4, 6, 3), bottleneck=True),
    "resnet18-cifar": _resnet((2, 2, 2, 2), CIFAR, bottleneck=False, small_images=True),
    "resnet-tiny": _resnet((1, 1, 1, 1), CIFAR, bottleneck=True, first=8),
    # Table 2 of the paper, with the heads of the released models.
    "gpt2-124m": _gpt2(768, 12, 12),
    "gpt2-355m": _gpt2(1024, 24, 16),
    "gpt2-774m": _gpt2(1280, 36, 20),
    "gpt2-1.5b": _gpt2(1600, 48, 25),
    "gpt2-tiny": _gpt2(64, 2, 4, TINY_TEXT),
    # MobileLLM-125M, arXiv:2402.14905; TinyLlama-1.1B, arXiv:2401.02385; Llama-2-7B.
    "llama-125m": _llama(576, 30, 9, 3, 1536, tied=True),
    "llama-1b": _llama(2048, 22, 32, 4, 5632),
    "llama-7b": _llama(4096, 32, 32, 32, 11008),
    "llama-tiny": _llama(64, 2, 4, 2, 160, TINY_TEXT),
}
"""Rows named *-tiny use the same code as the others, and are small enough for tests."""


def build(name: str, shape: Shape, seed: int) -> nn.Module:
    """Build a model of MODELS for this data, with the same initial weights on every rank.

    Under `torch.device("meta")`, it takes no memory, which suffices to count parameters.

    Raises:
        UsageError: the model needs another kind of data, or images of another size.
    """
    row = MODELS[name]
    if row.sample.kind != shape.kind:
        raise UsageError(
            f"The model {name} reads {row.sample.kind}, but the data are {shape.kind}. "
            "Choose another --model, or other --data."
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
    """Return the number of parameters; with ZeRO stage 3, the full size, not that of a part."""
    return sum(getattr(weight, "ds_numel", weight.numel()) for weight in model.parameters())
